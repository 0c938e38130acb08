"""Event logs collected into tables: each application once, however often that is run.

A run writes what it read as one batch, and the rows of applications last, at once: until then
nobody sees the batch. What a run that was killed has left is never seen. Of an application that is
in several batches, the newest counts. `destinations` has where the tables are.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.errors import AqePilotError, Problem
from aqepilot.eventlog import events, files
from aqepilot.eventlog.collect import destinations, open_destination, schemas
from aqepilot.eventlog.files import LogFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aqepilot.eventlog.collect.destinations import Destination
    from aqepilot.eventlog.frames import Frames

_FILE = re.compile(r"(.*)/applications/batch=[^/]+/[^/]+\.parquet")
_TIME_OF = {
    "decisions": "time",
    "policies": "time",
    "queries": "coalesce(started, ended)",
    "stages": "coalesce(submitted, completed)",
    "experiments": "time",
    "sub_plans": "time",
}


class Collected(NamedTuple):
    """What a run of `collect` did.

    Attributes:
        logs: Logs that were read, wholly or in part.
        known: Logs that were there already.
        running: Logs left for another run, as their applications are still in progress.
        unreadable_lines: Lines of the logs read that are no whole events.
        unreadable_logs: Logs with a file that could not be read, or not to its end: the problem is
            in `Log.applications`, and they are known from now on.
    """

    logs: int
    known: int
    running: int
    unreadable_lines: int
    unreadable_logs: int


def collect(
    spark: SparkSession,
    path: str | Path | Iterable[str | Path],
    to: str | Path,
    *,
    table_format: str | None = None,
    abandoned_after_hours: float = 24.0,
    again: bool = False,
) -> Collected:
    """Adds event logs that are not there yet to tables, which `read_log` takes as it takes logs.

    It can be killed at any point and run again, and nothing is missing and nothing there twice. A
    log that has changed since is read again, and takes the place of what was read before.

    Args:
        spark: Any session.
        path: Logs, as for `read_log`.
        to: The tables' folder, on any file system that the session writes; or
            `catalog:NAMESPACE`, a namespace of one of the session's catalogs.
        table_format: `delta`, `iceberg` or `parquet`: what tables of a catalog are made as that
            are not there yet; null for the catalog's own default.
        abandoned_after_hours: A log that says that its application runs is read when it has not
            changed for so long: the application broke off.
        again: Also read logs that could not be read to their end before.

    Raises:
        AqePilotError: There is no log, or it may not be listed; or there can be no such tables.
    """
    from pyspark.sql import functions

    from aqepilot.eventlog.frames import applications, read_files

    destination = open_destination(spark, to, table_format)
    places = [path] if isinstance(path, (str, Path)) else list(path)
    for one in filter(destinations.is_catalog, places):
        message = "these are collected tables, and no logs to collect."
        raise AqePilotError(Problem("LOG_NOT_FOUND", message, str(one)))
    files_by_log: dict[str, list[LogFile]] = {}
    _, listed_logs = parted(files.find(spark, places))
    for file in listed_logs:
        files_by_log.setdefault(file.log, []).append(file)
    sizes = {log: sum(file.bytes for file in own) for log, own in files_by_log.items()}
    destination.prepare()
    known = _known(destination, again)
    rest = {log: own for log, own in files_by_log.items() if (log, sizes[log]) not in known}
    abandoned_ms = (time.time() - abandoned_after_hours * 3600) * 1000
    running = {
        log
        for log, own in rest.items()
        if any(file.is_in_progress for file in own)
        and max(file.modified_ms for file in own) > abandoned_ms
    }
    wanted = [file for log, own in rest.items() if log not in running for file in own]
    read, there = len(rest) - len(running), len(files_by_log) - len(rest)
    if not wanted:
        return Collected(0, there, len(running), 0, 0)
    batch = f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S%f}-{uuid.uuid4().hex[:8]}"
    # Each table is joined with it, and would read the logs for it once more.
    heads = applications.heads(spark, wanted).persist()
    try:
        log = read_files(spark, wanted, heads)
        for name, of_time in _TIME_OF.items():
            date = functions.expr(f"to_date({of_time})").alias("date")
            destination.add(name, getattr(log, name).select("*", date), batch)
        # Local rows: the sizes are those of the listing, also where a log has grown since.
        listed = spark.createDataFrame(list(sizes.items()), "log string, bytes bigint")
        counted = log.applications.join(functions.broadcast(listed), "log")
        destination.add("applications", counted, batch)
    finally:
        heads.unpersist()
    lines, unreadable, nothing = (
        _applications(destination)
        .where(functions.col("batch") == batch)
        .selectExpr(
            "coalesce(sum(unreadable_lines), 0)",
            "count(problem)",
            "count_if(problem IS NOT NULL AND lines = 0)",
        )
        .collect()[0]
    )
    return Collected(read - nothing, there, len(running), lines, unreadable)


def parted(listed: Iterable[LogFile]) -> tuple[list[str], list[LogFile]]:
    """Returns the folders of tables that these are files of, and the files of logs beside them."""
    files_listed = list(listed)
    folders = sorted({part[1] for file in files_listed if (part := _FILE.fullmatch(file.path))})
    beneath = tuple(f"{folder}/" for folder in folders)
    return folders, [file for file in files_listed if not file.path.startswith(beneath)]


def together(read: Sequence[Frames]) -> Frames:
    """Puts logs and tables together; an application that is in several of them counts once.

    It counts where most lines of it were read.
    """
    from pyspark.sql import functions

    from aqepilot.eventlog.frames import Frames

    def union(name: str) -> DataFrame:
        frames: Iterator[DataFrame] = (
            getattr(log, name).withColumn("_source", functions.lit(source))
            for source, log in enumerate(read)
        )
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)

    counted = _newest(union("applications"), "lines, _source")
    seen = functions.broadcast(counted.select("log", "_source"))

    def frame(name: str) -> DataFrame:
        rows = union(name).join(seen, ["log", "_source"], "left_semi").drop("_source")
        # Logs have no date: a condition on it would leave all of them out.
        tables_only = all("date" in getattr(log, name).columns for log in read)
        return rows if tables_only else rows.drop("date")

    frames = {name: partial(frame, name) for name in _TIME_OF}
    return Frames(applications=counted.drop("_source"), **frames)


def _newest(applications: DataFrame, order: str) -> DataFrame:
    """Of a log that was read several times, and of an application, the row that counts."""
    from pyspark.sql import functions

    latest = ", ".join(f"{column} DESC" for column in order.split(", "))
    newest = applications
    for key in ("log", "coalesce(app_id, log), app_attempt_id, started"):
        rank = functions.expr(f"row_number() OVER (PARTITION BY {key} ORDER BY {latest})")
        newest = newest.withColumn("_rank", rank).where("_rank = 1").drop("_rank")
    return newest


def read(spark: SparkSession, to: str) -> Frames:
    """Reads tables; each DataFrame but `applications` has a column `date` more, to select by.

    Args:
        spark: Any session.
        to: As for `collect`.

    Raises:
        AqePilotError: There are no tables.
    """
    from pyspark.sql import functions

    from aqepilot.eventlog.frames import Frames

    destination = open_destination(spark, to)
    # The same application may have been read twice: from a log that grew, or by two runs at once.
    counted = _newest(_applications(destination), "batch")
    seen = functions.broadcast(counted.select("log", "batch"))

    def table(name: str) -> DataFrame:
        rows = destination.rows(name)
        if rows is None:
            # Collected before there was such a table.
            rows = spark.createDataFrame([], schemas.ddl(name))
        return rows.join(seen, ["log", "batch"], "left_semi").drop("batch")

    frames = {name: partial(table, name) for name in _TIME_OF}
    return Frames(applications=counted.drop("bytes", "batch"), **frames)


def _applications(destination: Destination) -> DataFrame:
    rows = destination.rows("applications")
    if rows is None:
        message = "there are no tables that aqepilot has collected. " + (destination.lost() or "")
        raise AqePilotError(Problem("LOG_NOT_FOUND", message.strip(), str(destination)))
    return rows


def _known(destination: Destination, again: bool) -> set[tuple[str, int]]:
    """Logs that are in the tables, with their sizes when they were read.

    Args:
        destination: The tables.
        again: Leaves out those that could not be read to their end.
    """
    known = destination.rows("applications")
    if known is None:
        return set()
    if again:
        known = known.withColumn(
            "bad", events.expr("max_by(problem, batch) OVER (PARTITION BY log, bytes)")
        ).where("bad IS NULL")
    return {(row["log"], row["bytes"]) for row in known.select("log", "bytes").collect()}
