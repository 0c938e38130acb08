"""Which experiments have shown a gain, so that few of all promotions there ever were are wrong.

Each experiment has a weight, and all weights are 1 together at most. What is promoted has an
e-value of 1 / (rate * weight * promotions) at least, with all promotions so far and those of this
look: so of all promotions, a share of `rate` at most is wrong, on average.

Source: Wang and Ramdas, "False discovery rate control with e-values", 2022: the proof holds for
any set in which each e-value is that large, and for e-processes that are stopped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Measured
from aqepilot.autopilot.state import Trial


def promotable(
    trials: Iterable[Trial],
    measured: Mapping[str, Measured],
    definition: Definition,
    promoted: int,
) -> list[Trial]:
    """Returns the trials that are to be promoted, the one with most evidence first.

    Args:
        trials: Experiments.
        measured: What their runs say, by trial.
        definition: It has the rate, the least effect, and the number of experiments.
        promoted: How many promotions there were.
    """
    least = math.log1p(-definition.least_effect / 100)
    ready: list[tuple[float, Trial]] = []
    for trial in trials:
        own = measured.get(trial.id)
        if own and own.effect is not None and own.effect <= least:
            ready.append((own.gain_log_e - _needed(trial, definition), trial))
    ready.sort(key=lambda one: -one[0])
    enough = max(
        (k for k, one in enumerate(ready, 1) if one[0] >= -math.log(promoted + k)), default=0
    )
    return [trial for _, trial in ready[:enough]]


def _needed(trial: Trial, definition: Definition) -> float:
    """What the logarithm of its e-value needs, were it the only promotion."""
    epoch = (trial.number or 0) // definition.experiments
    log_weight = -(1 + epoch) * math.log(2) - math.log(definition.experiments)
    return -math.log(definition.false_promotions) - log_weight
