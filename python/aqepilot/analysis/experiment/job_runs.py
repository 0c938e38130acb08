"""The runs of jobs in event logs, and what they say of an experiment."""

from __future__ import annotations

from functools import cached_property

from aqepilot.analysis.experiment import analysis, history, planning
from aqepilot.analysis.experiment.analysis import HARM, Analysis
from aqepilot.analysis.experiment.experiment import Experiment
from aqepilot.analysis.experiment.planning import Plan
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.analysis.intervals import Interval
from aqepilot.eventlog.frames import Frames


class JobRuns:
    """The runs of jobs in a log, which analyse an experiment and plan one. See `Log.runs`.

    Args:
        log: The log.
        name: The experiment; null for the only one of the log.
        arm: The arm to compare with the control; null for the second.
        abandoned_after_hours: An application without an end that began less than so long ago may
            still run.
    """

    def __init__(
        self,
        log: Frames,
        name: str | None = None,
        arm: str | None = None,
        abandoned_after_hours: float = 24.0,
    ) -> None:
        self._log = log
        self._name = name
        self._arm = arm
        self._abandoned_after_hours = abandoned_after_hours

    @cached_property
    def _both(self) -> tuple[Experiment, Runs]:
        return history.runs_in(
            self._log, self._name, arm=self._arm, abandoned_after_hours=self._abandoned_after_hours
        )

    @property
    def experiment(self) -> Experiment:
        """Which experiment is analysed, and which two of its arms.

        Raises:
            AqePilotError: There is no such experiment or arm, or several; or too many units.
        """
        return self._both[0]

    @property
    def units(self) -> Runs:
        """The units of the experiment as arrays, and the runs of their jobs from before.

        Raises:
            AqePilotError: As `experiment` does.
        """
        return self._both[1]

    def analyse(self, metric: str | None = None, *, harmful: float = HARM) -> Analysis:
        """Analyses the experiment so far; intervals hold however often that is done.

        Args:
            metric: The metric that decides: ``task_ms``, ``wall_ms``, ``cpu_ms``, ``core_ms``,
                ``shuffle_bytes`` or ``spill_bytes``; null for the one that was submitted.
            harmful: How many times as long a job has to take to count as harmed, above 1.

        Returns:
            Effects as logarithms of ratios, the jobs that the treatment harms, and a verdict.

        Raises:
            AqePilotError: As `experiment` does.
            KeyError: There is no such metric.
        """
        return analysis.analyse(self.units, metric or self.experiment.metric, harmful=harmful)

    def harmed_queries(
        self, metric: str | None = None, *, harmful: float = HARM
    ) -> dict[str, Interval]:
        """Returns the queries that the treatment harms, by job and fingerprint.

        Args:
            metric: As for `analyse`.
            harmful: How many times as long a query has to take to count as harmed, above 1.

        Returns:
            The effect on each as the logarithm of a ratio, under ``job|fingerprint``; none where
            units are no runs of jobs.

        Raises:
            AqePilotError: As `experiment` does, or there are too many queries.
        """
        if self.experiment.unit_kind != "job_run":
            return {}
        queries = history.queries_in(self._log, self.experiment)
        return analysis.harmed_queries(queries, metric or self.experiment.metric, harmful=harmful)

    def plan(
        self,
        metric: str = "task_ms",
        *,
        effect: float = 0.05,
        share: float = 0.5,
        most_days: int = 90,
        top: int = 20,
    ) -> Plan:
        """Simulates experiments on the runs of no experiment: how many days does one take?

        Args:
            metric: As for `analyse`.
            effect: The effect to detect: 0.05 is runs that are 5 percent shorter.
            share: The share of runs that get the treatment, above 0 and below 1.
            most_days: After how many days to give up.
            top: How many jobs to look at by themselves, those with most of the metric.

        Returns:
            Days until four of five experiments have found the effect; null where that takes longer.

        Raises:
            AqePilotError: The log has less than five days of runs, or no run that succeeded.
        """
        return planning.plan(
            history.runs_of(self._log),
            metric,
            effect=effect,
            share=share,
            most_days=most_days,
            top=top,
        )
