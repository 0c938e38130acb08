"""What event logs hold, as DataFrames: one file for each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar

from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from typing_extensions import Self


class Frames:
    """The DataFrames of event logs; `columns.FRAMES` has the columns of each.

    A DataFrame is made when it is asked for first. It is lazy: each action reads the logs.

    Args:
        paths: Where the logs are, as the caller named them.
        frames: The DataFrames by their names, or functions that make them.
    """

    VERSION: ClassVar[int] = columns.VERSION

    def __init__(
        self, paths: Sequence[str] = (), /, **frames: DataFrame | Callable[[], DataFrame]
    ) -> None:
        self.paths = tuple(paths)
        self._frames = frames

    def _frame(self, name: str) -> DataFrame:
        frame = self._frames[name]
        if callable(frame):
            frame = self._frames[name] = frame()
        return frame

    def replace(self, **frames: DataFrame) -> Self:
        """Returns a copy with these DataFrames in place of its own."""
        own = {name: partial(self._frame, name) for name in self._frames}
        return type(self)(self.paths, **(own | frames))

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

    @property
    def sub_plans(self) -> DataFrame:
        """One row per sub-plan of a query: what it came to, under a name of its own."""
        return self._frame("sub_plans")


def read_files(
    spark: SparkSession, files: Sequence[LogFile], heads: DataFrame | None = None
) -> Frames:
    """Reads the logs that are made up of these files.

    Args:
        spark: The session.
        files: The files.
        heads: The result of `applications.heads` for them, where it is at hand.

    Raises:
        AqePilotError: This Python cannot read one of them; says what to do.
    """
    from aqepilot.eventlog.files import refuse_unreadable
    from aqepilot.eventlog.frames import (
        applications,
        decisions,
        experiments,
        policies,
        queries,
        stages,
        sub_plans,
    )

    refuse_unreadable(files)

    @cache
    def heads_once() -> DataFrame:
        return applications.heads(spark, files) if heads is None else heads

    def frame(make: Callable[[SparkSession, Sequence[LogFile], DataFrame], DataFrame]) -> DataFrame:
        return make(spark, files, heads_once())

    return Frames(
        applications=lambda: applications.applications(spark, files),
        decisions=partial(frame, decisions.decisions),
        queries=partial(frame, queries.queries),
        stages=partial(frame, stages.stages),
        policies=partial(frame, policies.policies),
        experiments=partial(frame, experiments.experiments),
        sub_plans=partial(frame, sub_plans.sub_plans),
    )
