"""Which of many jobs, or queries, the treatment makes much slower: with few named wrongly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqepilot.experiment import randomized
from aqepilot.experiment.guards import EFFECT_ALPHA
from aqepilot.experiment.sequences import Interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

FALSE_SHARE = 0.05


def harmed(
    rest: Floats,
    names: Sequence[str],
    number: Ints,
    treated: Any,
    share: Floats,
    *,
    factor: float,
    clip: float,
) -> dict[str, Interval]:
    """Returns what takes at least `factor` times as long, and is slower not by chance.

    Of what is named, a share of 5 percent at most is no slower at all. For that e-values are
    one-sided, so that what got faster is no discovery, and those of all that is slowed down by less
    than `factor` count as nothing before discoveries are made: who left them out afterwards would
    keep those that are wrong.

    Args:
        rest: Of each unit, what is left of its outcome.
        names: Of what there is to name.
        number: Whose each unit is, an index of `names`.
        treated: 1 for the treatment, 0 for the control.
        share: Probability of the treatment, above 0 and below 1.
        factor: What counts as harm, above 1.
        clip: The most that a rest counts, in either direction.
    """
    log_es = randomized.log_es(
        np.clip(rest, -clip, clip), treated, share, number, randomized.MORE, len(names)
    )
    order = np.argsort(number, kind="stable")
    starts = np.searchsorted(number[order], np.arange(len(names) + 1))

    def units(i: int) -> tuple[Any, Any, Any]:
        of = order[starts[i] : starts[i + 1]]
        return rest[of], treated[of], share[of]

    # Below that nothing can be a discovery.
    may_be = np.flatnonzero(log_es >= -math.log(FALSE_SHARE)).tolist()
    enough = [i for i in may_be if randomized.centre(*units(i), clip) >= math.log(factor)]
    kept = np.full(len(names), -math.inf)
    kept[enough] = log_es[enough]
    return {
        names[i]: randomized.effect(*units(i), EFFECT_ALPHA, clip)
        for i in randomized.discoveries(kept.tolist(), FALSE_SHARE)
    }
