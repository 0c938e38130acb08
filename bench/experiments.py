"""How often confidence sequences are wrong, and how soon they are clear, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from aqepilot.experiment import adjusted, randomized
from aqepilot.experiment.analysis import analyse
from aqepilot.experiment.runs import Runs
from aqepilot.experiment.sequences import half_width

Floats = np.ndarray[Any, np.dtype[np.float64]]
Noise = Callable[[np.random.Generator, int, int], Floats]

EXPERIMENTS = 2000
ROUNDS = 200
EFFECT = math.log(0.95)
SD = 0.1


def _pairs(of: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Noise:
    """Differences of two arms with the same noise."""

    def drawn(generator: np.random.Generator, experiments: int, rounds: int) -> Floats:
        size = (experiments, rounds)
        return of(generator, size) - of(generator, size)

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
    found = np.zeros((experiments, runs))
    for run in range(1, runs):
        shock = generator.normal(0, SD, experiments)
        found[:, run] = 0.9 * found[:, run - 1] + shock
    return found


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


JOBS = 20
DAYS = 30
PAST_DAYS = 7
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
    found = np.zeros(treated.shape)
    for day in range(1, len(found)):
        found[day] = 0.9 * found[day - 1] + generator.normal(0, SD, treated.shape[1])
    return found


@_of_jobs("clusters: days that are slow for all jobs")
def _clustered(generator: np.random.Generator, treated: Floats) -> Floats:
    days = generator.normal(0, 1.5 * SD, (len(treated), 1))
    return np.asarray(generator.normal(0, SD, treated.shape) + days)


def ab(
    experiments: int = EXPERIMENTS, seed: int = 1, noises: Sequence[str] = tuple(OF_JOBS)
) -> list[dict[str, Any]]:
    """Simulates experiments of 20 daily jobs whose input varies by 30% from day to day.

    Seven days are known from before, and the arms are drawn for each run on the 23 days after.

    Returns:
        For each noise and share of the treatment: ``false_alarms``, the share of A/A experiments
        in which zero was outside after any run; ``t_test``, the same of a t-test of the outcomes
        at 5% after each run; ``found`` and ``found_unadjusted``, the share of experiments with a
        5% effect in which it was found, with what is known of the jobs and without; ``covered``,
        the share of these in which the last interval has the effect; ``median_runs`` until it was
        found, null where less than half were.
    """
    rows = []
    for name in noises:
        noise = OF_JOBS[name]
        for share in (0.5, 0.1):
            generator = np.random.default_rng(seed)
            nil = [_experiment(generator, noise, share, 0.0) for _ in range(experiments)]
            found = [_experiment(generator, noise, share, EFFECT) for _ in range(experiments)]
            after = [f["after"] for f in found]
            median = float(np.median(after))
            rows.append(
                {
                    "noise": name,
                    "share": share,
                    "false_alarms": float(np.mean([n["after"] < math.inf for n in nil])),
                    "t_test": float(np.mean([n["t_test"] for n in nil])),
                    "found": float(np.mean([a < math.inf for a in after])),
                    "found_unadjusted": float(np.mean([f["unadjusted"] for f in found])),
                    "covered": float(np.mean([f["covered"] for f in found])),
                    "median_runs": median if median < math.inf else None,
                }
            )
    return rows


def _experiment(
    generator: np.random.Generator,
    noise: Callable[[np.random.Generator, Floats], Floats],
    share: float,
    effect: float,
) -> dict[str, Any]:
    shape = (DAYS, JOBS)
    treated = (generator.random(shape) < share).astype(int)
    treated[:PAST_DAYS] = 0
    size = np.log(generator.uniform(0.7, 1.3, shape)) + generator.normal(20, 2, JOBS)
    base = generator.normal(8, 1.5, JOBS)
    y = base + 0.8 * size + noise(generator, treated) + effect * treated
    day, job = (of.ravel() for of in np.indices(shape))
    counted = day >= PAST_DAYS
    arm, shares = treated.ravel()[counted], np.full(int(counted.sum()), share)
    clip = math.log(adjusted.CLIPPED_AT)

    def clear_after(rest: Floats) -> float:
        process = randomized.log_e_process(np.clip(rest, -clip, clip), arm, shares)
        clear = process >= math.log(20)
        return float(clear.argmax() + 1) if clear.any() else math.inf

    rest = adjusted.surprises(adjusted.Units(day, job, y.ravel(), size.ravel()))[counted]
    raw = y.ravel()[counted]
    last = randomized.effect(rest, arm, shares, clip=clip)
    return {
        "after": clear_after(rest),
        "unadjusted": clear_after(raw - np.median(raw)) < math.inf,
        "t_test": _ever_by_t(raw, arm),
        "covered": last.lower <= effect <= last.upper,
    }


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
    ends = np.linspace(DAYS - PAST_DAYS, 1, looks).round().astype(int)[::-1] + PAST_DAYS
    rows = []
    for share in shares:
        generator = np.random.default_rng(seed)
        wrong = harmed = 0
        for _ in range(experiments):
            runs = _of_nothing(generator, share)
            found = [analyse(runs.where(runs.ended < end), "task_ms") for end in ends]
            wrong += any(
                of.verdict in ("ship", "broken")
                or (of.verdict == "stop" and "no difference" not in of.says)
                for of in found
            )
            harmed += any(of.harmed for of in found)
        row = {"share": share, "wrong": wrong / experiments, "harmed": harmed / experiments}
        rows.append(row | {"experiments": experiments, "looks": looks})
    return rows


def _of_nothing(generator: np.random.Generator, share: float) -> Runs:
    shape = (DAYS, JOBS)
    day, job = (of.ravel() for of in np.indices(shape))
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


def _ever_by_t(y: Floats, arm: Floats) -> bool:
    n = np.stack([(arm == a).cumsum() for a in (0, 1)])
    sums = np.stack([(y * (arm == a)).cumsum() for a in (0, 1)])
    squares = np.stack([(y**2 * (arm == a)).cumsum() for a in (0, 1)])
    known = (n > 1).all(axis=0)
    n, sums, squares = n[:, known], sums[:, known], squares[:, known]
    variances = (squares - sums**2 / n) / (n - 1)
    difference = sums[1] / n[1] - sums[0] / n[0]
    t = np.abs(difference) / np.sqrt((variances / n).sum(axis=0))
    return bool((t > stats.t.ppf(0.975, n.sum(axis=0) - 2)).any())
