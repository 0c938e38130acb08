"""How often confidence sequences are wrong, and how soon they are clear, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from aqepilot.analysis.intervals import half_width
from bench import repeated

Floats = np.ndarray[Any, np.dtype[np.float64]]
Noise = Callable[[np.random.Generator, int, int], Floats]

EXPERIMENTS = 2000
ROUNDS = 200
EFFECT = math.log(0.95)
SD = 0.1


def _pairs(noise: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Noise:
    """Differences of two arms with the same noise."""

    def drawn(generator: np.random.Generator, experiments: int, rounds: int) -> Floats:
        size = (experiments, rounds)
        return noise(generator, size) - noise(generator, size)

    return drawn


def _in_order(between: Callable[[np.random.Generator, int, int], Floats]) -> Noise:
    """Differences of runs one after the other, whose order is drawn and then turned round."""

    def drawn(generator: np.random.Generator, experiments: int, rounds: int) -> Floats:
        runs = between(generator, experiments, 2 * rounds)
        later = runs[:, 1::2] - runs[:, 0::2]
        first = generator.choice([-1.0, 1.0], (experiments, (rounds + 1) // 2))
        signs = np.stack([first, -first], axis=2).reshape(experiments, -1)[:, :rounds]
        return np.asarray(later * signs)

    return drawn


def _autocorrelated(generator: np.random.Generator, experiments: int, runs: int) -> Floats:
    series = np.zeros((experiments, runs))
    for run in range(1, runs):
        shock = generator.normal(0, SD, experiments)
        series[:, run] = 0.9 * series[:, run - 1] + shock
    return series


def _drifting(generator: np.random.Generator, experiments: int, runs: int) -> Floats:
    slope = generator.normal(0, 1, (experiments, 1))
    trend = slope * np.linspace(0, 1, runs)
    second = 0.1 * (np.arange(runs) % 2)  # The second of a pair finds warm caches.
    return np.asarray(trend - second + generator.normal(0, SD, (experiments, runs)))


NOISES: dict[str, Noise] = {
    "normal": _pairs(lambda g, size: g.normal(0, SD, size)),
    "heavy tails (t with 2 degrees of freedom)": _pairs(lambda g, s: SD * g.standard_t(2, s)),
    "stragglers: one run in twenty takes three times as long": _pairs(
        lambda g, size: g.normal(0, SD, size) + math.log(3) * (g.random(size) < 0.05)
    ),
    "drift over the day, and the second of a pair 10% faster": _in_order(_drifting),
    "autocorrelated runs (AR(1), 0.9)": _in_order(_autocorrelated),
}
if repeated.are_there():
    NOISES["drawn from repeated runs of TPC-DS, one query a round"] = _pairs(
        lambda g, size: g.choice(repeated.rests("wall_ms"), size)
    )
    NOISES["drawn from repeated runs of TPC-DS, all 99 queries a round"] = _pairs(
        lambda g, size: g.choice(repeated.rounds("wall_ms"), size)
    )


def measure(experiments: int = EXPERIMENTS, seed: int = 1) -> list[dict[str, Any]]:
    """Simulates experiments with each kind of noise.

    Returns:
        For each: ``sd`` of one pair; ``false_alarms``, the share of A/A experiments in which zero
        was outside after any round; ``t_test``, the same of a t-test at 5% after each round;
        ``found_in_150``, the share of experiments with a 5% effect in which zero was outside
        within 150 rounds; ``median_rounds`` until then, null where less than half came there.
    """
    rows = []
    widths = np.array([half_width(n, 1.0) for n in range(1, ROUNDS + 1)])
    for name, noise in NOISES.items():
        values = noise(np.random.default_rng(seed), experiments, ROUNDS)
        # Two rounds with the same difference have no spread.
        with np.errstate(divide="ignore", invalid="ignore"):
            n = np.arange(1, ROUNDS + 1)
            means = values.cumsum(axis=1) / n
            squares = (values**2).cumsum(axis=1)
            variances = (squares - n * means**2) / np.maximum(n - 1, 1)
            sds = np.sqrt(np.maximum(variances, 0))
            beyond = np.abs(means[:, 1:]) > widths[1:] * sds[:, 1:]
            t = np.abs(means[:, 1:]) / (sds[:, 1:] / np.sqrt(n[1:]))
            naive = t > stats.t.ppf(0.975, n[1:] - 1)
            clear = np.abs(means[:, 1:] + EFFECT) > widths[1:] * sds[:, 1:]
        first = np.where(clear.any(axis=1), clear.argmax(axis=1) + 2, ROUNDS + 1)
        median = float(np.median(first))
        rows.append(
            {
                "noise": name,
                "sd": float(values.std()),
                "false_alarms": float(beyond.any(axis=1).mean()),
                "t_test": float(naive.any(axis=1).mean()),
                "found_in_150": float((first <= 150).mean()),
                "median_rounds": median if median <= ROUNDS else None,
            }
        )
    return rows
