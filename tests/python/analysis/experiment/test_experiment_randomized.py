"""What the draw of the arms cannot explain is the treatment's: exact, however outcomes are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tiers
from aqepilot.analysis.experiment import adjustment, randomization
from aqepilot.analysis.experiment.adjustment import CLIPPED_AT, Units
from bench import recurring

pytestmark = tiers.on("4.3")

CLIP = math.log(CLIPPED_AT)
ALARM = math.log(20)


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_an_e_value_is_1_on_average_over_all_draws(share: float) -> None:
    rest = np.array([0.3, -2.0, 0.0, 1e3, 0.7, -0.01, math.log(2), 5.0])
    shares = np.full(8, share)
    total = 0.0
    for draw in itertools.product((0, 1), repeat=8):
        treated = np.array(draw)
        probability = np.prod(np.where(treated == 1, shares, 1 - shares))
        total += probability * math.exp(randomization.log_e(rest, treated, shares))
    assert total == pytest.approx(1)


def test_the_process_ends_with_the_value() -> None:
    generator = np.random.default_rng(1)
    treated = generator.integers(0, 2, 300)
    rest, share = generator.normal(size=300) + treated, np.full(300, 0.5)
    process = randomization.log_e_process(rest, treated, share)
    assert process[-1] == pytest.approx(randomization.log_e(rest, treated, share))
    assert process[9] == pytest.approx(randomization.log_e(rest[:10], treated[:10], share[:10]))


@pytest.mark.parametrize("effect", [0.0, -0.2, 1.5])
def test_the_interval_has_the_effect_and_gets_narrow(effect: float) -> None:
    """Beyond the clip, too: it is what the effect leaves that is clipped."""
    generator = np.random.default_rng(2)
    widths = []
    for n in (200, 3000):
        treated = generator.integers(0, 2, n)
        outcome = generator.normal(0, 0.2, n) + effect * treated
        interval = randomization.effect(outcome, treated, np.full(n, 0.5), clip=CLIP)
        assert interval.lower < effect < interval.upper
        assert interval.lower < interval.mean < interval.upper
        widths.append(interval.upper - interval.lower)
    assert widths[1] < widths[0] / 3 < 0.1


def test_units_without_an_outcome_count_against_their_arm() -> None:
    generator = np.random.default_rng(3)
    treated = generator.integers(0, 2, 1000)
    outcome = generator.normal(0, 0.1, 1000)
    share = np.full(1000, 0.5)
    assert not randomization.effect(outcome, treated, share, clip=CLIP).excludes_zero
    outcome[(treated == 1) & (generator.random(1000) < 0.2)] = math.inf
    assert randomization.effect(outcome, treated, share, clip=CLIP).lower > 0


def test_nothing_is_said_before_both_arms_are_there() -> None:
    share = np.full(3, 0.5)
    interval = randomization.effect(np.array([9.0, 9.0, 9.0]), np.array([1, 1, 1]), share)
    assert (interval.lower, interval.upper) == (-math.inf, math.inf)


def test_false_alarms_are_as_few_as_said() -> None:
    """With a seed: jobs day by day, a look after each run, arms half and half and one in ten."""
    rates = recurring.ab(experiments=30)
    assert len(rates) >= 2 * 6
    assert sum(row["false_alarms"] for row in rates) / len(rates) <= 0.05
    for row in rates:
        # Of 30, 1.5 in the mean at most; 6 are there four times in a thousand.
        assert row["false_alarms"] <= 0.17, row
    # The same looks at a t-test; else the experiments could not show anything.
    assert max(row["t_test"] for row in rates) > 0.2


def test_most_intervals_have_the_effect() -> None:
    rates = recurring.ab(30, noises=["normal"])
    assert min(row["covered"] for row in rates) >= 0.85


def test_an_effect_is_found_sooner_by_what_was_known_before() -> None:
    (row,) = (r for r in recurring.ab(30, noises=["normal"]) if r["share"] == 0.5)
    assert row["found"] > 0.7
    assert row["found"] > row["found_unadjusted"] + 0.5


def test_a_share_is_covered_at_all_times() -> None:
    generator = np.random.default_rng(4)
    missed = 0
    for _ in range(100):
        events = (generator.random(300) < 0.05).cumsum()
        intervals = [randomization.share_interval(int(events[n]), n + 1) for n in range(0, 300, 7)]
        missed += any(not i.lower <= 0.05 <= i.upper for i in intervals)
    assert missed <= 11


def test_lost_logs_of_one_arm_are_found_and_a_fair_draw_passes() -> None:
    generator = np.random.default_rng(5)
    n, shares = 200_000, [0.5, 0.5]
    treated = generator.random(n) < 0.5
    fair = [int((~treated).sum()), int(treated.sum())]
    assert randomization.mismatch(fair, shares) < 1
    assert randomization.mismatch([fair[0], int(fair[1] * 0.97)], shares) > 100


def test_few_of_the_jobs_that_are_named_are_named_wrongly() -> None:
    """100 jobs, of which ten are harmed."""
    generator = np.random.default_rng(6)
    wrong = named = 0
    for _ in range(20):
        values = []
        for job in range(100):
            treated = generator.integers(0, 2, 40)
            rest = generator.normal(0, 0.2, 40) + 0.5 * treated * (job < 10)
            values.append(randomization.log_e(rest, treated, np.full(40, 0.5)))
        discovered = randomization.discoveries(values)
        named += len(discovered)
        wrong += sum(job >= 10 for job in discovered)
    assert named > 100
    assert wrong <= 0.05 * named


def test_a_run_is_expected_to_be_as_the_jobs_past_and_its_input_say() -> None:
    generator = np.random.default_rng(7)
    days, jobs = 40, 10
    day, job = np.repeat(np.arange(days), jobs), np.tile(np.arange(jobs), days)
    size = generator.normal(20, 0.3, days * jobs)
    y = generator.normal(8, 2, jobs)[job] + 0.8 * size + 0.3 * (day % 7 == 0)
    y += generator.normal(0, 0.05, days * jobs)
    late = day > 20
    surprises = adjustment.surprises(Units(day, job, y, size))[late]
    assert surprises.std() < 0.09
    blind = adjustment.surprises(Units(day, job, y, np.full(days * jobs, np.nan)))[late]
    assert 0.2 < blind.std() < 0.35
    first = adjustment.surprises(Units(day, job, y, size))[:jobs]
    assert (first == 0).all()


def test_a_run_without_an_outcome_is_infinitely_surprising_and_forgotten_soon() -> None:
    day = np.arange(30)
    y = np.full(30, 5.0)
    y[20] = np.nan
    zeros = np.zeros(30, dtype=np.int64)
    surprises = adjustment.surprises(Units(day, zeros, y, np.full(30, np.nan)))
    assert surprises[20] == math.inf
    assert np.abs(surprises[21:]).max() < 0.2


def test_what_is_expected_is_without_the_treatment_however_long_it_is_in_force() -> None:
    generator = np.random.default_rng(3)
    day, zeros = np.arange(80), np.zeros(80, dtype=np.int64)
    # One treatment is in force in two runs of three; then another one, without an effect.
    treatment = np.where(day < 20, 0, np.where(day < 50, 1, 2)) * (day % 3 > 0)
    y = 8 + generator.normal(0, 0.05, 80) - 0.5 * (treatment == 1)
    y[day == 4] = y[day == 25] = np.nan
    surprises = adjustment.surprises(Units(day, zeros, y, np.full(80, np.nan), treatment))
    surprises = np.where(np.isfinite(surprises), surprises, np.nan)
    for number, effect in ((0, 0.0), (1, -0.5), (2, 0.0)):
        late = surprises[(treatment == number) & (day > 8)]
        assert np.nanmean(late) == pytest.approx(effect, abs=0.1)
    unaware = adjustment.surprises(Units(day, zeros, y, np.full(80, np.nan)))
    assert unaware[49] > -0.3


def test_groups_say_what_each_says_by_itself() -> None:
    generator = np.random.default_rng(1)
    n = 50_000
    x, treated = generator.normal(0, 0.1, n), (generator.random(n) < 0.3).astype(np.int64)
    share, group = np.full(n, 0.3), generator.integers(0, 7, n)
    evidence = randomization.log_es(x, treated, share, group)
    alone = [
        randomization.log_e(x[rows], treated[rows], share[rows])
        for rows in (group == i for i in range(7))
    ]
    assert evidence == pytest.approx(alone)


def test_outcomes_may_be_as_large_as_they_like() -> None:
    x, treated = np.array([1e4, -1e4, 3e3]), np.array([1, 0, 0])
    evidence = randomization.log_e(x, treated, np.full(3, 0.5))
    # Each unit of the first two doubles it, and of the third nothing is left.
    assert math.isfinite(evidence)
    assert randomization.log_e(x[:2], treated[:2], np.full(2, 0.5)) == pytest.approx(
        math.log(4) - math.log(2), abs=1e-6
    )


@pytest.mark.parametrize("effect", [0.05, math.inf])
def test_many_units_are_told_as_few_are_but_sooner(
    effect: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(8)
    n = 5_000
    treated, share = generator.integers(0, 2, n), np.where(np.arange(n) < n / 2, 0.5, 0.4)
    outcome = generator.normal(0, 0.5, n) + np.where(treated == 1, effect, 0)
    outcome[:5] = math.inf
    few = randomization.effect(outcome, treated, share, clip=CLIP)
    monkeypatch.setattr(randomization, "_MANY", 1000)
    counted, *_ = randomization._counted(outcome, treated, share, CLIP)
    assert len(counted) < 5_000
    many = randomization.effect(outcome, treated, share, clip=CLIP)
    assert many == pytest.approx(few, abs=2e-4)
