"""Spark's own rules and ready-made ones as policy files: where a policy of one's own begins."""

from __future__ import annotations

from importlib.resources import files

from aqepilot import catalog, jars
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.policies import Policy

_NEWEST = "9.9"
_FILES = {
    "dynamic_join_selection": {
        "4.2": "dynamic_join_selection.spark-3.5-4.2.toml",
        _NEWEST: "dynamic_join_selection.spark-4.3.toml",
    },
    "demote_broadcast_hash": {_NEWEST: "demote_broadcast_hash.toml"},
    "simple_cost_evaluator": {_NEWEST: "simple_cost_evaluator.toml"},
    "coalesce_shuffle_partitions": {_NEWEST: "coalesce_shuffle_partitions.toml"},
    "expanding_stages": {_NEWEST: "expanding_stages.toml"},
    "optimize_skewed_join": {_NEWEST: "optimize_skewed_join.toml"},
    "hot_keys": {_NEWEST: "hot_keys.toml"},
    "join_selection": {_NEWEST: "join_selection.toml"},
    "join_selection_3_0": {_NEWEST: "join_selection_3_0.toml"},
    "no_broadcast_of_guesses": {_NEWEST: "no_broadcast_of_guesses.toml"},
    "no_broadcast_of_range_joins": {_NEWEST: "no_broadcast_of_range_joins.toml"},
    "reorder_join": {_NEWEST: "reorder_join.toml"},
    "most_selective_first": {_NEWEST: "most_selective_first.toml"},
    "initial_partition_num": {_NEWEST: "initial_partition_num.toml"},
    "right_sized_shuffles": {_NEWEST: "right_sized_shuffles.toml"},
    "compact_files": {_NEWEST: "compact_files.toml"},
    "balanced": {_NEWEST: "balanced.toml"},
}
# These begin with a file of their own and have the points of other recipes.
_MADE_OF = {
    "balanced": (
        "right_sized_shuffles",
        "expanding_stages",
        "hot_keys",
        "no_broadcast_of_range_joins",
    ),
}


def names() -> tuple[str, ...]:
    """Returns the recipes' names.

    >>> names()[:2]
    ('dynamic_join_selection', 'demote_broadcast_hash')
    """
    return tuple(_FILES)


def text(name: str, spark: str | None = None) -> str:
    """Returns a recipe as the text of a policy file, to edit.

    Args:
        name: One of `names()`.
        spark: The Spark version whose rule it is to be; null for the installed Spark, or the
            newest one when none is.

    Raises:
        AqePilotError: There is no such recipe, or none for this Spark.
    """
    if name not in _FILES:
        message = f"there is no recipe {name!r}; there are: {', '.join(_FILES)}."
        raise AqePilotError(Problem("RECIPE_UNKNOWN", message, suggestions=nearest(name, _FILES)))
    minors = [row.minor for row in catalog.spark_minors()]
    installed = jars.installed_spark()
    minor = jars.minor_of(spark or (installed.version if installed else minors[-1]))
    if minor not in minors:
        message = f"there is no recipe for Spark {minor}; there are for {', '.join(minors)}."
        raise AqePilotError(Problem("RECIPE_UNKNOWN", message))
    last = next(key for key in _FILES[name] if _number(minor) <= _number(key))
    own = files("aqepilot.recipes").joinpath(_FILES[name][last]).read_text("utf-8")
    return own + "".join(_points_of(part, minor) for part in _MADE_OF.get(name, ()))


def _points_of(name: str, spark: str) -> str:
    """A recipe's points, with its summary above."""
    points = text(name, spark).split(f'name = "{name}"\n', 1)[1]
    return f"\n# {name}: {summary(name, spark)}\n{points.lstrip()}"


def get(name: str, spark: str | None = None) -> Policy:
    """Returns a recipe as a policy.

    Args:
        name: One of `names()`.
        spark: As for `text`.

    Raises:
        AqePilotError: There is no such recipe, or none for this Spark.

    >>> get("dynamic_join_selection", spark="4.3").name
    'dynamic_join_selection'
    """
    return Policy.from_toml(text(name, spark), f"recipe {name}")


def summary(name: str, spark: str | None = None) -> str:
    """Returns a recipe's first sentence.

    Args:
        name: One of `names()`.
        spark: As for `text`.

    >>> summary("demote_broadcast_hash").split(":")[0]
    "Spark 3.0's DemoteBroadcastHashJoin"
    """
    first = text(name, spark).splitlines()[0]
    return first.removeprefix("# NOTE ").strip()


def _number(minor: str) -> tuple[int, ...]:
    return tuple(map(int, minor.split(".")))
