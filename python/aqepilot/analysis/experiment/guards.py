"""What stands beside the effect: runs that fail or stall, and whether the draw was as it was set.

Each figure here is an e-process over the units in their order: it may be looked at after each unit,
and each has its own part of the probability with which a verdict may be wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqepilot.analysis.experiment import randomization
from aqepilot.analysis.intervals import Interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]

# A verdict is wrong with a probability of 5 percent at most, which its parts share: the effect, the
# three shares that stop, and the two checks of the draw.
EFFECT_ALPHA = 0.03
GUARD_ALPHA = 0.0033
BROKEN = 200.0


class Shares(NamedTuple):
    """How many of the runs of each arm have what is counted, failed say.

    Attributes:
        control: Share of the control's runs.
        treatment: Share of the treatment's.
        log_e: Logarithm of the e-value against the treatment having no more of it.
    """

    control: Interval
    treatment: Interval
    log_e: float

    @property
    def is_worse(self) -> bool:
        """Whether the treatment has more of it than chance explains."""
        return self.log_e >= -math.log(GUARD_ALPHA)


def shares(is_so: Bools, treated: Any, share: Floats) -> Shares:
    """Compares how many units of each arm have something.

    Args:
        is_so: Whether they do, in the order of the units.
        treated: 1 for the treatment, 0 for the control.
        share: Probability of the treatment, above 0 and below 1.
    """
    control, treatment = (
        randomization.share_interval(int(is_so[treated == arm].sum()), int((treated == arm).sum()))
        for arm in (0, 1)
    )
    return Shares(control, treatment, more_log_e(is_so, treated, share))


def more_log_e(is_so: Bools, treated: Any, share: Floats) -> float:
    """Returns the logarithm of the e-value against the treatment having no more of something.

    Arguments are as for `shares`.
    """
    # What is expected of a unit, by those before it: the mean of all would be another after each
    # unit, and the e-values of the times between no process.
    before: Any = np.cumsum(is_so) - is_so
    rest = is_so - (before + 0.5) / (np.arange(len(is_so)) + 1)
    return randomization.log_e(rest, treated, share, randomization.MORE)


def mismatch(treated: Any, share: Floats) -> float:
    """Returns the e-value against these arms having been drawn with these probabilities.

    Weights may have changed on the way: e-values of the times between are multiplied.
    """
    log_e = 0.0
    for p in np.unique(share):
        arms = treated[share == p]
        counts = [int((1 - arms).sum()), int(arms.sum())]
        log_e += math.log(max(randomization.mismatch(counts, [1 - float(p), float(p)]), 1e-300))
    return math.exp(min(log_e, 700.0))
