"""What an assistant may do: check, replay and propose a policy, and lower the control file.

Nothing here raises a mode, replaces a file of a person, or runs code of a policy's.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from getpass import getuser
from pathlib import Path
from socket import gethostname
from typing import Any, Literal

from aqepilot import control
from aqepilot.assistant.reading import Reading
from aqepilot.errors import AqePilotError, PolicyError, Problem
from aqepilot.function import is_python
from aqepilot.policies import Policy

MOST_TEXT = 64 * 1024
_MOST_FILES = 100
_MOST_RULES = 100
_BY = "assistant of "


def read(text: str) -> Policy:
    """Returns the policy of a policy file's text.

    Raises:
        AqePilotError: It is too long, no policy, or one of Python functions, which would run here.
    """
    if len(text) > MOST_TEXT:
        message = (
            f"the text has {len(text):,} characters; a policy file of up to {MOST_TEXT:,} is read."
        )
        raise AqePilotError(Problem("POLICY_TEXT_INVALID", message))
    policy = Policy.from_toml(text)
    functions = [key for key, one in policy.texts().items() if is_python(one)]
    if functions:
        raise AqePilotError(
            Problem(
                "POLICY_TEXT_INVALID",
                f"{key} names a Python function, which an assistant does not run: write it in SQL, "
                "or ask a person to run `aqepilot check`.",
                policy.place(key),
            )
            for key in functions
        )
    return policy


def problems(reading: Reading, text: str) -> list[Problem]:
    """Returns all that is wrong with a policy file's text, SQL included; empty for nothing."""
    from aqepilot.session import check_texts, status

    try:
        policy = read(text)
    except AqePilotError as error:
        return list(error.problems)

    def bound(spark: Any) -> list[Problem]:
        status(spark)
        return check_texts(spark, policy)

    return reading.with_session(bound)


def replayed(reading: Reading, text: str) -> dict[str, Any]:
    """Returns what a policy would have answered, as `aqepilot replay` does."""
    from aqepilot.analysis.replay import summary

    policy = read(text)
    return reading.with_log(lambda log: summary.replayed(log, [policy], [], []), "replay", text)


def propose(reading: Reading, text: str, folder: Path) -> Path:
    """Writes a policy in shadow mode as a new file of a folder.

    Args:
        reading: Has the Spark that checks it.
        text: The policy file.
        folder: Where it goes; nothing else is written, and no file that is there is replaced.

    Returns:
        The file.

    Raises:
        AqePilotError: It is wrong, not in shadow, its name is taken, or it cannot be written.
    """
    wrong = problems(reading, text)
    if wrong:
        raise PolicyError(wrong)
    policy = read(text)
    if policy.mode != "shadow":
        mode = policy.mode or "enforce, as it names none"
        message = (
            f'a proposal is in shadow mode, and this is in {mode}: write mode = "shadow". Only a '
            "person raises it."
        )
        raise AqePilotError(Problem("MODE_INVALID", message, policy.place("mode")))
    files = sorted(folder.glob("*.toml"))
    if len(files) >= _MOST_FILES:
        message = f"there are {len(files)} files: a person has to look at them first."
        raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(folder)))
    taken = next((file for file in files if _name(file) == policy.name), None)
    path = folder / f"{policy.name}.toml"
    if taken or path.exists() or path.is_symlink():
        message = f"a policy named {policy.name!r} is there already: give this one another name."
        raise AqePilotError(Problem("POLICY_NAME_TWICE", message, str(taken or path)))
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        with os.fdopen(os.open(path, flags, 0o644), "w", encoding="utf-8") as file:
            file.write(text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        message = f"cannot write the proposal: {error.strerror}."
        raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(path))) from error
    return path


def _name(file: Path) -> str | None:
    try:
        return Policy.from_file(file).name
    except AqePilotError:
        return file.stem


def lower(
    path: str,
    mode: Literal["off", "shadow"],
    selectors: Mapping[str, str],
    reason: str,
    hours: float | None,
) -> control.Rule:
    """Adds a rule to the control file, which lowers modes and lifts none.

    Args:
        path: The control file.
        mode: The most that policies may do.
        selectors: What it is for; none is everything.
        reason: Why.
        hours: When it ends, from now; null for never.

    Raises:
        AqePilotError: It would lift another rule, now or later; there is no reason; or it cannot be
            written.
    """
    if mode not in ("off", "shadow"):
        message = f"mode {mode!r} is none that lowers: off or shadow. Only a person lifts a rule."
        raise AqePilotError(Problem("MODE_INVALID", message))
    if not reason.strip():
        message = "say why: those who wonder later read it in the file."
        raise AqePilotError(Problem("OPTION_INVALID", message))
    if hours is not None and not 0 < hours <= 24 * 366:
        raise AqePilotError(Problem("OPTION_INVALID", "hours are above 0 and at most a year."))
    if len(_own(path)) >= _MOST_RULES:
        message = (
            f"assistants wrote {_MOST_RULES} rules already: a person has to look at them first."
        )
        raise AqePilotError(Problem("CONTROL_TOO_LARGE", message, path))
    until = datetime.now(timezone.utc) + timedelta(hours=hours) if hours is not None else None
    by = f"{_BY}{getuser()}@{gethostname()}"
    return control.lower(
        path, mode, selectors, reason=reason[:500], until=until, by=by, lowers_only=True
    )


def _own(path: str) -> list[control.Rule]:
    """The rules that assistants wrote; none where there is no file yet."""
    try:
        return [rule for rule in control.read(path).rules if rule.by.startswith(_BY)]
    except AqePilotError as error:
        if {problem.code for problem in error.problems} == {"CONTROL_UNREACHABLE"}:
            return []
        raise
