"""A policy: text per decision point, with a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PrivateAttr,
    StrictStr,
    ValidationError,
    model_validator,
)

from aqepilot import catalog, toml
from aqepilot.errors import PolicyError, Problem, nearest
from aqepilot.toml import Places

PREFIX = "spark.aqepilot."
Mode = Literal["off", "shadow", "enforce"]
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def _check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"{name!r} is no policy name: a lower-case letter, then lower-case letters, digits "
            "and underscores (it becomes part of setting keys)."
        )
    return name


def when_query(fingerprints: Sequence[str]) -> str:
    """Returns the `when` of a policy for the queries of these fingerprints alone.

    >>> when_query(["ab"]), when_query(["ab", "cd"])
    ("query.fingerprint = 'ab'", "query.fingerprint IN ('ab', 'cd')")
    """
    listed = ", ".join(map(sql_text, fingerprints))
    is_one = len(fingerprints) == 1
    return f"query.fingerprint {f'= {listed}' if is_one else f'IN ({listed})'}"


def sql_text(value: str) -> str:
    r"""Returns a text as SQL writes it.

    >>> print(sql_text("it's"))
    'it\'s'
    """
    quoted = value.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\000")
    return f"'{quoted}'"


def _check_sql(text: str) -> str:
    if not text.strip():
        raise ValueError("the SQL text is empty; leave the key out to have no say here.")
    if "\0" in text:
        raise ValueError("the SQL text has a NUL character, which no setting can carry.")
    return text.strip()


def _check_day(value: object) -> object:
    """TOML has days of its own, which know no time."""
    if isinstance(value, datetime) or not isinstance(value, (date, str)):
        raise ValueError(f"{value!r} is no day; write expires = 2027-01-31.")
    return value


_Sql = Annotated[StrictStr, AfterValidator(_check_sql)]
_Day = Annotated[date, BeforeValidator(_check_day)]
# What a policy has beside its texts; part of the setting keys.
PARTS = ("when", "mode", "expires")


class Policy(BaseModel):
    """What to answer at one or more decision points: SQL over their facts, or a Python function.

    Args:
        name: Lower-case letters, digits and underscores. Part of the setting keys; names what
            decided in the record.
        mode: ``off``, ``shadow`` (ask and record only) or ``enforce``; null means ``enforce``,
            under the session's ``spark.aqepilot.mode``.
        when: A boolean SQL expression over ``query.*``: the policy is asked only where it is true.
            Null means everywhere.
        expires: The first day, in UTC, on which the policy is not asked any more; a date, or text
            like ``2027-01-31``. Null means never.
        points: Text by decision point: SQL, or ``python:<module>:<function>``; the same as
            keywords, one per point. Blanks at a text's ends are dropped; comments and line breaks
            are kept.

    Raises:
        PolicyError: Something is wrong; lists all that is, not only the first.

    >>> sales = Policy(name="sales", dynamic_join_selection="'SHUFFLE_HASH'")
    >>> sales.to_conf()["spark.aqepilot.policy.sales.dynamic_join_selection"]
    "'SHUFFLE_HASH'"
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[StrictStr, AfterValidator(_check_name)]
    mode: Mode | None = None
    when: _Sql | None = None
    expires: _Day | None = None
    points: dict[str, _Sql] = {}
    _places: Places | None = PrivateAttr(default=None)
    _source: str | None = PrivateAttr(default=None)
    _skipped: dict[str, int] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        *,
        name: str,
        mode: Mode | None = None,
        when: str | None = None,
        expires: date | str | None = None,
        points: Mapping[str, str] | None = None,
        **point_texts: str,
    ) -> None:
        parts = {"mode": mode, "when": when, "expires": expires}
        values = {"name": name, **parts, **dict(points or {}), **point_texts}
        _build(self, {key: value for key, value in values.items() if value is not None})

    @model_validator(mode="before")
    @classmethod
    def _gather_points(cls, data: dict[str, Any]) -> dict[str, Any]:
        known = catalog.point_names()
        points = {key: value for key, value in data.items() if key in known}
        return {k: v for k, v in data.items() if k not in known} | {"points": points}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Policy:
        """Makes a policy from a mapping with a policy file's keys.

        Raises:
            PolicyError: Something is wrong; lists all that is.

        >>> Policy.from_dict({"name": "p", "dynamic_join_selection": "null"}).name
        'p'
        """
        return _build(cls.__new__(cls), dict(data))

    @classmethod
    def from_file(cls, path: str | Path) -> Policy:
        """Reads a policy file: TOML with name, mode, when, expires and a key per decision point.

        Args:
            path: The file, UTF-8.

        Raises:
            PolicyError: The file cannot be read, is no TOML or no policy; lists all that is wrong,
                each with file, line and column.
        """
        text = toml.read(path, "the policy file", PolicyError)
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, source: str = "policy.toml") -> Policy:
        """Makes a policy from the text of a policy file.

        Args:
            text: The file's text.
            source: Its name, for the places in error messages.

        Raises:
            PolicyError: It is no TOML or no policy; lists all that is wrong.
        """
        hint = 'put SQL text between three quotes: dynamic_join_selection = """...""".'
        data = toml.parse(text, source, PolicyError, hint)
        places = Places(text)
        policy = _build(cls.__new__(cls), data, source, places)
        policy._places, policy._source = places, source
        policy._skipped = {
            key: len(value) - len(value.lstrip())
            for key, value in data.items()
            if isinstance(value, str)
        }
        return policy

    def __eq__(self, other: object) -> bool:
        """Equal in name, mode, when, expires and texts, wherever they were read."""
        return isinstance(other, Policy) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        """Goes with equality."""
        return hash((self.name, self.mode, self.when, self.expires, *self.points.items()))

    def to_conf(self) -> dict[str, str]:
        """Returns the policy as settings, without the one that lists policies."""
        prefix = f"{PREFIX}policy.{self.name}."
        expires = self.expires.isoformat() if self.expires else None
        extras = {"when": self.when, "mode": self.mode, "expires": expires}
        return {f"{prefix}{point}": text for point, text in self.points.items()} | {
            f"{prefix}{key}": value for key, value in extras.items() if value is not None
        }

    def to_toml(self, comment: str = "") -> str:
        """Returns the policy as the text of a policy file.

        Args:
            comment: Lines at its top, without the ``#``.

        >>> print(Policy(name="p", mode="shadow", skew_join="null").to_toml("Ours."))
        # Ours.
        name = "p"
        mode = "shadow"
        <BLANKLINE>
        skew_join = '''
        null
        '''
        <BLANKLINE>
        """
        plain = (
            "".join(c if c.isprintable() else " " for c in line) for line in comment.splitlines()
        )
        lines = [f"# {line}".rstrip() for line in plain]
        lines += [f"name = {toml.quoted(self.name)}"]
        lines += [f"mode = {toml.quoted(self.mode)}"] if self.mode else []
        lines += [f"expires = {self.expires.isoformat()}"] if self.expires else []
        lines += [f"when = {toml.quoted(self.when)}"] if self.when else []
        for point, text in self.points.items():
            lines += ["", toml.assigned(point, text)]
        return "\n".join(lines) + "\n"

    def revision(self, point: str) -> str:
        """Returns the revision that decisions at a point carry: a hash of its text and `when`.

        Raises:
            KeyError: The policy has no text for this point.

        >>> Policy(name="p", dynamic_join_selection="null").revision("dynamic_join_selection")
        '97cccb1b1197'
        """
        text = f"{self.points[point]}\0{self.when or ''}"
        return sha256(text.encode()).hexdigest()[:12]

    def texts(self) -> dict[str, str]:
        """Returns what has to bind: the text of each point, and of `when`."""
        return self.points | ({"when": self.when} if self.when is not None else {})

    def place(self, key: str, line: int | None = None, column: int | None = None) -> str:
        """Returns where a line and column of a text stand: ``file:line:column``, else the key.

        Args:
            key: ``when`` or a decision point.
            line: Line within the text, from 1; null for the key itself.
            column: Column in that line, from 1; null for its start.
        """
        if self._places is None or self._source is None:
            return f"{self.name}.{key}" + (f":{line}:{column or 1}" if line else "")
        char = None
        if line is not None:
            before = self.texts()[key].split("\n")[: line - 1]
            start = sum(len(text) + 1 for text in before)
            char = self._skipped.get(key, 0) + start + (column or 1) - 1
        at = self._places.place(key, char)
        return f"{self._source}:{at.line}:{at.column}"


