"""How pins fare in later runs, beside what Spark would do by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import texts
from aqepilot.display import Column, Listed, Table, folded

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

# What may be said of a pin, and what it means.
STATES = {
    "OFF": "nobody asks it, as its day has come, or it was switched off: Spark decides",
    "NOT_MET": "no run of its query: the query changed, or did not run",
    "DOES_NOT_FIT": "its query ran, and had none of the decisions that it pins: Spark decided",
    "REFUSED": "some of its answers could not be carried out: Spark decided there",
    "SPARK_DIFFERS": "it holds, and Spark by itself would now decide otherwise",
    "SPARK_AGREES": "Spark by itself decides now as it says: it may go",
}
_TROUBLES = ("OFF", "NOT_MET", "DOES_NOT_FIT", "REFUSED")
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
    """

    policy: str
    state: str
    fingerprints: tuple[str, ...]
    runs: int
    answers: int
    differs: int
    refused: dict[str, int]
    detail: str | None

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
                *(texts.number(one.differs), folded(why(one))),
            )
            for one in self[:most]
        ]
        return Table(texts.plural(len(self), "pin"), columns, rows)


def why(one: PinState) -> str:
    """Returns the state in words."""
    refused = ", ".join(f"{code} {times}" for code, times in sorted(one.refused.items()))
    detail = f": {one.detail}" if one.detail else ""
    return STATES[one.state] + (f" ({refused}{detail})" if refused else "")


def pins(log: Frames, names: Iterable[str] = ()) -> PinStates:
    """Returns how pins fared. See `Log.pins`."""
    from pyspark.sql import functions

    col = functions.col
    wanted = list(names)
    is_pin = col("policy").isin(wanted) if wanted else col("policy").startswith("pin_")
    loaded = (
        log.policies.where(is_pin)
        .groupBy("policy")
        .agg(
            functions.max("when").alias("when"),
            functions.max_by("mode", "time").alias("mode"),
        )
        .limit(_MOST)
        .collect()
    )
    runs = {
        row["fingerprint"]: row["runs"]
        for row in log.queries.where("fingerprint IS NOT NULL")
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
    states = [
        _state(row, runs, [one for one in answered if one["policy"] == row["policy"]])
        for row in loaded
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


def _state(loaded: Any, runs: dict[str, int], answered: Sequence[Any]) -> PinState:
    fingerprints = tuple(dict.fromkeys(_FINGERPRINT.findall(loaded["when"] or "")))
    own = sum(runs.get(one, 0) for one in fingerprints)
    refused = [row for row in answered if row["reason"] not in _DONE]
    differs = sum(row["times"] for row in answered if not row["is_sparks"])
    answers = sum(row["times"] for row in answered)
    if loaded["mode"] == "off":
        state = "OFF"
    elif not own:
        state = "NOT_MET"
    elif not answers:
        state = "DOES_NOT_FIT"
    elif refused:
        state = "REFUSED"
    else:
        state = "SPARK_DIFFERS" if differs else "SPARK_AGREES"
    reasons: dict[str, int] = {}
    for row in refused:
        reasons[row["reason"]] = reasons.get(row["reason"], 0) + row["times"]
    detail = next((row["detail"] for row in refused if row["detail"]), None)
    return PinState(loaded["policy"], state, fingerprints, own, answers, differs, reasons, detail)
