"""How pins fare in later runs, beside what Spark would do by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import catalog, texts
from aqepilot.display import Column, Listed, Table

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

# What may be said of a pin, and what it means.
STATES = {
    "OFF": "nobody asks it, as its day has come, or it was switched off: Spark decides",
    "NOT_MET": "no run of its query: the query changed, or did not run",
    "DOES_NOT_FIT": "its query ran, and had none of the decisions that it pins: Spark decided",
    "FITS_PARTLY": "the plan of its query has other sub-plans: Spark decided there",
    "REFUSED": "some of its answers could not be carried out: Spark decided there",
    "SPARK_DIFFERS": "it holds, and Spark by itself would now decide otherwise",
    "SPARK_AGREES": "Spark by itself decides now as it says: it may go",
}
_TROUBLES = ("OFF", "NOT_MET", "DOES_NOT_FIT", "REFUSED")
_SIGNATURE = re.compile(r"'([0-9a-f]{16})'")
_FINGERPRINT = re.compile(r"'([0-9a-f]{64})'")
_MOST = 10_000


class PinState(NamedTuple):
    """How one pin fared in the runs of a log.

    Attributes:
        policy: Its name.
        state: A key of `STATES`.
        fingerprints: The queries that it is for.
        runs: Runs of these queries.
        answers: How often it answered.
        differs: How many of these answers Spark by itself would have decided otherwise.
        refused: Of these answers those that were not carried out, by reason.
        detail: Of one of these, in words; null where all were.
        missing: Sub-plans that are pinned and that no run had, by point.
        unknown: Sub-plans of the runs that are not pinned, by point.
    """

    policy: str
    state: str
    fingerprints: tuple[str, ...]
    runs: int
    answers: int
    differs: int
    refused: dict[str, int]
    detail: str | None
    missing: dict[str, int]
    unknown: dict[str, int]

    @property
    def is_trouble(self) -> bool:
        """Whether the next run does not get the pinned plan."""
        return self.state in _TROUBLES


class PinStates(Listed[PinState]):
    """Pins with what became of them, those that do not hold first."""

    __slots__ = ()

    def _table(self, most: int) -> Table:
        head = ("Pin", "State", "Runs", "Answers", "Spark differs", "Why")
        columns = [Column(name, is_number=name in head[2:5]) for name in head]
        rows = [
            (
                *(one.policy, one.state, texts.number(one.runs), texts.number(one.answers)),
                *(texts.number(one.differs), why(one)),
            )
            for one in self[:most]
        ]
        return Table(texts.plural(len(self), "pin"), columns, rows)


def why(one: PinState) -> str:
    """Returns the state in words."""
    refused = ", ".join(f"{code} {times}" for code, times in sorted(one.refused.items()))
    detail = f": {one.detail}" if one.detail else ""
    parts = [f"{refused}{detail}"] if refused else []
    for point in dict.fromkeys([*one.missing, *one.unknown]):
        gone, new = one.missing.get(point, 0), one.unknown.get(point, 0)
        parts.append(f"{point}: {gone} pinned and not there, {new} there and not pinned")
    return ": ".join(filter(None, ["; ".join(parts), STATES[one.state]]))


def pins(log: Frames, names: Iterable[str] = ()) -> PinStates:
    """Returns how pins fared. See `Log.pins`."""
    from pyspark.sql import functions

    col = functions.col
    wanted = list(names)
    is_pin = col("policy").isin(wanted) if wanted else col("policy").startswith("pin_")
    loaded = (
        log.policies.where(is_pin)
        .groupBy("policy", "point")
        .agg(
            functions.max("time").alias("time"),
            *(functions.max_by(name, "time").alias(name) for name in ("text", "when", "mode")),
        )
        .limit(_MOST * len(catalog.point_names()))
        .collect()
    )
    prints = {p for row in loaded for p in _FINGERPRINT.findall(row["when"] or "")}
    runs = {
        row["fingerprint"]: row["runs"]
        for row in log.queries.where(col("fingerprint").isin(prints))
        .groupBy("fingerprint")
        .agg(functions.countDistinct("log", "execution_id").alias("runs"))
        .collect()
    }
    answered = (
        log.decisions.where(is_pin & col("answer").isNotNull())
        .withColumn("is_sparks", functions.expr(_IS_SPARKS))
        .groupBy("policy", "reason", "is_sparks")
        .agg(functions.count("*").alias("times"), functions.max("detail").alias("detail"))
        .collect()
    )
    there = (
        log.decisions.where(col("fingerprint").isin(prints) & col("point").isin([*_SIGNATURES]))
        .select("fingerprint", "point", functions.expr(_NAMES_SQL).alias("names"))
        .groupBy("fingerprint", "point")
        .agg(functions.array_distinct(functions.flatten(functions.collect_set("names"))))
        .collect()
    )
    sub_plans = {(fingerprint, point): {*names} for fingerprint, point, names in there}
    by_policy: dict[str, list[Any]] = {}
    for row in loaded:
        by_policy.setdefault(row["policy"], []).append(row)
    states = [
        _state(own, runs, sub_plans, [one for one in answered if one["policy"] == policy])
        for policy, own in by_policy.items()
    ]
    order = list(STATES)
    return PinStates(sorted(states, key=lambda one: (order.index(one.state), one.policy)))


# Fields that an answer leaves out are Spark's own.
_IS_SPARKS = """
  CASE WHEN fate = 'no_change' THEN true WHEN fate = 'adopted' THEN false
    WHEN answer = spark_answer THEN true
    WHEN answer LIKE '{%' THEN forall(
      map_entries(from_json(answer, 'map<string,string>')),
      e -> coalesce(from_json(spark_answer, 'map<string,string>')[e.key] = e.value, false))
    ELSE false END
