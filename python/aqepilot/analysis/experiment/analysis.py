"""What an experiment says so far: the effect, whom it hurts, and what to do now.

One figure decides, the pooled effect on one metric of all jobs; the verdicts on single jobs and
queries only names those that are harmed. Failures and stalled runs stand beside it, as the effect
of a run that is more than twice as long counts as twice as long only.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from aqepilot.analysis.experiment import guards, harm, randomization
from aqepilot.analysis.experiment.adjustment import CLIPPED_AT
from aqepilot.analysis.experiment.guards import BROKEN, EFFECT_ALPHA, Shares
from aqepilot.analysis.experiment.runs import Runs, numbered, rests_of
from aqepilot.analysis.intervals import Interval, interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]

HARM = 1.5
MARGIN = 0.01
_CLIP = math.log(CLIPPED_AT)
_MIB = 1 << 20

Verdict = Literal["ship", "keep running", "stop", "broken"]


class Backfills(NamedTuple):
    """What backfills say: each value is of the control and of the treatment, but the effect."""

    runs: tuple[int, int]
    failed: tuple[int, int]
    effect: Interval


class Analysis(NamedTuple):
    """What is known of an experiment.

    Attributes:
        runs: Of the control and of the treatment.
        exposed_runs: Of these, those in which the arms could differ.
        undrawn: Runs of the experiment that could have got one of the two arms only: they say
            nothing, and are left out.
        without_query: Runs that ended well and had no query: they say nothing of any metric.
        effects: By metric, the effect on the logarithm, over all runs that were assigned.
        exposed: The same over runs in which the arms could differ.
        failures: Shares of failed runs, of jobs that are not harmed.
        slow: Shares of runs that took more than `CLIPPED_AT` times what was expected, of jobs that
            are not harmed.
        out_of_memory: Shares of runs with a query that ran out of memory, of the same jobs.
        spilled: Shares of runs that spilled more than a mebibyte to disk, of the same jobs; null
            where that is not known.
        mismatch: E-value against arms having been drawn with the probabilities that were set.
        exposed_mismatch: The same of the runs in which the arms could differ.
        harmed: Jobs that take at least so many times as long, and not by chance, with the effect.
        backfills: What is reported of them without counting it; null where there are none.
        verdict: What to do.
        says: The same as a sentence, with why.
    """

    runs: tuple[int, int]
    exposed_runs: tuple[int, int]
    undrawn: int
    without_query: int
    effects: dict[str, Interval]
    exposed: dict[str, Interval]
    failures: Shares
    slow: Shares
    out_of_memory: Shares
    spilled: Shares | None
    mismatch: float
    exposed_mismatch: float
    harmed: dict[str, Interval]
    backfills: Backfills | None
    verdict: Verdict
    says: str


def analyse(runs: Runs, metric: str, *, harmful: float = HARM) -> Analysis:
    """Says what is known after these runs; to ask again after each new one is allowed for.

    Args:
        runs: Those of two arms, and any before the experiment.
        metric: Which of the metrics decides.
        harmful: How many times as long a job has to take to count as harmed, above 1.

    Raises:
        KeyError: There is no such metric.
    """
    # Who could have got one arm only says nothing, and would make what the others say infinite.
    drawn = (runs.share > 0) & (runs.share < 1)
    counted = runs.counted & drawn
    treated, share = runs.treated[counted].astype(np.int64), runs.share[counted]
    names, job = numbered(runs.job)
    all_rests = {name: rests_of(runs, values, job) for name, values in runs.metrics.items()}
    rests = {name: rest[counted] for name, rest in all_rests.items()}
    exposed = runs.exposed[counted]

    def effect(rest: Floats, rows: Any) -> Interval:
        return randomization.effect(rest[rows], treated[rows], share[rows], EFFECT_ALPHA, _CLIP)

    # NumPy computes without Python's lock.
    with ThreadPoolExecutor() as threads:
        all_of = {name: threads.submit(effect, rest, slice(None)) for name, rest in rests.items()}
        of_exposed = (
            all_of
            if exposed.all()
            else {name: threads.submit(effect, rest, exposed) for name, rest in rests.items()}
        )
        effects = {name: future.result() for name, future in all_of.items()}
        on_exposed = {name: future.result() for name, future in of_exposed.items()}
    number = job[counted]
    harmed = harm.harmed(rests[metric], names, number, treated, share, factor=harmful, clip=_CLIP)
    # What is known to be harmed is left alone by itself: it is no reason to stop all others.
    others = ~np.isin(number, [names.index(name) for name in harmed])

    def shares(is_so: Bools) -> Shares:
        return guards.shares(is_so[others], treated[others], share[others])

    basis = _Basis(
        on_exposed[metric],
        failures=shares(runs.failed[counted]),
        slow=shares(rests[metric] > _CLIP),
        out_of_memory=shares(
            np.zeros(len(number), dtype=bool)
            if runs.out_of_memory is None
            else runs.out_of_memory[counted]
        ),
        mismatches=(
            guards.mismatch(treated, share),
            guards.mismatch(treated[exposed], share[exposed]),
        ),
    )
    spilled = runs.metrics.get("spill_bytes")
    days = float(np.ptp(runs.ended[counted])) if len(number) else 0.0
    verdict, says = _verdict(basis, int(exposed.sum()), days)
    if harmed:
        says += f" Harmed: {', '.join(harmed)}."
    silent = np.isnan(runs.metrics[metric]) & ~runs.failed
    return Analysis(
        _by_arm(treated),
        _by_arm(treated[exposed]),
        int((runs.counted & ~drawn).sum()),
        int((counted & silent).sum()),
        effects,
        on_exposed,
        basis.failures,
        basis.slow,
        basis.out_of_memory,
        None if spilled is None else shares(np.nan_to_num(spilled[counted]) > _MIB),
        *basis.mismatches,
        harmed,
        _backfills(runs, all_rests[metric], drawn),
        verdict,
        says,
    )


def _backfills(runs: Runs, rest: Floats, drawn: Bools) -> Backfills | None:
    if runs.backfill is None or not runs.backfill.any():
        return None
    rows = runs.backfill & drawn
    treated = runs.treated[rows].astype(np.int64)
    effect = randomization.effect(rest[rows], treated, runs.share[rows], EFFECT_ALPHA, _CLIP)
    return Backfills(_by_arm(treated), _by_arm(treated[runs.failed[rows]]), effect)


def _by_arm(treated: Any) -> tuple[int, int]:
    return int((1 - treated).sum()), int(treated.sum())


def harmed_queries(runs: Runs, metric: str, *, harmful: float = HARM) -> dict[str, Interval]:
    """Returns which of many queries the treatment harms, as `analyse` does of jobs.

    Args:
        runs: Those of queries, from `history.queries_in`.
        metric: What is compared.
        harmful: How many times as long one has to take, above 1.
    """
    counted = runs.counted & (runs.share > 0) & (runs.share < 1)
    names, job = numbered(runs.job)
    return harm.harmed(
        rests_of(runs, runs.metrics[metric], job)[counted],
        names,
        job[counted],
        runs.treated[counted].astype(np.int64),
        runs.share[counted],
        factor=harmful,
        clip=_CLIP,
    )


class _Basis(NamedTuple):
    """What the verdict is made of."""

    effect: Interval
    failures: Shares
    slow: Shares
    out_of_memory: Shares
    mismatches: tuple[float, float]


def _verdict(basis: _Basis, n: int, days: float) -> tuple[Verdict, str]:
    if max(basis.mismatches) >= BROKEN:
        which = "numbers of runs" if basis.mismatches[0] >= BROKEN else "numbers of exposed runs"
        return "broken", (
            f"The arms have other {which} than their weights say, and not by chance: logs "
            "of one arm are missing, or its runs never begin. No figure here can be trusted."
        )
    effect = basis.effect
    by = interval(effect)
    for shares, what in (
        (basis.failures, "fail"),
        (basis.out_of_memory, "run out of memory"),
        (basis.slow, f"take over {CLIPPED_AT:g} times as long"),
    ):
        if shares.is_worse:
            return "stop", (
                f"More of the treatment's runs {what}: {100 * shares.treatment.mean:.1f} % "
                f"instead of {100 * shares.control.mean:.1f} %."
            )
    if math.isinf(effect.mean) and effect.excludes_zero:
        none = "Most of the {}'s runs have no outcome: they fail, or break off."
        longer = effect.mean > 0
        return ("stop", none.format("treatment")) if longer else ("ship", none.format("control"))
    if effect.upper < 0:
        return "ship", f"The treatment makes runs shorter, by {by}."
    if effect.lower > 0:
        return "stop", f"The treatment makes runs longer, by {by}."
    if effect.is_within(math.log1p(MARGIN)):
        return "stop", f"The treatment makes no difference that matters: {by}."
    more = _days_more(effect, n, days)
    about = "" if more is None else f" At this rate it takes about {more:.0f} days more."
    return "keep running", f"Not known yet: {by}.{about}"


def _days_more(effect: Interval, n: int, days: float) -> float | None:
    """By the width of a sequence, which falls with the root of the number of units, nearly."""
    width = (effect.upper - effect.lower) / 2
    if not math.isfinite(width) or days <= 0:
        return None
    target = max(abs(effect.mean), math.log1p(MARGIN))
    needed = n * (width / target) ** 2
    return max(1.0, (needed - n) * days / n)
