"""How long an experiment would take, from runs that were made before it.

What the past does not explain of these runs is taken as it is, day by day, so that a bad day is bad
for all of its jobs. Days are drawn from it again and again, an arm for each run, and an effect is
put on the treatment's runs: the plan is when the analysis finds it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqepilot.analysis.experiment import randomization
from aqepilot.analysis.experiment.adjustment import CLIPPED_AT
from aqepilot.analysis.experiment.guards import EFFECT_ALPHA
from aqepilot.analysis.experiment.runs import Runs, rests_of
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]

POWER = 0.8
EXPERIMENTS = 100
# A job's first days only tell what to expect of it.
_LEARNT = 3
_CLIP = math.log(CLIPPED_AT)


class Plan(NamedTuple):
    """How many days it takes until an effect is found, in four of five experiments.

    Attributes:
        jobs: How many there are.
        runs_per_day: Of all jobs.
        sd: Standard deviation of what the past does not explain, on the log scale.
        raw_sd: The same without the past, around each job's mean.
        days: For all jobs together; null where it takes more than were asked for.
        by_job: For each job by itself, those with most of the metric first.
    """

    jobs: int
    runs_per_day: float
    sd: float
    raw_sd: float
    days: int | None
    by_job: dict[str, int | None]


def plan(
    history: Runs,
    metric: str = "task_ms",
    *,
    effect: float = 0.05,
    share: float = 0.5,
    most_days: int = 90,
    top: int = 20,
    seed: int = 1,
) -> Plan:
    """Says how long an experiment would take.

    Args:
        history: Runs before it, of some weeks best.
        metric: Which metric decides.
        effect: What is to be found: 0.05 is runs that are 5 percent shorter.
        share: Of the runs, how many get the treatment, above 0 and below 1.
        most_days: Where to give up.
        top: How many jobs to look at by themselves.
        seed: Of the draws.

    Raises:
        AqePilotError: The history has less than five days, or no run that succeeded.
    """
    day = np.floor(history.ended).astype(np.int64)
    first = int(day.min())
    days = int(day.max()) - first + 1
    if days < _LEARNT + 2:
        period = "a single day" if days == 1 else f"{days} days"
        message = f"the logs have runs of {period}: at least {_LEARNT + 2} days are needed."
        raise AqePilotError(Problem("HISTORY_TOO_SHORT", message))
    if history.failed.all():
        message = "no run in the logs has succeeded: there is nothing to compare with."
        raise AqePilotError(Problem("NO_RUN_SUCCEEDED", message))
    rests = np.clip(rests_of(history, history.metrics[metric]), -_CLIP, _CLIP)
    late = day - first >= _LEARNT
    generator = np.random.default_rng(seed)

    def until(rows: Any) -> int | None:
        by_day = [rests[rows & (day == d)] for d in range(first + _LEARNT, first + days)]
        return _days(by_day, effect, share, most_days, generator)

    sizes = {
        str(job): float(np.nansum(history.metrics[metric][history.job == job]))
        for job in np.unique(history.job)
    }
    largest = sorted(sizes, key=lambda job: -sizes[job])[:top]
    return Plan(
        jobs=len(sizes),
        runs_per_day=float(late.sum()) / (days - _LEARNT),
        sd=float(rests[late].std()),
        raw_sd=_raw_sd(history, metric),
        days=until(late),
        by_job={job: until(late & (history.job == job)) for job in largest},
    )


def _raw_sd(history: Runs, metric: str) -> float:
    values = history.metrics[metric]
    known = ~history.failed & (values > 0)
    if not known.any():
        return math.nan
    y = np.log(values[known])
    _, job = np.unique(history.job[known], return_inverse=True)
    means = np.bincount(job, y) / np.bincount(job)
    return float((y - means[job]).std())


def _days(
    by_day: list[Floats],
    effect: float,
    share: float,
    most_days: int,
    generator: np.random.Generator,
) -> int | None:
    """After how many days the effect is found in a share of `POWER` of simulated experiments."""
    if not sum(map(len, by_day)):
        return None
    days_taken = []
    for _ in range(EXPERIMENTS):
        drawn = [by_day[i] for i in generator.integers(0, len(by_day), most_days)]
        rest = np.concatenate(drawn)
        treated = (generator.random(len(rest)) < share).astype(np.int64)
        seen = np.clip(rest + treated * math.log1p(-effect), -_CLIP, _CLIP)
        process = randomization.log_e_process(seen, treated, np.full(len(rest), share))
        clear = np.flatnonzero(process >= -math.log(EFFECT_ALPHA))
        ends = np.cumsum([len(day) for day in drawn])
        days_taken.append(
            int(np.searchsorted(ends, clear[0], "right")) + 1 if len(clear) else math.inf
        )
    enough = sorted(days_taken)[math.ceil(POWER * EXPERIMENTS) - 1]
    return int(enough) if enough < math.inf else None
