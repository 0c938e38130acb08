"""What the runs of all experiments say, by experiment, after each look anew.

Each figure is an e-process over the runs in their order, so it may be looked at each hour, and a
trial may be ended by it at any time. See `randomization` for what they rest on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter  # type: ignore[import-untyped,unused-ignore]

from aqepilot.analysis.experiment import guards, randomization
from aqepilot.analysis.experiment.adjustment import CLIPPED_AT
from aqepilot.analysis.experiment.runs import Runs, numbered, rests_of
from aqepilot.analysis.intervals import Interval

if TYPE_CHECKING:
    from aqepilot.analysis.experiment.runs import Floats, Texts

_CLIP = math.log(CLIPPED_AT)
# A run that takes so many times longer than expected counts as that in e-values.
_MOST = math.log(4.0)
# For effects of a tenth of a quiet job to those of half of a noisy one.
_BETS: Floats = np.exp2(np.arange(1, 6, dtype=np.float64))
# So many runs say how the day was.
_MANY = 10
_NEWEST = 3
# What a run counts in the means of its arm after each later one.
_KEPT = 0.8
_DOUBT_SDS = 3.0
_DOUBT_LEAST = math.log(1.1)
# Of the gain when it was promoted: as long as most is left, nothing is in doubt.
_DOUBT_GAIN = 0.25


class Shadow(NamedTuple):
    """What a policy did in shadow mode.

    Attributes:
        runs: Runs of the job in which it was asked.
        answers: How often it had an answer.
        failed: How often it failed.
    """

    runs: int
    answers: int
    failed: int


class TeamPolicy(NamedTuple):
    """A policy of the team's in a job's newest run.

    Attributes:
        name: Its name.
        points: Where it decides.
    """

    name: str
    points: tuple[str, ...]


class Evidence(NamedTuple):
    """All that is known at a look.

    Attributes:
        day: The time of the look, in days since the epoch.
        runs: Runs of all jobs in the order in which they ended, with those from before.
        experiment: Of each run the autopilot's experiment; empty for none.
        shadows: By name of a trial's policy.
        teams: By job, the team's policies, in their order.
    """

    day: float
    runs: Runs
    experiment: Texts
    shadows: Mapping[str, Shadow] = {}
    teams: Mapping[str, tuple[TeamPolicy, ...]] = {}


class Measured(NamedTuple):
    """What the runs of one experiment say.

    Attributes:
        runs: Of the control and of the treatment, exposed or not.
        exposed: Of these, those in which the arms could differ.
        gain_log_e: Logarithm of the e-value against the treatment not being faster.
        harm_log_e: The same against it not being slower.
        turn_log_e: The same, at its largest over all days at which it may have become slower.
        effect: Estimate on the logarithm of the metric; null without a run of each arm.
        failures_log_e: Logarithm of the e-value against the treatment failing no more often.
        memory_log_e: The same of runs out of memory.
        mismatch: The e-value against the draw.
        treated_ms: What the treated runs took.
    """

    runs: tuple[int, int]
    exposed: tuple[int, int]
    gain_log_e: float
    harm_log_e: float
    turn_log_e: float
    effect: float | None
    failures_log_e: float
    memory_log_e: float
    mismatch: float
    treated_ms: float

    @property
    def saved_ms(self) -> float:
        """What the treated runs saved, by the estimate; negative for what they cost."""
        return 0.0 if self.effect is None else self.treated_ms * math.expm1(-self.effect)


class Figured:
    """The figures of a look.

    Args:
        evidence: What is known.
        metric: What decides.
        known: What earlier looks measured, by experiment and number of its runs, which is kept up;
            null for nothing. What earlier runs say does not change by later ones.
    """

    def __init__(
        self,
        evidence: Evidence,
        metric: str,
        known: dict[tuple[str, int], Measured | None] | None = None,
    ) -> None:
        self._evidence = evidence
        self._metric = metric
        self._known = {} if known is None else known
        names, number = numbered(evidence.experiment)
        is_treated = evidence.runs.treated & evidence.runs.counted
        self._treatment = np.where(is_treated, number + 1, 0)
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(names) + 1))
        self._rows = {
            name: order[starts[i] : starts[i + 1]] for i, name in enumerate(names) if name
        }

    @cached_property
    def _jobs(self) -> dict[str, Any]:
        """The rows of each job."""
        listed, number = numbered(self._evidence.runs.job)
        order = np.argsort(number, kind="stable")
        starts = np.searchsorted(number[order], np.arange(len(listed) + 1))
        return {name: order[starts[i] : starts[i + 1]] for i, name in enumerate(listed)}

    @cached_property
    def _rests(self) -> Floats:
        """By how much each run is above what its job takes without the treatment."""
        return self._above(self._treatment)

    @cached_property
    def _changes(self) -> Floats:
        """By how much each run is above what its job takes, treated or not."""
        return self._above(None)

    def _above(self, treatment: Any) -> Floats:
        runs = self._evidence.runs
        rests = rests_of(runs, runs.metrics[self._metric], treatment=treatment)
        return rests - _around(rests, runs.ended)

    @cached_property
    def ms_per_day(self) -> dict[str, float]:
        """What each job takes a day, over the last weeks."""
        runs = self._evidence.runs
        recent = runs.ended > self._evidence.day - 28
        values = np.nan_to_num(runs.metrics[self._metric][recent])
        names, number = numbered(runs.job[recent])
        sums = np.bincount(number, values, len(names)) if len(names) else np.zeros(0)
        days = float(np.ptp(runs.ended[recent])) if recent.any() else 0.0
        return dict(zip(names, (sums / max(1.0, days)).tolist(), strict=True))

    def measure(self, name: str) -> Measured | None:
        """Returns what the runs of an experiment say; null where there are none."""
        key = (name, len(self._rows.get(name, ())))
        if key not in self._known:
            self._known[key] = self._measure(name)
        return self._known[key]

    def _measure(self, name: str) -> Measured | None:
        rows = self._drawn(name)
        if rows is None:
            return None
        runs = self._evidence.runs
        treated = runs.treated[rows].astype(np.int64)
        share, exposed = runs.share[rows], runs.exposed[rows]
        own, arm, p = self._rests[rows][exposed], treated[exposed], share[exposed]
        outcome = np.clip(own, -_MOST, _MOST)
        outcome = outcome - _middles(outcome, arm)
        failed = runs.failed[rows][exposed]
        memory = (
            np.zeros(len(rows), dtype=bool)
            if runs.out_of_memory is None
            else runs.out_of_memory[rows]
        )[exposed]
        took = np.nan_to_num(runs.metrics[self._metric][rows])
        return Measured(
            (int((1 - treated).sum()), int(treated.sum())),
            (int((1 - arm).sum()), int(arm.sum())),
            randomization.log_e(-outcome, arm, p, _BETS),
            randomization.log_e(outcome, arm, p, _BETS),
            _turned(outcome, arm, p),
            _difference(own, arm, p),
            _more(failed, arm, p),
            _more(memory, arm, p),
            guards.mismatch(treated, share),
            float(took[exposed][arm == 1].sum()),
        )

    def is_slower(self, job: str, since: float, hold_outs: str, effect: float) -> bool:
        """Returns whether a job's newest runs took longer than those before them.

        No test: what it says only widens the hold-out.

        Args:
            job: The job.
            since: Since which day runs are looked at.
            hold_outs: What the experiments' names begin with, whose controls are left out.
            effect: On the logarithm of the metric, when it was promoted. A quarter of a gain may
                be lost before there is a doubt.
        """
        evidence = self._evidence
        rows = self._jobs.get(job, np.array([], dtype=np.int64))
        rows = rows[(evidence.runs.ended[rows] >= since) & ~evidence.runs.failed[rows]]
        is_control = [
            str(name).startswith(hold_outs) and not treated
            for name, treated in zip(
                evidence.experiment[rows], evidence.runs.treated[rows], strict=True
            )
        ]
        rests = self._changes[rows[~np.array(is_control, dtype=bool)]]
        if len(rests) < 2 * _NEWEST:
            return False
        clipped = np.clip(rests, -_CLIP, _CLIP)
        earlier, newest = clipped[:-_NEWEST], clipped[-_NEWEST:]
        spread = max(float(earlier.std()), 0.05)
        above = float(newest.mean() - np.median(earlier))
        least = max(_DOUBT_LEAST, -_DOUBT_GAIN * effect)
        return above > max(least, _DOUBT_SDS * spread / math.sqrt(_NEWEST))

    def interval(self, name: str) -> Interval | None:
        """Returns the effect with its confidence sequence; null where there are no runs."""
        rows = self._drawn(name)
        if rows is None:
            return None
        runs = self._evidence.runs
        rows = rows[runs.exposed[rows]]
        treated = runs.treated[rows].astype(np.int64)
        return randomization.effect(self._rests[rows], treated, runs.share[rows], 0.05, _CLIP)

    def _drawn(self, name: str) -> Any:
        rows = self._rows.get(name)
        if rows is None:
            return None
        runs = self._evidence.runs
        kept = rows[(runs.share[rows] > 0) & (runs.share[rows] < 1) & runs.counted[rows]]
        return kept if len(kept) else None


def _around(rests: Floats, ended: Floats) -> Floats:
    """Returns for each run how those of the day before its end were; 0 where there are few.

    They are known before it, so the bet on its arm stays fair.
    """
    clipped = np.clip(rests, -_CLIP, _CLIP)
    sums = np.concatenate([[0.0], np.cumsum(clipped)])
    last = np.searchsorted(ended, ended)
    first = np.searchsorted(ended, ended - 1)
    count = last - first
    return np.where(count >= _MANY, (sums[last] - sums[first]) / np.maximum(count, 1), 0.0)


def _middles(outcome: Floats, arm: Any) -> Floats:
    """Returns what lies between the means of both arms before each run, the newest runs most.

    What is expected of a job follows its runs, so older ones say less. Each mean counts one
    outcome of 0 more, as none is known at first.
    """

    def before(values: Floats) -> Floats:
        kept = lfilter([1.0], [1.0, -_KEPT], values)
        return np.concatenate([[0.0], kept[:-1]])

    if not len(outcome):
        return outcome
    arms = (1.0 - arm, 1.0 * arm)
    means = [before(outcome * own) / (1 + before(own)) for own in arms]
    return np.asarray((means[0] + means[1]) / 2)


def _difference(rests: Floats, arm: Any, share: Floats) -> float | None:
    """The difference of means, of the runs with one share each: what is expected follows it."""
    clipped = np.clip(rests, -_MOST, _MOST)
    weights, differences = [], []
    for p in np.unique(share):
        treated, control = (clipped[(share == p) & (arm == a)] for a in (1, 0))
        if len(treated) and len(control):
            weights.append(len(treated) * len(control) / (len(treated) + len(control)))
            differences.append(float(treated.mean() - control.mean()))
    return float(np.average(differences, weights=weights)) if weights else None


def _more(is_so: Any, arm: Any, share: Floats) -> float:
    return guards.more_log_e(is_so, arm, share) if is_so.any() else 0.0


def _turned(outcome: Floats, arm: Any, share: Floats) -> float:
    """The e-detector: each day is one at which the treatment may have become slower.

    Its expected time to a false alarm, in runs, is above its threshold.

    Source: Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change
    detection", 2022 (CUSUM of e-values, mixed over bets).
    """
    if not len(outcome):
        return 0.0
    sums = randomization.log_factors(outcome, arm, share, _BETS).cumsum(axis=0)
    before = np.vstack([np.zeros((1, len(_BETS))), sums])
    since = before[-1] - np.minimum.accumulate(before)[-1]
    return float(np.logaddexp.reduce(since) - math.log(len(_BETS)))


def names(experiments: Iterable[Any]) -> Texts:
    """Returns names as an array."""
    return np.array(list(experiments), dtype=object)
