"""What an experiment's treatment saves or costs, at the user's prices."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from aqepilot.analysis.experiment.analysis import Analysis
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.analysis.prices import Prices

METRIC = "core_ms"


class Money(NamedTuple):
    """What all units cost a day, were all of them of one arm.

    Attributes:
        currency: As the prices have it.
        control: Under the control; of units with a cost that is known.
        change: How much more it is under the treatment, if each run changes as runs do on average.
        lower: The least that may be.
        upper: The most that may be; infinite where nothing is known yet.
    """

    currency: str
    control: float
    change: float
    lower: float
    upper: float


def money(runs: Runs, analysis: Analysis, prices: Prices) -> Money | None:
    """Returns what the treatment changes in money; null where no run's cores are known.

    Args:
        runs: What was analysed.
        analysis: What that gave.
        prices: What cores and their memory cost.
    """
    is_control = runs.counted & ~runs.treated & (runs.share > 0) & (runs.share < 1)
    core_ms = runs.metrics[METRIC][is_control]
    known = ~np.isnan(core_ms)
    if not known.any():
        return None
    # Of the units that were drawn, the control's stand for all.
    all_of = float((core_ms[known] / (1 - runs.share[is_control][known])).sum())
    days = max(1.0, float(np.ptp(runs.ended[runs.counted])))
    control = prices.cost(all_of / days)
    effect = analysis.effects[METRIC]

    def change(log_ratio: float) -> float:
        return control * math.expm1(log_ratio) if log_ratio < 100 else math.inf

    return Money(
        prices.currency, control, change(effect.mean), change(effect.lower), change(effect.upper)
    )
