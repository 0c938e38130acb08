"""The loop of a search: try, measure in pairs, and measure the winner again on fresh pairs."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from aqepilot.analysis.tune.evidence import (
    Choice,
    Decided,
    Evidence,
    Measured,
    Outcome,
    Proposal,
    Try,
)
from aqepilot.analysis.tune.search import Searcher

# A run may take so many times the best that is known, and so much longer: else it cannot win.
_SLACK, _SLACK_MS = 1.5, 250.0
# The first run of a plan compiles its code.
_FIRST_SLACK, _FIRST_SLACK_MS = 2.0, 2000.0
# A run on fresh pairs says no more than that (`pairs.CLIPPED_AT`).
_FRESH_SLACK = 16.0
_FINALISTS, _FINAL_PAIRS = 3, 2


class Ran(NamedTuple):
    """A run.

    Attributes:
        outcome: As for `Try`.
        ms: Wall time; of one that timed out, until then.
        error: What it failed with.
        choices: Decisions of the query that its first run came to.
    """

    outcome: Outcome
    ms: float
    error: str | None = None
    choices: Sequence[Choice] = ()


class Runner(Protocol):
    """Runs the query: Spark does, and a simulation."""

    def first(self, answers: Sequence[Decided], timeout_ms: float) -> Ran:
        """Runs it for the first time with answers, and looks at rows and decisions."""

    def timed(
        self, answers: Sequence[Decided], timeout_ms: float | None, held_out: bool = False
    ) -> Ran:
        """Runs it once more; without answers it is plain Spark."""


class Limits(NamedTuple):
    """How far a search goes.

    Attributes:
        tries: How many proposals are run.
        rounds: Pairs of the winner at most, on fresh data and on other data each.
        seconds: Wall time after which no try begins; null for no such bound.
        warm_up: Runs of the winner and of plain Spark that do not count, before the fresh pairs.
    """

    tries: int
    rounds: int
    seconds: float | None = None
    warm_up: int = 1


Saved = Callable[[Evidence], None]


class Search:
    """A search, from wherever its evidence says that it is.

    Args:
        runner: Runs the query.
        searcher: Says what to try.
        limits: How far to go.
        margin: How little counts as no difference, as a share.
        drawn: Draws which of a pair goes first.
        saved: Gets the evidence after each step.
        has_held_out: Whether there is other data.
    """

    def __init__(
        self,
        runner: Runner,
        searcher: Searcher,
        limits: Limits,
        margin: float,
        drawn: random.Random,
        saved: Saved,
        has_held_out: bool = False,
    ) -> None:
        self._runner = runner
        self._searcher = searcher
        self._limits = limits
        self._margin = margin
        self._drawn = drawn
        self._saved = saved
        self._has_held_out = has_held_out

    def run(self, evidence: Evidence) -> Evidence:
        """Goes on to the end; that it is finished is for the caller to save."""
        self._begun = time.monotonic() - evidence.search_ms / 1000
        while len(evidence.tries) < self._limits.tries and not self._is_over():
            proposal = self._searcher(
                evidence.choices, evidence.starts, evidence.tries, self._limits.tries
            )
            if proposal is None:
                break
            evidence = self._tried(evidence, proposal)
        if evidence.winner is None:
            evidence = self._chosen(evidence)
        if evidence.winner is not None:
            answers = evidence.tries[evidence.winner].proposal.answers
            for measured in self._fresh(answers, evidence.fresh, held_out=False):
                evidence = self._save(evidence.changed(fresh=measured))
            is_open = evidence.fresh is not None and evidence.fresh.verdict == "faster"
            if self._has_held_out and is_open:
                for measured in self._fresh(answers, evidence.held_out, held_out=True):
                    evidence = self._save(evidence.changed(held_out=measured))
        return self._save(evidence).changed(is_finished=True)

    def _is_over(self) -> bool:
        seconds = self._limits.seconds
        return seconds is not None and time.monotonic() - self._begun > seconds

    def _save(self, evidence: Evidence) -> Evidence:
        now = evidence.changed(search_ms=(time.monotonic() - self._begun) * 1000)
        self._saved(now)
        return now

    def _tried(self, evidence: Evidence, proposal: Proposal) -> Evidence:
        best = _best_ms(evidence)
        first = self._runner.first(proposal.answers, best * _FIRST_SLACK + _FIRST_SLACK_MS)
        one = Try(proposal=proposal, outcome=first.outcome, first_ms=first.ms, error=first.error)
        if first.outcome == "ran":
            one = self._with_pairs(one, 1, best)
        return self._save(
            evidence.changed(
                tries=(*evidence.tries, one), choices=_merged(evidence.choices, first.choices)
            )
        )

    def _with_pairs(self, one: Try, count: int, best: float) -> Try:
        pairs = list(one.pairs)
        for _ in range(count):
            limit = best * _SLACK + _SLACK_MS
            plain, tuned = self._pair(one.proposal.answers, limit)
            if tuned.outcome == "failed":
                return one.model_copy(update={"outcome": "failed", "error": tuned.error})
            if tuned.outcome == "timed_out" and not pairs:
                return one.model_copy(update={"outcome": "timed_out"})
            if plain.outcome == "ran":
                pairs.append((plain.ms, tuned.ms))
        return one.model_copy(update={"pairs": tuple(pairs)})

    def _pair(
        self, answers: Sequence[Decided], limit: float | None, held_out: bool = False
    ) -> tuple[Ran, Ran]:
        if self._drawn.random() < 0.5:
            plain = self._runner.timed((), None, held_out)
            return plain, self._runner.timed(answers, limit, held_out)
        tuned = self._runner.timed(answers, limit, held_out)
        return self._runner.timed((), None, held_out), tuned

    def _chosen(self, evidence: Evidence) -> Evidence:
        """Halves successively: the best of the tries run again, and the best of these wins."""
        tries = list(evidence.tries)
        places = sorted(range(len(tries)), key=lambda place: tries[place].log_ratio)
        finalists = [p for p in places[:_FINALISTS] if tries[p].log_ratio < 0]
        best = _best_ms(evidence)
        if len(finalists) > 1:
            for place in finalists:
                tries[place] = self._with_pairs(tries[place], _FINAL_PAIRS, best)
        winner = min(finalists, key=lambda place: tries[place].log_ratio, default=None)
        if winner is not None and tries[winner].log_ratio > math.log1p(-self._margin):
            winner = None
        return self._save(evidence.changed(tries=tuple(tries), winner=winner))

    def _fresh(
        self, answers: Sequence[Decided], so_far: Measured | None, held_out: bool
    ) -> Iterable[Measured]:
        measured = so_far or Measured(margin=self._margin)
        if not measured.pairs:
            for _ in range(self._limits.warm_up):
                self._pair(answers, None, held_out)
        rounds = self._limits.rounds
        while (
            len(measured.pairs) < rounds
            and measured.verdict == "open"
            and measured.may_be_faster(rounds)
        ):
            typical = measured.plain_ms if measured.pairs else None
            limit = typical and typical * _FRESH_SLACK + _SLACK_MS
            plain, tuned = self._pair(answers, limit, held_out)
            if tuned.outcome == "failed" and plain.outcome == "ran":
                measured = measured.model_copy(update={"error": tuned.error})
            elif plain.outcome == "ran":
                pairs = (*measured.pairs, (plain.ms, tuned.ms))
                measured = measured.model_copy(update={"pairs": pairs})
            else:
                return
            yield measured


def _best_ms(evidence: Evidence) -> float:
    """The shortest time that the query is known to take."""
    known = [evidence.plain_ms]
    for one in evidence.tries:
        if one.outcome == "ran" and one.pairs:
            known.append(statistics.median(tuned for _, tuned in one.pairs))
    return min(known)


def _merged(known: Sequence[Choice], more: Sequence[Choice]) -> tuple[Choice, ...]:
    """The choices that are known, and those that a plan of a try came to."""
    keys = {choice.identity.key for choice in known}
    return (*known, *(choice for choice in more if choice.identity.key not in keys))
