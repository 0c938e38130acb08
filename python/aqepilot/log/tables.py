"""Event logs collected into Parquet tables: each application once, however often that is run.

A run writes what it read as one batch, and the row of each application last, in one file: until
then nobody sees the batch. What a run that was killed has left is never seen. Of an application
that is in several batches, the newest counts.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.log import columns, files
from aqepilot.log.files import LogFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aqepilot.log import Log

_FILE = re.compile(r"(.*)/applications/batch=[^/]+/[^/]+\.parquet")
_TIME_OF = {
    "decisions": "time",
    "policies": "time",
    "queries": "coalesce(started, ended)",
    "stages": "coalesce(submitted, completed)",
    "experiments": "time",
}


class Collected(NamedTuple):
    """What a run of `collect` did.

    Attributes:
        logs: Logs that were read.
        known: Logs that were there already.
        running: Logs left for another run, as their applications are still in progress.
        unreadable_lines: Lines of the logs read that are no whole events.
    """

    logs: int
    known: int
    running: int
    unreadable_lines: int


def collect(
    spark: SparkSession,
    path: str | Path | Iterable[str | Path],
    to: str | Path,
    *,
    abandoned_after_hours: float = 24.0,
) -> Collected:
    """Adds event logs that are not there yet to tables, which `read_log` takes as it takes logs.

    It can be killed at any point and run again, and nothing is missing and nothing there twice. A
    log that has changed since is read again, and takes the place of what was read before.

    Args:
        spark: Any session.
        path: Logs, as for `read_log`.
        to: The tables' folder, on any file system that the session writes.
        abandoned_after_hours: A log that says that its application runs is read when it has not
            changed for so long: the application broke off.

    Raises:
        AqePilotError: There is no log, or it may not be listed.
    """
    from pyspark.sql import functions

    from aqepilot.log import of_files

    found: dict[str, list[LogFile]] = {}
    for file in files.find(spark, [path] if isinstance(path, (str, Path)) else path):
        found.setdefault(file.log, []).append(file)
    sizes = {log: sum(file.bytes for file in own) for log, own in found.items()}
    known = _known(spark, str(to))
    rest = {log: own for log, own in found.items() if (log, sizes[log]) not in known}
    abandoned_ms = (time.time() - abandoned_after_hours * 3600) * 1000
    running = {
        log
        for log, own in rest.items()
        if any(file.is_in_progress for file in own)
        and max(file.modified_ms for file in own) > abandoned_ms
    }
    wanted = [file for log, own in rest.items() if log not in running for file in own]
    counts = (len(rest) - len(running), len(found) - len(rest), len(running))
    if not wanted:
        return Collected(*counts, 0)
    batch = f"batch={datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}"
    log = of_files(spark, wanted)
    for name, of_time in _TIME_OF.items():
        date = functions.expr(f"to_date({of_time})").alias("date")
        rows = getattr(log, name).select("*", date)
        rows.write.partitionBy("date").parquet(f"{to}/{name}/{batch}")
    # Local rows: the sizes are those of the listing, also where a log has grown since.
    listed = spark.createDataFrame(list(sizes.items()), "log string, bytes bigint")
    applications = log.applications.join(functions.broadcast(listed), "log").coalesce(1)
    unreadable = functions.sum("unreadable_lines")
    target = f"{to}/applications/{batch}"
    applications.write.option("maxRecordsPerFile", 0).parquet(target)
    (lines,) = spark.read.parquet(target).agg(unreadable).collect()[0]
    return Collected(*counts, lines or 0)


def folder_of(listed: Iterable[LogFile]) -> str | None:
    """Returns the tables' folder if these are their files; null for logs."""
    for file in listed:
        if part := _FILE.fullmatch(file.path):
            return part[1]
    return None


def read(spark: SparkSession, to: str) -> Log:
    """Reads tables; each DataFrame but `applications` has a column `date` more, to select by."""
    from pyspark.sql import functions

    from aqepilot.log import Log

    applications = _applications(spark, to)
    # The same application may have been read twice: from a log that grew, or by two runs at once.
    newest = functions.expr(
        "row_number() OVER (PARTITION BY coalesce(app_id, log), app_attempt_id, started "
        "ORDER BY batch DESC)"
    )
    counted = applications.withColumn("newest", newest).where("newest = 1")
    seen = functions.broadcast(counted.select("log", "batch"))

    def table(name: str) -> DataFrame:
        schema = f"{columns.ddl(columns.FRAMES[name])}, batch string, date date"
        try:
            rows = spark.read.schema(schema).parquet(f"{to}/{name}")
        except Exception as error:
            # Collected before there was such a table.
            if not files.is_not_there(error):
                raise
            rows = spark.createDataFrame([], schema)
        return rows.join(seen, ["log", "batch"], "left_semi").drop("batch")

    return Log(
        applications=counted.drop("bytes", "batch", "newest"),
        **{name: table(name) for name in _TIME_OF},
    )


def _applications(spark: SparkSession, to: str) -> DataFrame:
    schema = f"{columns.ddl(columns.APPLICATIONS)}, bytes bigint, batch string"
    return spark.read.schema(schema).parquet(f"{to}/applications")


def _known(spark: SparkSession, to: str) -> set[tuple[str, int]]:
    """Logs that are in the tables, with their sizes when they were read."""
    try:
        rows = _applications(spark, to).select("log", "bytes").collect()
    except Exception as error:
        if files.is_not_there(error):
            return set()
        raise
    return {(row["log"], row["bytes"]) for row in rows}
