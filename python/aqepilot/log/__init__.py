"""Spark's event logs as DataFrames: what was decided, and how queries and stages went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aqepilot.log.files import LogFile


class Log(NamedTuple):
    """What event logs hold. Docs: `docs/log.md` has each column.

    Attributes:
        applications: One row per log: whose it is, and how much of it could be read.
        decisions: One row per decision of aqepilot's, with its facts and its fate.
        queries: One row per query: how it went, also where there was no aqepilot.
        stages: One row per attempt of a stage.
        policies: One row per text of a policy that a session read.
        experiments: One row for each time that a unit of an experiment got its arm, came to a
            decision on which the arms differ, or was stopped by a guard rail.
    """

    applications: DataFrame
    decisions: DataFrame
    queries: DataFrame
    stages: DataFrame
    policies: DataFrame
    experiments: DataFrame


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
    from aqepilot.log import destinations, files, tables

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


def of_files(spark: SparkSession, found: Sequence[LogFile], told: DataFrame | None = None) -> Log:
    """Reads the logs that are made up of these files.

    Args:
        spark: The session.
        found: The files.
        told: What `applications.told` gives of them, where that is at hand.
    """
    from aqepilot.log import applications, decisions, queries, stages

    told = applications.told(spark, found) if told is None else told
    return Log(
        applications=applications.applications(spark, found),
        decisions=decisions.decisions(spark, found, told),
        queries=queries.queries(spark, found, told),
        stages=stages.stages(spark, found, told),
        policies=decisions.policies(spark, found, told),
        experiments=decisions.experiments(spark, found, told),
    )