"""
_DONE = ("APPLIED", "SHADOW")
# Points that decide before a query runs. Later ones ask about what a race of stages has left.
_SIGNATURES = {
    "join_reorder": "$.chain.signatures",
    "shuffle_partitions": "$.shuffles.signatures",
}
_NAMES_SQL = f"""
  coalesce(from_json(get_json_object(facts, CASE point
    {" ".join(f"WHEN '{point}' THEN '{path}'" for point, path in _SIGNATURES.items())}
  END), 'array<string>'), array())
"""


def _state(
    loaded: Sequence[Any],
    runs: Mapping[str, int],
    sub_plans: Mapping[tuple[str, str], set[str]],
    answered: Sequence[Any],
) -> PinState:
    newest = max(loaded, key=lambda row: row["time"])
    fingerprints = tuple(dict.fromkeys(_FINGERPRINT.findall(newest["when"] or "")))
    own = sum(runs.get(one, 0) for one in fingerprints)
    refused = [row for row in answered if row["reason"] not in _DONE]
    differs = sum(row["times"] for row in answered if not row["is_sparks"])
    answers = sum(row["times"] for row in answered)
    missing, unknown = {}, {}
    for row in loaded:
        point = row["point"]
        pinned = {*_SIGNATURE.findall(row["text"] or "")}
        there = {name for one in fingerprints for name in sub_plans.get((one, point), ())}
        if pinned and there and pinned != there:
            missing[point], unknown[point] = len(pinned - there), len(there - pinned)
    if newest["mode"] == "off":
        state = "OFF"
    elif not own:
        state = "NOT_MET"
    elif not answers:
        state = "DOES_NOT_FIT"
    elif refused:
        state = "REFUSED"
    elif missing:
        state = "FITS_PARTLY"
    else:
        state = "SPARK_DIFFERS" if differs else "SPARK_AGREES"
    reasons: dict[str, int] = {}
    for row in refused:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["times"]
    detail = next((row["detail"] for row in refused if row["detail"]), None)
    return PinState(
        *(newest["policy"], state, fingerprints, own, answers, differs, reasons, detail),
        *(missing, unknown),
    )
