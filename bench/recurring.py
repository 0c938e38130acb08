"""How often verdicts on recurring jobs are wrong, and after how many days they are there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from aqepilot.analysis.experiment import adjustment, randomization
from aqepilot.analysis.experiment.analysis import analyse
from aqepilot.analysis.experiment.guards import EFFECT_ALPHA
from aqepilot.analysis.experiment.runs import Runs
from bench import repeated, simulation
from bench.experiments import EFFECT, EXPERIMENTS, SD, Floats

JOBS = 20
DAYS = 30
PAST_DAYS = 7
REPEATED = "drawn from repeated runs of TPC-DS"
# For the days until an effect is found.
MANY_JOBS = 200
MOST_DAYS = 400
_CLIP = math.log(adjustment.CLIPPED_AT)

OF_JOBS: dict[str, Callable[[np.random.Generator, Floats], Floats]] = {}


def _of_jobs(name: str) -> Callable[[Any], Any]:
    def keep(noise: Callable[[np.random.Generator, Floats], Floats]) -> Any:
        OF_JOBS[name] = noise
        return noise

    return keep


@_of_jobs("normal")
def _quiet(generator: np.random.Generator, treated: Floats) -> Floats:
    return generator.normal(0, SD, treated.shape)


@_of_jobs("heavy tails (t with 2 degrees of freedom)")
def _heavy(generator: np.random.Generator, treated: Floats) -> Floats:
    return SD * generator.standard_t(2, treated.shape)


@_of_jobs("stragglers on the treatment's machine: one run in a hundred takes ten times as long")
def _straggling(generator: np.random.Generator, treated: Floats) -> Floats:
    hit = (generator.random(treated.shape) < 0.01) & (treated == 1)
    return generator.normal(0, SD, treated.shape) + math.log(10) * hit


@_of_jobs("drift over the weeks and over the day")
def _drift(generator: np.random.Generator, treated: Floats) -> Floats:
    days, jobs = treated.shape
    trend = generator.normal() * np.linspace(0, 1, days)[:, None]
    hours = 0.2 * np.sin(np.linspace(0, 2 * math.pi, jobs))
    return np.asarray(generator.normal(0, SD, treated.shape) + trend + hours)


@_of_jobs("autocorrelated runs of each job (AR(1), 0.9)")
def _hanging(generator: np.random.Generator, treated: Floats) -> Floats:
    effects = np.zeros(treated.shape)
    for day in range(1, len(effects)):
        effects[day] = 0.9 * effects[day - 1] + generator.normal(0, SD, treated.shape[1])
    return effects


@_of_jobs("clusters: days that are slow for all jobs")
def _clustered(generator: np.random.Generator, treated: Floats) -> Floats:
    days = generator.normal(0, 1.5 * SD, (len(treated), 1))
    return np.asarray(generator.normal(0, SD, treated.shape) + days)


if repeated.are_there():

    @_of_jobs(REPEATED)
    def _repeated(generator: np.random.Generator, treated: Floats) -> Floats:
        return generator.choice(repeated.rests("task_ms"), treated.shape)


class Drawn(NamedTuple):
    """An experiment of daily jobs; each array has the experiment's runs only, in their order.

    Attributes:
        day: Of the experiment, from 0 on.
        arm: 1 for the treatment.
        y: Outcome on the log scale.
        rest: What is left of it when what was to be expected is taken away.
        around_job: What is left when the mean of the job's past is.
    """

    day: Any
    arm: Any
    y: Floats
    rest: Floats
    around_job: Floats


def _drawn(
    generator: np.random.Generator, noise: str, share: float, effect: float, jobs: int, days: int
) -> Drawn:
    shape = (PAST_DAYS + days, jobs)
    treated = (generator.random(shape) < share).astype(int)
    treated[:PAST_DAYS] = 0
    size = np.log(generator.uniform(0.7, 1.3, shape)) + generator.normal(20, 2, jobs)
    base = generator.normal(8, 1.5, jobs)
    y = base + 0.8 * size + OF_JOBS[noise](generator, treated) + effect * treated
    day, job = (indices.ravel() for indices in np.indices(shape))
    counted = day >= PAST_DAYS
    rest = adjustment.surprises(adjustment.Units(day, job, y.ravel(), size.ravel()))
    around_job = y - y[:PAST_DAYS].mean(axis=0)
    return Drawn(
        day[counted] - PAST_DAYS,
        treated.ravel()[counted],
        y.ravel()[counted],
        rest[counted],
        around_job.ravel()[counted],
    )


def _clear_after(rest: Floats, drawn: Drawn, share: float, alpha: float = 0.05) -> float:
    """After how many runs no effect at all is refuted; infinity where it never is."""
    shares = np.full(len(rest), share)
    process = randomization.log_e_process(np.clip(rest, -_CLIP, _CLIP), drawn.arm, shares)
    clear = process >= -math.log(alpha)
    return float(clear.argmax() + 1) if clear.any() else math.inf


def ab(
    experiments: int = EXPERIMENTS, seed: int = 1, noises: Sequence[str] = tuple(OF_JOBS)
) -> list[dict[str, Any]]:
    """Simulates experiments of 20 daily jobs whose input varies by 30% from day to day.

    Seven days are known from before, and the arms are drawn for each run on the 23 days after.

    Returns:
        For each noise and share of the treatment: ``false_alarms``, the share of A/A experiments
        in which zero was outside after any run; ``t_test``, the same of a t-test of the outcomes
        at 5% after each run; ``outcomes`` and ``found_unadjusted``, the share of experiments with a
        5% effect in which it was found, with what is known of the jobs and without; ``covered``,
        the share of these in which the intervals after all runs have the effect; ``median_runs``
        until it was found, null where less than half were.
    """
    rows = []
    for name in noises:
        for share in (0.5, 0.1):
            nil = simulation.each(_experiment, experiments, seed, name, share, 0.0)
            outcomes = simulation.each(_experiment, experiments, seed + 1, name, share, EFFECT)
            after = [f["after"] for f in outcomes]
            median = float(np.median(after))
            rows.append(
                {
                    "noise": name,
                    "share": share,
                    "false_alarms": float(np.mean([n["after"] < math.inf for n in nil])),
                    "t_test": float(np.mean([n["t_test"] for n in nil])),
                    "found": float(np.mean([a < math.inf for a in after])),
                    "found_unadjusted": float(np.mean([f["unadjusted"] for f in outcomes])),
                    "covered": float(np.mean([f["covered"] for f in outcomes])),
                    "median_runs": median if median < math.inf else None,
                    "experiments": experiments,
                }
            )
    return rows


def _experiment(
    generator: np.random.Generator, noise: str, share: float, effect: float
) -> dict[str, Any]:
    drawn = _drawn(generator, noise, share, effect, JOBS, DAYS - PAST_DAYS)
    return {
        "after": _clear_after(drawn.rest, drawn, share),
        "unadjusted": _clear_after(drawn.y - np.median(drawn.y), drawn, share) < math.inf,
        "t_test": bool((_p_values(drawn.y, drawn.arm) < 0.05).any()),
        # All intervals have the effect where it is never refuted.
        "covered": _clear_after(drawn.rest - effect * drawn.arm, drawn, share) == math.inf,
    }


def days(
    experiments: int = EXPERIMENTS // 10,
    seed: int = 1,
    noises: Sequence[str] = (REPEATED if repeated.are_there() else "normal",),
) -> list[dict[str, Any]]:
    """Simulates experiments of 200 daily jobs whose input varies by 30%, with a 5% effect.

    Returns:
        For each noise and share of the treatment, after how many days the effect is found in four
        of five experiments, null where that is after more than 400: ``looking``, by looking after
        each run; ``looking_by_job``, where only the mean of the job's past is known;
        ``looking_unadjusted``, where nothing is; ``t_test`` and ``t_test_unadjusted``, by a t-test
        at 5% of what is left of the runs and of their logarithms, asked once on that day.
    """
    rows = []
    for name in noises:
        for share in (0.5, 0.1):
            outcomes = simulation.each(_found_after, experiments, seed, name, share)
            row: dict[str, Any] = {"noise": name, "share": share, "experiments": experiments}
            for what in ("looking", "looking_by_job", "looking_unadjusted"):
                row[what] = _in_four_of_five(sorted(outcome[what] for outcome in outcomes))
            for what in ("t_test", "t_test_unadjusted"):
                power = np.mean([outcome[what] for outcome in outcomes], axis=0)
                row[what] = int((power >= 0.8).argmax()) + 1 if (power >= 0.8).any() else None
            rows.append(row)
    return rows


def _found_after(generator: np.random.Generator, noise: str, share: float) -> dict[str, Any]:
    drawn = _drawn(generator, noise, share, EFFECT, MANY_JOBS, MOST_DAYS)
    ends = np.arange(1, MOST_DAYS + 1) * MANY_JOBS - 1

    def after(rest: Floats) -> float:
        return math.ceil(runs / MANY_JOBS) if (runs := clear(rest)) < math.inf else math.inf

    def clear(rest: Floats) -> float:
        return _clear_after(rest, drawn, share, EFFECT_ALPHA)

    return {
        "looking": after(drawn.rest),
        "looking_by_job": after(drawn.around_job),
        "looking_unadjusted": after(drawn.y - np.median(drawn.y)),
        "t_test": _p_values(np.clip(drawn.rest, -_CLIP, _CLIP), drawn.arm)[ends] < 0.05,
        "t_test_unadjusted": _p_values(drawn.y, drawn.arm)[ends] < 0.05,
    }


def _in_four_of_five(after: Sequence[float]) -> int | None:
    day = after[math.ceil(0.8 * len(after)) - 1]
    return int(day) if day < math.inf else None


def verdicts(
    experiments: int = EXPERIMENTS,
    seed: int = 1,
    shares: Sequence[float] = (0.5, 0.1),
    looks: int = DAYS - PAST_DAYS,
) -> list[dict[str, Any]]:
    """Simulates A/A experiments, and looks at the verdict of `analyse` itself, with all its parts.

    Jobs are those of `ab`; one run in fifty fails and one in fifty takes three times as long, under
    either arm, and one job in five is not exposed.

    Args:
        experiments: How many for each share.
        seed: Of the draws.
        shares: Of the treatment.
        looks: How often each experiment is looked at, on the ends of days.

    Returns:
        For each share: ``wrong``, the share of experiments that were ever to be shipped, broken, or
        stopped for anything but that there is no difference; ``harmed``, the share in which a job
        was ever named; both with how many experiments and looks.
    """
    rows = []
    for share in shares:
        outcomes = simulation.each(_verdict, experiments, seed, share, looks)
        wrong, harmed = (float(np.mean(column)) for column in zip(*outcomes, strict=True))
        row = {"share": share, "wrong": wrong, "harmed": harmed}
        rows.append(row | {"experiments": experiments, "looks": looks})
    return rows


def _verdict(generator: np.random.Generator, share: float, looks: int) -> tuple[bool, bool]:
    ends = np.linspace(DAYS - PAST_DAYS, 1, looks).round().astype(int)[::-1] + PAST_DAYS
    runs = _of_nothing(generator, share)
    analyses = [analyse(runs.where(runs.ended < end), "task_ms") for end in ends]
    wrong = any(
        analysis.verdict in ("ship", "broken")
        or (analysis.verdict == "stop" and "no difference" not in analysis.says)
        for analysis in analyses
    )
    return wrong, any(analysis.harmed for analysis in analyses)


def _of_nothing(generator: np.random.Generator, share: float) -> Runs:
    shape = (DAYS, JOBS)
    day, job = (indices.ravel() for indices in np.indices(shape))
    counted = day >= PAST_DAYS
    treated = (generator.random(day.shape) < share) & counted
    size = np.log(generator.uniform(0.7, 1.3, shape)) + generator.normal(20, 2, JOBS)
    stalled = math.log(3) * (generator.random(shape) < 0.02)
    y = generator.normal(8, 1.5, JOBS) + 0.8 * size + generator.normal(0, SD, shape) + stalled
    return Runs(
        ended=day + job / JOBS,
        job=np.array([f"job{j}" for j in job]),
        treated=treated,
        counted=counted,
        share=np.full(day.shape, share),
        exposed=counted & (job % 5 > 0),
        failed=generator.random(day.shape) < 0.02,
        input_bytes=np.exp(size.ravel()),
        metrics={"task_ms": np.exp(y.ravel())},
    )


def _p_values(y: Floats, arm: Any) -> Floats:
    """Of Welch's t-test after each run; 1 before there are two of each arm."""
    n = np.stack([(arm == a).cumsum() for a in (0, 1)])
    sums = np.stack([(y * (arm == a)).cumsum() for a in (0, 1)])
    squares = np.stack([(y**2 * (arm == a)).cumsum() for a in (0, 1)])
    p_values = np.ones(len(y))
    known = (n > 1).all(axis=0)
    n, sums, squares = n[:, known], sums[:, known], squares[:, known]
    variances = (squares - sums**2 / n) / (n - 1)
    difference = sums[1] / n[1] - sums[0] / n[0]
    t = np.abs(difference) / np.sqrt((variances / n).sum(axis=0))
    p_values[known] = 2 * stats.t.sf(t, n.sum(axis=0) - 2)
    return p_values