def _build(
    policy: Policy, data: dict[str, Any], source: str | None = None, places: Places | None = None
) -> Policy:
    problems = []
    try:
        BaseModel.__init__(policy, **data)
    except ValidationError as error:
        problems = [_problem(e, data, source, places) for e in error.errors()]
    if not set(data) & set(catalog.point_names()) and not any(
        p.code == "POLICY_KEY_UNKNOWN" and p.suggestions for p in problems
    ):
        known = ", ".join(catalog.point_names())
        why = f"the policy has no text at any decision point; there are: {known}."
        problems.append(Problem("POLICY_EMPTY", why, source or data.get("name")))
    if problems:
        raise PolicyError(problems)
    return policy


def _problem(
    error: Any, data: Mapping[str, Any], source: str | None, places: Places | None
) -> Problem:
    key = str(error["loc"][-1] if error["loc"] else "policy")
    known = ("name", *PARTS, *catalog.point_names())
    at = places.place(key) if places else None
    where = f"{source}:{at.line}:{at.column}" if at else None
    if error["type"] == "missing":
        return Problem("POLICY_KEY_MISSING", f'{key} is missing; add {key} = "...".', where)
    if error["type"] == "extra_forbidden":
        message = f"{key} is no key of a policy; the keys are {', '.join(known)}."
        return Problem("POLICY_KEY_UNKNOWN", message, where, nearest(key, known))
    if key == "mode":
        message = f"mode {data['mode']!r} is not one of off, shadow, enforce."
        near = nearest(str(data["mode"]), ("off", "shadow", "enforce"))
        return Problem("MODE_INVALID", message, where, near)
    if error["type"] == "string_type":
        kind = type(error["input"]).__name__
        message = f"{key} has to be text, not {kind}."
        if callable(error["input"]):
            message += f" A function goes to aqepilot.use(spark, {key}=...)."
        return Problem("POLICY_TEXT_INVALID", message, where)
    message = str(error["msg"]).removeprefix("Value error, ")
    return Problem("POLICY_TEXT_INVALID", f"{key}: {message}", where)


def as_policies(policy_likes: Iterable[Policy | Mapping[str, Any] | str | Path]) -> list[Policy]:
    """Reads what a caller gave as policies: policies, mappings or paths of policy files.

    Raises:
        PolicyError: One is wrong, or two have the same name; lists all that is wrong in all.
    """
    policies: list[Policy] = []
    problems: list[Problem] = []
    for item in policy_likes:
        try:
            if isinstance(item, Policy):
                policies.append(item)
            elif isinstance(item, Mapping):
                policies.append(Policy.from_dict(item))
            else:
                policies.append(Policy.from_file(item))
        except PolicyError as error:
            problems.extend(error.problems)
    names = [policy.name for policy in policies]
    problems.extend(
        Problem("POLICY_NAME_TWICE", f"two policies are named {name!r}; rename one.")
        for name in sorted({n for n in names if names.count(n) > 1})
    )
    if problems:
        raise PolicyError(problems)
    return policies
