"""What `aqepilot control` is asked and tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

from rich.table import Table

from aqepilot import texts
from aqepilot.control.rules import ControlFile, Rule, shown
from aqepilot.errors import AqePilotError, Problem

_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


def check_options(
    action: str,
    selectors: Mapping[str, str],
    rule: str | None,
    everything: bool,
    reason: str,
    lasts: str | None,
    until: str | None,
) -> None:
    """Refuses options that mean nothing together.

    Raises:
        AqePilotError: Says which, and what to do.
    """
    problems = []
    if action in ("off", "shadow") and not reason.strip():
        problems.append("--reason is missing: say why, for those who wonder later")
    if action != "on" and (rule or everything):
        problems.append("--rule and --all belong to `aqepilot control on`")
    if sum((bool(selectors), bool(rule), everything)) > 1:
        problems.append("give one of: selectors, --rule, --all")
    if action in ("status", "log") and (selectors or reason):
        problems.append(f"{action} takes no selectors and no --reason")
    if (lasts or until) and action not in ("off", "shadow"):
        problems.append("--for and --until belong to off and shadow")
    if lasts and until:
        problems.append("give --for or --until, not both")
    if problems:
        raise AqePilotError(Problem("OPTION_INVALID", f"{text}.") for text in problems)


def end(lasts: str | None, until: str | None) -> datetime | None:
    """Returns when a rule ends; null for never.

    Raises:
        AqePilotError: It cannot be read, has no time zone, or is over.
    """
    now = datetime.now(timezone.utc).replace(microsecond=0)
    if lasts:
        parts = re.fullmatch(r"(\d{1,6})([mhd])", lasts.strip())
        if not parts or not int(parts[1]):
            raise _no_time("--for", lasts, "a whole number and m, h or d: 90m, 2h, 7d")
        return now + timedelta(**{_UNITS[parts[2]]: int(parts[1])})
    if not until:
        return None
    try:
        at = datetime.fromisoformat(until.strip().replace("Z", "+00:00"))
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise _no_time("--until", until, "a time with its zone: 2026-12-24T18:00:00+01:00")
    if at <= now:
        raise _no_time("--until", until, "a time to come")
    return at


def _no_time(option: str, text: str, allowed: str) -> AqePilotError:
    return AqePilotError(Problem("OPTION_INVALID", f"{option} {text!r} is not {allowed}."))


def settings(words: Iterable[str]) -> dict[str, str]:
    """Returns the settings of ``key=value`` words.

    Raises:
        AqePilotError: One has no ``=``.
    """
    pairs = [word.partition("=") for word in words]
    wrong = [key for key, equals, _ in pairs if not (key and equals)]
    if wrong:
        raise AqePilotError(
            Problem("OPTION_INVALID", f"--conf {word!r} is not KEY=VALUE.") for word in wrong
        )
    return {key: value for key, _, value in pairs}


def table(file: ControlFile, action: str) -> Table:
    """Returns the rules (``status``) or the writes (``log``, the newest first) as a table."""
    now = datetime.now(timezone.utc)
    if action == "status":
        rows = Table(
            title=f"Version {file.version}: {texts.plural(len(file.rules), 'rule')}",
            title_justify="left",
        )
        for head in ("Rule", "Mode", "For", "Until", "By", "Since", "Reason"):
            rows.add_column(head)
        for r in file.rules:
            rows.add_row(r.id, r.mode, str(r), _until(r.until, now), r.by, _at(r.at), r.reason)
        return rows
    rows = Table(title=f"The newest {len(file.history)} writes", title_justify="left")
    for head in ("Version", "When", "Who", "What", "For", "Until", "Why"):
        rows.add_column(head)
    for w in reversed(file.history):
        what = shown(w.selectors) if w.selectors or w.action != "on" else ""
        until = _until(w.until, now) if w.action != "on" else ""
        rows.add_row(str(w.version), _at(w.at), w.by, w.action, what, until, w.reason)
    return rows


def done(action: str, rules: Sequence[Rule], path: str) -> str:
    """Returns what has happened, in a sentence."""
    if action == "on" and not rules:
        return f"{path} has no rule."
    what = "; ".join(f"{r} ({r.id})" for r in rules)
    if action == "on":
        return f"Taken back: {what}. Applications see it when they read {path} again."
    (rule,) = rules
    until = f" until {_at(rule.until)}" if rule.until else ""
    return (
        f"{rule.mode}{until}: {what}. Applications that read {path} see it when they read it again "
        "(spark.aqepilot.control.refresh)."
    )


def _at(at: datetime) -> str:
    return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"


def _until(until: datetime | None, now: datetime) -> str:
    if until is None:
        return ""
    return _at(until) if until > now else f"over since {_at(until)}"
