"""What a build's condition on a replay's answers forbids."""

from __future__ import annotations

import re
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from aqepilot import catalog
from aqepilot.analysis.replay.facts import with_facts
from aqepilot.errors import AqePilotError, Problem, nearest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PATH = re.compile(r"\b([a-z_]+)\s*\.\s*([a-z_0-9]+)")


class Checked(NamedTuple):
    """What came of a condition.

    Attributes:
        rows: Answers that it forbids.
        known: Answers at points with the facts that it names, that are to be relied on.
        doubtful: Of the others there, those that it would forbid.
    """

    rows: DataFrame
    known: int
    doubtful: int


def failing(asked: DataFrame, condition: str) -> DataFrame:
    """Returns the rows of `Replay.asked` that a condition forbids. See `Replay.failing`."""
    return _met(asked, condition).where("_met AND unknown IS NULL").drop("_met")


def checked(asked: DataFrame, condition: str) -> Checked:
    """Returns what a condition forbids, and how much it was checked on.

    Args:
        asked: `Replay.asked`, cached.
        condition: As for `failing`.

    Raises:
        AqePilotError: As `failing` does.
    """
    met = _met(asked, condition)
    (counts,) = met.selectExpr(
        "count_if(unknown IS NULL)", "count_if(_met AND unknown IS NOT NULL)"
    ).collect()
    return Checked(met.where("_met AND unknown IS NULL").drop("_met"), *counts)


def _met(asked: DataFrame, condition: str) -> DataFrame:
    from pyspark.sql import functions

    paths = {point.name: {fact.path for fact in point.facts} for point in catalog.points()}
    words = {f"{group}.{name}" for group, name in _PATH.findall(condition)}
    known_paths = set().union(*paths.values())
    named = words & known_paths
    fitting = [point for point, known in paths.items() if named <= known]
    if not fitting:
        message = f"no decision point has all of {', '.join(sorted(named))}: {condition!r}."
        raise AqePilotError(Problem("CONDITION_INVALID", message))
    try:
        parts = [
            with_facts(asked.where(f"point = '{point}'"), point, [condition])
            .select("*", "f.*")
            # A condition has to be boolean, which `where` checks and a column does not.
            .withColumn("_met", functions.expr(f"coalesce(({condition}) AND true, false)"))
            .select(*asked.columns, "_met")
            for point in fitting
        ]
    except Exception as error:
        message = f"this is no condition: {condition!r}: {str(error).strip().splitlines()[0]}"
        unknown = sorted(words - named)
        near = tuple(path for word in unknown for path in nearest(word, known_paths))
        raise AqePilotError(Problem("CONDITION_INVALID", message, suggestions=near)) from error
    return reduce(lambda one, other: one.union(other), parts)
