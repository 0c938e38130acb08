"""The control file: one small JSON by which policies are switched off in all applications at once.

An application that is submitted with ``spark.aqepilot.control`` reads it again and again; see
`docs/run/control.md`. Here it is written, by any number of people at the same time.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from getpass import getuser
from pathlib import Path
from socket import gethostname
from typing import Literal, TypeVar
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from pydantic import ValidationError

from aqepilot.control.rules import (
    MOST_HISTORY,
    SELECTORS,
    ControlFile,
    Rule,
    Write,
    selected,
    shown,
)
from aqepilot.control.store import LocalFile, ReplacedMeanwhileError, Store
from aqepilot.errors import AqePilotError, Problem

__all__ = ["SELECTORS", "ControlFile", "Rule", "Write", "lift", "lower", "read"]

T = TypeVar("T")
_TRIES = 10
_LOCAL = re.compile(r"file:|(?![A-Za-z][\w+.-]*:)")


def open_store(path: str, conf: Mapping[str, str]) -> Store:
    """Returns the file of this machine, or of a Hadoop file system for a URI with a scheme.

    >>> open_store("control.json", {}).__class__.__name__
    'LocalFile'
    """
    if not _LOCAL.match(path):
        from aqepilot.control.hadoop import HadoopFile

        return HadoopFile(path, conf)
    return LocalFile(Path(unquote(urlsplit(path).path) if path.startswith("file:") else path))


def read(path: str, conf: Mapping[str, str] | None = None) -> ControlFile:
    """Returns what the control file says.

    Args:
        path: The file: a path of this machine or a URI of a Hadoop file system.
        conf: Spark settings for that file system, ``spark.hadoop.*``.

    Raises:
        AqePilotError: There is no such file, it cannot be read, or it is no control file.
    """
    store = open_store(path, conf or {})
    text = store.read()
    if text is None:
        message = (
            f"{path} does not exist: `aqepilot control on --file {path}` makes one without a rule. "
            "Until then spark.aqepilot.control.unreachable holds where it is named."
        )
        raise AqePilotError(Problem("CONTROL_UNREACHABLE", message, path))
    return ControlFile.parse(text, path)


def lower(
    path: str,
    mode: Literal["off", "shadow"],
    selectors: Mapping[str, str] | None = None,
    *,
    reason: str,
    until: datetime | None = None,
    by: str | None = None,
    conf: Mapping[str, str] | None = None,
    lowers_only: bool = False,
) -> Rule:
    """Adds a rule, in the place of one with the same selectors; makes the file if there is none.

    Args:
        path: As for `read`.
        mode: The most that policies may do: ``off`` or ``shadow``.
        selectors: What it is for, by names of `SELECTORS`; all have to fit. None is everything.
        reason: Why, for those who wonder later.
        until: When it ends; null for never.
        by: Who says so; null for the user of this process at this machine.
        conf: As for `read`.
        lowers_only: Whether to refuse a rule that is above the one in whose place it comes, now or
            at any later time.

    Returns:
        The rule as it was written.

    Raises:
        AqePilotError: A selector is unknown, the rule is refused, or the file cannot be read or
            written.
    """
    own = selected(selectors or {})

    def change(file: ControlFile, write: Write) -> Rule:
        if lowers_only:
            for there in file.rules:
                if there.is_for(own) and there.is_lifted_by(mode, until, write.at):
                    raise AqePilotError(Problem("CONTROL_WOULD_RAISE", _would_raise(there), path))
        rule = Rule(
            id=write.id, mode=mode, until=until, at=write.at, by=write.by, reason=reason, **own
        )
        file.rules = [r for r in file.rules if not r.is_for(own)] + [rule]
        return rule

    write = _write(mode, own, reason, by, until)
    return _written(open_store(path, conf or {}), path, write, change)


def _would_raise(rule: Rule) -> str:
    end = f"until {rule.until.isoformat()}" if rule.until else "without an end"
    return (
        f"for {rule} there is a rule already: {rule.mode} {end}. The new one would take its place "
        "and be above it, now or later. Nothing was written: only a person lifts a rule. Give the "
        "same mode or a lower one, and no end before that."
    )


def lift(
    path: str,
    selectors: Mapping[str, str] | None = None,
    *,
    rule: str | None = None,
    everything: bool = False,
    reason: str = "",
    by: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> list[Rule]:
    """Takes rules back; makes a file without a rule if there is none.

    Args:
        path: As for `read`.
        selectors: Those of the rule, exactly. None is the rule for everything.
        rule: The rule's id instead.
        everything: All rules instead.
        reason: Why.
        by: Who says so; null for the user of this process at this machine.
        conf: As for `read`.

    Returns:
        The rules that were taken back.

    Raises:
        AqePilotError: There are rules, but not this one; or as for `lower`.
    """
    own = selected(selectors or {})

    def change(file: ControlFile, write: Write) -> list[Rule]:
        def is_meant(r: Rule) -> bool:
            return everything or (r.id == rule if rule else r.is_for(own))

        lifted = [r for r in file.rules if is_meant(r)]
        if file.rules and not lifted:
            what = f"with the id {rule}" if rule else f"for exactly {shown(own)}"
            rules = "; ".join(f"{r.id}: {r.mode} for {r}" for r in file.rules)
            message = f"there is no rule {what}. There are: {rules}."
            raise AqePilotError(Problem("CONTROL_RULE_UNKNOWN", message, path))
        file.rules = [r for r in file.rules if not is_meant(r)]
        return lifted

    write = _write("on", own, f"rule {rule}. {reason}".rstrip() if rule else reason, by, None)
    return _written(open_store(path, conf or {}), path, write, change)


def _write(
    action: Literal["off", "shadow", "on"],
    selectors: Mapping[str, str],
    reason: str,
    by: str | None,
    until: datetime | None,
) -> Write:
    try:
        return Write(
            id=uuid4().hex[:12],
            at=datetime.now(timezone.utc).replace(microsecond=0),
            by=by or f"{getuser()}@{gethostname()}",
            action=action,
            selectors=dict(selectors),
            reason=reason,
            until=until,
        )
    except ValidationError as error:
        raise AqePilotError(
            Problem("OPTION_INVALID", f"{detail['loc'][0]}: {detail['msg']}.")
            for detail in error.errors()
        ) from None


def _written(store: Store, path: str, write: Write, change: Callable[[ControlFile, Write], T]) -> T:
    """Writes a change, again if somebody else's write has replaced it.

    What is read back without the lock may be half a file, or none, while another writer is at it
    and has the change in it. Who has the lock sees it whole, and leaves a change that is there.
    """
    changed: list[T] = []

    def replaced(text: str | None) -> str:
        file = ControlFile.parse(text, path) if text is not None else ControlFile()
        if text is not None and _has(file, write):
            return text
        changed.append(change(file, write))
        file.version += 1
        file.history = [*file.history, write.at_version(file.version)][-MOST_HISTORY:]
        return file.fitting(path)

    for _ in range(_TRIES):
        with suppress(ReplacedMeanwhileError):
            store.replace(replaced)
            time.sleep(store.settles_after_s)
            if _is_seen(store, path, write):
                return changed[-1]
    message = f"other writers replaced {path} {_TRIES} times while this was written; try again."
    raise AqePilotError(Problem("CONTROL_NOT_WRITTEN", message, path))


def _is_seen(store: Store, path: str, write: Write) -> bool:
    # The next try, which has the lock, reports a file that stays unreadable.
    with suppress(AqePilotError):
        text = store.read()
        return text is not None and _has(ControlFile.parse(text, path), write)
    return False


def _has(file: ControlFile, write: Write) -> bool:
    return write.id in {w.id for w in file.history}
