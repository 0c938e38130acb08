"""The part of a report about experiments: the verdicts of `aqepilot experiment analyse`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from aqepilot.analysis.report.values import Effect, Tried, TwoShares
from aqepilot.errors import AqePilotError

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

_MOST = 10


def newest_tried(log: Frames) -> tuple[Tried, ...]:
    """Analyses the newest ten experiments of the logs, each with its second arm.

    Args:
        log: The log.
    """
    newest = (
        log.experiments.where("experiment IS NOT NULL")
        .groupBy("experiment")
        .agg({"time": "max"})
        .orderBy("max(time)", ascending=False)
        .limit(_MOST)
        .collect()
    )
    if not newest:
        return ()
    if not all(find_spec(name) for name in ("numpy", "scipy")):
        problem = (
            "experiments need numpy and scipy in this Python: pip install 'aqepilot[experiment]'."
        )
        return tuple(Tried(row["experiment"], problem=problem) for row in newest)
    from aqepilot.analysis.experiment.history import cached

    with cached(log) as once:
        return tuple(_tried(once, row["experiment"]) for row in newest)


def _tried(log: Frames, name: str) -> Tried:
    from aqepilot.analysis.experiment import verdicts
    from aqepilot.analysis.experiment.job_runs import JobRuns
    from aqepilot.analysis.intervals import interval

    runs = JobRuns(log, name)
    try:
        experiment = runs.experiment
    except AqePilotError as error:
        return Tried(name, problem="; ".join(problem.message for problem in error.problems))
    analysis = runs.analyse()
    return Tried(
        name,
        analysis.verdict,
        verdicts.sentences(experiment, analysis),
        [
            Effect(what, interval(exposed), interval(effect))
            for what, exposed, effect in verdicts.metrics(experiment, analysis)
        ],
        experiment.treatment,
        experiment.control,
        [
            TwoShares(
                what, verdicts.share(both.treatment), verdicts.share(both.control), both.is_worse
            )
            for what, both in verdicts.guards(analysis)
        ],
    )
