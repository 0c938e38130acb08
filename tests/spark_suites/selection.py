"""Which suites run: suites.toml, for a minor and a form."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

from spark_suites.jvm import Suites

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("suites.toml")


class Group(NamedTuple):
    """Suites that run in one JVM.

    Attributes:
        name: The group's name.
        suites: Their classes, without ``org.apache.spark.sql.``
        only: The tests whose names hold one of these; none for all.
    """

    name: str
    suites: list[str]
    only: list[str]


def names() -> list[str]:
    """Returns the groups' names."""
    return [*tomllib.loads(FILE.read_text("utf-8"))["groups"]]


def groups(own: Suites, long: bool) -> list[Group]:
    """Returns the groups of a minor, with all tests or, where a group has a short form, with some.

    Raises:
        SystemExit: A suite is not in that Spark's tests.
    """
    data = tomllib.loads(FILE.read_text("utf-8"))
    number = _number(own.minor)
    chosen = []
    for name, group in data["groups"].items():
        suites = [s for s in group["suites"] if _number(data["since"].get(s, "0")) <= number]
        missing = [suite for suite in suites if suite not in own.has]
        if missing:
            sys.exit(f"Spark {own.version}'s tests have no {', '.join(missing)}: see {FILE.name}")
        chosen.append(Group(name, suites, [] if long else group.get("short", [])))
    return chosen


def _number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))
