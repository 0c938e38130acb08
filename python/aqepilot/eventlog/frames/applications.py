"""Whose each log is, and how much of it could be read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import events, lines
from aqepilot.eventlog.files import LogFile, log_column, uri_column
from aqepilot.eventlog.frames import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# What of a resource profile is memory, MiB.
_MEMORY = ("memory", "memoryOverhead", "offHeap", "`pyspark.memory`")
_APPLICATION = (
    "Event string, `Spark Version` string, `App Name` string, `App ID` string, `User` string, "
    "`App Attempt ID` string, `Timestamp` bigint, `Executor ID` string, "
    "`Executor Info` struct<`Total Cores`: int, `Resource Profile Id`: int>, "
    "`Resource Profile Id` int, "
    "`Executor Resource Requests` struct<"
    f"{', '.join(f'{name}: struct<Amount: bigint>' for name in _MEMORY)}>"
)
_STARTED = "SparkListenerApplicationStart"
_EXECUTOR = ("SparkListenerExecutorAdded", "SparkListenerExecutorRemoved")
_PROFILE = "SparkListenerResourceProfileAdded"
_HEADS = {
    "app_id": "e.`App ID`",
    "app_attempt_id": "e.`App Attempt ID`",
    "app_name": "e.`App Name`",
    "user": "e.`User`",
    "spark_version": "e.`Spark Version`",
    "started": events.when("ApplicationStart", "e.Timestamp"),
    "ended": events.when("ApplicationEnd", "e.Timestamp"),
    "problem": "problem",
}
# A mark of the order of bytes, which Hadoop takes off a text.
_MARK_BYTES = 3


def applications(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """One row per log, with how much of it could be read."""
    return events.shaped(
        _of_logs(_with_problems(_counted(spark, files), files)), columns.APPLICATIONS
    )


def heads(spark: SparkSession, files: Sequence[LogFile]) -> DataFrame:
    """`log`, `app_id`, `app_attempt_id` and `executors`, from the few lines that have them."""
    names = (_STARTED, *_EXECUTOR, _PROFILE)
    counted = _counted(spark, files, [f'{events.BEGIN}{name}"' for name in names])
    named = counted.withColumn("log", log_column(events.expr("file")))
    return _of_logs(named).select("log", "app_id", "app_attempt_id", "executors")


def _counted(
    spark: SparkSession, files: Sequence[LogFile], prefixes: Sequence[str] = ()
) -> DataFrame:
    """What lines say of applications and executors, and how many lines say the same.

    Args:
        spark: The session.
        files: Files of event logs.
        prefixes: As for `lines.read`.
    """
    from pyspark.sql import functions

    parsed = (
        lines.read(spark, files, prefixes)
        .select(
            "file",
            "problem",
            events.expr("octet_length(value) + 1L").alias("bytes"),
            functions.substring("value", 1, len(events.BEGIN)).alias("begin"),
            events.json(functions.col("value"), _APPLICATION).alias("e"),
        )
        .withColumn("event", events.expr("e.Event"))
    )
    unreadable = f"begin != '{events.BEGIN}' OR e._corrupt IS NOT NULL OR e.Event IS NULL"
    is_executor = f"event IN {_EXECUTOR}"
    amounts = (f"coalesce(e.`Executor Resource Requests`.{name}.Amount, 0)" for name in _MEMORY)
    memory = " + ".join(amounts)
    executor = {
        "id": f"CASE WHEN {is_executor} THEN e.`Executor ID` END",
        "cores": "e.`Executor Info`.`Total Cores`",
        "profile": "coalesce(e.`Executor Info`.`Resource Profile Id`, e.`Resource Profile Id`)",
        "memory_mib": events.when("ResourceProfileAdded", memory),
        "added": events.when("ExecutorAdded", "e.Timestamp"),
        "removed": events.when("ExecutorRemoved", "e.Timestamp"),
    }
    # Nearly all lines have none of these: they are counted without being sorted.
    counted = events.aggregated(
        parsed.groupBy("file", *events.named(_HEADS | executor)),
        {
            "lines": "count_if(problem IS NULL)",
            "unreadable_lines": f"count_if(problem IS NULL AND ({unreadable}))",
            "read_bytes": "sum(bytes)",
        },
    )
    return counted.withColumn("file", uri_column(events.expr("file")))


def _of_logs(counted: DataFrame) -> DataFrame:
    """One row per log out of what was `_counted`, which has a column `log` more."""
    counts = {name: f"sum({name})" for name in ("lines", "unreadable_lines")}
    last = {name: f"max({name})" for name in _HEADS}
    by_executor = events.aggregated(
        counted.groupBy("log", "id", events.expr("CASE WHEN id IS NULL THEN profile END")),
        {
            **last,
            "cores": "max(cores)",
            "profile": "max(profile)",
            "memory_mib": "max(memory_mib)",
            "added": "min(added)",
            "removed": "max(removed)",
            **counts,
        },
    )
    return events.aggregated(
        by_executor.groupBy("log"),
        {
            **last,
            "started": events.time("max(started)"),
            "ended": events.time("max(ended)"),
            "executors": "sort_array(collect_list(CASE WHEN added IS NOT NULL THEN struct("
            f"id, cores, {events.time('added')} AS added, "
            f"{events.time('removed')} AS removed, profile) END))",
            "memory": "map_from_entries(collect_list(CASE WHEN memory_mib IS NOT NULL THEN "
            "struct(profile, memory_mib) END))",
            **counts,
        },
    ).withColumn("executors", events.expr(_EXECUTORS))


# In local mode the driver is the executor, and the profile says nothing of its memory.
_EXECUTORS = """
    transform(executors, e -> struct(e.id, e.cores, e.added, e.removed,
      CASE WHEN e.id != 'driver' THEN try_element_at(memory, e.profile) END AS memory_mib))
