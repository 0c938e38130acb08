"""How applications, stages and queries went, from Spark's own events.

One way of counting, with and without aqepilot: a plain run and a run with policies are compared by
the same measure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aqepilot.log import columns, events, files
from aqepilot.log.events import OURS, SQL
from aqepilot.log.files import LogFile

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData, SparkSession

_APPLICATION = (
    "Event string, `Spark Version` string, `App Name` string, `App ID` string, `User` string, "
    "`App Attempt ID` string, `Timestamp` bigint, `Executor ID` string, "
    "`Executor Info` struct<`Total Cores`: int>"
)
_METRICS = (
    "`Executor Run Time`: bigint, `Executor CPU Time`: bigint, `JVM GC Time`: bigint, "
    "`Peak Execution Memory`: bigint, `Memory Bytes Spilled`: bigint, `Disk Bytes Spilled`: bigint,"
    " `Input Metrics`: struct<`Bytes Read`: bigint>,"
    " `Output Metrics`: struct<`Bytes Written`: bigint>,"
    " `Shuffle Read Metrics`: struct<`Remote Bytes Read`: bigint, `Local Bytes Read`: bigint>,"
    " `Shuffle Write Metrics`: struct<`Shuffle Bytes Written`: bigint>"
)
_STAGE_INFO = (
    "`Stage Info` struct<`Stage ID`: bigint, `Stage Attempt ID`: bigint, `Stage Name`: string, "
    "`Number of Tasks`: bigint, `Submission Time`: bigint, `Completion Time`: bigint, "
    "`Failure Reason`: string>"
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
_TIME = "`executionId` bigint, `time` bigint"
_PLAN = f"{_TIME}, `sparkPlanInfo` string"
_QUERY = {
    f"{SQL}ExecutionStart": f"{_PLAN}, `rootExecutionId` bigint, `description` string",
    f"{SQL}AdaptiveExecutionUpdate": "`executionId` bigint, `sparkPlanInfo` string",
    f"{SQL}ExecutionEnd": f"{_TIME}, `errorMessage` string",
    f"{OURS}QueryClosed": "`executionId` bigint, `fingerprint` string, `droppedEvents` bigint, "
    "`claimed` array<bigint>, `job` string, `run` string, `attempt` int, "
    "`experiment` string, `unit` string, `arm` string",
    f"{OURS}Decision": "`executionId` bigint, `fingerprint` string",
}
# Each node of the plan, root first; quotes within a description are escaped.
_JOINS = """
    transform(filter(split(sparkPlanInfo, '"nodeName":"'), n -> n RLIKE '^[A-Za-z0-9_]+Join'), n ->
      concat_ws(' ', regexp_extract(n, '^([A-Za-z0-9_]+Join)', 1), nullif(regexp_extract(
        split_part(n, '"children":', 1), '(Build(?:Left|Right))', 1), '')))
