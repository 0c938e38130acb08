"""What a core and memory cost, from a small file: without one, no money is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictStr, ValidationError, model_validator

from aqepilot import toml
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.toml import Places

_Price = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
_MS_PER_HOUR = 3_600_000


class PricesError(AqePilotError, ValueError):
    """A file of prices that is not well formed."""


class Prices(BaseModel):
    """What an hour of a core costs, and of the memory that comes with it.

    Event logs as tables have no memory sizes, so that the file says how much comes with a core.

    Args:
        currency: What prices are in, as it is to be shown, e.g. ``EUR``.
        per_core_hour: Price of a core for an hour.
        per_gib_hour: Price of a GiB of memory for an hour; null when memory is not paid for apart.
        gib_per_core: GiB of memory that an executor has for each core; null when `per_gib_hour` is.

    >>> prices = Prices(currency="EUR", per_core_hour=0.04, per_gib_hour=0.005, gib_per_core=4)
    >>> round(prices.cost(core_ms=3_600_000), 3)
    0.06
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: Annotated[StrictStr, Field(min_length=1, max_length=12)]
    per_core_hour: _Price
    per_gib_hour: _Price | None = None
    gib_per_core: _Price | None = None

    @model_validator(mode="after")
    def _memory_has_both(self) -> Prices:
        if (self.per_gib_hour is None) != (self.gib_per_core is None):
            raise ValueError("per_gib_hour and gib_per_core go together.")
        return self

    def cost(self, core_ms: float) -> float:
        """Returns what cores cost, with their memory.

        Args:
            core_ms: Milliseconds of cores.
        """
        memory = (self.per_gib_hour or 0) * (self.gib_per_core or 0)
        return core_ms / _MS_PER_HOUR * (self.per_core_hour + memory)

    @classmethod
    def from_file(cls, path: str | Path) -> Prices:
        """Reads prices: TOML with the keys currency, per_core_hour, per_gib_hour, gib_per_core.

        Args:
            path: The file, UTF-8.

        Raises:
            PricesError: The file cannot be read, is no TOML or has no prices; lists all that is
                wrong, each with file, line and column.
        """
        text = toml.read(path, "the prices' file", PricesError)
        return cls.from_toml(text, str(path))

    @classmethod
    def from_toml(cls, text: str, source: str = "prices.toml") -> Prices:
        """Makes prices of the text of a file.

        Args:
            text: The file's text.
            source: Its name, for the places in error messages.

        Raises:
            PricesError: It is no TOML or has no prices; lists all that is wrong.
        """
        data = toml.parse(text, source, PricesError)
        places = Places(text)
        problems: list[Problem] = []
        try:
            prices = cls(**data)
        except ValidationError as error:
            problems = [_problem(e, source, places) for e in error.errors() if e["loc"]]
        for one, other in (("per_gib_hour", "gib_per_core"), ("gib_per_core", "per_gib_hour")):
            if one in data and other not in data:
                message = f"{one} needs {other}, as logs do not say how much memory there was."
                problems.append(Problem("PRICES_KEY_MISSING", message, _at(source, places, one)))
        if problems:
            raise PricesError(problems)
        return prices


def _problem(error: Any, source: str, places: Places) -> Problem:
    key = str(error["loc"][0])
    known = tuple(Prices.model_fields)
    where = _at(source, places, key)
    if error["type"] == "missing":
        message = f"{key} is missing; the keys are {', '.join(known)}."
        return Problem("PRICES_KEY_MISSING", message, where)
    if error["type"] == "extra_forbidden":
        message = f"{key} is no key of a file of prices; the keys are {', '.join(known)}."
        return Problem("PRICES_KEY_UNKNOWN", message, where, nearest(key, known))
    kind = "text of 1 to 12 characters" if key == "currency" else "a number, 0 or more"
    message = f"{key} has to be {kind}, not {error['input']!r}."
    return Problem("PRICES_VALUE_INVALID", message, where)


def _at(source: str, places: Places, key: str) -> str:
    at = places.place(key)
    return f"{source}:{at.line}:{at.column}"
