"""Spark's event logs as DataFrames: what was decided, and how queries and stages went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aqepilot.eventlog.frames import Log


def read_log(spark: SparkSession, path: str | Path | Iterable[str | Path]) -> Log:
    """Reads Spark's event logs: whole, in parallel, and of any application.

    The DataFrames are lazy, and each action reads the logs: cache what is used several times. Logs
    may be single files or rolled, plain or compressed by zstd, lz4 or snappy, of applications that
    run, ended or broke off, and of any Spark that aqepilot supports. What cannot be read is left
    out and counted in `Log.applications`.

    Args:
        spark: A session, classic or Spark Connect; it needs no aqepilot. Executors need PyArrow
            for compressed logs.
        path: A folder, searched at any depth, a log, or a glob, on any file system that the
            session reads; or tables that `collect` wrote: their folder, or `catalog:NAMESPACE`; or
            several of these. An application that is in several of them counts once.

    Raises:
        AqePilotError: There is no log, there are no tables, or they may not be read; says where.
    """
    from aqepilot.eventlog import files
    from aqepilot.eventlog.collect import destinations, tables
    from aqepilot.eventlog.frames import of_files

    given = [path] if isinstance(path, (str, Path)) else list(path)
    namespaces = [str(one) for one in given if destinations.is_catalog(one)]
    paths = [one for one in given if not destinations.is_catalog(one)]
    listed = files.find(spark, paths) if paths or not namespaces else []
    folders, logs = tables.parted(listed)
    destinations.refuse_delta_files(spark, (file.path for file in logs))
    read = [tables.read(spark, to) for to in (*folders, *namespaces)]
    if logs:
        read.append(of_files(spark, logs))
    return read[0] if len(read) == 1 else tables.together(read)
