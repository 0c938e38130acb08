"""Spark's event logs as DataFrames: what was decided, and how queries and stages went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aqepilot.eventlog.frames import Frames


def read(spark: SparkSession, path: str | Path | Iterable[str | Path]) -> Frames:
    """Reads event logs, or tables that `collect` wrote, as `aqepilot.read_log` does.

    Args:
        spark: The session.
        path: Logs, folders, globs, folders of tables, ``catalog:NAMESPACE``, or several of these.

    Raises:
        AqePilotError: There is no log, there are no tables, or they may not be read; says where.
    """
    from aqepilot.eventlog import files
    from aqepilot.eventlog.collect import destinations, tables
    from aqepilot.eventlog.frames import read_files

    paths = [str(path)] if isinstance(path, (str, Path)) else [str(one) for one in path]
    namespaces = [one for one in paths if destinations.is_catalog(one)]
    on_disk = [one for one in paths if not destinations.is_catalog(one)]
    listed = files.find(spark, on_disk) if on_disk or not namespaces else []
    folders, logs = tables.parted(listed)
    destinations.refuse_delta_files(spark, (file.path for file in logs))
    sources = [tables.read(spark, place) for place in (*folders, *namespaces)]
    if logs:
        sources.append(read_files(spark, logs))
    whole = sources[0] if len(sources) == 1 else tables.together(sources)
    whole.paths = tuple(paths)
    return whole
