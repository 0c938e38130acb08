"""What event logs hold, as DataFrames: one file for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from aqepilot.eventlog.files import LogFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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


def of_files(spark: SparkSession, found: Sequence[LogFile], told: DataFrame | None = None) -> Log:
    """Reads the logs that are made up of these files.

    Args:
        spark: The session.
        found: The files.
        told: What `applications.told` gives of them, where that is at hand.

    Raises:
        AqePilotError: This Python cannot read one of them; says what to do.
    """
    from aqepilot.eventlog import files
    from aqepilot.eventlog.frames import applications, decisions, queries, stages

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
