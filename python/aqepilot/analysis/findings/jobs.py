"""Findings that no policy mends: each names what to change in the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.analysis.findings.stages import UNEVEN, most_in_one, slow
from aqepilot.eventlog.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Below half of the cores: else twice the tasks would not shorten a stage.
_FEW = 2
_WINDOW = "^(Arrow)?Window"
_GROUPS = "(FlatMap|Map|CoGroup|FlatMapCo)Groups|AggregateInPandas|ArrowAggregate"
_IN_STAGE = "exists(join_nodes, j -> {} AND array_contains(operators, j.scope))"
COALESCES = "exists(operators, o -> o IN ('Coalesce', 'coalesce'))"
GROUPS = f"exists(operators, o -> o RLIKE '{_WINDOW}|{_GROUPS}')"
NOT_IN = _IN_STAGE.format("j.is_null_aware")
NO_KEYS = _IN_STAGE.format("j.`condition` IS NOT NULL AND NOT j.is_null_aware")


def coalesced(stages: DataFrame) -> DataFrame:
    """Stages that a `coalesce` gives few tasks, where all else in them could have more.

    Only where most of a task's time is not the write of what it read, which stays in few tasks.
    """
    found = (
        slow(stages, "true")
        .where(COALESCES)
        .where(f"{_FEW} * num_tasks <= rdd_partitions")
        .where("is_slow OR 2 * (output_bytes + shuffle_write_bytes) <= read_bytes")
        .where(f"{_FEW} * num_tasks <= cores")
    )
    return _worst(found, "rdd_partitions", "cores")


def one_group(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Stages of a window or of grouped functions of which one task has most of the rows.

    By one value, by a window without PARTITION BY, or by one partition among those that Spark
    merged.
    """
    by = f"CASE WHEN exists(operators, o -> o RLIKE '{_WINDOW}') THEN 'window' ELSE 'group' END"
    merged = most_in_one(decisions).withColumn("is_merged", _expr("true"))
    is_read = "array_contains(operators, 'AQEShuffleRead')"
    one_task = f"by = 'window' AND num_tasks = 1 AND NOT {is_read}"
    uneven = (
        f"num_tasks > 1 AND 2 * max_task_records > shuffle_read_records "
        f"AND max_task_ms > {UNEVEN} * median_task_ms"
    )
    found = (
        slow(stages, "true")
        .where("shuffle_read_bytes > 0")
        .where(GROUPS)
        .withColumn("by", _expr(by))
        .join(merged, ["log", "execution_id", "num_tasks"], "left")
        .withColumn("is_whole", _expr(one_task))
        .where(f"is_whole OR is_merged OR ({uneven})")
        .where(f"coalesce(cores, {_FEW}) >= {_FEW}")
    )
    return _worst(found, "by", "is_whole", "shuffle_read_records", "cores")


def not_in(stages: DataFrame) -> DataFrame:
    """Slow stages with a NOT IN that compares each row with all of the other side."""
    return _worst(_with_join(stages, NOT_IN))


def no_keys(stages: DataFrame) -> DataFrame:
    """Slow stages with a join on a condition without an equality, which compares all pairs."""
    found = _with_join(stages, NO_KEYS).withColumn(
        "condition",
        _expr(
            "filter(join_nodes, j -> j.`condition` IS NOT NULL AND NOT j.is_null_aware)[0]"
            ".`condition`"
        ),
    )
    return _worst(found, "condition")


def _with_join(stages: DataFrame, condition: str) -> DataFrame:
    return slow(stages).where(condition)


def _worst(found: DataFrame, *more: str) -> DataFrame:
    names = ", ".join(("stage_id", "num_tasks", "read_bytes", "max_task_ms", *more))
    return found.groupBy("log", "execution_id").agg(
        _expr("sum(slot_ms) AS stake_ms"),
        _expr(f"max_by(struct({names}), slot_ms) AS evidence"),
    )
