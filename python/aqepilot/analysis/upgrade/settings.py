"""What changed its name, its default or its meaning between two releases of Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from aqepilot.submit.jars import minor_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

RULES = ("spark.sql.optimizer.excludedRules", "spark.sql.adaptive.optimizer.excludedRules")


class SparkChange(NamedTuple):
    """A setting or a rule that is another one from a release of Spark on.

    Attributes:
        kind: ``default`` (its default is another one), ``removed``, ``added`` or ``rule``, a rule
            that is there no more under its name: excluding it does nothing.
        name: The key of the setting, or the rule's name.
        since: The first minor that has it so, e.g. ``4.3``.
        before: The default before; null where there was none.
        after: The default since then; null where there is none.
        instead: What takes its place.
        what: What that does.
        source: Where in Spark's sources that is.
        value: What the job sets it to; null where that is not known, or it sets nothing.
        harms: Whether a job that sets it does not get what it asks for any more.
    """

    kind: str
    name: str
    since: str
    before: str | None
    after: str | None
    instead: tuple[str, ...]
    what: str
    source: str
    value: str | None = None
    harms: bool = False


@cache
def all_changes() -> tuple[SparkChange, ...]:
    """Returns all changes that are known, oldest release first."""
    text = files("aqepilot.analysis.upgrade").joinpath("spark_changes.toml").read_text("utf-8")
    data = tomllib.loads(text)
    changes = [*map(_setting, data["setting"]), *map(_rule, data["rule"])]
    return tuple(sorted(changes, key=lambda one: (_order(one.since), one.kind, one.name)))


def _setting(entry: Mapping[str, Any]) -> SparkChange:
    before, after = entry.get("before"), entry.get("after")
    kind = "added" if before is None else "removed" if after is None else "default"
    instead = (entry["instead"],) if "instead" in entry else ()
    return SparkChange(
        *(kind, entry["key"], entry["since"], before, after, instead),
        *(entry["what"], entry["source"]),
    )


def _rule(entry: Mapping[str, Any]) -> SparkChange:
    return SparkChange(
        *("rule", entry["name"], entry["since"], None, None, tuple(entry["instead"])),
        *(entry["what"], entry["setting"]),
    )


def changes(
    before: str | None, after: str | None, job: Mapping[str, str] | None = None
) -> tuple[SparkChange, ...]:
    """Returns what changed from one Spark to another.

    Args:
        before: Spark's version, e.g. ``3.5.9``; null where it is not known: nothing is returned.
        after: The same of the newer one.
        job: What jobs set, as far as that is known.

    Returns:
        What a job sets to no effect first. A default that the job sets itself is left out. So is
        the rule that a job does not exclude, where it is known what it excludes.

    >>> [one.name.rpartition(".")[2] for one in changes("4.2.1", "4.3.0") if one.kind == "rule"]
    ['InsertMapSortInGroupingExpressions', 'MergeSubplans', 'DynamicJoinSelection']
    """
    if before is None or after is None:
        return ()
    low, high = _order(minor_of(before)), _order(minor_of(after))
    between = [one for one in all_changes() if low < _order(one.since) <= high]
    return tuple(sorted(_for_job(between, job or {}), key=lambda one: not one.harms))


def _for_job(between: Iterable[SparkChange], job: Mapping[str, str]) -> Iterator[SparkChange]:
    excluded = {
        name.strip(): key for key in RULES for name in job.get(key, "").split(",") if name.strip()
    }
    for one in between:
        if one.kind == "rule":
            harms = one.name in excluded
            yield one._replace(value="excluded" if harms else None, harms=harms)
        elif one.name not in job:
            yield one
        elif one.kind == "removed":
            yield one._replace(value=job[one.name], harms=True)


def _order(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))
