"""Which of many jobs, or queries, the treatment makes much slower: with few named wrongly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from aqepilot.analysis.experiment import randomization
from aqepilot.analysis.experiment.guards import EFFECT_ALPHA
from aqepilot.analysis.intervals import Interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

FALSE_SHARE = 0.05
# For effects of half as much again to many times as much, and noise of a tenth to a factor of two.
_BETS: Floats = np.exp2(np.arange(5, dtype=np.float64))
# A unit that takes so many times longer than expected counts as that in e-values.
_MOST = math.log(4.0)


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

    An e-value bets on each unit's arm by how far its rest is from the middle between both arms'
    means so far: of a job that is slowed down, runs of the control tell as much as those of the
    treatment. What is taken away is known before the unit, so each bet is as fair as without it.

    Args:
        rest: Of each unit, what is left of its outcome.
        names: Of what there is to name.
        number: Whose each unit is, an index of `names`.
        treated: 1 for the treatment, 0 for the control.
        share: Probability of the treatment, above 0 and below 1.
        factor: What counts as harm, above 1.
        clip: The most that a rest counts in the effect, in either direction.
    """
    order = np.argsort(number, kind="stable")
    rest, number, treated, share = rest[order], number[order], treated[order], share[order]
    outcome = np.clip(rest, -_MOST, _MOST)
    log_es = randomization.log_es(
        outcome - _middles(outcome, number, treated), treated, share, number, _BETS, len(names)
    )
    starts = np.searchsorted(number, np.arange(len(names) + 1))

    def units(i: int) -> tuple[Any, Any, Any]:
        rows = slice(starts[i], starts[i + 1])
        return rest[rows], treated[rows], share[rows]

    # Below that nothing can be a discovery.
    may_be = np.flatnonzero(log_es >= -math.log(FALSE_SHARE)).tolist()
    enough = [i for i in may_be if randomization.centre(*units(i), clip) >= math.log(factor)]
    kept = np.full(len(names), -math.inf)
    kept[enough] = log_es[enough]
    return {
        names[i]: randomization.effect(*units(i), EFFECT_ALPHA, clip)
        for i in randomization.discoveries(kept.tolist(), FALSE_SHARE)
    }


def _middles(outcome: Floats, number: Ints, treated: Any) -> Floats:
    """Returns what lies between the means of both arms before each unit, of those with its number.

    Units of one number stand together. Each mean counts one outcome of 0 more, as none is known at
    first.
    """
    first = np.searchsorted(number, number)

    def before(values: Floats) -> Floats:
        sums = np.concatenate([[0.0], np.cumsum(values)])
        return np.asarray(sums[:-1] - sums[first])

    arms = (1.0 - treated, 1.0 * treated)
    means = [before(outcome * arm) / (1 + before(arm)) for arm in arms]
    return np.asarray((means[0] + means[1]) / 2)
