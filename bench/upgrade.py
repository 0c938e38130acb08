"""Does `aqepilot upgrade` find what changed, and nothing else?

`python -m bench.upgrade STEP FOLDER`, with the steps

    run NAME     runs TPC-H in rounds with the recipe watch, as one of NAMES
    compare      prints what upgrade says of A/A, of ten planted changes, and of 3.5 to 4.3

`a` and `b` are the same runs of one Spark; `planted` has ten queries with a setting that changes
their plan; `old` is `a` in another Spark's environment.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests" / "support")]

import submitting  # noqa: E402
import tpch  # noqa: E402
from aqepilot import read_log, recipes  # noqa: E402
from aqepilot.analysis.upgrade.result import Upgrade  # noqa: E402
from aqepilot.analysis.upgrade.shown import headline, sentence  # noqa: E402
from aqepilot.submit.check import local_session  # noqa: E402

JOB = Path(__file__).parent / "jobs" / "upgraded.py"
NAMES = ("a", "b", "planted", "old")
CONF = {
    "spark.sql.autoBroadcastJoinThreshold": "30KB",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.aqepilot.ask.deadline": "5s",
    "spark.aqepilot.policies": "watch",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
_NO_BROADCAST = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
_MANY = {"spark.sql.shuffle.partitions": "300"}
_APART = {"spark.sql.adaptive.coalescePartitions.enabled": "false", **_MANY}
_BACKWARDS = {
    "spark.aqepilot.policies": "backwards,watch",
    "spark.aqepilot.policy.backwards.join_reorder": "double(-candidate.position)",
}
# The queries with a changed plan, and the kind of change that has to be named.
PLANTED: dict[str, tuple[str, dict[str, str]]] = {
    "2": ("strategy", _NO_BROADCAST),
    "8": ("strategy", _NO_BROADCAST),
    "11": ("strategy", _NO_BROADCAST),
    "1": ("number", _MANY),
    "4": ("number", _MANY),
    "12": ("number", _MANY),
    "13": ("tasks", _APART),
    "18": ("tasks", _APART),
    "5": ("order", _BACKWARDS),
    "9": ("order", _BACKWARDS),
}


def run(folder: Path, name: str, rounds: int, scale: float) -> None:
    """Runs the queries of one set of runs."""
    out = folder / name
    (out / "events").mkdir(parents=True, exist_ok=True)
    queries = out / "queries.json"
    queries.write_text(json.dumps({str(n): q for n, q in tpch.queries().items()}), "utf-8")
    planted = {q: conf for q, (_, conf) in PLANTED.items()} if name == "planted" else {}
    words = [str(tpch.files(scale)), str(queries), str(rounds), json.dumps(planted)]
    done = submitting.submit(
        out / "job",
        JOB.read_text("utf-8"),
        conf=CONF
        | recipes.get("watch").to_conf()
        | {"spark.eventLog.dir": (out / "events").as_uri()},
        job_words=words,
        memory="2g",
        timeout_s=3600,
    )
    if done.returncode:
        raise SystemExit(f"the job failed:\n{done.stderr[-3000:]}")


def compare(folder: Path) -> dict[str, Any]:
    """Returns what upgrade says of each pair of runs."""
    result = {}
    with local_session("local[2]", "bench", {"spark.sql.shuffle.partitions": "4"}) as spark:
        logs = {}
        for name in NAMES:
            if (folder / name / "events").is_dir():
                log = read_log(spark, folder / name / "events")
                own = log.queries.where("description NOT LIKE 'warm-up %'")
                logs[name] = log.replace(queries=own)
        for way in (("a", "b"), ("a", "planted"), ("old", "a")):
            if all(name in logs for name in way):
                result[" to ".join(way)] = summary_of(logs[way[0]].upgrade(logs[way[1]]))
    return result


def summary_of(upgrade: Upgrade) -> dict[str, Any]:
    """Returns the changes and verdicts of a comparison, by the query's number."""
    queries = {
        one.pair.before.description: {
            "verdict": one.verdict,
            "ratio": one.times.ratio,
            "kinds": sorted({change.kind for change in one.changes}),
            "changes": [sentence(change) for change in one.changes],
        }
        for one in upgrade.queries
    }
    return {"headline": headline(upgrade), "queries": queries}


def lines(result: Mapping[str, Any]) -> list[str]:
    """Returns what came of it, for a page."""
    rows = []
    for way, one in result.items():
        changed = {n for n, q in one["queries"].items() if q["changes"]}
        verdicts = {n for n, q in one["queries"].items() if q["verdict"] in ("worse", "better")}
        rows.append(f"{way}: {one['headline']}; changed {sorted(changed, key=int)}")
        rows.append(f"  verdicts: {sorted(verdicts, key=int)}")
        if way == "a to planted":
            named = [q for q, (k, _) in PLANTED.items() if k in one["queries"][q]["kinds"]]
            rows.append(f"  planted and named: {len(named)} of {len(PLANTED)}: {named}")
            rows.append(f"  invented: {sorted(changed - PLANTED.keys(), key=int)}")
    return rows


def main() -> None:
    """Does one step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("step", choices=["run", "compare"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("name", nargs="?", choices=NAMES, default="a")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=0.01)
    options = parser.parse_args()
    if options.step == "run":
        run(options.folder, options.name, options.rounds, options.scale)
    else:
        result = compare(options.folder)
        (options.folder / "upgrade.json").write_text(json.dumps(result, indent=1), "utf-8")
        print("\n".join(lines(result)))


if __name__ == "__main__":
    main()
