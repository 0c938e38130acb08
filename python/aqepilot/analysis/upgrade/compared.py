"""What changed in the plans of the queries that two logs have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from aqepilot.analysis.upgrade.outcomes import Outcome, Runs
from aqepilot.analysis.upgrade.times import sureness

# In the order in which they are shown.
KINDS = {
    "order": "order of joins",
    "strategy": "join strategy",
    "number": "shuffle partitions",
    "splits": "splits of skewed partitions",
    "tasks": "tasks that read a shuffle",
    "shuffle": "shuffle",
    "joins": "joins",
}
_MOST_P = 0.05


class Change(NamedTuple):
    """A part of a query's plan that is another one.

    Attributes:
        kind: A key of `KINDS`.
        subject: Its signatures.
        tables: What is read beneath.
        before: How it ran before; null where there was no such part.
        after: How it runs after; null where there is none.
        before_runs: In how many of all runs before it ran so.
        after_runs: In how many of all runs after it runs as `after` has it.
        p: Probability of so unequal shares of runs if both were alike.
    """

    kind: str
    subject: str
    tables: str
    before: str | None
    after: str | None
    before_runs: tuple[int, int]
    after_runs: tuple[int, int]
    p: float


class Pair(NamedTuple):
    """A query that both logs have.

    Attributes:
        before: Its runs before.
        after: Its runs after.
        is_same: Whether it has one fingerprint in both; else its description says that it is one.
    """

    before: Runs
    after: Runs
    is_same: bool


def pairs(before: Sequence[Runs], after: Sequence[Runs]) -> list[Pair]:
    """Pairs queries by fingerprint, and those that have no equal by a description of their own."""
    later = {one.query: one for one in after}
    paired = [Pair(one, later[one.query], True) for one in before if one.query in later]
    known = {pair.before.query for pair in paired}
    alone = [[r for r in side if r.query not in known] for side in (before, after)]
    names = [Counter(one.description or "" for one in side) for side in alone]
    others = {name: one for one in alone[1] if names[1][name := one.description or ""] == 1}
    for one in alone[0]:
        name = one.description or ""
        if name and name in others and names[0][name] == 1:
            paired.append(Pair(one, others[name], False))
    return sorted(paired, key=lambda pair: -pair.after.slot_ms * pair.after.runs)


def changes(before: Iterable[Outcome], after: Iterable[Outcome], runs: Pair) -> list[Change]:
    """Returns how the parts of one query's plan differ.

    A part differs where most of its runs went another way, and no run went that way before, or so
    unequal shares of runs are no chance.

    Args:
        before: The outcomes of the query before.
        after: Those after.
        runs: Its runs.
    """
    sides = [_by_subject(before), _by_subject(after)]
    differences = list(_changes(sides[0], sides[1], runs))
    reordered = any(change.kind == "order" for change in differences)
    if not reordered and runs.is_same:
        differences += _only_in_one(sides[0], sides[1], runs)
    order = list(KINDS)
    return sorted(differences, key=lambda one: (order.index(one.kind), one.tables, one.subject))


_Subjects = Mapping[tuple[str, str], Sequence[Outcome]]


def _by_subject(outcomes: Iterable[Outcome]) -> _Subjects:
    subjects: dict[tuple[str, str], list[Outcome]] = {}
    for one in sorted(outcomes, key=lambda one: (-one.runs, one.outcome)):
        subjects.setdefault((one.kind, one.subject), []).append(one)
    return subjects


def _changes(before: _Subjects, after: _Subjects, runs: Pair) -> Iterator[Change]:
    for (kind, subject), ways in before.items():
        others = after.get((kind, subject))
        if not others or ways[0].outcome == others[0].outcome:
            continue
        counts = [{one.outcome: one.runs for one in side} for side in (ways, others)]
        whole = [sum(side.values()) for side in counts]
        first = ways[0].outcome
        p = sureness(counts[0][first], whole[0], counts[1].get(first, 0), whole[1])
        if counts[0].keys() & counts[1].keys() and p > _MOST_P:
            continue
        yield Change(
            kind,
            subject,
            ways[0].tables or others[0].tables,
            ways[0].shown,
            others[0].shown,
            (ways[0].runs, whole[0]),
            (others[0].runs, whole[1]),
            p,
        )


def _only_in_one(before: _Subjects, after: _Subjects, runs: Pair) -> Iterator[Change]:
    """Shuffles that every run on one side plans, and none on the other.

    Which of them are read is a race: AQE drops the shuffle that has not begun. One that is new and
    one that is gone above the same tables are one, which the two Sparks name otherwise.
    """
    only = [
        {ways[0].tables for key, ways in one.items() if key[0] == "number" and key not in other}
        for one, other in ((before, after), (after, before))
    ]
    renamed = only[0] & only[1]
    for one, other, is_after in ((before, after, False), (after, before, True)):
        side, beside = (runs.after, runs.before) if is_after else (runs.before, runs.after)
        for (kind, subject), ways in one.items():
            times = sum(way.runs for way in ways)
            if kind != "number" or (kind, subject) in other or times < side.runs:
                continue
            if ways[0].tables in renamed:
                continue
            if beside.decisions == 0 or not any(k == "number" for k, _ in other):
                continue
            shown, none = (times, side.runs), (0, beside.runs)
            yield Change(
                "shuffle",
                subject,
                ways[0].tables,
                None if is_after else ways[0].shown,
                ways[0].shown if is_after else None,
                none if is_after else shown,
                shown if is_after else none,
                sureness(times, side.runs, 0, beside.runs),
            )
