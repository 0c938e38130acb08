"""What an autopilot may do, as a file: TOML with a table ``[autopilot]``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictStr,
    ValidationError,
    model_validator,
)

from aqepilot import catalog, recipes, toml
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.toml import Places

TABLE = "autopilot"
CODE = "AUTOPILOT_INVALID"
Deliver = Literal["files", "live"]
Metric = Literal["task_ms", "core_ms", "cpu_ms", "wall_ms"]


def _one_of(what: str, known: Callable[[], Sequence[str]]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in known():
            near = nearest(name, known())
            hint = f" Did you mean {near[0]}?" if near else ""
            raise ValueError(f"no {what} is named {name!r}.{hint}")
        return name

    return AfterValidator(check)


_Point = Annotated[StrictStr, _one_of("decision point", catalog.point_names)]
_Recipe = Annotated[StrictStr, _one_of("recipe", recipes.names)]


def _rising(ramp: tuple[float, ...]) -> tuple[float, ...]:
    if list(ramp) != sorted(set(ramp)):
        raise ValueError("its shares have to rise.")
    return ramp


_Share = Annotated[float, Field(ge=1, le=95)]
_Names = tuple[StrictStr, ...]


class Definition(BaseModel):
    r"""What an autopilot may do. Docs: `docs/run/autopilot.md`.

    Args:
        state: The folder of its journal: on this machine, or on a Hadoop file system.
        jobs: Which jobs, each a glob like ``daily.*``.
        logs: Event logs, or tables that `aqepilot collect` wrote.
        points: At which decision points; empty for all.
        suggestions: How many suggestions of the log it looks at in a look; 0 for none.
        recipes: Recipes that it tries on each job where their replay changes decisions.
        policies: Folders of policy files that it tries likewise.
        deliver: ``files`` changes nothing live; ``live`` changes what submitted jobs ask for.
        folder: Where ``files`` writes; relative to where the command runs.
        control: The control file, for ``live``.
        metric: What decides.
        ramp: Shares of runs that are treated, in percent: the first steps of an experiment.
        hold_out: Share of runs that a promoted policy leaves out, in percent.
        shadow_runs: Runs in shadow mode before an experiment.
        most_days: Days that an experiment may take; twice as many where its e-value is above 3.
        least_effect: A gain below so many percent is worth no policy.
        at_once: How many trials are in shadow mode or in an experiment at a time.
        harm_hours: The budget: hours of the metric that trials may cost the fleet in `harm_days`.
        harm_days: The days of the budget.
        false_promotions: Of all promoted policies, the share that may be no better, on average.
        experiments: How many experiments share the first half of that error rate; the next as
            many share half of the rest, and so on.

    >>> autopilot = Definition.from_toml('[autopilot]\nstate = "pilot"\njobs = ["daily.*"]')
    >>> autopilot.deliver, autopilot.may("daily.sales", ["skew_join"])
    ('files', True)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    state: StrictStr
    jobs: Annotated[_Names, Field(min_length=1)]
    logs: _Names = ()
    points: tuple[_Point, ...] = ()
    suggestions: Annotated[int, Field(ge=0, le=1000)] = 50
    recipes: tuple[_Recipe, ...] = ()
    policies: _Names = ()
    deliver: Deliver = "files"
    folder: StrictStr = "autopilot"
    control: StrictStr | None = None
    metric: Metric = "task_ms"
    ramp: Annotated[tuple[_Share, ...], AfterValidator(_rising), Field(min_length=1)] = (25, 50, 80)
    hold_out: Annotated[float, Field(ge=1, le=50)] = 10
    shadow_runs: Annotated[int, Field(ge=1, le=1000)] = 1
    most_days: Annotated[int, Field(ge=1, le=1000)] = 45
    least_effect: Annotated[float, Field(ge=0, le=50)] = 3
    at_once: Annotated[int, Field(ge=1, le=100_000)] = 200
    harm_hours: Annotated[float, Field(gt=0)] = 24
    harm_days: Annotated[int, Field(ge=1, le=1000)] = 30
    false_promotions: Annotated[float, Field(gt=0, le=0.5)] = 0.05
    experiments: Annotated[int, Field(ge=1)] = 200

    @model_validator(mode="after")
    def _is_reachable(self) -> Definition:
        if self.deliver == "live" and not self.control:
            raise ValueError(
                'deliver = "live" needs control = "...": what hurts is taken back through the '
                "control file."
            )
        return self

    @classmethod
    def from_toml(cls, text: str, source: str = "autopilot.toml") -> Definition:
        """Reads the text of a file with a table ``[autopilot]``.

        Args:
            text: The file's text.
            source: Its name, for the places in error messages.

        Raises:
            AqePilotError: It is no TOML or no definition; lists all that is wrong, with line and
                column.
        """
        data = toml.parse(text, source)
        others = [key for key in data if key != TABLE]
        if not isinstance(data.get(TABLE), Mapping):
            raise AqePilotError(Problem(CODE, f"there is no table [{TABLE}].", source))
        if others:
            at = Places(text).place(others[0])
            message = f"{others[0]} stands beside the table [{TABLE}]: it belongs into it, or away."
            raise AqePilotError(Problem(CODE, message, f"{source}:{at.line}:{at.column}"))
        try:
            return cls(**data[TABLE])
        except ValidationError as error:
            places = Places(text, TABLE)
            raise AqePilotError([_problem(e, source, places) for e in error.errors()]) from None

    @classmethod
    def from_file(cls, path: str | Path) -> Definition:
        """Reads a file with a table ``[autopilot]``.

        Raises:
            AqePilotError: As for `from_toml`.
        """
        return cls.from_toml(toml.read(path, "the autopilot's file"), str(path))

    def may(self, job: str, points: Any) -> bool:
        """Returns whether it may decide at all of these points of a job."""
        return any(fnmatchcase(job, name) for name in self.jobs) and (
            not self.points or set(points) <= set(self.points)
        )


def _problem(error: Any, source: str, places: Places) -> Problem:
    key = str(error["loc"][0]) if error["loc"] else "deliver"
    at = places.place(key)
    where = f"{source}:{at.line}:{at.column}"
    known = tuple(Definition.model_fields)
    if error["type"] == "missing":
        return Problem(CODE, f"{key} is missing.", where)
    if error["type"] == "extra_forbidden":
        message = f"{key} is no key of an autopilot; the keys are {', '.join(known)}."
        return Problem(CODE, message, where, nearest(key, known))
    if error["type"] == "literal_error":
        words = get_args(Deliver if key == "deliver" else Metric)
        message = f"{key} {error['input']!r} is not one of {', '.join(words)}."
        return Problem(CODE, message, where, nearest(str(error["input"]), words))
    message = str(error["msg"]).removeprefix("Value error, ")
    return Problem(CODE, f"{key}: {message.rstrip('.')}.", where)
