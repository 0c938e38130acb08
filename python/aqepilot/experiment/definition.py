"""An experiment as a file: TOML with a table ``[experiment]``, which becomes settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from aqepilot import toml
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.experiment.assignment import PLAIN, parse_arms
from aqepilot.policies import PREFIX, Policy
from aqepilot.toml import Places

KEY = f"{PREFIX}experiment."
TABLE = "experiment"
Unit = Literal["job_run", "query_run", "session"]
Metric = Literal["task_ms", "wall_ms", "cpu_ms", "core_ms", "shuffle_bytes", "spill_bytes"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_GUARDRAIL = re.compile(
    r"failed_queries\s*:\s*[1-9]\d{0,5}|"
    r"driver_time\s*:\s*(?=[\d.]*[1-9])\d{1,6}(\.\d{1,2})?"
)
# Text and comments of an expression, and what of a query is not known when its application starts.
_NO_CODE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)
_OF_QUERIES = re.compile(
    r"\bquery\s*\.\s*`?(execution_id|fingerprint|description|tags)\b", re.IGNORECASE
)


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: letters, digits, _, . and -, 100 at most.")
    return name


def _arms(value: Any) -> Any:
    """A table of weights by arm, or the text of the setting."""
    if isinstance(value, Mapping):
        value = ",".join(f"{arm}:{weight}" for arm, weight in value.items())
    if isinstance(value, str):
        try:
            parse_arms(value)
        except AqePilotError as error:
            raise ValueError("; ".join(p.message.rstrip(".") for p in error.problems)) from None
    return value


def _time(value: Any) -> Any:
    """A day begins at midnight UTC; a time without a zone is refused."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            message = f"{value!r} is not a time such as 2026-12-01T06:00:00Z, nor a day."
            raise ValueError(message) from None
    if isinstance(value, datetime):
        if value.tzinfo is None and (value.hour or value.minute or value.second):
            raise ValueError(f"{value.isoformat()} has no zone: end it with Z for UTC.")
        return value.replace(tzinfo=value.tzinfo or timezone.utc)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=timezone.utc)
    return value


def _guardrails(text: str) -> str:
    parts = [part.strip() for part in text.split(",")]
    wrong = [part for part in parts if not _GUARDRAIL.fullmatch(part)]
    if text.strip() != "none" and wrong:
        raise ValueError(
            f"{wrong[0]!r} is no guard rail: failed_queries:<number>, driver_time:<percent>, or "
            "none alone."
        )
    return text


