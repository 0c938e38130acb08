"""What the sub-plans of queries came to, as aqepilot wrote it into Spark's event logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import events
from aqepilot.eventlog.events import OURS
from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns
from aqepilot.eventlog.frames.applications import with_application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# By column, the field of the event and its type.
_SUB_PLAN = {
    "kind": ("kind", "string"),
    "same": ("same", "string"),
    "shape": ("shape", "string"),
    "input_bytes": ("inputBytes", "bigint"),
    "row_count": ("rows", "bigint"),
    "bytes": ("bytes", "bigint"),
    "shuffle_bytes": ("shuffleBytes", "bigint"),
    "partitions": ("partitions", "int"),
    "max_partition_bytes": ("maxPartitionBytes", "bigint"),
    "median_partition_bytes": ("medianPartitionBytes", "bigint"),
    "input_rows": ("inputRows", "bigint"),
    "task_ms": ("taskMillis", "bigint"),
    "read_bytes": ("readBytes", "bigint"),
    "read_rows": ("readRows", "bigint"),
    "spilled_bytes": ("spilledBytes", "bigint"),
    "peak_memory_bytes": ("peakMemoryBytes", "bigint"),
    "failures": ("failures", "int"),
}
_FIELDS = ", ".join(f"{field}: {kind}" for field, kind in _SUB_PLAN.values())
_CLOSED = (
    "`time` bigint, `executionId` bigint, `fingerprint` string, `job` string, `run` string, "
    f"`subPlans` array<struct<{_FIELDS}>>"
)


def sub_plans(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row per sub-plan that a closing event says something of."""
    closed = events.read(spark, files, {f"{OURS}QueryClosed": _CLOSED})
    rows = closed.selectExpr(
        *("log", f"{events.time('time')} AS time", "executionId AS execution_id", "fingerprint"),
        *("job", "run", "explode(subPlans) AS s"),
    ).selectExpr(
        *("log", "time", "execution_id", "fingerprint", "job", "run"),
        *(f"s.`{field}` AS `{name}`" for name, (field, _) in _SUB_PLAN.items()),
    )
    return events.shaped(with_application(rows, heads), columns.SUB_PLANS)
