"""Spark's event logs as DataFrames: what was decided, and how queries and stages went."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aqepilot.log.files import LogFile


class Log:
    """What event logs hold. Docs: `docs/reference/log.md` has each column.

    A DataFrame is made when it is asked for first.

    Args:
        frames: The DataFrames by their names, or what makes them.
    """

    def __init__(self, **frames: DataFrame | Callable[[], DataFrame]) -> None:
        self._frames = frames

    def _frame(self, name: str) -> DataFrame:
        frame = self._frames[name]
        if callable(frame):
            frame = self._frames[name] = frame()
        return frame

    def replace(self, **frames: DataFrame) -> Log:
        """Returns a log with these DataFrames in place of its own."""
        own = {name: partial(self._frame, name) for name in self._frames}
        return Log(**(own | frames))

    @property
    def applications(self) -> DataFrame:
        """One row per log: whose it is, and how much of it could be read."""
        return self._frame("applications")

    @property
    def decisions(self) -> DataFrame:
        """One row per decision of aqepilot's, with its facts and its fate."""
        return self._frame("decisions")

    @property
    def queries(self) -> DataFrame:
        """One row per query: how it went, also where there was no aqepilot."""
        return self._frame("queries")

    @property
    def stages(self) -> DataFrame:
        """One row per attempt of a stage."""
        return self._frame("stages")

    @property
    def policies(self) -> DataFrame:
        """One row per text of a policy that a session read."""
        return self._frame("policies")

    @property
    def experiments(self) -> DataFrame:
        """One row for each event of an experiment's unit.

        The unit got its arm, came to a decision on which the arms differ, or was stopped by a
        guard rail.
        """
        return self._frame("experiments")


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

    Raises:
        AqePilotError: This Python cannot read one of them; says what to do.
    """
    from aqepilot.log import applications, decisions, files, queries, stages

    files.refuse_unreadable(found)

    @cache
    def of_applications() -> DataFrame:
        return applications.told(spark, found) if told is None else told

    def of(make: Callable[[SparkSession, Sequence[LogFile], DataFrame], DataFrame]) -> DataFrame:
        return make(spark, found, of_applications())

    return Log(
        applications=lambda: applications.applications(spark, found),
        decisions=partial(of, decisions.decisions),
        queries=partial(of, queries.queries),
        stages=partial(of, stages.stages),
        policies=partial(of, decisions.policies),
        experiments=partial(of, decisions.experiments),
    )
