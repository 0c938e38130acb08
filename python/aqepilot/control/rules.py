"""What the control file says, as it stands in the file.

The jar reads the same: `ControlFile.scala`, `ControlRule.scala`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from aqepilot import catalog
from aqepilot.errors import AqePilotError, Problem, nearest

SELECTORS: dict[str, str] = catalog.control_selectors()
# Drivers read nothing of a file that is larger: `ControlFile.MaxBytes` of the jar.
MOST_BYTES = 1 << 20
MOST_HISTORY = 1000
_MOST_REASON = 500
# Drivers end a rule ten minutes later, by their own clocks.
_LATE = timedelta(minutes=20)


def _with_time_zone(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise ValueError("a time needs its zone, e.g. 2026-12-24T18:00:00+01:00")
    return at


Time = Annotated[datetime, AfterValidator(_with_time_zone)]


class Rule(BaseModel):
    """A rule: what it lowers, to what, until when, who made it and why.

    Attributes:
        id: 12 hexadecimal digits.
        mode: The most that policies may do for which all selectors fit.
        policy: The policy's name; null for any, as with all selectors.
        point: The decision point.
        revision: The policy's revision, 12 hexadecimal digits.
        job: `query.job`.
        fingerprint: `query.fingerprint`.
        spark: Spark's version, or its beginning.
        until: When it ends; null for never.
        at: When it was written.
        by: Who wrote it.
        reason: Why.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    mode: Literal["off", "shadow"]
    policy: str | None = None
    point: str | None = None
    revision: str | None = None
    job: str | None = None
    fingerprint: str | None = None
    spark: str | None = None
    until: Time | None = None
    at: Time
    by: str
    reason: str = Field(max_length=_MOST_REASON)

    @property
    def selectors(self) -> dict[str, str]:
        """What it is for, by name."""
        return {name: value for name in SELECTORS if (value := getattr(self, name)) is not None}

    @property
    def unknown(self) -> dict[str, Any]:
        """What else it says, which a newer version has written, and may be selectors."""
        return dict(self.model_extra or {})

    def is_for(self, selectors: Mapping[str, str]) -> bool:
        """Whether it is for exactly that, as far as this version can tell."""
        return not self.unknown and self.selectors == selectors

    def is_lifted_by(
        self, mode: Literal["off", "shadow"], until: datetime | None, at: datetime
    ) -> bool:
        """Whether another rule in its place would be above it, now or later.

        Args:
            mode: The other one's.
            until: When the other one ends; null for never.
            at: Now.
        """
        if self.until is not None and self.until + _LATE <= at:
            return False
        ends_first = until is not None and (self.until is None or until < self.until)
        return ends_first or (self.mode == "off" and mode == "shadow")

    def __str__(self) -> str:
        """What it is for, for a person."""
        more = (f"{name}={value} (not known here)" for name, value in self.unknown.items())
        known = [shown(self.selectors)] if self.selectors or not self.unknown else []
        return ", ".join([*known, *more])


class Write(BaseModel):
    """One write of the file, kept in it.

    Attributes:
        id: That of the rule, if it made one.
        version: The file's version since then.
        at: When.
        by: Who.
        action: ``off``, ``shadow``, or ``on`` where rules were taken back.
        selectors: What it was for.
        reason: Why.
        until: When the rule ends; null for never.
    """

    model_config = ConfigDict(extra="allow")

    id: str
    version: int = 0
    at: Time
    by: str
    action: Literal["off", "shadow", "on"]
    selectors: dict[str, str]
    reason: str = Field(max_length=_MOST_REASON)
    until: Time | None = None

    def at_version(self, version: int) -> Write:
        """Returns the same, as the write that made this version."""
        return self.model_copy(update={"version": version})


class ControlFile(BaseModel):
    """The file: its rules, and the newest writes, the newest last."""

    model_config = ConfigDict(extra="allow")

    format: Literal[1] = 1
    version: int = 0
    rules: list[Rule] = []
    history: list[Write] = []

    @classmethod
    def parse(cls, text: str, path: str) -> ControlFile:
        """Reads the file's text.

        Raises:
            AqePilotError: It is no control file; says what is wrong and where.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            detail = error.errors()[0]
            place = ".".join(map(str, detail["loc"]))
            message = f"no control file: {detail['msg']}." + (f" At {place}." if place else "")
            raise AqePilotError(Problem("CONTROL_INVALID", message, path)) from None

    def text(self) -> str:
        """Returns what stands in the file."""
        return self.model_dump_json(indent=1, exclude_none=True) + "\n"

    def fitting(self, path: str) -> str:
        """Returns the same, without the oldest writes where it would be too large for drivers.

        Raises:
            AqePilotError: Its rules and the newest write alone are too large.
        """
        while len((text := self.text()).encode()) > MOST_BYTES:
            if len(self.history) < 2:
                now = datetime.now(timezone.utc)
                over = sum(rule.until is not None and rule.until <= now for rule in self.rules)
                message = (
                    f"with this write it would have {len(text.encode()):,} bytes, and drivers read "
                    f"a file of up to {MOST_BYTES:,}. It has {len(self.rules):,} rules, of which "
                    f"{over:,} are over: take some back with `aqepilot control on --rule ID`, or "
                    "all with `--all`. Nothing was written."
                )
                raise AqePilotError(Problem("CONTROL_TOO_LARGE", message, path))
            self.history = self.history[max(1, len(self.history) // 20) :]
        return text


def shown(selectors: Mapping[str, str]) -> str:
    """Returns selectors for a person, in their order.

    >>> shown({"point": "skew_join", "policy": "sales"}), shown({})
    ('policy=sales, point=skew_join', 'everything')
    """
    return ", ".join(f"{n}={selectors[n]}" for n in SELECTORS if n in selectors) or "everything"


def selected(selectors: Mapping[str, str]) -> dict[str, str]:
    """Returns the selectors in their order.

    Raises:
        AqePilotError: One is not known, or is empty; a point or revision that cannot be one.
    """
    problems = []
    for name, value in selectors.items():
        if name not in SELECTORS:
            message = f"{name!r} is no selector; there are: {', '.join(SELECTORS)}."
            problems.append(Problem("SETTING_UNKNOWN", message, None, nearest(name, SELECTORS)))
        elif not value:
            problems.append(Problem("SETTING_INVALID", f"{name} is empty: leave it out for any."))
        elif name == "point" and value not in catalog.point_names():
            message = f"no decision point is named {value!r}."
            near = nearest(value, catalog.point_names())
            problems.append(Problem("POLICY_POINT_UNKNOWN", message, None, near))
    if problems:
        raise AqePilotError(problems)
    return {name: selectors[name] for name in SELECTORS if name in selectors}
