"""Spark's own rule as a policy, null, and an answer that turns to null: plans equal plain Spark's.

TPC-H at settings where the built-in rule fires; DuckDB is the oracle for the rows.
"""

from __future__ import annotations

import pyspark
import pytest

import parity
import tiers
import tpch
from aqepilot import recipes

POINT = "dynamic_join_selection"
SCALE = 0.01
COMMON = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
}
SETTINGS = {
    "demotes": COMMON
    | {
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "1MB",
        "spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin": "0.95",
    },
    "prefers": COMMON
    | {
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64KB",
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64KB",
    },
}
# Not where Spark would broadcast the side at once: what was not started then may not come later.
NULL_AFTER_FIRST = """
CASE WHEN other.is_plain_stage AND NOT other.is_finished
  AND side.size_in_bytes > conf.adaptive_auto_broadcast_join_threshold
THEN 'SHUFFLE_MERGE' END
"""
NUMBERS = tiers.share(range(1, 23), parts=11)
FOUR_THREE = pyspark.__version__ >= "4.3"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], parity.Result]:
    recipe = recipes.get(POINT, spark=pyspark.__version__)
    texts = {
        "recipe": recipe.texts()[POINT],
        "null": "NULL",
        "null after a first answer": NULL_AFTER_FIRST,
    }
    work = parity.Work(
        "tpch",
        SCALE,
        str(tpch.files(SCALE)),
        NUMBERS,
        SETTINGS,
        {name: {POINT: text} for name, text in texts.items()},
    )
    results = parity.run(work, tmp_path_factory.mktemp("parity"), 900, tiers.OWN_JVM)
    return {(result.setting, result.query): result for result in results}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("number", NUMBERS)
def test_plans_equal_plain_sparks(
    results: dict[tuple[str, str], parity.Result], name: str, number: int
) -> None:
    for policy, differing in results[name, str(number)].differ.items():
        assert differing[0] == differing[1], policy


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("demotes", "NO_BROADCAST_HASH"),
        ("prefers", "convert" if FOUR_THREE else "PREFER_SHUFFLE_HASH"),
    ],
)
def test_the_builtin_rule_fired(
    results: dict[tuple[str, str], parity.Result], name: str, word: str
) -> None:
    """Else equal plans would show nothing. 4.3 prefers by its conversion, not by a hint."""
    fired = parity.fired(results.values(), name)
    assert fired[word] >= len(NUMBERS) / 2, fired
