"""Confidence sequences: intervals that hold at all times at once.

A confidence interval of the textbook holds at one number of observations that was fixed before.
Who looks after each observation, and stops when zero is outside, is wrong far more often than it
says. A confidence sequence covers the mean at all numbers of observations at once with the
probability that it says, so that one may look and stop at any time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# As large as the effect in standard deviations at which the sequence is narrowest early.
PRIOR_SCALE = 1.0


class Interval(NamedTuple):
    """A mean and where it may be.

    Attributes:
        n: How many observations there are.
        mean: Their mean; 0 without any.
        lower: Below, minus infinity where nothing is known yet.
        upper: Above, infinity where nothing is known yet.
    """

    n: int
    mean: float
    lower: float
    upper: float

    @property
    def excludes_zero(self) -> bool:
        """Whether zero is outside."""
        return self.lower > 0 or self.upper < 0

    def is_within(self, margin: float) -> bool:
        """Whether all of it is less than ``margin`` away from zero."""
        return -margin < self.lower and self.upper < margin


def half_width(n: int, sd: float, alpha: float = 0.05) -> float:
    """Returns half the width of the confidence sequence of a mean.

    The sequence inverts the t-test whose Bayes factor has the prior Normal(0, 1) on the mean in
    standard deviations and 1/sd on the standard deviation. Of normal observations with any mean and
    standard deviation it covers the mean at all n at once with probability 1 - alpha at least.

    Sources: Rouder et al., "Bayesian t tests for accepting and rejecting the null hypothesis", 2009
    (the Bayes factor); Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for
    Gaussian means with unknown variance", 2024 (that it holds at all times).

    Args:
        n: How many observations.
        sd: Their standard deviation, with n - 1 below the line.
        alpha: Probability that the mean is ever outside, above 0 and below 1.

    Returns:
        Infinity where n is too small to say anything: below 5 for the default alpha.

    >>> half_width(4, 1.0)
    inf
    >>> round(half_width(30, 1.0), 3)
    0.611
    """
    if n < 2:
        return math.inf
    spread = 1 + n * PRIOR_SCALE**2
    k = (math.sqrt(spread) / alpha) ** (2 / n)
    if k >= spread:
        return math.inf
    t_squared = (n - 1) * (k - 1) / (1 - k / spread)
    return sd * math.sqrt(t_squared / n)


def mean_interval(values: Sequence[float], alpha: float = 0.05) -> Interval:
    """Returns the confidence sequence of a mean after these values, as `half_width` has it.

    Args:
        values: Independent observations, in any order.
        alpha: Probability that the mean is ever outside.

    >>> mean_interval([0.1, 0.2, 0.3]).upper
    inf
    >>> found = mean_interval([0.09, 0.11, 0.1, 0.12, 0.08, 0.1, 0.11, 0.09])
    >>> round(found.lower, 3), round(found.upper, 3)
    (0.08, 0.12)
    """
    n = len(values)
    mean = statistics.fmean(values) if n else 0.0
    width = half_width(n, statistics.stdev(values) if n > 1 else 0.0, alpha)
    return Interval(n, mean, mean - width, mean + width)


def observations_needed(mean: float, sd: float, most: int, alpha: float = 0.05) -> int | None:
    """Returns at how many observations zero would be outside, if they went on as they are.

    Args:
        mean: Of the observations so far.
        sd: Their standard deviation.
        most: Where to give up.
        alpha: As for `half_width`.

    Returns:
        None where more than ``most`` were needed.

    >>> observations_needed(0.05, 0.1, 1000)
    45
    """
    return next((n for n in range(2, most + 1) if half_width(n, sd, alpha) < abs(mean)), None)


def percent(log_ratio: float) -> str:
    """Returns a logarithm of a ratio of times as what is gained or lost.

    >>> percent(-0.105), percent(0.0488), percent(float("inf"))
    ('-10.0%', '+5.0%', '?')
    """
    return f"{100 * math.expm1(log_ratio):+.1f}%" if math.isfinite(log_ratio) else "?"


def interval(estimate: Interval) -> str:
    """Returns an estimate with its confidence sequence; without one, the estimate alone.

    An infinite estimate is that of an arm whose runs fail.

    >>> interval(Interval(9, -0.105, -0.2, -0.01))
    '-10.0% (-18.1% to -1.0%)'
    """
    if math.isinf(estimate.mean):
        which = "treatment" if estimate.mean > 0 else "control"
        return f"without measure, as most runs of the {which} have no outcome"
    if not math.isfinite(estimate.lower):
        return f"{percent(estimate.mean)} (not known yet)"
    return f"{percent(estimate.mean)} ({percent(estimate.lower)} to {percent(estimate.upper)})"
