"""What can go wrong: each problem with its place and its remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import NamedTuple

_NO_CONNECTOR = re.compile(r"Class \S*FileSystem not found|No FileSystem for scheme")
_ADD_CONNECTOR = (
    ". This Spark has no connector for that file system: add its package to spark-defaults.conf, "
    "for s3a spark.jars.packages org.apache.hadoop:hadoop-aws:<the version of Spark's hadoop jars>"
)


class Problem(NamedTuple):
    """One thing that is wrong.

    Attributes:
        code: A stable name, upper snake case, for programs.
        message: What is wrong, what is allowed and what to do, as a sentence.
        where: The place, e.g. ``sales.toml:3:9`` (file, line, column, both from 1) or a setting's
            key; null when there is none.
        suggestions: The nearest allowed names, best first.
    """

    code: str
    message: str
    where: str | None = None
    suggestions: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        if not self.suggestions or "Did you mean" in self.message:
            return f"{place}{self.message}"
        return f"{place}{self.message} Did you mean {' or '.join(self.suggestions)}?"


class AqePilotError(Exception):
    """An error of aqepilot: every problem that was found, not only the first.

    Attributes:
        problems: What is wrong, each with its place.
    """

    def __init__(self, problems: Iterable[Problem] | Problem) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class PolicyError(AqePilotError, ValueError):
    """A policy that is not well formed, or whose SQL text does not fit its decision point."""


class JarError(AqePilotError, LookupError):
    """No jar of aqepilot fits this Spark."""


class NotLiveError(AqePilotError, RuntimeError):
    """The extension is not live in this Spark session."""


def first_line(error: Exception) -> str:
    """Returns the first line of an error, also of one that Python has from Java.

    Where Spark lacks the connector of a file system, it says how to add it.
    """
    of_java = getattr(error, "java_exception", None)
    text = str(of_java.toString() if of_java else error).strip()
    return with_connector(text.splitlines()[0] if text else type(error).__name__)


def with_connector(text: str) -> str:
    """Adds how to get a file system's connector to Java's message that it is missing.

    >>> with_connector("Permission denied")
    'Permission denied'
    """
    return f"{text}{_ADD_CONNECTOR}" if _NO_CONNECTOR.search(text) else text


def nearest(word: str, known: Iterable[str]) -> tuple[str, ...]:
    """Returns up to three known words that look like `word`, best first.

    >>> nearest("shadw", ["off", "shadow", "enforce"])
    ('shadow',)
    """
    return tuple(get_close_matches(word, list(known), n=3, cutoff=0.6))