"""


def _with_problems(counted: DataFrame, files: Sequence[LogFile]) -> DataFrame:
    """Says of which files something is missing, which Spark leaves out without a word.

    Args:
        counted: Rows of one `file` each, with `problem`, `lines` and `read_bytes`.
        files: All files.
    """
    from pyspark.sql import functions

    listed = counted.sparkSession.createDataFrame(
        [(f.uri, f.bytes, f.is_packed) for f in files],
        "file string, listed_bytes bigint, is_packed boolean",
    )
    per_file = {
        "listed": "max(listed_bytes)",
        "was_packed": "max(is_packed)",
        "read": "sum(coalesce(read_bytes, 0L))",
        "why": "max(problem)",
    }
    over = "OVER (PARTITION BY file)"
    name = "regexp_extract(file, '[^/]+$', 0)"
    problem = f"""
        CASE WHEN why IS NOT NULL THEN why
          WHEN listed > 0 AND read = 0 THEN concat({name}, ': nothing of it could be read: it may '
            'not be read by the user that runs Spark here, or it is damaged or gone.')
          WHEN NOT was_packed AND read + {_MARK_BYTES} < listed THEN concat({name}, ': only ', read,
            ' of ', listed, ' bytes could be read.') END"""
    rows = counted.unionByName(listed, allowMissingColumns=True).withColumns(
        {column: functions.expr(f"{text} {over}") for column, text in per_file.items()}
    )
    return rows.withColumns(
        {
            "log": log_column(functions.col("file")),
            "problem": functions.expr(problem),
            "lines": functions.expr("coalesce(lines, 0L)"),
            "unreadable_lines": functions.expr("coalesce(unreadable_lines, 0L)"),
        }
    )


def with_application(frame: DataFrame, heads: DataFrame, *more: str) -> DataFrame:
    """Adds its application, of `heads`, to each row of a frame with a column `log`."""
    from pyspark.sql import functions

    known = heads.select("log", "app_id", "app_attempt_id", *more)
    return frame.join(functions.broadcast(known), "log", "left")
