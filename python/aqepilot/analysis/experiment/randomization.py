"""Inference by the draw of the arms alone: what the draw cannot explain is the treatment's.

Take any effect, none say, and take it away from the treated units. If that is the effect, then
what is left of a unit does not depend on its arm, and the arm is a coin thrown after the fact. For
each unit with its rest x, treatment a (1 or 0) and probability p of the treatment,

    exp(l a x) / (1 - p + p exp(l x))

has the mean 1 over the coin, whatever l and x are, so the product over units is an e-process: it
ever gets above 1 / alpha with probability alpha at most. What is used is the mean of it over many
l, positive and negative, small and large. An interval is all effects whose e-process is not above
1 / alpha. It holds at all numbers of units at once; without any assumption on how outcomes are
distributed, hang together, or drift; for any probabilities, those that were changed on the way too.
Exact for an effect that is the same for all units on the scale of x; where it differs, the
interval is that of an average, and what the arms differ in beside it counts as noise.

Sources: Fisher, "The design of experiments", 1935 (the draw as the basis of inference); Ramdas,
Grünwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid inference", 2023
(e-processes, mixtures, and what they promise); Wang and Ramdas, "False discovery rate control with
e-values", 2022 (`discoveries`); Lindon and Malek, "Anytime-valid inference for multinomial count
data", 2022 (`mismatch`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq  # type: ignore[import-untyped,unused-ignore]
from scipy.special import betaln, gammaln, logsumexp  # type: ignore[import-untyped,unused-ignore]

from aqepilot.analysis.intervals import Interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]

# From effects of a tenth of a very noisy outcome to those of ten times a quiet one.
_BETS: Floats = np.exp2(np.arange(-5, 8, dtype=np.float64))
_LAMBDAS: Floats = np.concatenate([-_BETS[::-1], _BETS])
# Bets on more of it only: against the treatment having no more of it, by which all it says that it
# has less is nothing.
MORE = _BETS
_STEPS = 50
_LARGEST = math.log(64.0)
_SLICE = 20_000
# Outcomes of more units than that are rounded to a ten-thousandth, and equal ones counted: so a
# million units take seconds, and an interval is as exact as before, of rounded outcomes.
_MANY = 20_000
_GRID = 1e-4


def log_e(
    rest: Floats,
    treated: Ints,
    share: Floats,
    bets: Floats = _LAMBDAS,
    times: Floats | None = None,
) -> float:
    """Returns the logarithm of the e-value against no effect, after all of these units.

    Args:
        rest: Of each unit, what is left of its outcome.
        treated: 1 for the treatment, 0 for the control.
        share: Probability of the treatment, above 0 and below 1.
        bets: What is bet on; with `MORE` the value is one against no effect or less.
        times: How many units there are of each; null for one.

    >>> x, treated = np.array([0.5, -0.5] * 8), np.array([1, 0] * 8)
    >>> round(log_e(x, treated, np.full(16, 0.5)), 1)
    9.4
    """
    total = np.zeros(len(bets))
    for start in range(0, len(rest), _SLICE):
        rows = slice(start, start + _SLICE)
        factors = log_factors(rest[rows], treated[rows], share[rows], bets)
        total += factors.sum(axis=0) if times is None else times[rows] @ factors
    return float(logsumexp(total) - math.log(len(bets)))


def log_es(
    rest: Floats,
    treated: Ints,
    share: Floats,
    group: Ints,
    bets: Floats = _LAMBDAS,
    groups: int | None = None,
) -> Floats:
    """Returns the same of each group by itself.

    Args:
        rest: As for `log_e`.
        treated: As for `log_e`.
        share: As for `log_e`.
        group: Number of each unit's group, from 0 on.
        bets: As for `log_e`.
        groups: How many there are; null for as many as have units.
    """
    if groups is None:
        groups = int(group.max()) + 1 if len(group) else 0
    total = np.zeros((groups, len(bets)))
    for start in range(0, len(rest), _SLICE):
        rows = slice(start, start + _SLICE)
        factors = log_factors(rest[rows], treated[rows], share[rows], bets)
        for i in range(len(bets)):
            total[:, i] += np.bincount(group[rows], factors[:, i], groups)
    logs: Floats = logsumexp(total, axis=1) - math.log(len(bets))
    return logs


def log_e_process(rest: Floats, treated: Ints, share: Floats) -> Floats:
    """Returns the same after each of the units."""
    by_unit = log_factors(rest, treated, share, _LAMBDAS).cumsum(axis=0)
    logs: Floats = logsumexp(by_unit, axis=1) - math.log(len(_LAMBDAS))
    return logs


def log_factors(rest: Floats, treated: Ints, share: Floats, lambdas: Floats) -> Floats:
    """Returns the logarithm of each unit's factor, by bet: a row for a unit, a column for a bet."""
    bets = rest[:, None] * lambdas
    share = share[:, None]
    # As np.logaddexp, in a tenth of its time.
    near = np.where(bets > 0, share, 1 - share)
    logs = np.maximum(bets, 0) + np.log(near + (1 - near) * np.exp(-np.abs(bets)))
    factors: Floats = treated[:, None] * bets - logs
    return factors


