"""The ways in which a suite runs, as system properties: SparkConf reads all that begin `spark.`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from aqepilot import Policy, recipes

EXTENSION = {"spark.sql.extensions": "io.aqepilot.AqePilotExtension"}
# Spark's own rules at all points, as tests/support/parity.py has them.
SPARKS_OWN = (
    *("reorder_join", "join_selection"),
    *("dynamic_join_selection", "optimize_skewed_join", "coalesce_shuffle_partitions"),
    *("initial_partition_num", "simple_cost_evaluator"),
)
ADVERSARIAL = Path(__file__).with_name("adversarial.toml")
PLAIN = "plain"


def _plain(minor: str) -> dict[str, str]:
    return {}


def _no_policy(minor: str) -> dict[str, str]:
    return EXTENSION


def _recipes(minor: str) -> dict[str, str]:
    return _with(*(recipes.get(name, spark=minor) for name in SPARKS_OWN))


def _adversarial(minor: str) -> dict[str, str]:
    # Else a policy that says 13 partitions beside Spark's 5 makes suites of tiny tables very slow.
    guard = {"spark.aqepilot.guard.max_partitions": "60"}
    return _with(Policy.from_file(ADVERSARIAL)) | guard


def _with(*policies: Policy) -> dict[str, str]:
    names = ",".join(policy.name for policy in policies)
    settings = EXTENSION | {"spark.aqepilot.policies": names}
    for policy in policies:
        settings |= policy.to_conf()
    return settings


WAYS: dict[str, Callable[[str], dict[str, str]]] = {
    PLAIN: _plain,
    "no policy": _no_policy,
    "recipes": _recipes,
    "adversarial": _adversarial,
}
