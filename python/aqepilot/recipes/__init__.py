"""Spark's own rules and ready-made ones as policy files: where a policy of one's own begins."""

from __future__ import annotations

from importlib.resources import files

from aqepilot import catalog
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.policies import Policy
from aqepilot.submit import jars

# In the order in which they are listed.
_NAMES = (
    "dynamic_join_selection",
    "demote_broadcast_hash",
    "simple_cost_evaluator",
    "coalesce_shuffle_partitions",
    "expanding_stages",
    "optimize_skewed_join",
    "hot_keys",
    "join_selection",
    "join_selection_3_0",
    "no_broadcast_of_guesses",
    "no_broadcast_of_range_joins",
    "reorder_join",
    "most_selective_first",
    "initial_partition_num",
    "right_sized_shuffles",
    "compact_files",
    "native_joins",
    "balanced",
    "learned_joins",
    "learned_order",
    "learned_partitions",
    "learned_skew",
    "learned",
    "watch",
)
# Spark's rule was another one up to this minor: the recipe has a second file for those.
_OLDER = {"dynamic_join_selection": ("4.2", "dynamic_join_selection.spark-3.5-4.2")}
# These begin with a file of their own and have the points of other recipes.
_MADE_OF = {
    "balanced": (
        "right_sized_shuffles",
        "expanding_stages",
        "hot_keys",
        "no_broadcast_of_range_joins",
    ),
    "learned": ("learned_order", "learned_joins", "learned_partitions", "learned_skew"),
}


def names() -> tuple[str, ...]:
    """Returns the recipes' names.

    >>> names()[:2]
    ('dynamic_join_selection', 'demote_broadcast_hash')
    """
    return _NAMES


def text(name: str, spark: str | None = None) -> str:
    """Returns a recipe as the text of a policy file, to edit.

    Args:
        name: One of `names()`.
        spark: The Spark version whose rule it is to be; null for the installed Spark, or the
            newest one when none is.

    Raises:
        AqePilotError: There is no such recipe, or none for this Spark.
    """
    if name not in _NAMES:
        message = f"there is no recipe {name!r}; there are: {', '.join(_NAMES)}."
        raise AqePilotError(Problem("RECIPE_UNKNOWN", message, suggestions=nearest(name, _NAMES)))
    minors = [row.minor for row in catalog.spark_minors()]
    installed = jars.installed_spark()
    minor = jars.minor_of(spark or (installed.version if installed else minors[-1]))
    if minor not in minors:
        message = f"there is no recipe for Spark {minor}; there are for {', '.join(minors)}."
        raise AqePilotError(Problem("RECIPE_UNKNOWN", message))
    last, older = _OLDER.get(name, ("0", ""))
    file = older if _number(minor) <= _number(last) else name
    own = files("aqepilot.recipes").joinpath(f"{file}.toml").read_text("utf-8")
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