"""
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


def applications(spark: SparkSession, of: Sequence[LogFile]) -> DataFrame:
    """One row per log, with how much of it could be read."""
    from pyspark.sql import functions

    lines = (
        files.lines(spark, of, ())
        .select(
            files.log_column(functions.col("file")).alias("log"),
            "problem",
            functions.substring("value", 1, len(events.BEGIN)).alias("begin"),
            events.json(functions.col("value"), _APPLICATION).alias("e"),
        )
        .withColumn("event", _expr("e.Event"))
    )
    unreadable = f"begin != '{events.BEGIN}' OR e._corrupt IS NOT NULL OR e.Event IS NULL"
    is_executor = "event IN ('SparkListenerExecutorAdded', 'SparkListenerExecutorRemoved')"
    heads = {
        "app_id": "e.`App ID`",
        "app_attempt_id": "e.`App Attempt ID`",
        "app_name": "e.`App Name`",
        "user": "e.`User`",
        "spark_version": "e.`Spark Version`",
        "started": _when("ApplicationStart", "e.Timestamp"),
        "ended": _when("ApplicationEnd", "e.Timestamp"),
        "problem": "problem",
    }
    executor = {
        "id": f"CASE WHEN {is_executor} THEN e.`Executor ID` END",
        "cores": "e.`Executor Info`.`Total Cores`",
        "added": _when("ExecutorAdded", "e.Timestamp"),
        "removed": _when("ExecutorRemoved", "e.Timestamp"),
    }
    # Nearly all lines have none of these: they are counted without being sorted.
    counted = _aggregated(
        lines.groupBy("log", *(_expr(v).alias(n) for n, v in (heads | executor).items())),
        {
            "lines": "count_if(problem IS NULL)",
            "unreadable_lines": f"count_if(problem IS NULL AND ({unreadable}))",
        },
    )
    counts = {name: f"sum({name})" for name in ("lines", "unreadable_lines")}
    last = {name: f"max({name})" for name in heads}
    by_executor = _aggregated(
        counted.groupBy("log", "id"),
        {
            **last,
            "cores": "max(cores)",
            "added": "min(added)",
            "removed": "max(removed)",
            **counts,
        },
    )
    found = _aggregated(
        by_executor.groupBy("log"),
        {
            **last,
            "started": _time("max(started)"),
            "ended": _time("max(ended)"),
            "executors": "sort_array(collect_list(CASE WHEN added IS NOT NULL THEN struct("
            f"id, cores, {_time('added')} AS added, {_time('removed')} AS removed) END))",
            **counts,
        },
    )
    return events.shaped(found, columns.APPLICATIONS)


def stages(spark: SparkSession, of: Sequence[LogFile], applications: DataFrame) -> DataFrame:
    """One row per attempt of a stage."""
    return events.shaped(with_application(_stages(spark, of), applications), columns.STAGES)


def queries(spark: SparkSession, of: Sequence[LogFile], applications: DataFrame) -> DataFrame:
    """One row per query that the log has the start or the end of."""
    from pyspark.sql import functions

    figures = _aggregated(
        events.read(spark, of, _QUERY)
        .withColumn("joins", _expr(f"CASE WHEN sparkPlanInfo IS NOT NULL THEN {_JOINS} END"))
        .groupBy("log", functions.col("executionId").alias("execution_id")),
        {
            "root_execution_id": "max(rootExecutionId)",
            "description": "max(description)",
            "fingerprint": "max(fingerprint)",
            "start_ms": f"min({_when('ExecutionStart', 'time', SQL)})",
            "end_ms": f"max({_when('ExecutionEnd', 'time', SQL)})",
            "error": "nullif(max(errorMessage), '')",
            "joins": "max(CASE WHEN joins IS NOT NULL THEN struct(place, joins) END).joins",
            "decisions": f"count_if(event = '{OURS}Decision')"
            " + coalesce(max(array_size(claimed)), 0)",
            "dropped_events": "max(droppedEvents)",
            "job": "max(job)",
            "run": "max(run)",
            "attempt": "max(attempt)",
            "experiment": "max(experiment)",
            "unit": "max(unit)",
            "arm": "max(arm)",
        },
    ).where("start_ms IS NOT NULL OR end_ms IS NOT NULL")
    sums = {name: f"sum({name})" for name in _ADDED}
    of_stages = _aggregated(
        _stages(spark, of).where("execution_id IS NOT NULL").groupBy("log", "execution_id"),
        {
            **sums,
            "stages": "count(*)",
            "retried_stages": "count_if(stage_attempt_id > 0)",
            "peak_execution_memory_bytes": "max(peak_execution_memory_bytes)",
            "max_over_median": "max(CASE WHEN num_tasks >= 3 THEN "
            "max_task_ms / greatest(median_task_ms, 1) END)",
        },
    )
    joined = with_application(figures, applications, "executors").join(
        of_stages, ["log", "execution_id"], "left"
    )
    nothing: dict[str, bool | float | int | str] = dict.fromkeys(
        (*_ADDED, "stages", "retried_stages"), 0
    )
    found = {
        "root_execution_id": "coalesce(root_execution_id, execution_id)",
        "started": _time("start_ms"),
        "ended": _time("end_ms"),
        "succeeded": "CASE WHEN end_ms IS NOT NULL THEN error IS NULL END",
        "wall_ms": "end_ms - start_ms",
        "executor_core_ms": _CORE_MS,
        "peak_execution_memory_bytes": "coalesce(peak_execution_memory_bytes, 0)",
    }
    filled = joined.na.fill(nothing).withColumns(
        {name: functions.expr(text) for name, text in found.items()}
    )
    return events.shaped(filled, columns.QUERIES)


def with_application(frame: DataFrame, applications: DataFrame, *more: str) -> DataFrame:
    """Adds what is known of its application to each row of a frame with a column `log`."""
    from pyspark.sql import functions

    known = applications.select("log", "app_id", "app_attempt_id", *more)
    return frame.join(functions.broadcast(known), "log", "left")


def _stages(spark: SparkSession, of: Sequence[LogFile]) -> DataFrame:
    read = events.read(spark, of, _STAGE).withColumnsRenamed(
        {"Task Metrics": "m", "Task Info": "t", "Stage Info": "s"}
    )
    reason = "`Task End Reason`.Reason"
    ended = "event = 'SparkListenerTaskEnd'"
    succeeded = f"{ended} AND {reason} = 'Success'"
    done = f"max({_when('StageCompleted', '{}')})"
    return _aggregated(
        read.groupBy(
            "log",
            _expr("coalesce(s.`Stage ID`, `Stage ID`)").alias("stage_id"),
            _expr("coalesce(s.`Stage Attempt ID`, `Stage Attempt ID`)").alias("stage_attempt_id"),
        ),
        {
            "execution_id": "max(cast(Properties.`spark.sql.execution.id` AS bigint))",
            "name": "max(s.`Stage Name`)",
            "submitted": _time("min(s.`Submission Time`)"),
            "completed": _time(done.format("s.`Completion Time`")),
            "failure": done.format("s.`Failure Reason`"),
            "num_tasks": "max(s.`Number of Tasks`)",
            "tasks": f"count_if({ended})",
            "failed_tasks": f"count_if({ended} AND {reason} NOT IN {_NO_FAILURE})",
            "killed_tasks": f"count_if({ended} AND {reason} = 'TaskKilled')",
            "slot_ms": "coalesce(sum(t.`Finish Time` - t.`Launch Time`), 0)",
            **{name: f"coalesce(sum({value}), 0)" for name, value in _SUMS.items()},
            "cpu_ms": "coalesce(sum(m.`Executor CPU Time`), 0) div 1000000",
            "peak_execution_memory_bytes": "coalesce(max(m.`Peak Execution Memory`), 0)",
            "max_task_ms": f"max(CASE WHEN {succeeded} THEN m.`Executor Run Time` END)",
            "median_task_ms": "percentile_approx("
            f"CASE WHEN {succeeded} THEN m.`Executor Run Time` END, 0.5, 10000)",
        },
    )


_ADDED = ("tasks", "failed_tasks", "killed_tasks", "slot_ms", *_SUMS)
_CORE_MS = """
    CASE WHEN end_ms - start_ms IS NOT NULL THEN aggregate(executors, 0L, (sum, e) -> sum + e.cores
    * greatest(0L, least(end_ms, coalesce(unix_millis(e.removed), end_ms))
    - greatest(start_ms, unix_millis(e.added)))) END
"""


def _aggregated(groups: GroupedData, figures: Mapping[str, str]) -> DataFrame:
    return groups.agg(*(_expr(text).alias(name) for name, text in figures.items()))


def _expr(text: str) -> Column:
    from pyspark.sql import functions

    return functions.expr(text)


def _when(event: str, value: str, prefix: str = "SparkListener") -> str:
    return f"CASE WHEN event = '{prefix}{event}' THEN {value} END"


def _time(millis: str) -> str:
    return f"timestamp_millis({millis})"
