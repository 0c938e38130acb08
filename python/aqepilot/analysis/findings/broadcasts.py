"""Broadcasts: larger than estimated, too large for the driver, or for a join with a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.findings.finding import Finding, Sources, SuggestedPolicy
from aqepilot.analysis.findings.slow_stages import HAS_SLOW_TASK, slow, stage_sentence
from aqepilot.eventlog.events import expr
from aqepilot.policies import sql_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WRONG = 4
_WRONG_BYTES = 16 << 20
# As the recipe no_broadcast_of_range_joins has it.
_RANGE_BYTES = 1 << 20
_RANGE_OTHER = 16
# As Spark says that a side was too large for the driver.
_TOO_LARGE = (
    "bigger than (?:local )?spark.driver.maxResultSize|Cannot broadcast the table|"
    "Not enough memory to build and broadcast"
)
_UNLIKE_ESTIMATE = """
CASE WHEN join.can_merge AND spark.strategy = 'BROADCAST' AND spark.reason = 'SIZE'
  AND array_join(IF(spark.build_side = 'LEFT', left.tables, right.tables), ', ') = {tables}
  AND IF(spark.build_side = 'LEFT', left.estimate_from, right.estimate_from) <> 'STAGE'
THEN 'SHUFFLE_MERGE' END
"""


def _planned(decisions: DataFrame) -> DataFrame:
    """Sides that Spark broadcast by their estimated size, when the query was planned."""
    return (
        decisions.where("point = 'join_selection' AND NOT applied AND join_id IS NOT NULL")
        .where("NOT f.join.is_replan AND f.spark.strategy = 'BROADCAST'")
        .where("f.spark.reason = 'SIZE'")
        .selectExpr(
            *("log", "execution_id", "join_id", "subject"),
            "f.spark.build_side = 'LEFT' AS is_left",
            "f.join.can_merge AND f.join.has_condition "
            "AND f.join.type IN ('INNER', 'LEFT OUTER', 'RIGHT OUTER') AS has_range",
            "CASE WHEN f.spark.build_side = 'LEFT' THEN f.`left` ELSE f.`right` END AS s",
            "CASE WHEN f.spark.build_side = 'LEFT' THEN f.`right` ELSE f.`left` END AS other",
        )
    )


@dataclass(frozen=True, kw_only=True)
class WrongBroadcast(Finding):
    """A side that Spark broadcast by its estimated size, and that was many times larger."""

    kind = "wrong_broadcast"
    title = "a broadcast larger than estimated"
    needed_point = "dynamic_join_selection"

    subject: str
    tables: str
    estimated_bytes: int
    measured_bytes: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        measured = (
            sources.decisions.where("point = 'dynamic_join_selection' AND join_id IS NOT NULL")
            .selectExpr("log", "execution_id", "join_id", "explode(array(f.side, f.other)) AS m")
            .where("m.is_broadcast OR (m.is_finished AND m.is_plain_stage)")
            .groupBy("log", "execution_id", "join_id", expr("m.is_left").alias("is_left"))
            .agg(expr("max(m.size_in_bytes) AS measured_bytes"))
        )
        task_ms = sources.queries.select("log", "execution_id", "task_ms")
        return (
            _planned(sources.decisions)
            .join(measured, ["log", "execution_id", "join_id", "is_left"])
            .where(f"measured_bytes > greatest({_WRONG_BYTES}, {_WRONG} * s.size_in_bytes)")
            .join(task_ms, ["log", "execution_id"])
            .groupBy("log", "execution_id")
            .agg(
                expr("max(task_ms) AS stake_ms"),
                expr(
                    "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes "
                    "AS estimated_bytes, measured_bytes), measured_bytes) AS evidence"
                ),
            )
        )

    def sentence(self) -> str:
        return (
            f"{self.subject}: Spark broadcast {self.tables} for its estimate of "
            f"{texts.size(self.estimated_bytes)}, and it had {texts.size(self.measured_bytes)}."
        )

    def policy(self) -> SuggestedPolicy | None:
        tables = sql_text(self.tables)
        return self.policy_file("join_selection", _UNLIKE_ESTIMATE.format(tables=tables))


@dataclass(frozen=True, kw_only=True)
class FailedBroadcast(Finding):
    """A query that a broadcast ended, and that broadcast the guessed size of a side."""

    kind = "failed_broadcast"
    title = "a broadcast that ended the query"
    needed_point = "join_selection"

    subject: str
    tables: str
    estimated_bytes: int
    error: str

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        guessed = _planned(sources.decisions).where(
            "s.estimate_from = 'GUESS' AND s.join_count = 0"
        )
        return (
            sources.queries.where(f"error RLIKE '{_TOO_LARGE}'")
            .select("log", "execution_id", "slot_ms", "error")
            .join(guessed, ["log", "execution_id"])
            .groupBy("log", "execution_id")
            .agg(
                expr("max(slot_ms) AS stake_ms"),
                expr(
                    "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes "
                    "AS estimated_bytes, left(error, 200) AS error), s.size_in_bytes) AS evidence"
                ),
            )
        )

    def sentence(self) -> str:
        return (
            f"{self.subject}: Spark broadcast {self.tables} for a guess of "
            f"{texts.size(self.estimated_bytes)}, and the query failed: {self.error.strip()}"
        )

    def policy(self) -> SuggestedPolicy | None:
        return self.policy_file(*self.recipe("no_broadcast_of_guesses"))


@dataclass(frozen=True, kw_only=True)
class RangeJoin(Finding):
    """A broadcast for a join with a range, in a query whose tasks take long for what they read."""

    kind = "range_join"
    title = "a broadcast beside a range"
    needed_stage = HAS_SLOW_TASK
    needed_point = "join_selection"
    is_of_most_runs = True

    subject: str
    tables: str
    estimated_bytes: int
    stage_id: int
    num_tasks: int
    read_bytes: int
    max_task_ms: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        ranges = (
            _planned(sources.decisions)
            .where(f"has_range AND s.size_in_bytes > {_RANGE_BYTES}")
            .where(f"other.size_in_bytes / {_RANGE_OTHER} <= s.size_in_bytes")
            .groupBy("log", "execution_id")
            .agg(
                expr(
                    "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes "
                    "AS estimated_bytes), s.size_in_bytes) AS worst"
                )
            )
        )
        return (
            slow(sources.stages)
            .join(ranges, ["log", "execution_id"])
            .groupBy("log", "execution_id")
            .agg(
                expr("sum(slot_ms) AS stake_ms"),
                expr(
                    "max_by(struct(worst.*, stage_id, num_tasks, read_bytes, max_task_ms), "
                    "slot_ms) AS evidence"
                ),
            )
        )

    def sentence(self) -> str:
        stage = stage_sentence(self.stage_id, self.read_bytes, self.num_tasks, self.max_task_ms)
        return (
            f"{self.subject}: Spark broadcast {self.tables} of {texts.size(self.estimated_bytes)} "
            f"for a join with a condition beside its keys. {stage}."
        )

    def policy(self) -> SuggestedPolicy | None:
        return self.policy_file(*self.recipe("no_broadcast_of_range_joins"))
