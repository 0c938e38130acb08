"""What an experiment's analysis says of runs that were made up, whose truth is known."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tiers
from aqepilot.analysis.experiment import guards, harm
from aqepilot.analysis.experiment.analysis import Analysis, analyse
from aqepilot.analysis.experiment.runs import Runs, rests_of
from aqepilot.analysis.intervals import interval
from bench import recurring

pytestmark = tiers.on("4.3")

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
    return runs._replace(**{name: metric(runs, generator) for name, metric in more.items()})


def first(runs: Runs, n: int) -> Runs:
    return runs.where(slice(n))


def analysed(runs: Runs) -> Analysis:
    return analyse(runs, "task_ms")


def test_what_helps_is_to_be_shipped() -> None:
    analysis = analysed(made(effect=-0.1))
    assert analysis.verdict == "ship"
    assert analysis.says.startswith("The treatment makes runs shorter, by -9.")
    effect = analysis.effects["task_ms"]
    assert effect.lower < -0.1 < effect.upper < 0
    assert sum(analysis.runs) == JOBS * (DAYS - PAST)
    assert analysis.harmed == {}


def test_what_slows_down_is_to_be_stopped() -> None:
    analysis = analysed(made(effect=0.1))
    assert analysis.verdict == "stop"
    assert "runs longer" in analysis.says


def test_what_is_not_known_needs_more_days() -> None:
    early = first(made(effect=-0.02), 15 * JOBS)
    analysis = analysed(early)
    assert analysis.verdict == "keep running"
    assert "days more" in analysis.says
    nothing = analysed(early._replace(counted=np.zeros(15 * JOBS, dtype=bool)))
    assert nothing.verdict == "keep running"


def test_failures_of_the_treatment_stop_it_however_fast_it_is() -> None:
    analysis = analysed(
        made(effect=-0.2, failed=lambda runs, g: runs.treated & (g.random(len(runs.job)) < 0.1))
    )
    assert analysis.verdict == "stop"
    assert "More of the treatment's runs fail" in analysis.says
    assert analysis.failures.control.mean == 0
    assert analysis.failures.treatment.lower > 0.05


def test_stalled_runs_of_the_treatment_stop_it_however_fast_the_others_are() -> None:
    def metrics(runs: Runs, generator: np.random.Generator) -> dict[str, Any]:
        stalled = runs.treated & (generator.random(len(runs.job)) < 0.1)
        return {"task_ms": runs.metrics["task_ms"] * np.where(stalled, 10, 1)}

    analysis = analysed(made(effect=-0.2, metrics=metrics))
    assert analysis.verdict == "stop"
    assert "take over 2 times as long" in analysis.says


@pytest.mark.parametrize("share", [0.5, 0.2])
def test_the_harmed_job_is_named_and_no_other(share: float) -> None:
    def metrics(runs: Runs, generator: np.random.Generator) -> dict[str, Any]:
        harmed = runs.treated & (runs.job == "job7")
        return {"task_ms": runs.metrics["task_ms"] * np.where(harmed, 3.0, 1)}

    analysis = analysed(made(effect=-0.1, share=share, metrics=metrics))
    assert list(analysis.harmed) == ["job7"]
    assert analysis.harmed["job7"].lower < np.log(3) - 0.1 < analysis.harmed["job7"].upper
    assert analysis.says.endswith("Harmed: job7.")


def test_lost_runs_of_one_arm_break_it() -> None:
    runs = made(effect=-0.1)
    lost = runs.treated & (np.random.default_rng(9).random(len(runs.job)) < 0.25)
    kept = runs.where(~lost)
    assert analysed(kept).verdict == "broken"
    assert analysed(runs).mismatch < 1


def test_only_runs_in_which_the_arms_could_differ_say_how_large_the_effect_is() -> None:
    def exposed(runs: Runs, _: np.random.Generator) -> Any:
        return runs.counted & (np.char.endswith(runs.job, "7"))

    runs = made(exposed=exposed)
    changed = np.where(runs.exposed & runs.treated, np.exp(-0.12), 1)
    runs = runs._replace(metrics={"task_ms": runs.metrics["task_ms"] * changed})
    analysis = analysed(runs)
    assert analysis.exposed["task_ms"].lower < -0.12 < analysis.exposed["task_ms"].upper < 0
    assert analysis.verdict == "ship"
    # Among all runs, of which nine in ten are the same in both arms, it is too small to see.
    assert analysis.effects["task_ms"].upper > 0


def test_a_run_that_failed_at_once_is_not_a_fast_one() -> None:
    def failed(runs: Runs, generator: np.random.Generator) -> Any:
        return runs.treated & (generator.random(len(runs.job)) < 0.3)

    runs = made(failed=failed)
    took = np.where(runs.failed, 1.0, runs.metrics["task_ms"])
    analysis = analysed(runs._replace(metrics={"task_ms": took}))
    assert analysis.effects["task_ms"].lower > 0


def test_a_metric_of_zero_or_nothing_at_all_is_no_fault() -> None:
    runs = made()
    assert analysed(first(runs, 0)).verdict == "keep running"
    zeros = runs._replace(metrics={"task_ms": np.zeros(len(runs.job))})
    assert analysed(zeros).verdict != "ship"


def test_runs_that_could_get_one_arm_only_are_left_out_and_counted() -> None:
    """A ramp that begins at 0 percent, and an arm that joins later: no share is known before."""
    runs = made(effect=-0.1)
    day = np.floor(runs.ended) - 20_000
    for certain, treated in ((0.0, False), (1.0, True), (np.nan, False)):
        early = runs.counted & (day < 20)
        ramp = runs._replace(
            share=np.where(early, certain, runs.share),
            treated=np.where(early, treated, runs.treated),
        )
        analysis = analysed(ramp)
        assert analysis.undrawn == early.sum() == 10 * JOBS
        assert sum(analysis.runs) == 30 * JOBS
        assert analysis.verdict == "ship"
        assert 0 < analysis.mismatch < 1


def test_lost_runs_of_one_arm_are_found_to_break_it_where_all_that_is_exposed_was_lost() -> None:
    """Among all runs, of which one in ten is exposed, those that are lost could be chance."""

    def exposed(runs: Runs, generator: np.random.Generator) -> Any:
        is_lost = runs.treated & (generator.random(len(runs.job)) < 0.6)
        return runs.counted & np.char.endswith(runs.job, "7") & ~is_lost

    analysis = analysed(made(exposed=exposed))
    assert analysis.mismatch < 1 < analysis.exposed_mismatch
    assert analysis.verdict == "broken"
    assert "other numbers of exposed runs than their weights say" in analysis.says
    assert analysis.exposed_runs[1] < analysis.exposed_runs[0] / 2


def test_a_job_whose_treated_runs_all_fail_is_told_without_a_number() -> None:
    analysis = analysed(made(failed=lambda runs, _: runs.treated & (runs.job == "job7")))
    (effect,) = analysis.harmed.values()
    assert effect.mean == effect.upper == np.inf
    assert interval(effect) == "without measure, as most runs of the treatment have no outcome"


@pytest.mark.parametrize(("arm", "verdict"), [("treatment", "stop"), ("control", "ship")])
def test_an_arm_most_of_whose_runs_have_no_outcome_is_told_without_a_number(
    arm: str, verdict: str
) -> None:
    def failed(runs: Runs, _: np.random.Generator) -> Any:
        return runs.counted & (runs.treated == (arm == "treatment"))

    analysis = analysed(made(failed=failed))
    assert analysis.verdict == verdict
    assert analysis.says.startswith(
        f"Most of the {arm}'s runs have no outcome: they fail, or break"
    )


def test_a_run_without_a_query_says_nothing_of_a_metric() -> None:
    def metrics(runs: Runs, _: np.random.Generator) -> dict[str, Any]:
        """The treatment's runs of a job have no query every other day."""
        idle = runs.treated & (runs.job == "job3") & (np.floor(runs.ended) % 2 == 0)
        return {"task_ms": np.where(idle, np.nan, runs.metrics["task_ms"])}

    runs = made(metrics=metrics)
    analysis = analysed(runs)
    assert analysis.without_query == np.isnan(runs.metrics["task_ms"]).sum() > 5
    assert analysis.harmed == {}
    assert analysis.slow.treatment.mean < 0.01
    # What is expected of the job's next run is not changed by it.
    day, job = np.floor(runs.ended), runs.job == "job3"
    kept = runs.where(~np.isnan(runs.metrics["task_ms"]))
    last = job[~np.isnan(runs.metrics["task_ms"])] & (np.floor(kept.ended) == day.max())
    rest = rests_of(runs, runs.metrics["task_ms"])[job & (day == day.max())]
    assert rest == pytest.approx(rests_of(kept, kept.metrics["task_ms"])[last])


