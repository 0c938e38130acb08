"""What became of the job on an imitated Spark, and the tables of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vendor_forks.running import Fork

OUTCOMES = {
    "off": "decision points are off, and `aqepilot_status()` says what this Spark lacks",
    "policy off": "policies are off, as their text could not be read, and `aqepilot_status()` says"
    " why",
    "counted": "what failed was left to Spark, and counted in `aqepilot_status()`",
    "not told": "`aqepilot_status()` or `aqepilot_decisions()` fails, and names what is missing",
    "logged": "what failed was left to Spark, and the driver's log alone says so",
    "nothing": "nothing was missed: the JVM does not link what it needs for no more than a type",
    "silent": "something was missed, and nobody was told",
    "FAILED": "a query failed, or gave other rows",
}
BAD = ("FAILED", "silent")
KINDS = {
    "probe": "all methods of a name that the extension looks for",
    "class": "a class",
    "constructor": "a constructor",
    "method": "a method",
    "field": "a field",
    "override": "a method that a class of ours overrides; Spark calls another one",
}
WARNS = ("aqepilot", "session extensions")


def of(found: dict[str, Any]) -> str:
    """Returns one of `OUTCOMES`."""
    if found["failed"]:
        return "FAILED"
    said = found.get("said", {})
    rows = [line.split("|") for line in said.get("status", [])]
    if any(row[0] == "point" and "off" in row for row in rows):
        return "off"
    if any(row[0] == "problem" and row[1] == "POLICY_TEXT_INVALID" for row in rows):
        return "policy off"
    names = [row[1] for row in rows if row[1:]]
    if any("INTERNAL_ERROR" in row for row in rows if row[1:]) or any(
        name.startswith("errors") or "EVALUATION_FAILED" in name for name in names
    ):
        return "counted"
    if any(line.startswith("FAILED") for lines in said.values() for line in lines):
        return "not told"
    if any(word in line for line in found["warnings"] for word in WARNS):
        return "logged"
    return "silent" if found["thrown"] else "nothing"


def summary(forks: Sequence[Fork], found: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Returns the numbers of each kind, and what is said of what the extension looks for."""
    all_found = list(found)
    there_are = Counter(f.name.split(" ")[0] for f in forks)
    idle = Counter(f.name.split(" ")[0] for f in forks if f.is_idle)
    counts = Counter((f["fork"].split(" ")[0], of(f)) for f in all_found)
    return {
        "kinds": {
            kind: {
                "there_are": there_are[kind],
                "idle": idle[kind],
                **{o: counts[kind, o] for o in OUTCOMES if counts[kind, o]},
            }
            for kind in KINDS
        },
        "linked": sum(bool(f["thrown"]) for f in all_found),
        "probes": {
            f["fork"].split(" ")[1]: sorted(
                line.split("|")[1]
                for line in f.get("said", {}).get("status", [])
                if line.startswith("point|") and "|off|" in line
            )
            for f in all_found
            if f["fork"].startswith("probe ")
        },
        "notable": {f["fork"]: of(f) for f in all_found if of(f) in (*BAD, "not told", "logged")},
    }
