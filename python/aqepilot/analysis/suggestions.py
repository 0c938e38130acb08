"""Findings in words, each with a policy to try and what a replay says of it, or with a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from aqepilot import texts
from aqepilot.analysis import findings
from aqepilot.analysis.findings import Found, evidence
from aqepilot.analysis.findings.policies import policy
from aqepilot.errors import NotLiveError
from aqepilot.policies import Policy

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

# What is about less of all task time than that is not worth a policy.
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


def suggest(log: Frames, top: int = 10) -> list[Suggestion]:
    """Names what the queries of a log would gain most from. See `Log.suggest`."""
    (whole,) = log.queries.selectExpr("coalesce(sum(slot_ms), 0)").first() or (0,)
    found = [one for one in findings.found(log) if one.stake_ms > _LEAST_SHARE * whole]
    kinds = list(findings.KINDS)
    found.sort(key=lambda one: (-one.stake_ms, kinds.index(one.kind), one.key))
    return list(islice(_suggestions(log, found), top))


def _suggestions(log: Frames, found: Iterable[Found]) -> Iterator[Suggestion]:
    """Leaves out findings whose policy would change nothing, by the facts that the log has."""
    for one in found:
        point, text = policy(one) or (None, None)
        change = evidence.change(one)
        asked = changed = None
        if point and text:
            asked, changed = _replayed(log, one, point, text)
        if change or (text and (changed or not asked)):
            yield Suggestion(
                *(one.kind, one.fingerprint, one.description, one.queries, one.stake_ms),
                evidence.evidence(one),
                point,
                text,
                asked,
                changed,
                change,
            )


def _replayed(
    log: Frames, found: Found, point: str, text: str
) -> tuple[int, int] | tuple[None, None]:
    """How often the policy is asked with the log's facts, and how often that changes something."""
    from pyspark.sql import functions

    from aqepilot.analysis.replay import replay

    if found.fingerprint is None:
        return None, None
    own = log.decisions.where(
        (functions.col("fingerprint") == found.fingerprint) & (functions.col("point") == point)
    )
    try:
        asked = replay(log.replace(decisions=own), Policy.from_toml(text)).asked
    except NotLiveError:
        return None, None
    counts = asked.where("facts IS NOT NULL").selectExpr("count(*)", "count_if(changed)").collect()
    return tuple(counts[0]) if counts[0][0] else (None, None)


def sentences(of: Suggestion) -> Iterable[str]:
    """Yields a suggestion as sentences, without its policy."""
    yield of.evidence
    runs = texts.plural(of.queries, "run")
    yield f"At stake: {texts.duration(of.stake_ms)} of cores' time in {runs}, at the most."
    if of.policy is None:
        yield f"No policy helps that. {of.change}"
    elif of.asked is None:
        yield (
            f"The log has no facts of {of.point} for it: run the policy in shadow, as it is here, "
            "and replay it then."
        )
    else:
        yield (
            f"Replayed over the log's facts, it would have answered otherwise {of.changed} of "
            f"{of.asked} times."
        )
