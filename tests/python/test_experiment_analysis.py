"""What an experiment's analysis says of runs that were made up, whose truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from aqepilot.experiment.analysis import Analysis, Runs, analyse

JOBS, DAYS, PAST = 40, 50, 10


def made(seed: int = 1, *, effect: float = 0.0, share: float = 0.5, **more: Any) -> Runs:
    """Daily jobs; `more` has arrays by field, made from the drawn runs."""
    generator = np.random.default_rng(seed)
    n = JOBS * DAYS
    day, job = np.repeat(np.arange(DAYS), JOBS), np.tile(np.arange(JOBS), DAYS)
    counted = day >= PAST
    treated = (generator.random(n) < share) & counted
    size = np.exp(generator.normal(20, 2, JOBS)[job]) * generator.uniform(0.7, 1.3, n)
    took = size**0.8 * np.exp(generator.normal(0, 0.1, n)) * np.exp(effect * treated)
    runs = Runs(
        ended=20_000 + day + np.linspace(0.1, 0.9, JOBS)[job],
        job=np.array([f"job{j}" for j in job]),
        treated=treated,
        counted=counted,
        share=np.full(n, share),
        exposed=counted,
        failed=np.zeros(n, dtype=bool),
        input_bytes=size,
        metrics={"task_ms": took, "run_ms": took * 2},
    )
    return runs._replace(**{name: of(runs, generator) for name, of in more.items()})


def first(runs: Runs, n: int) -> Runs:
    return Runs(*(of[:n] for of in runs[:-1]), {k: of[:n] for k, of in runs.metrics.items()})


def analysed(runs: Runs) -> Analysis:
    return analyse(runs, "task_ms")


def test_what_helps_is_to_be_shipped() -> None:
    found = analysed(made(effect=-0.1))
    assert found.verdict == "ship"
    assert found.says.startswith("The treatment makes runs shorter, by -9.")
    effect = found.effects["task_ms"]
    assert effect.lower < -0.1 < effect.upper < 0
    assert sum(found.runs) == JOBS * (DAYS - PAST)
    assert found.harmed == {}


def test_what_slows_down_is_to_be_stopped() -> None:
    found = analysed(made(effect=0.1))
    assert found.verdict == "stop"
    assert "runs longer" in found.says


def test_what_is_not_known_needs_more_days() -> None:
    early = first(made(effect=-0.02), 15 * JOBS)
    found = analysed(early)
    assert found.verdict == "keep running"
    assert "days more" in found.says
    nothing = analysed(early._replace(counted=np.zeros(15 * JOBS, dtype=bool)))
    assert nothing.verdict == "keep running"


def test_failures_of_the_treatment_stop_it_however_fast_it_is() -> None:
    found = analysed(
        made(effect=-0.2, failed=lambda runs, g: runs.treated & (g.random(len(runs.job)) < 0.1))
    )
    assert found.verdict == "stop"
    assert "More of the treatment's runs fail" in found.says
    assert found.failures.control.mean == 0
    assert found.failures.treatment.lower > 0.05


def test_stalled_runs_of_the_treatment_stop_it_however_fast_the_others_are() -> None:
    def metrics(runs: Runs, generator: np.random.Generator) -> dict[str, Any]:
        stalled = runs.treated & (generator.random(len(runs.job)) < 0.1)
        return {"task_ms": runs.metrics["task_ms"] * np.where(stalled, 10, 1)}

    found = analysed(made(effect=-0.2, metrics=metrics))
    assert found.verdict == "stop"
    assert "take over 2 times as long" in found.says


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_harmed_job_is_named_and_no_other(share: float) -> None:
    def metrics(runs: Runs, generator: np.random.Generator) -> dict[str, Any]:
        harmed = runs.treated & (runs.job == "job7")
        return {"task_ms": runs.metrics["task_ms"] * np.where(harmed, 3.0, 1)}

    found = analysed(made(effect=-0.1, share=share, metrics=metrics))
    assert list(found.harmed) == ["job7"]
    assert found.harmed["job7"].lower < np.log(3) - 0.1 < found.harmed["job7"].upper
    assert found.says.endswith("Harmed: job7.")


def test_lost_runs_of_one_arm_break_it() -> None:
    runs = made(effect=-0.1)
    lost = runs.treated & (np.random.default_rng(9).random(len(runs.job)) < 0.25)
    kept = Runs(*(of[~lost] for of in runs[:-1]), {"task_ms": runs.metrics["task_ms"][~lost]})
    assert analysed(kept).verdict == "broken"
    assert analysed(runs).mismatch < 1


def test_only_runs_in_which_the_arms_could_differ_say_how_large_the_effect_is() -> None:
    def exposed(runs: Runs, _: np.random.Generator) -> Any:
        return runs.counted & (np.char.endswith(runs.job, "7"))

    runs = made(exposed=exposed)
    changed = np.where(runs.exposed & runs.treated, np.exp(-0.12), 1)
    runs = runs._replace(metrics={"task_ms": runs.metrics["task_ms"] * changed})
    found = analysed(runs)
    assert found.exposed["task_ms"].lower < -0.12 < found.exposed["task_ms"].upper < 0
    assert found.verdict == "ship"
    # Among all runs, of which nine in ten are the same in both arms, it is too small to see.
    assert found.effects["task_ms"].upper > 0


def test_a_run_that_failed_at_once_is_not_a_fast_one() -> None:
    def failed(runs: Runs, generator: np.random.Generator) -> Any:
        return runs.treated & (generator.random(len(runs.job)) < 0.3)

    runs = made(failed=failed)
    took = np.where(runs.failed, 1.0, runs.metrics["task_ms"])
    found = analysed(runs._replace(metrics={"task_ms": took}))
    assert found.effects["task_ms"].lower > 0


def test_a_metric_of_zero_or_nothing_at_all_is_no_fault() -> None:
    runs = made()
    assert analysed(first(runs, 0)).verdict == "keep running"
    zeros = runs._replace(metrics={"task_ms": np.zeros(len(runs.job))})
    assert analysed(zeros).verdict != "ship"
