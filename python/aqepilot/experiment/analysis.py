"""What an experiment says so far: the effect, whom it hurts, and what to do now.

One figure decides, the pooled effect on one metric of all jobs; what is said of single jobs only
names those that are harmed. Failures and stalled runs stand beside it, as the effect of a run that
is more than twice as long counts as twice as long only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from aqepilot.experiment import adjusted, randomized
from aqepilot.experiment.adjusted import CLIPPED_AT
from aqepilot.experiment.sequences import Interval
from aqepilot.experiment.telling import interval

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Texts = np.ndarray[Any, np.dtype[np.str_]]

ALPHA = 0.05
BROKEN = 100.0
HARM = 1.5
MARGIN = 0.01
_CLIP = math.log(CLIPPED_AT)

Verdict = Literal["ship", "keep running", "stop", "broken"]


class Runs(NamedTuple):
    """Runs of jobs in the order in which they ended, one value for each in every field.

    Attributes:
        ended: In days since the epoch.
        job: Its name.
        treated: Whether it got the treatment; of a run before the experiment that says nothing.
        counted: Whether it is of the experiment; the others only say what to expect.
        share: Probability of the treatment, of these two arms.
        exposed: Whether the arms' answers differed anywhere in it.
        failed: Whether it failed, or there is no outcome though it began.
        input_bytes: What it read; NaN where that is not known.
        metrics: By name, what is compared, above 0; NaN for a run without an outcome.
    """

    ended: Floats
    job: Texts
    treated: Bools
    counted: Bools
    share: Floats
    exposed: Bools
    failed: Bools
    input_bytes: Floats
    metrics: Mapping[str, Floats]


class Shares(NamedTuple):
    """How many of the runs of each arm have what is counted, failed say.

    Attributes:
        control: Share of the control's runs.
        treatment: Share of the treatment's.
        log_e: Logarithm of the e-value against the arm making no difference.
    """

    control: Interval
    treatment: Interval
    log_e: float

    @property
    def is_worse(self) -> bool:
        """Whether the treatment has more of it than chance explains."""
        return self.treatment.mean > self.control.mean and self.log_e >= -math.log(ALPHA)


class Analysis(NamedTuple):
    """What is known of an experiment.

    Attributes:
        runs: Of the control and of the treatment.
        effects: By metric, the effect on the logarithm, over all runs that were assigned.
        exposed: The same over runs in which the arms could differ.
        failures: Shares of failed runs, of jobs that are not harmed.
        slow: Shares of runs that took more than `CLIPPED_AT` times what was expected, of jobs that
            are not harmed.
        mismatch: E-value against arms having been drawn with the probabilities that were set.
        harmed: Jobs that take at least `HARM` times as long, and not by chance, with the effect.
        verdict: What to do.
        says: The same as a sentence, with why.
    """

    runs: tuple[int, int]
    effects: dict[str, Interval]
    exposed: dict[str, Interval]
    failures: Shares
    slow: Shares
    mismatch: float
    harmed: dict[str, Interval]
    verdict: Verdict
    says: str


def analyse(runs: Runs, metric: str) -> Analysis:
    """Says what is known after these runs; to ask again after each new one is allowed for.

    Args:
        runs: Those of two arms, and any before the experiment.
        metric: Which of the metrics decides.

    Raises:
        KeyError: There is no such metric.
    """
    counted = runs.counted
    treated, share = runs.treated[counted].astype(np.int64), runs.share[counted]
    rests = {name: rests_of(runs, values)[counted] for name, values in runs.metrics.items()}
    exposed = runs.exposed[counted]

    def effect(rest: Floats, of: Any) -> Interval:
        return randomized.effect(rest[of], treated[of], share[of], ALPHA, _CLIP)

    # NumPy computes without Python's lock.
    with ThreadPoolExecutor() as threads:
        all_of = {name: threads.submit(effect, rest, slice(None)) for name, rest in rests.items()}
        of_exposed = (
            all_of
            if exposed.all()
            else {name: threads.submit(effect, rest, exposed) for name, rest in rests.items()}
        )
        effects = {name: found.result() for name, found in all_of.items()}
        on_exposed = {name: found.result() for name, found in of_exposed.items()}
    harmed = _harmed(rests[metric], runs.job[counted], treated, share)
    # What is known to be harmed is left alone by itself: it is no reason to stop all others.
    others = ~np.isin(runs.job[counted], [*harmed])
    failures = _shares(runs.failed[counted][others], treated[others], share[others])
    slow = _shares(rests[metric][others] > _CLIP, treated[others], share[others])
    n = (int((1 - treated).sum()), int(treated.sum()))
    mismatch = _mismatch(treated, share)
    days = float(np.ptp(runs.ended[counted])) if sum(n) else 0.0
    verdict, says = _verdict(on_exposed[metric], int(exposed.sum()), days, failures, slow, mismatch)
    if harmed:
        says += f" Harmed: {', '.join(harmed)}."
    return Analysis(n, effects, on_exposed, failures, slow, mismatch, harmed, verdict, says)


def rests_of(runs: Runs, values: Floats) -> Floats:
    """Returns what is left of each run when what was to be expected of it is taken away."""
    _, job = np.unique(runs.job, return_inverse=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        y, size = np.log(values), np.log(runs.input_bytes)
    y[runs.failed | ~np.isfinite(y)] = np.nan
    size[~np.isfinite(size)] = np.nan
    return adjusted.surprises(adjusted.Units(np.floor(runs.ended).astype(np.int64), job, y, size))


def _shares(is_so: Bools, treated: Any, share: Floats) -> Shares:
    arms = [
        randomized.share_interval(int(is_so[treated == arm].sum()), int((treated == arm).sum()))
        for arm in (0, 1)
    ]
    # The mean of both arms is no outcome of any unit: it only makes the test sharper.
    rest = is_so - is_so.mean() if len(is_so) else is_so.astype(float)
    return Shares(arms[0], arms[1], randomized.log_e(rest, treated, share))


def _mismatch(treated: Any, share: Floats) -> float:
    """Weights may have changed on the way: e-values of the times between are multiplied."""
    found = 1.0
    for p in np.unique(share):
        of = treated[share == p]
        counts = [int((1 - of).sum()), int(of.sum())]
        found *= randomized.mismatch(counts, [1 - float(p), float(p)])
    return found


def _harmed(rest: Floats, job: Texts, treated: Any, share: Floats) -> dict[str, Interval]:
    names, number = np.unique(job, return_inverse=True)
    log_es = randomized.log_es(np.clip(rest, -_CLIP, _CLIP), treated, share, number)
    found = {}
    for i in randomized.discoveries(log_es.tolist(), ALPHA):
        of = number == i
        effect = randomized.effect(rest[of], treated[of], share[of], ALPHA, _CLIP)
        if effect.mean >= math.log(HARM):
            found[str(names[i])] = effect
    return found


def _verdict(
    effect: Interval, n: int, days: float, failures: Shares, slow: Shares, mismatch: float
) -> tuple[Verdict, str]:
    if mismatch >= BROKEN:
        return "broken", (
            "The arms have other numbers of runs than their weights say, and not by chance: logs "
            "of one arm are missing, or its runs never begin. No figure here can be trusted."
        )
    by = interval(effect)
    for shares, what in ((failures, "fail"), (slow, f"take over {CLIPPED_AT:g} times as long")):
        if shares.is_worse:
            return "stop", (
                f"More of the treatment's runs {what}: {100 * shares.treatment.mean:.1f} % "
                f"instead of {100 * shares.control.mean:.1f} %."
            )
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