def test_how_much_slower_counts_as_harm_may_be_said() -> None:
    def metrics(runs: Runs, _: np.random.Generator) -> dict[str, Any]:
        harmed = runs.treated & (runs.job == "job7")
        return {"task_ms": runs.metrics["task_ms"] * np.where(harmed, 1.35, 1)}

    runs = made(metrics=metrics)
    assert analyse(runs, "task_ms").harmed == {}
    assert list(analyse(runs, "task_ms", harmful=1.2).harmed) == ["job7"]


def test_jobs_that_improve_do_not_make_it_easier_to_name_others() -> None:
    """Of 40 jobs with noise alone, beside 40 that improve, hardly any experiment names one."""
    named = 0
    for seed in range(40):
        generator = np.random.default_rng(seed)
        n, jobs = 80 * 8, 80
        number = np.arange(n) % jobs
        treated = generator.integers(0, 2, n)
        rest = generator.choice([-0.65, 0.65], n)
        rest = np.where(number < 40, 0.6 - 1.2 * treated, rest)
        names = [f"job{j}" for j in range(jobs)]
        share = np.full(n, 0.5)
        named_jobs = harm.harmed(rest, names, number, treated, share, factor=1.5, clip=np.log(2))
        assert all(int(name[3:]) >= 40 for name in named_jobs)
        named += bool(named_jobs)
    assert named <= 2


