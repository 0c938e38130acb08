"""Spark's own rule as a policy, null, and an answer that turns to null: plans equal plain Spark's.

All 22 TPC-H queries, at settings where the built-in rule fires; DuckDB is the oracle for the rows.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyspark
import pytest

import submitting
import tpch
from aqepilot import recipes

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
FOUR_THREE = pyspark.__version__ >= "4.3"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    recipe = recipes.get("dynamic_join_selection", spark=pyspark.__version__)
    texts = {
        "recipe": recipe.texts()["dynamic_join_selection"],
        "null": "NULL",
        "null after a first answer": NULL_AFTER_FIRST,
    }
    tpch.files(SCALE)
    here = Path(__file__).parent
    job = (here / "parity_job.py").read_text()
    done = submitting.submit(
        tmp_path_factory.mktemp("parity"),
        job,
        job_words=[str(SCALE), json.dumps(SETTINGS), json.dumps(texts)],
        master="local[1]",
        env={"PYTHONPATH": os.pathsep.join([str(here), *filter(None, [os.getenv("PYTHONPATH")])])},
        timeout_s=900,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    out: dict[str, dict[str, Any]] = {name: {} for name in SETTINGS}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            name, number, differ = json.loads(line.removeprefix("RESULT "))
            out[name][str(number)] = differ
        elif line.startswith("FIRED "):
            name, said = json.loads(line.removeprefix("FIRED "))
            out[name]["fired"] = said
    return out


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("number", range(1, 23))
def test_plans_equal_plain_sparks(
    results: dict[str, dict[str, Any]], name: str, number: int
) -> None:
    for policy, found in results[name][str(number)].items():
        assert found[0] == found[1], policy


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("demotes", "NO_BROADCAST_HASH"),
        ("prefers", "convert" if FOUR_THREE else "PREFER_SHUFFLE_HASH"),
    ],
)
def test_the_builtin_rule_fired(results: dict[str, dict[str, Any]], name: str, word: str) -> None:
    """Else equal plans would show nothing. 4.3 prefers by its conversion, not by a hint."""
    assert results[name]["fired"].get(word, 0) >= 10, results[name]["fired"]
