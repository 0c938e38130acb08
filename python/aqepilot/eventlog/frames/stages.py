"""How each attempt of a stage went, from the ends of its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import events
from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns
from aqepilot.eventlog.frames.applications import with_application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_METRICS = (
    "`Executor Run Time`: bigint, `Executor CPU Time`: bigint, `JVM GC Time`: bigint, "
    "`Peak Execution Memory`: bigint, `Memory Bytes Spilled`: bigint, `Disk Bytes Spilled`: bigint,"
    " `Input Metrics`: struct<`Bytes Read`: bigint>,"
    " `Output Metrics`: struct<`Bytes Written`: bigint>,"
    " `Shuffle Read Metrics`: struct<`Remote Bytes Read`: bigint, `Local Bytes Read`: bigint, "
    "`Total Records Read`: bigint>,"
    " `Shuffle Write Metrics`: struct<`Shuffle Bytes Written`: bigint>"
)
_STAGE_INFO = (
    "`Stage Info` struct<`Stage ID`: bigint, `Stage Attempt ID`: bigint, `Stage Name`: string, "
    "`Number of Tasks`: bigint, `Submission Time`: bigint, `Completion Time`: bigint, "
    "`Failure Reason`: string, `RDD Info`: array<struct<`Name`: string, `Scope`: string, "
    "`Number of Partitions`: int>>>"
)
_STAGE = {
    "SparkListenerStageSubmitted": f"{_STAGE_INFO}, "
    "`Properties` struct<`spark.sql.execution.id`: string>",
    "SparkListenerStageCompleted": _STAGE_INFO,
    "SparkListenerTaskEnd": "`Stage ID` bigint, `Stage Attempt ID` bigint, "
    "`Task End Reason` struct<`Reason`: string>, "
    "`Task Info` struct<`Launch Time`: bigint, `Finish Time`: bigint>, "
    f"`Task Metrics` struct<{_METRICS}>",
}
# Spark's own advice is that tasks as short as that are still worth their start.
TINY_MS = 200
# As QueryRecorder.scala counts them.
_NO_FAILURE = "('Success', 'TaskKilled', 'TaskCommitDenied')"
_SUMS = {
    "task_ms": "m.`Executor Run Time`",
    "cpu_ms": "m.`Executor CPU Time`",
    "gc_ms": "m.`JVM GC Time`",
    "input_bytes": "m.`Input Metrics`.`Bytes Read`",
    "output_bytes": "m.`Output Metrics`.`Bytes Written`",
    "shuffle_read_bytes": "m.`Shuffle Read Metrics`.`Remote Bytes Read` + "
    "m.`Shuffle Read Metrics`.`Local Bytes Read`",
    "shuffle_write_bytes": "m.`Shuffle Write Metrics`.`Shuffle Bytes Written`",
    "memory_spill_bytes": "m.`Memory Bytes Spilled`",
    "disk_spill_bytes": "m.`Disk Bytes Spilled`",
}


# What of a plan made the stage's RDDs: Spark's UI draws their scopes as boxes.
_OPERATORS = """
    array_sort(array_distinct(filter(
      transform(s.`RDD Info`, r -> get_json_object(r.Scope, '$.name')), n -> n IS NOT NULL)))
"""
_HAS_SHUFFLED = "exists(s.`RDD Info`, r -> r.Name IN ('ShuffledRowRDD', 'ShuffledRDD'))"
_PARTITIONS = "array_max(transform(s.`RDD Info`, r -> r.`Number of Partitions`))"
_RECORDS = "m.`Shuffle Read Metrics`.`Total Records Read`"
_WROTE = "m.`Output Metrics`.`Bytes Written` > 0"


ADDED = ("tasks", "failed_tasks", "killed_tasks", "slot_ms", *_SUMS)


def stages(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row per attempt of a stage."""
    return events.shaped(with_application(figures(spark, files), heads), columns.STAGES)


