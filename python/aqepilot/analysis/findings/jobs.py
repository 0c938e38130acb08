"""Findings that no policy mends: each names a change of the job."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.findings.finding import Finding, Sources
from aqepilot.analysis.findings.slow_stages import (
    HAS_SLOW_TASK,
    UNEVEN,
    most_in_one,
    slow,
    stage_sentence,
)
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Below half of the cores: else twice the tasks would not shorten a stage.
_FEW = 2
_WINDOW = "^(Arrow)?Window"
_GROUPS = "(FlatMap|Map|CoGroup|FlatMapCo)Groups|AggregateInPandas|ArrowAggregate"
_IN_STAGE = "exists(join_nodes, j -> {} AND array_contains(operators, j.scope))"
_COALESCES = "exists(operators, o -> o IN ('Coalesce', 'coalesce'))"
_HAS_GROUPS = f"exists(operators, o -> o RLIKE '{_WINDOW}|{_GROUPS}')"
_HAS_NOT_IN = _IN_STAGE.format("j.is_null_aware")
_HAS_NO_KEYS = _IN_STAGE.format("j.`condition` IS NOT NULL AND NOT j.is_null_aware")


@dataclass(frozen=True, kw_only=True)
class StageFinding(Finding):
    """A finding about one stage of a job."""

    is_of_most_runs = True

    stage_id: int
    num_tasks: int
    read_bytes: int
    max_task_ms: int

    @classmethod
    def worst(cls, stages: DataFrame) -> DataFrame:
        """Returns the rows of stages that have it: a row a query, with the figures of the worst."""
        names = ", ".join(field.name for field in fields(cls) if field.name != "runs")
        return stages.groupBy("log", "execution_id").agg(
            expr("sum(slot_ms) AS stake_ms"),
            expr(f"max_by(struct({names}), slot_ms) AS evidence"),
        )

    @property
    def stage(self) -> str:
        """What the stage read, in how many tasks, and how long the longest took; no full stop."""
        return stage_sentence(self.stage_id, self.read_bytes, self.num_tasks, self.max_task_ms)


@dataclass(frozen=True, kw_only=True)
class Coalesce(StageFinding):
    """A stage that a `coalesce` gives few tasks, where all else in it could have more.

    Only where most of a task's time is not the write of what it read, which stays in few tasks.
    """

    kind = "coalesce"
    title = "all work before a coalesce in few tasks"
    needed_stage = f"{HAS_SLOW_TASK} AND {_COALESCES}"

    rdd_partitions: int
    cores: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        return Coalesce.worst(
            slow(sources.stages, "true")
            .where(_COALESCES)
            .where(f"{_FEW} * num_tasks <= rdd_partitions")
            .where("is_slow OR 2 * (output_bytes + shuffle_write_bytes) <= read_bytes")
            .where(f"{_FEW} * num_tasks <= cores")
        )

    def sentence(self) -> str:
        return (
            f"{self.stage}, on {texts.plural(self.cores, 'core')}. A coalesce merges "
            f"{texts.number(self.rdd_partitions)} partitions into these: what is before it in the "
            "stage is done by as few tasks."
        )

    def change(self) -> str | None:
        return (
            f"Write repartition({self.num_tasks}) instead: it shuffles the rows, and what is "
            "before it keeps a task for each partition."
        )


@dataclass(frozen=True, kw_only=True)
class OneGroup(StageFinding):
    """A stage of a window or of grouped functions of which one task has most of the rows.

    By one value, by a window without PARTITION BY, or by one partition among those that Spark
    merged.
    """

    kind = "one_group"
    title = "a window or group that has most rows"
    needed_stage = f"{HAS_SLOW_TASK} AND {_HAS_GROUPS}"

    by: str
    is_whole: bool
    shuffle_read_records: int
    cores: int | None

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        by = f"CASE WHEN exists(operators, o -> o RLIKE '{_WINDOW}') THEN 'window' ELSE 'group' END"
        merged = most_in_one(sources.decisions).withColumn("is_merged", expr("true"))
        is_read = "array_contains(operators, 'AQEShuffleRead')"
        one_task = f"by = 'window' AND num_tasks = 1 AND NOT {is_read}"
        uneven = (
            f"num_tasks > 1 AND 2 * max_task_records > shuffle_read_records "
            f"AND max_task_ms > {UNEVEN} * median_task_ms"
        )
        return OneGroup.worst(
            slow(sources.stages, "true")
            .where("shuffle_read_bytes > 0")
            .where(_HAS_GROUPS)
            .withColumn("by", expr(by))
            .join(merged, ["log", "execution_id", "num_tasks"], "left")
            .withColumn("is_whole", expr(one_task))
            .where(f"is_whole OR is_merged OR ({uneven})")
            .where(f"coalesce(cores, {_FEW}) >= {_FEW}")
        )

    def sentence(self) -> str:
        if self.is_whole:
            rows = "It has a window without PARTITION BY, so that one task has all rows."
        else:
            rows = f"One {self.by} has most of its {texts.number(self.shuffle_read_records)} rows."
        return f"{self.stage}. {rows} No task is shorter than the largest {self.by}."

    def change(self) -> str | None:
        if self.by == "window" and self.is_whole:
            return (
                "Give the window a PARTITION BY. Where it has no ORDER BY, aggregate the rows and "
                "join them with the one row of that."
            )
        if self.by == "window":
            return (
                "PARTITION BY more columns. Where the window has no ORDER BY, aggregate the rows "
                "and join them with that."
            )
        return (
            "Group by more columns, or aggregate in two steps, the first by a part of each group."
        )


@dataclass(frozen=True, kw_only=True)
class NotIn(StageFinding):
    """A slow stage with a NOT IN that compares each row with all of the other side."""

    kind = "not_in"
    title = "a NOT IN that compares all pairs of rows"
    needed_stage = f"{HAS_SLOW_TASK} AND {_HAS_NOT_IN}"

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        return NotIn.worst(slow(sources.stages).where(_HAS_NOT_IN))

    def sentence(self) -> str:
        return (
            f"{self.stage}. A NOT IN is true for no row where the other side has a null: Spark "
            "compares each row with all of the other side's."
        )

    def change(self) -> str | None:
        return (
            "Write NOT EXISTS with an equality for each column: a hash join. The rows are the same "
            "where neither side has a null there."
        )


@dataclass(frozen=True, kw_only=True)
class NoKeys(StageFinding):
    """A slow stage with a join on a condition without an equality, which compares all pairs."""

    kind = "no_keys"
    title = "a join without keys that compares all pairs of rows"
    needed_stage = f"{HAS_SLOW_TASK} AND {_HAS_NO_KEYS}"

    condition: str

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        first = "filter(join_nodes, j -> j.`condition` IS NOT NULL AND NOT j.is_null_aware)[0]"
        return NoKeys.worst(
            slow(sources.stages)
            .where(_HAS_NO_KEYS)
            .withColumn("condition", expr(f"{first}.`condition`"))
        )

    def sentence(self) -> str:
        return (
            f"{self.stage}. A join there has no equality that holds for all of its rows, so Spark "
            f"compares each pair of rows: {self.condition}"
        )

    def change(self) -> str | None:
        if " OR " in self.condition:
            return (
                "Write a join for each part of the OR, with its equality as the key, and a UNION "
                "of them, which leaves out pairs that come twice."
            )
        return (
            "Add an equality as a key: for ranges, join on buckets that both sides fall into, and "
            "keep the condition beside that."
        )
