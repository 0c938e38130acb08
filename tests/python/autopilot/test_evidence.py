"""What the runs of an experiment say, by their draw alone."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import tiers
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.autopilot.evidence import Evidence, Figured, names

pytestmark = tiers.on("4.3")

DRAWN, PAST, OTHERS = 8, 4, 12
DAYS = PAST + DRAWN
JOB, EXPERIMENT = "daily.job", "autopilot_job"


def _runs(arms: tuple[int, ...]) -> Runs:
    """Runs of one job in an experiment, and of twelve more jobs that have an effect; one a day."""
    generator = np.random.default_rng(5)
    day = np.repeat(np.arange(DAYS), OTHERS + 1)
    job = np.tile(np.arange(OTHERS + 1), DAYS)
    is_ours, is_past = job == OTHERS, day < PAST
    treated = generator.random(len(day)) < 0.5
    treated[is_ours & ~is_past] = arms
    treated[is_past] = False
    y = 8 + generator.normal(0, 0.3, len(day)) - 0.5 * (treated & ~is_ours)
    failed = is_ours & (day == PAST + 4)
    return Runs(
        ended=day + job / 100,
        job=names(
            [JOB if own else f"other.{number}" for own, number in zip(is_ours, job, strict=True)]
        ),
        treated=treated,
        counted=~is_past,
        share=np.where(day < PAST + 5, 0.5, 0.8),
        exposed=~is_past,
        failed=failed,
        input_bytes=np.exp(generator.normal(20, 0.3, len(day))),
        metrics={"task_ms": np.exp(y)},
    )


def _figured(runs: Runs) -> Figured:
    experiment = names(
        EXPERIMENT if name == JOB and counted else ""
        for name, counted in zip(runs.job, runs.counted, strict=True)
    )
    return Figured(Evidence(float(DAYS), runs, experiment), "task_ms")


def test_the_e_values_of_a_policy_without_an_effect_are_1_on_average_over_all_draws() -> None:
    figures = ("gain_log_e", "harm_log_e", "failures_log_e")
    means = dict.fromkeys(figures, 0.0)
    for arms in product((0, 1), repeat=DRAWN):
        runs = _runs(arms)
        p = runs.share[(runs.job == JOB) & runs.counted]
        chance = np.where(np.array(arms) == 1, p, 1 - p).prod()
        measured = _figured(runs).measure(EXPERIMENT)
        for figure in figures:
            means[figure] += chance * math.exp(getattr(measured, figure))
    assert means == pytest.approx(dict.fromkeys(figures, 1.0))