def figures(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """The same, without what is known of the application."""
    read = events.read(spark, files, _STAGE).withColumnsRenamed(
        {"Task Metrics": "m", "Task Info": "t", "Stage Info": "s"}
    )
    reason = "`Task End Reason`.Reason"
    ended = "event = 'SparkListenerTaskEnd'"
    succeeded = f"{ended} AND {reason} = 'Success'"
    slot = "t.`Finish Time` - t.`Launch Time`"
    is_tiny = f"{succeeded} AND m.`Executor Run Time` < {TINY_MS}"
    spilled = "greatest(m.`Memory Bytes Spilled`, m.`Disk Bytes Spilled`) > 0"
    done = f"max({events.when('StageCompleted', '{}')})"
    attempts = events.aggregated(
        read.groupBy(
            "log",
            events.expr("coalesce(s.`Stage ID`, `Stage ID`)").alias("stage_id"),
            events.expr("coalesce(s.`Stage Attempt ID`, `Stage Attempt ID`)").alias(
                "stage_attempt_id"
            ),
        ),
        {
            "execution_id": "max(cast(Properties.`spark.sql.execution.id` AS bigint))",
            "name": "max(s.`Stage Name`)",
            "submitted": events.time("min(s.`Submission Time`)"),
            "completed": events.time(done.format("s.`Completion Time`")),
            "failure": done.format("s.`Failure Reason`"),
            "num_tasks": "max(s.`Number of Tasks`)",
            "tasks": f"count_if({ended})",
            "failed_tasks": f"count_if({ended} AND {reason} NOT IN {_NO_FAILURE})",
            "killed_tasks": f"count_if({ended} AND {reason} = 'TaskKilled')",
            "slot_ms": f"coalesce(sum({slot}), 0)",
            **{name: f"coalesce(sum({value}), 0)" for name, value in _SUMS.items()},
            "cpu_ms": "coalesce(sum(m.`Executor CPU Time`), 0) div 1000000",
            "peak_execution_memory_bytes": "coalesce(max(m.`Peak Execution Memory`), 0)",
            "max_task_ms": f"max(CASE WHEN {succeeded} THEN m.`Executor Run Time` END)",
            "median_task_ms": "percentile_approx("
            f"CASE WHEN {succeeded} THEN m.`Executor Run Time` END, 0.5, 10000)",
            "lost_slot_ms": f"coalesce(sum(CASE WHEN {reason} != 'Success' THEN {slot} END), 0)",
            "spilled_slot_ms": f"coalesce(sum(CASE WHEN {spilled} THEN {slot} END), 0)",
            "tiny_tasks": f"count_if({is_tiny})",
            "tiny_start_ms": f"coalesce(sum(CASE WHEN {is_tiny} THEN "
            f"greatest(0L, {slot} - m.`Executor Run Time`) END), 0)",
            "times": f"array_sort(collect_list(CASE WHEN {succeeded} THEN "
            "struct(t.`Launch Time` AS launch, t.`Finish Time` AS finish, "
            "t.`Launch Time` + greatest(1L, m.`Executor Run Time`) AS ran) END))",
            "operators": f"max({events.when('StageSubmitted', _OPERATORS)})",
            "rdd_partitions": f"max({events.when('StageSubmitted', _PARTITIONS)})",
            "has_shuffled": f"max({events.when('StageSubmitted', _HAS_SHUFFLED)})",
            "shuffle_read_records": f"coalesce(sum({_RECORDS}), 0)",
            "max_task_records": f"max(CASE WHEN {succeeded} THEN {_RECORDS} END)",
            "writing_tasks": f"count_if({succeeded} AND {_WROTE})",
            "last_launch": f"max(CASE WHEN {succeeded} THEN t.`Launch Time` END)",
            "last_finish": f"max(CASE WHEN {succeeded} THEN t.`Finish Time` END)",
        },
    )
    return attempts.withColumns(
        {
            "task_slot_ms": events.expr(
                "transform(times, t -> cast(least(t.finish - t.launch, 2147483647L) AS int))"
            ),
            "slots": events.expr(_MOST_AT_ONCE),
        }
    ).withColumn("waiting_ms", events.expr(_WAITING))


# By run times: the driver gives a task's slot to the next before it says that the first is
# finished.
# A slot that gets free as another task is launched is that task's.
_MOST_AT_ONCE = """
    aggregate(
      array_sort(concat(transform(times, t -> struct(t.launch AS at, 1 AS more)),
        transform(times, t -> struct(least(t.ran, t.finish + 1) AS at, -1 AS more)))),
      struct(0 AS now, 0 AS most),
      (s, e) -> struct(s.now + e.more AS now, greatest(s.most, s.now + e.more) AS most)).most
"""
# From the last launch on, a slot that gets free has nothing to do before the stage's end.
_WAITING = """
    greatest(0L, coalesce(slots * (last_finish - last_launch)
      - aggregate(times, 0L, (sum, t) -> sum + greatest(0L, t.finish - last_launch)), 0L))
"""
