"""Which answers to try next. A searcher is a function: one of one's own is an entry point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points
from itertools import product
from pkgutil import resolve_name
from typing import Protocol

from aqepilot.analysis.tune.evidence import Choice, Decided, Proposal, Try, key_of
from aqepilot.errors import AqePilotError, Problem, nearest

GROUP = "aqepilot_searchers"
# A gain that is worth building on.
_GAIN = 0.05
# How much a point is worth a try before any is made: orders and strategies change most.
_PRIOR = {"join_reorder": 0.30, "join_selection": 0.25, "shuffle_partitions": 0.20}
_CURIOSITY = 0.3
_MOST_COMBINATIONS = 1000


class Searcher(Protocol):
    """Says what to try next; all that it knows is what it is given."""

    def __call__(
        self,
        choices: Sequence[Choice],
        starts: Sequence[Proposal],
        tries: Sequence[Try],
        limit: int,
    ) -> Proposal | None:
        """Returns the next proposal, or null where there is nothing left to try.

        Args:
            choices: The decisions of the query, and what may be answered. A try may add some: in
                another order there are other joins.
            starts: Answers of recipes and of history.
            tries: What was run, in its order.
            limit: How many tries there are at most.
        """


def bandit(
    choices: Sequence[Choice], starts: Sequence[Proposal], tries: Sequence[Try], limit: int
) -> Proposal | None:
    """Tries the starts; then all combinations, if they are few; else changes the best so far.

    What it changes is one decision, at the point that has paid most or was tried least (UCB1).
    """
    done = {one.proposal.key for one in tries}
    for start in starts:
        if start.key not in done:
            return start
    if _count(choices) <= limit:
        return exhaustive(choices, (), tries, limit)
    best = min(tries, key=lambda one: one.log_ratio, default=None)
    base = best.proposal.answers if best and best.log_ratio < -_GAIN else ()
    by_point: dict[str, Proposal] = {}
    for proposal in _changes(choices, base):
        if proposal.came_from not in by_point and proposal.key not in done:
            by_point[proposal.came_from] = proposal
    if not by_point:
        return None
    return by_point[max(by_point, key=lambda point: _worth(point, tries))]


def exhaustive(
    choices: Sequence[Choice], starts: Sequence[Proposal], tries: Sequence[Try], limit: int
) -> Proposal | None:
    """Tries all combinations of all answers, those that change least first."""
    done = {one.proposal.key for one in tries}
    options = [[None, *choice.answers] for choice in choices]
    if _count(choices) > _MOST_COMBINATIONS:
        message = f"there are more than {_MOST_COMBINATIONS} combinations: search otherwise."
        raise AqePilotError(Problem("SEARCH_TOO_LARGE", message))
    combinations = [
        tuple(c.decided(a) for c, a in zip(choices, answers, strict=True) if a is not None)
        for answers in product(*options)
    ]
    for answers in sorted(combinations, key=len):
        if answers and key_of(answers) not in done:
            return Proposal(answers=answers, came_from=answers[-1].point)
    return None


def named(name: str) -> Searcher:
    """Returns a searcher: one of ours, an entry point of `aqepilot_searchers`, or module:function.

    Raises:
        AqePilotError: There is none of that name, or it cannot be loaded.
    """
    if name in _OURS:
        return _OURS[name]
    others = {point.name: point for point in entry_points(group=GROUP)}
    if name in others or ":" in name.rstrip(":"):
        try:
            loaded: Searcher = others[name].load() if name in others else resolve_name(name)
        except Exception as error:
            message = f"the searcher {name!r} cannot be loaded: {error}."
            raise AqePilotError(Problem("SEARCHER_INVALID", message)) from error
        return loaded
    names = sorted({*_OURS, *others})
    message = f"there is no searcher {name!r}; there are {', '.join(names)}, and module:function."
    raise AqePilotError(Problem("SEARCHER_UNKNOWN", message, suggestions=nearest(name, names)))


_OURS: dict[str, Searcher] = {"bandit": bandit, "exhaustive": exhaustive}


def _count(choices: Sequence[Choice]) -> int:
    return math.prod(1 + len(choice.answers) for choice in choices)


def _changes(choices: Sequence[Choice], base: Sequence[Decided]) -> Iterator[Proposal]:
    """One decision changed, the largest first; the first answers of all before the second."""
    known = {one.identity.key: one for one in base}
    ordered = sorted(choices, key=lambda choice: -choice.size_bytes)
    for place in range(max((len(choice.answers) for choice in ordered), default=0)):
        for choice in ordered:
            if place < len(choice.answers):
                changed = {**known, choice.identity.key: choice.decided(choice.answers[place])}
                yield Proposal(answers=tuple(changed.values()), came_from=choice.point)


def _worth(point: str, tries: Sequence[Try]) -> float:
    own = [one for one in tries if one.proposal.came_from == point]
    gains = [max(0.0, min(1.0, -one.log_ratio)) for one in own]
    mean = sum(gains) / len(gains) if gains else 0.0
    unknown = math.sqrt(math.log(len(tries) + 2) / (len(own) + 1))
    prior = _PRIOR.get(point, 0.15) / (len(own) + 1)
    return mean + prior + _CURIOSITY * unknown
