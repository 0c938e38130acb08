"""Confidence sequences are wrong as seldom as they say, however often one looks."""

from __future__ import annotations

import math

import pytest

from aqepilot.analysis.intervals import Interval, half_width, mean_interval, observations_needed
from bench import experiments


def test_a_sequence_is_that_of_the_papers_bayes_factor() -> None:
    """The half width is where the Bayes factor of Rouder et al. is 1 / alpha."""
    for n in (6, 10, 30, 200):
        t = half_width(n, 1.0) * math.sqrt(n)
        nu = n - 1
        nil = (1 + t * t / nu) ** (-n / 2)
        alternative = (1 + n) ** -0.5 * (1 + t * t / ((1 + n) * nu)) ** (-n / 2)
        assert alternative / nil == pytest.approx(20)


def test_nothing_is_said_of_few_observations() -> None:
    assert mean_interval([]) == Interval(0, 0.0, -math.inf, math.inf)
    assert not mean_interval([1.0] * 4).excludes_zero
    assert mean_interval([1.0] * 6).excludes_zero


def test_what_is_needed_is_what_suffices() -> None:
    needed = observations_needed(0.05, 0.2, 10_000)
    assert needed is not None
    assert half_width(needed, 0.2) < 0.05 <= half_width(needed - 1, 0.2)
    assert observations_needed(0.001, 0.2, 1000) is None


def test_false_alarms_are_as_few_as_said() -> None:
    """With a seed: 600 experiments of each kind, a look after each round."""
    for rates in experiments.measure(experiments=600):
        assert rates["false_alarms"] <= 0.05, rates
        # What the same looks do to a t-test; else the experiments could not show anything.
        assert rates["t_test"] > 0.15, rates


def test_a_true_effect_is_found() -> None:
    normal = experiments.measure(experiments=200)[0]
    assert normal["found_in_150"] > 0.8