def effect(
    outcome: Floats, treated: Ints, share: Floats, alpha: float = 0.05, clip: float = math.inf
) -> Interval:
    """Returns the treatment's effect on an outcome, and where it may be.

    The effect is the number that, taken away from the treated units' outcomes, leaves no
    correlation of clipped outcome and arm: with no clip, the difference of means.

    Args:
        outcome: Of each unit; best with its expectation taken away.
        treated: 1 for the treatment, 0 for the control.
        share: Probability of the treatment, above 0 and below 1.
        alpha: Probability that the interval ever misses.
        clip: The most that a rest counts, in either direction.

    Returns:
        Infinite bounds where nothing is known yet. No effect beyond `_LARGEST` is looked for: it
        is infinite where a larger one were needed, as where most of one arm's units have no
        outcome.
    """
    n = len(outcome)
    if not n or treated.min() == treated.max():
        return Interval(n, 0.0, -math.inf, math.inf)
    outcome, treated, share, times = _counted(outcome, treated, share, clip)

    def rest(tau: float) -> Floats:
        left: Floats = np.clip(outcome - treated * tau, -clip, clip)
        return left

    def above(tau: float) -> float:
        return log_e(rest(tau), treated, share, times=times) + math.log(alpha)

    middle = _centre(outcome, treated, share, clip, times)
    estimate = min(max(middle, -_LARGEST), _LARGEST)
    left = rest(estimate)
    spread = math.sqrt(
        float(np.average((left - np.average(left, weights=times)) ** 2, weights=times))
    )
    step = 8 * spread / math.sqrt(float((share * (1 - share)) @ times)) + 1e-6
    if estimate == middle:
        return Interval(n, middle, _end(estimate, -step, above), _end(estimate, step, above))
    towards = math.copysign(step, -middle)
    # Where the largest effect is not enough, either, none that is finite is.
    bound = middle if above(estimate) >= 0 else _end(estimate, towards, above)
    return Interval(n, middle, min(bound, middle), max(bound, middle))


def centre(outcome: Floats, treated: Ints, share: Floats, clip: float = math.inf) -> float:
    """Returns the effect alone, without saying where it may be; arguments are as for `effect`."""
    if not len(outcome) or treated.min() == treated.max():
        return 0.0
    outcome, treated, share, times = _counted(outcome, treated, share, clip)
    return _centre(outcome, treated, share, clip, times)


