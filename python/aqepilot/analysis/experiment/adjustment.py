"""What was to be expected of each unit of an experiment, by what was known before it ran.

A run takes longer because its input is larger, because it is a Monday, because it is that job.
What is left when that is taken away says more of the arm. An expectation that is bad makes
intervals wide, never wrong: see `randomization`.

Source: Deng, Xu, Kohavi and Walker, "Improving the sensitivity of online controlled experiments by
utilizing pre-experiment data", 2013 (the past as a covariate).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

# A unit that took more than so many times longer or shorter than expected counts as that.
CLIPPED_AT = 2.0
_MOST = math.log(CLIPPED_AT)
# A unit says no more than that of a treatment.
_LARGEST_EFFECT = math.log(8.0)
_RIDGE = 1.0
_WEEKDAYS = 7
# After as many runs a job's past is trusted.
_SURE = 3


class Units(NamedTuple):
    """Units in the order in which they ended; all fields have one value for each.

    Attributes:
        day: Days since some day, rising; what is expected on a day goes by the days before.
        job: Number of the job, from 0 on.
        y: Outcome on the log scale; NaN for a unit without one.
        input: Logarithm of the bytes read; NaN where that is not known.
        treatment: Number of the treatment that was in force, from 1 on; 0 for none. Null for none
            in all units.
    """

    day: Ints
    job: Ints
    y: Floats
    input: Floats
    treatment: Ints | None = None


def surprises(units: Units) -> Floats:
    """Returns by how much each outcome is above what the days before let expect, on the log scale.

    Expected is the mean of the job's past, corrected by how much the input differs from the job's
    usual, by how the last run went, and by the weekday: coefficients are fitted to all runs of the
    days before. It is what is expected without a treatment. What the treated units of the days
    before were above it, on average, is taken from a treated unit before the job's past has it.

    Returns:
        Infinity for a unit without an outcome; 0 for a job's first run, of which nothing can be
        expected, so that it says nothing.
    """
    n = len(units.day)
    jobs = int(units.job.max()) + 1 if n else 0
    rests = np.zeros(n)
    treatment = np.zeros(n, dtype=np.int64) if units.treatment is None else units.treatment
    past, effects = _Past(jobs), _Effects(int(treatment.max()) + 1 if n else 1)
    starts = np.flatnonzero(np.diff(units.day, prepend=units.day[:1] - 1)).tolist()
    for start, end in zip(starts, [*starts, n][1:], strict=True):
        rows = slice(start, end)
        job, y, size = units.job[rows], units.y[rows], units.input[rows]
        own = treatment[rows]
        expected, features = past.expect(job, size, int(units.day[start]))
        above = np.where(np.isnan(y), math.inf, y - expected)
        runs = past.runs[job]
        rests[rows] = np.where(runs > 0, above, 0)
        # One stalled run must not be what is expected of the next; of a new job it is all there is.
        clipped = expected + np.clip(above - effects.mean[own], -_MOST, _MOST)
        is_new = (runs < _SURE) & ~np.isnan(y) & (own == 0)
        past.learn(job, np.where(is_new, y, clipped), size, features)
        says = (own > 0) & (runs > 0) & ~np.isnan(y)
        effects.learn(own[says], above[says])
    return rests


class _Effects:
    """What the units of each treatment were above what was expected, with one more unit at 0."""

    def __init__(self, treatments: int) -> None:
        self.mean = np.zeros(treatments)
        self._units = np.ones(treatments)

    def learn(self, treatment: Ints, above: Floats) -> None:
        units = np.bincount(treatment, minlength=len(self.mean))
        bounded = np.clip(above, -_LARGEST_EFFECT, _LARGEST_EFFECT)
        sums = np.bincount(treatment, bounded, len(self.mean))
        self.mean = (self.mean * self._units + sums) / (self._units + units)
        self._units += units


class _Past:
    """What is known of jobs at the end of a day."""

    def __init__(self, jobs: int) -> None:
        self.runs = np.zeros(jobs)
        self._sum = np.zeros(jobs)
        self._inputs = np.zeros(jobs)
        self._input_sum = np.zeros(jobs)
        self._last = np.zeros(jobs)
        width = 2 + _WEEKDAYS
        self._squares = _RIDGE * np.eye(width)
        self._products = np.zeros(width)

    def expect(self, job: Ints, size: Floats, day: int) -> tuple[Floats, Floats]:
        """Returns what is expected, and the features that were used for it."""
        runs, inputs = self.runs[job], self._inputs[job]
        total = self.runs.sum()
        overall = self._sum.sum() / total if total else 0.0
        mean = np.where(runs > 0, self._sum[job] / np.maximum(runs, 1), overall)
        usual = self._input_sum[job] / np.maximum(inputs, 1)
        features = np.zeros((len(job), 2 + _WEEKDAYS))
        features[:, 0] = np.where((inputs > 0) & ~np.isnan(size), np.nan_to_num(size) - usual, 0)
        features[:, 1] = np.where(runs > 1, self._last[job] - mean, 0)
        features[:, 2 + day % _WEEKDAYS] = 1
        fitted = np.linalg.solve(self._squares, self._products)
        return mean + np.where(runs > 0, features @ fitted, 0), features

    def learn(self, job: Ints, y: Floats, size: Floats, features: Floats) -> None:
        known = self.runs[job] > 0
        mean = self._sum[job] / np.maximum(self.runs[job], 1)
        self._squares += features[known].T @ features[known]
        self._products += features[known].T @ (y - mean)[known]
        np.add.at(self.runs, job, 1)
        np.add.at(self._sum, job, y)
        self._last[job] = y
        sized = ~np.isnan(size)
        np.add.at(self._inputs, job[sized], 1)
        np.add.at(self._input_sum, job[sized], size[sized])
