"""Findings in words, each with a policy to try and the outcome of its replay, or with a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from aqepilot import texts
from aqepilot.analysis import findings
from aqepilot.analysis.findings.finding import Finding, SuggestedPolicy
from aqepilot.display import Cell, Column, Folded, Listed, Share, Table, folded, html
from aqepilot.errors import NotLiveError
from aqepilot.policies import Policy

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

# What is about less of its applications' slot time than that is not worth a policy.
_LEAST_SHARE = 0.005


class Suggestion(NamedTuple):
    """A finding with what to do about it.

    Attributes:
        kind: A key of `findings.KINDS`.
        fingerprint: The query; null where it had no decision of aqepilot's.
        description: As in Spark's UI; null when there is none.
        queries: How many runs it is about.
        stake_ms: The slot time that it is about, milliseconds: the most that could be had, and no
            promise.
        evidence: What the log shows, as sentences; figures are those of the worst run.
        point: The decision point of the policy; null where no policy helps.
        policy: A policy file, in shadow mode; null likewise.
        asked: How often a replay asked the policy; null where the log has no facts for one.
        changed: How many of these answers would change what was done; null likewise.
        change: What to change in the job; null where a policy helps.
    """

    kind: str
    fingerprint: str | None
    description: str | None
    queries: int
    stake_ms: int
    evidence: str
    point: str | None
    policy: str | None
    asked: int | None
    changed: int | None
    change: str | None = None

    def _repr_html_(self) -> str | None:
        return html(Suggestions([self])._table(1))


class Suggestions(Listed[Suggestion]):
    """Suggestions, those with most at stake first, which show themselves as a table."""

    __slots__ = ()

    def _table(self, most: int) -> Table:
        whole = max((one.stake_ms for one in self), default=0)
        return Table(
            texts.plural(len(self), "suggestion")
            if self
            else "Nothing in these logs would gain from a policy or a change that is known here.",
            _COLUMNS,
            [_row(one, whole) for one in self[:most]],
            note="What is at stake is the most that could be had, and no promise." if self else "",
        )


_COLUMNS = (
    Column("Finding"),
    Column("Query"),
    Column("At stake", is_number=True),
    Column("Runs", is_number=True, in_terminal=False),
    Column("Evidence"),
    Column("What to do"),
    Column("Policy", in_terminal=False),
)


def _row(one: Suggestion, whole: int) -> tuple[Cell | None, ...]:
    _, _, what_to_do = sentences(one)
    names = (one.fingerprint and one.fingerprint[:12], one.description)
    return (
        findings.KINDS.get(one.kind, one.kind),
        folded(" ".join(name for name in names if name)),
        Share(one.stake_ms, whole, texts.duration(one.stake_ms)),
        texts.number(one.queries),
        one.evidence,
        what_to_do,
        Folded(f"policy at {one.point}", one.policy) if one.policy else None,
    )


def suggest(log: Frames, top: int = 10) -> Suggestions:
    """Names what the queries of a log would gain most from. See `Log.suggest`."""
    worth = [
        one
        for one in findings.find(log)
        if one.runs.stake_ms > _LEAST_SHARE * one.runs.applications_ms
    ]
    kinds = list(findings.KINDS)
    worth.sort(key=lambda one: (-one.runs.stake_ms, kinds.index(one.kind), one.runs.key))
    return Suggestions(islice(_suggestions(log, worth), top))


def _suggestions(log: Frames, worth: Sequence[Finding]) -> Iterator[Suggestion]:
    """Leaves out findings whose policy would change nothing, by the facts that the log has.

    No more findings are replayed than are asked for, but for those that are replayed at once.
    """
    at_once = findings.AT_ONCE
    with ThreadPoolExecutor(at_once, "aqepilot-replays") as pool:
        for first in range(0, len(worth), at_once):
            some = pool.map(partial(_suggestion, log), worth[first : first + at_once])
            yield from filter(None, some)


def _suggestion(log: Frames, finding: Finding) -> Suggestion | None:
    runs = finding.runs
    policy, change = finding.policy(), finding.change()
    asked = changed = None
    if policy:
        asked, changed = _replayed(log, runs.fingerprint, policy, finding.needs_history)
    if not change and not (policy and (changed or not asked)):
        return None
    point, text = policy or (None, None)
    return Suggestion(
        *(finding.kind, runs.fingerprint, runs.description, runs.number, runs.stake_ms),
        evidence=finding.sentence(),
        point=point,
        policy=text,
        asked=asked,
        changed=changed,
        change=change,
    )


def _replayed(
    log: Frames, fingerprint: str | None, policy: SuggestedPolicy, needs_history: bool
) -> tuple[int, int] | tuple[None, None]:
    """How often the policy is asked with the log's facts, and how often that changes something.

    A policy that goes by history is asked with facts that have some: without, it has no answer.
    """
    from pyspark.sql import functions

    from aqepilot.analysis.replay import replay

    if fingerprint is None:
        return None, None
    own = log.decisions.where(
        (functions.col("fingerprint") == fingerprint) & (functions.col("point") == policy.point)
    )
    if needs_history:
        own = own.where(functions.col("facts").contains('history":{'))
    try:
        asked = replay(log.replace(decisions=own), Policy.from_toml(policy.text)).asked
    except NotLiveError:
        return None, None
    counts = asked.where("facts IS NOT NULL").selectExpr("count(*)", "count_if(changed)").collect()
    return tuple(counts[0]) if counts[0][0] else (None, None)


def sentences(suggestion: Suggestion) -> Iterator[str]:
    """Yields a suggestion as sentences, without its policy."""
    yield suggestion.evidence
    runs = texts.plural(suggestion.queries, "run")
    stake = texts.duration(suggestion.stake_ms)
    yield f"At stake: {stake} of cores' time in {runs}, at the most."
    if suggestion.policy is None:
        yield f"No policy helps that. {suggestion.change}"
    elif suggestion.asked is None:
        yield (
            f"The log has no facts of {suggestion.point} for it: run the policy in shadow, as it "
            "is here, and replay it then."
        )
    else:
        yield (
            f"Replayed over the log's facts, it would have answered otherwise {suggestion.changed} "
            f"of {suggestion.asked} times."
        )