def _counted(
    outcome: Floats, treated: Ints, share: Floats, clip: float
) -> tuple[Floats, Ints, Floats, Floats]:
    """Units that are equal become one, with how many they are."""
    if len(outcome) <= _MANY or math.isinf(clip):
        return outcome, treated, share, np.ones(len(outcome))
    # What is further away is clipped whatever the effect.
    bounded = np.clip(outcome, -_LARGEST - clip, _LARGEST + clip)
    shares, number = np.unique(share, return_inverse=True)
    steps = np.rint(bounded / _GRID).astype(np.int64)
    most = 2 * int(np.abs(steps).max()) + 1
    keys, times = np.unique(
        ((steps + most // 2) * 2 + treated) * len(shares) + number, return_counts=True
    )
    rest, share_number = np.divmod(keys, len(shares))
    return (rest // 2 - most // 2) * _GRID, rest % 2, shares[share_number], times.astype(np.float64)


def _centre(outcome: Floats, treated: Ints, share: Floats, clip: float, times: Floats) -> float:
    weights = (treated - share) * times

    def balance(tau: float) -> float:
        return float(weights @ np.clip(outcome - treated * tau, -clip, clip))

    if balance(_LARGEST) > 0:
        return math.inf
    if balance(-_LARGEST) < 0:
        return -math.inf
    return _border(-_LARGEST, _LARGEST, lambda tau: balance(tau) < 0)


def _end(middle: float, step: float, above: Any) -> float:
    """Where a function gets above 0, by steps that are doubled; infinity where it does not."""
    limit = math.copysign(_LARGEST, step)
    inside, outside = middle, middle + step
    while abs(outside) < _LARGEST and above(outside) < 0:
        inside, outside = outside, middle + 2 * (outside - middle)
    if abs(outside) >= _LARGEST:
        outside = limit
        if above(outside) < 0:
            return math.copysign(math.inf, step)
    if above(inside) >= 0:
        return inside
    return float(brentq(above, inside, outside, xtol=1e-6))


def _border(inside: float, outside: float, is_out: Any) -> float:
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        if is_out(middle):
            outside = middle
        else:
            inside = middle
        if abs(outside - inside) < 1e-6:
            break
    return (inside + outside) / 2


def share_interval(successes: int, n: int, alpha: float = 0.05) -> Interval:
    """Returns a share and where it may be, at all n at once.

    Inverts the test that compares each share with a mixture of all of them (the Beta-Binomial one).

    Args:
        successes: Units that have what is counted.
        n: All units, independent of each other.
        alpha: Probability that the interval ever misses.

    >>> found = share_interval(5, 100)
    >>> round(found.mean, 3), round(found.lower, 3), round(found.upper, 3)
    (0.05, 0.007, 0.16)
    """
    mean = successes / n if n else 0.0
    mixture = betaln(successes + 1, n - successes + 1)

    def is_out(p: float) -> bool:
        likelihood = successes * math.log(p) + (n - successes) * math.log1p(-p)
        return bool(mixture - likelihood >= -math.log(alpha))

    inside = min(max(mean, 1e-9), 1 - 1e-9)
    lower = _border(inside, 1e-12, is_out) if is_out(1e-12) else 0.0
    upper = _border(inside, 1 - 1e-12, is_out) if is_out(1 - 1e-12) else 1.0
    return Interval(n, mean, lower, upper)


def mismatch(counts: Sequence[int], shares: Sequence[float], weight: float = 100.0) -> float:
    """Returns the e-value against units having been drawn with these shares: 100 is broken.

    Args:
        counts: Units that were found in each arm.
        shares: Probabilities, of 1 together.
        weight: How many units the mixture over other shares is worth; many find small differences
            later and large ones sooner.

    >>> mismatch([4900, 5100], [0.5, 0.5]) < 1 < mismatch([4500, 5500], [0.5, 0.5])
    True
    """
    x, theta = np.asarray(counts, float), np.asarray(shares, float)
    prior = weight * theta
    log = gammaln(prior.sum()) - gammaln(prior.sum() + x.sum())
    log += (gammaln(prior + x) - gammaln(prior)).sum() - (x * np.log(theta)).sum()
    return float(np.exp(min(log, 700.0)))


def discoveries(log_es: Sequence[float], rate: float = 0.05) -> list[int]:
    """Returns which of many e-values are discoveries: of these, a share of `rate` at most is wrong.

    Holds on average, whatever hangs together (the e-BH procedure).

    Args:
        log_es: Logarithms of e-values, one for each hypothesis.
        rate: The share of false discoveries.

    Returns:
        Indices, the largest e-value first.

    >>> discoveries([0.0, 6.0, 4.2])
    [1, 2]
    """
    order = sorted(range(len(log_es)), key=lambda i: -log_es[i])
    most = 0
    for k, i in enumerate(order, start=1):
        if log_es[i] >= math.log(len(log_es) / (rate * k)):
            most = k
    return order[:most]