class Definition(BaseModel):
    r"""What is submitted of an experiment. Docs: `docs/run/experiments.md`.

    Args:
        name: Letters, digits, ``_``, ``.`` and ``-``.
        arms: Two or three arms with their percents, the control first: as text
            (``sales:90,sales_v2:10``), or weights by arm.
        unit: ``job_run``, ``query_run`` or ``session``; null means ``job_run``.
        when: A boolean SQL expression over ``query.*``; null means all.
        salt: Draws anew; null for none.
        start: From when on; null for no such limit.
        end: Until when; null for no such limit.
        metric: What decides; null means ``task_ms``.
        guardrails: What ends an arm; null means ``failed_queries:1,driver_time:20``.

    >>> of = Definition.from_toml('[experiment]\nname = "x"\narms = {spark = 90, sales = 10}')
    >>> of.to_conf()["spark.aqepilot.experiment.arms"]
    'spark:90,sales:10'
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[StrictStr, AfterValidator(_name)]
    arms: Annotated[StrictStr, BeforeValidator(_arms)]
    unit: Unit | None = None
    when: StrictStr | None = None
    salt: StrictStr | None = None
    start: Annotated[datetime | None, BeforeValidator(_time)] = None
    end: Annotated[datetime | None, BeforeValidator(_time)] = None
    metric: Metric | None = None
    guardrails: Annotated[StrictStr, AfterValidator(_guardrails)] | None = None

    @field_validator("when")
    @classmethod
    def _is_looked_at(cls, when: str | None, info: ValidationInfo) -> str | None:
        if when is None:
            return when
        if not when.strip():
            raise ValueError("it is empty; leave it out for all.")
        match = _OF_QUERIES.search(_NO_CODE.sub(" ", when))
        unit = info.data.get("unit") or "job_run"
        if match and unit == "job_run":
            raise ValueError(
                f"query.{match[1]} is not known when an application starts, and that is when a "
                'job_run is looked at: no run would be of the experiment. With unit = "query_run" '
                "each query is looked at by itself."
            )
        return when

    @model_validator(mode="after")
    def _in_order(self) -> Definition:
        if self.start and self.end and self.end <= self.start:
            raise ValueError("end is not after start.")
        return self

    @classmethod
    def from_toml(cls, text: str, source: str = "experiment.toml") -> Definition:
        """Reads the text of a file with a table ``[experiment]``.

        Args:
            text: The file's text.
            source: Its name, for the places in error messages.

        Raises:
            AqePilotError: It is no TOML or no experiment; lists all that is wrong, with file and
                line.
        """
        data = toml.parse(text, source)
        others = [key for key in data if key != TABLE]
        if others or not isinstance(data.get(TABLE), Mapping):
            message = f"{others[0]} stands" if others else "there is nothing"
            message += f" beside a table [{TABLE}]: policies have files of their own."
            if not others:
                message = f"there is no table [{TABLE}]."
            raise AqePilotError(Problem("EXPERIMENT_INVALID", message, source))
        try:
            return cls(**data[TABLE])
        except ValidationError as error:
            raise AqePilotError(
                [_problem(e, source, Places(text, TABLE)) for e in error.errors()]
            ) from None

    @classmethod
    def from_file(cls, path: str | Path) -> Definition:
        """Reads a file with a table ``[experiment]``.

        Raises:
            AqePilotError: As for `from_toml`.
        """
        return cls.from_toml(toml.read(path, "the experiment's file"), str(path))

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of all policies of all arms."""
        names = (name for arm in parse_arms(self.arms) for name in arm.policies)
        return tuple(dict.fromkeys(names))

    def to_conf(self) -> dict[str, str]:
        """Returns the experiment as settings."""
        return {
            f"{KEY}{key}": value.isoformat() if isinstance(value, datetime) else value
            for key, value in self
            if value is not None
        }

    def of_arms(self, policies: Sequence[Policy], source: str | Path) -> list[Problem]:
        """Returns what is wrong with the policies that the arms name.

        Args:
            policies: All that there are: one that an arm names and is not among them is unknown,
                and one that is off or in shadow decides nothing in its arm.
            source: The experiment's file.
        """
        by_name = {policy.name: policy for policy in policies}
        where = place(source, "arms")
        problems = []
        for name in self.policies:
            if name not in by_name:
                message = (
                    f"an arm names the policy {name!r}, which none of the files defines: give its "
                    "file, too."
                )
                problems.append(
                    Problem("POLICY_UNKNOWN", message, where, nearest(name, [*by_name]))
                )
            elif (mode := by_name[name].mode or "enforce") != "enforce":
                message = (
                    f"an arm names the policy {name!r}, whose mode is {mode}: it would decide "
                    'nothing there. Set mode = "enforce" in its file, or leave it out of the arm; '
                    f"{PLAIN} is the arm without policies."
                )
                problems.append(Problem("EXPERIMENT_INVALID", message, where))
        return problems


def of_files(paths: Sequence[str | Path], policies: Sequence[Policy]) -> Definition | None:
    """Reads the experiment that is submitted with policies; null where there is none.

    Raises:
        AqePilotError: There are several, one is wrong, or an arm names another policy than these.
    """
    if not paths:
        return None
    if len(paths) > 1:
        message = "there are several experiments: an application has one at a time."
        raise AqePilotError(Problem("EXPERIMENT_INVALID", message, str(paths[1])))
    experiment = Definition.from_file(paths[0])
    if problems := experiment.of_arms(policies, paths[0]):
        raise AqePilotError(problems)
    return experiment


def place(path: str | Path, key: str) -> str:
    """Returns where a key of an experiment's file stands, as errors have it."""
    at = Places(toml.read(path, "the experiment's file"), TABLE).place(key)
    return f"{path}:{at.line}:{at.column}"


def is_one(path: str | Path) -> bool:
    """Whether a file has a table ``[experiment]``: then it is no policy."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return False
    return re.search(rf"^\s*\[\s*{TABLE}\s*\]", text, re.MULTILINE) is not None


def _problem(error: Any, source: str, places: Places) -> Problem:
    key = str(error["loc"][0]) if error["loc"] else TABLE
    at = places.place(key)
    where = f"{source}:{at.line}:{at.column}"
    known = tuple(Definition.model_fields)
    if error["type"] == "missing":
        return Problem("EXPERIMENT_INVALID", f'{key} is missing; add {key} = "...".', where)
    if error["type"] == "extra_forbidden":
        message = f"{key} is no key of an experiment; the keys are {', '.join(known)}."
        return Problem("EXPERIMENT_INVALID", message, where, nearest(key, known))
    if error["type"] == "literal_error":
        words = get_args(Unit if key == "unit" else Metric)
        message = f"{key} {error['input']!r} is not one of {', '.join(words)}."
        return Problem("EXPERIMENT_INVALID", message, where, nearest(str(error["input"]), words))
    message = str(error["msg"]).removeprefix("Value error, ")
    return Problem("EXPERIMENT_INVALID", f"{key}: {message}", where)