def test_a_daily_job_that_takes_five_times_as_long_is_named_within_three_weeks() -> None:
    """Of 20 jobs, half of whose runs are treated: the control's runs tell as much as others."""
    on = []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        jobs, days = 20, 40
        number, share = np.tile(np.arange(jobs), days), np.full(jobs * days, 0.5)
        treated = generator.integers(0, 2, jobs * days)
        rest = generator.normal(0, 0.2, jobs * days) + np.log(5) * treated * (number == 7)
        names = [f"job{j}" for j in range(jobs)]

        def named(day: int, *data: Any, names: list[str] = names) -> bool:
            rest, number, treated, share = (each[: day * len(names)] for each in data)
            jobs = harm.harmed(rest, names, number, treated, share, factor=1.5, clip=np.log(2))
            return list(jobs) == ["job7"]

        data = (rest, number, treated, share)
        on.append(next(day for day in range(1, days + 1) if named(day, *data)))
    assert np.median(on) <= 14
    assert np.quantile(on, 0.9) <= 21


def test_more_runs_out_of_memory_stop_it_and_more_that_spill_are_told() -> None:
    def of_treatment(runs: Runs, generator: np.random.Generator) -> Any:
        return runs.treated & (generator.random(len(runs.job)) < 0.1)

    analysis = analysed(made(effect=-0.2, out_of_memory=of_treatment))
    assert analysis.verdict == "stop"
    assert "More of the treatment's runs run out of memory" in analysis.says

    def metrics(runs: Runs, generator: np.random.Generator) -> dict[str, Any]:
        spills = of_treatment(runs, generator)
        return {**runs.metrics, "spill_bytes": np.where(spills, 5.0 * (1 << 20), 1 << 20)}

    analysis = analysed(made(effect=-0.2, metrics=metrics))
    assert analysis.verdict == "ship"
    assert analysis.spilled is not None
    assert analysis.spilled.is_worse
    assert not analysis.out_of_memory.is_worse


def test_shares_may_be_looked_at_after_each_run() -> None:
    """The e-values after 1, 2, ... runs are one process: at any stop 1 on average over draws."""
    is_so = np.array([1, 0, 0, 1, 1, 0, 1, 0], dtype=bool)
    share = np.full(8, 0.3)
    total = 0.0
    for draw in itertools.product((0, 1), repeat=8):
        treated = np.array(draw)
        values = [guards.shares(is_so[:n], treated[:n], share[:n]).log_e for n in range(1, 9)]
        # Who stops as soon as it is above 2 gets no more than 1 on average, either.
        stopped = next((value for value in values if value > np.log(2)), values[-1])
        total += np.prod(np.where(treated == 1, 0.3, 0.7)) * np.exp(stopped)
    assert total == pytest.approx(1)


def test_the_verdict_of_an_experiment_without_an_effect_is_seldom_wrong() -> None:
    """Looked at day by day, with failures and stalled runs in both arms; `make bench` has 2,000."""
    (row,) = recurring.verdicts(10, shares=[0.5], looks=6)
    assert row["wrong"] <= 0.2
    assert row["experiments"] == 10
    assert row["looks"] == 6
