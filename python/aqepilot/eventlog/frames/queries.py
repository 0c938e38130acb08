"""How queries went, from Spark's own events.

One way of counting, with and without aqepilot: a plain run and a run with policies are compared by
the same measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import events
from aqepilot.eventlog.events import OURS, SQL
from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns, stages
from aqepilot.eventlog.frames.applications import with_application
from aqepilot.eventlog.frames.join_nodes import JOIN_NODES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TIME = "`executionId` bigint, `time` bigint"
_PLAN = f"{_TIME}, `sparkPlanInfo` string"
_QUERY = {
    f"{SQL}ExecutionStart": f"{_PLAN}, `rootExecutionId` bigint, `description` string",
    f"{SQL}AdaptiveExecutionUpdate": "`executionId` bigint, `sparkPlanInfo` string",
    f"{SQL}ExecutionEnd": f"{_TIME}, `errorMessage` string",
    f"{OURS}QueryClosed": "`executionId` bigint, `fingerprint` string, `droppedEvents` bigint, "
    "`claimed` array<bigint>, `job` string, `run` string, `attempt` int, "
    "`experiment` string, `unit` string, `arm` string, "
    "`planningMillis` bigint, `askedMicros` double",
    f"{OURS}Decision": "`executionId` bigint, `fingerprint` string",
}
# Each node of the plan, root first; quotes within a description are escaped.
_JOIN = "^(?:[A-Za-z0-9_]+Join|CartesianProduct)"
_JOINS = f"""
    transform(filter(split(sparkPlanInfo, '"nodeName":"'), n -> n RLIKE '{_JOIN}'), n ->
      concat_ws(' ', regexp_extract(n, '{_JOIN}', 0), nullif(regexp_extract(
        split_part(n, '"children":', 1), '(Build(?:Left|Right))', 1), '')))
"""


def queries(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row per query that the log has the start or the end of."""
    from pyspark.sql import functions

    figures = events.aggregated(
        events.read(spark, files, _QUERY)
        .withColumn("joins", events.expr(f"CASE WHEN sparkPlanInfo IS NOT NULL THEN {_JOINS} END"))
        .withColumn(
            "join_nodes",
            events.expr(
                f"CASE WHEN size(joins) > 0 THEN {JOIN_NODES} WHEN joins IS NOT NULL THEN array() "
                "END"
            ),
        )
        .groupBy("log", functions.col("executionId").alias("execution_id")),
        {
            "root_execution_id": "max(rootExecutionId)",
            "description": "max(description)",
            "fingerprint": "max(fingerprint)",
            "start_ms": f"min({events.when('ExecutionStart', 'time', SQL)})",
            "end_ms": f"max({events.when('ExecutionEnd', 'time', SQL)})",
            "error": "nullif(max(errorMessage), '')",
            "joins": "max(CASE WHEN joins IS NOT NULL THEN struct(place, joins) END).joins",
            "join_nodes": "max_by(join_nodes, CASE WHEN joins IS NOT NULL THEN place END)",
            "decisions": f"count_if(event = '{OURS}Decision')"
            " + coalesce(max(array_size(claimed)), 0)",
            "dropped_events": "max(droppedEvents)",
            "job": "max(job)",
            "run": "max(run)",
            "attempt": "max(attempt)",
            "experiment": "max(experiment)",
            "unit": "max(unit)",
            "arm": "max(arm)",
            "planning_ms": "max(planningMillis)",
            "asked_us": f"max({events.when('QueryClosed', 'askedMicros', OURS)})",
        },
    ).where("start_ms IS NOT NULL OR end_ms IS NOT NULL")
    sums = {name: f"sum({name})" for name in stages.ADDED}
    of_stages = events.aggregated(
        stages.figures(spark, files)
        .where("execution_id IS NOT NULL")
        .groupBy("log", "execution_id"),
        {
            **sums,
            "stages": "count(*)",
            "retried_stages": "count_if(stage_attempt_id > 0)",
            "peak_execution_memory_bytes": "max(peak_execution_memory_bytes)",
            "max_over_median": "max(CASE WHEN num_tasks >= 3 THEN "
            "max_task_ms / greatest(median_task_ms, 1) END)",
        },
    )
    joined = with_application(figures, heads, "executors").join(
        of_stages, ["log", "execution_id"], "left"
    )
    nothing: dict[str, bool | float | int | str] = dict.fromkeys(
        (*stages.ADDED, "stages", "retried_stages"), 0
    )
    derived = {
        "root_execution_id": "coalesce(root_execution_id, execution_id)",
        "started": events.time("start_ms"),
        "ended": events.time("end_ms"),
        "succeeded": "CASE WHEN end_ms IS NOT NULL THEN error IS NULL END",
        "wall_ms": "end_ms - start_ms",
        "executor_core_ms": _had("e.cores"),
        "executor_memory_mib_s": f"{_had('e.memory_mib')} div 1000",
        "peak_execution_memory_bytes": "coalesce(peak_execution_memory_bytes, 0)",
    }
    filled = joined.na.fill(nothing).withColumns(
        {name: functions.expr(text) for name, text in derived.items()}
    )
    return events.shaped(filled, columns.QUERIES)


def _had(what: str) -> str:
    """What executors had while the query ran, times milliseconds, in SQL."""
    return f"""
        CASE WHEN end_ms - start_ms IS NOT NULL THEN aggregate(
          filter(transform(coalesce(executors, array()), e -> struct({what} AS had, greatest(0L,
            least(end_ms, coalesce(unix_millis(e.removed), end_ms))
            - greatest(start_ms, unix_millis(e.added))) AS ms)), e -> e.ms > 0),
          0L, (sum, e) -> sum + e.had * e.ms) END"""
