"""What a replay came to, for the command line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aqepilot.analysis.log import Log
from aqepilot.analysis.replay import UNKNOWN
from aqepilot.analysis.replay.conditions import Checked, checked
from aqepilot.session_policies import PolicyLike

_MOST = 50
HEAD = (
    *("Point", "Fingerprint", "Before", "After", "Asked", "Not known", "Queries", "Task time"),
    "Facts",
)


def replayed(
    log: Log,
    policies: Sequence[PolicyLike],
    against: Sequence[PolicyLike],
    conditions: Sequence[str],
) -> dict[str, Any]:
    """Replays policies; returns what came of it as JSON has it.

    Raises:
        PolicyError: A policy is wrong.
        AqePilotError: A condition is wrong.
    """
    replay = log.replay(*policies, against=against)
    asked = replay.asked.cache()
    checks = [(condition, checked(asked, condition)) for condition in conditions]
    total, changed, *unknown = asked.selectExpr(
        "count(*)",
        "count_if(changed AND unknown IS NULL)",
        *(f"count_if(unknown = '{code}')" for code in UNKNOWN),
    ).collect()[0]
    logs = log.applications.selectExpr(
        "count(*)", "sum(unreadable_lines)", "count(problem)", "min(problem)"
    ).collect()[0]
    changes = replay.changes.limit(_MOST).collect()
    doubtful = f", and {sum(unknown)} are not known" if sum(unknown) else ""
    result = {
        "summary": f"{logs[0]} logs: policies were asked {total} times; {changed} answers would be "
        f"others{doubtful}.",
        "asked": total,
        "changed": changed,
        "unknown": {code: n for code, n in zip(UNKNOWN, unknown, strict=True) if n},
        "unreadable_lines": logs[1],
        "unreadable_logs": logs[2],
        "problem": logs[3],
        "changes": [row.asDict() for row in changes],
        "fail_if": [_checked(condition, replay) for condition, replay in checks],
    }
    asked.unpersist()
    return result


def rows(changes: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yields changes as lines of a table with `HEAD`."""
    for change in changes:
        counts = (str(change[name]) for name in ("asked", "unknown", "queries"))
        yield (
            change["point"],
            (change["fingerprint"] or "not known")[:12],
            change["before"] or "null",
            change["after"] or "null",
            *counts,
            f"{change['task_ms'] / 1000:,.0f} s",
            ", ".join(f"{path}: {text or 'null'}" for path, text in change["facts"].items()),
        )


def lines(result: Mapping[str, Any]) -> Iterator[str]:
    """Yields what else a person has to know, as sentences."""
    for code, count in result["unknown"].items():
        yield f"{count} answers are not to be relied on: {UNKNOWN[code]} ({code})."
    if result["unreadable_lines"]:
        yield f"{result['unreadable_lines']} lines of the logs are no whole events: left out."
    if result["unreadable_logs"]:
        logs = result["unreadable_logs"]
        yield f"{logs} logs could not be read to their end: {result['problem']}"
    for check in result["fail_if"]:
        if check["rows"]:
            example = check["example"]
            yield (
                f"{check['rows']} times: {check['condition']}; first at {example['point']}, "
                f"{example['subject']}, query {example['execution_id']} of {example['log']}."
            )
        if not check["known"]:
            yield (
                f"{check['condition']} could be checked on nothing: the logs have no answer that "
                "is to be relied on, at a point with these facts."
            )
        if check["doubtful"]:
            yield (
                f"{check['doubtful']} answers more meet {check['condition']}, and are not to be "
                "relied on."
            )


def fails(result: Mapping[str, Any]) -> bool:
    """Whether a condition forbids something, or could be checked on nothing."""
    return any(check["rows"] or not check["known"] for check in result["fail_if"])


def _checked(condition: str, outcome: Checked) -> dict[str, Any]:
    count = outcome.rows.count()
    wanted = ("log", "execution_id", "point", "subject", "before", "after")
    first = outcome.rows.orderBy("log", "decision_id").select(*wanted).first() if count else None
    return {
        "condition": condition,
        "rows": count,
        "known": outcome.known,
        "doubtful": outcome.doubtful,
        "example": first and first.asDict(),
    }
