"""What the recipes by history answer, and that they say nothing of what they cannot rely on."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import tiers
from aqepilot import catalog, recipes

pytestmark = tiers.ON_ONE

MB = 1 << 20
KNOWN = {"runs": 3, "age_days": 1.0, "input_ratio": 1.0, "match": "SAME", "signature": "0" * 16}
CONF = {
    "auto_broadcast_join_threshold": 10 * MB,
    "advisory_partition_size_in_bytes": 64 * MB,
    "coalesce_partitions_enabled": True,
    "skew_join_enabled": True,
}
CLUSTER = {"default_parallelism": 4}


def side(**history: Any) -> dict[str, Any]:
    return {
        "can_broadcast": True,
        "row_bytes": 10,
        "history": KNOWN | history if history else None,
    }


def joined(left: dict[str, Any], right: dict[str, Any], **spark: Any) -> dict[str, Any]:
    return {
        "join": {"can_merge": True},
        "left": left,
        "right": right,
        "spark": spark,
        "conf": CONF,
        "cluster": CLUSTER,
    }


def ordered(joined_history: Any = None, joined_rows: int | None = None, **more: Any) -> Any:
    candidate = {"history": KNOWN | {"rows_p50": 50, "bytes_p50": 1000}, "size_in_bytes": 2000}
    relations = 0 if joined_rows is None else 2
    return {
        "conf": CONF | {"optimizer_excluded_rules": []},
        "candidate": candidate
        | {"conditions": ["(a.k = b.k)"], "joined_history": joined_history}
        | more,
        "joined": {"num_relations": relations, "history": {"runs": 3, "rows_p50": joined_rows}},
    }


def shuffled(feeds: list[str], **history: Any) -> dict[str, Any]:
    shuffles = {"feeds": feeds, "num_partitions": 200, "history": KNOWN | history}
    return {"shuffles": shuffles, "conf": CONF, "cluster": CLUSTER}


def merged(tasks: int, bytes_read: int, **history: Any) -> dict[str, Any]:
    return {
        "stage": {"is_write": False},
        "shuffle": {"shuffle_bytes": bytes_read, "history": KNOWN | history},
        "spark": {"num_partitions": tasks},
        "conf": CONF,
        "cluster": CLUSTER,
    }


def skewed(max_bytes: int, **history: Any) -> dict[str, Any]:
    left = {
        "can_split": True,
        "max_bytes": max_bytes,
        "shuffle_bytes": 100 * MB,
        "num_partitions": 20,
        "non_empty_ratio": 1.0,
        "history": KNOWN | history,
    }
    right = left | {"max_bytes": 5 * MB, "history": None}
    return {"left": left, "right": right, "conf": CONF, "cluster": CLUSTER}


class Case(NamedTuple):
    """A recipe's text at a point, facts, and what it answers; the groups `at` have the history."""

    recipe: str
    point: str
    facts: dict[str, Any]
    answer: Any
    at: str


BROADCASTS_RIGHT = {"strategy": "BROADCAST", "build_side": "RIGHT"}
BROADCASTS_LEFT = {"strategy": "BROADCAST", "build_side": "LEFT"}
MERGES = {"strategy": "SHUFFLE_MERGE"}
CASES = {
    "a side that was small": Case(
        "learned_joins",
        "join_selection",
        joined(side(), side(bytes_max=2 * MB), strategy="SHUFFLE_MERGE"),
        BROADCASTS_RIGHT,
        "right",
    ),
    "the smaller of two": Case(
        "learned_joins",
        "join_selection",
        joined(side(bytes_max=MB), side(bytes_max=2 * MB)),
        BROADCASTS_LEFT,
        "left right",
    ),
    "by its rows, where its bytes were not measured": Case(
        "learned_joins",
        "join_selection",
        joined(side(), side(rows_max=MB)),
        BROADCASTS_RIGHT,
        "right",
    ),
    "a side that grew": Case(
        "learned_joins",
        "join_selection",
        joined(
            side(),
            side(bytes_max=90 * MB, bytes_p50=80 * MB),
            strategy="BROADCAST",
            reason="SIZE",
            build_side="RIGHT",
        ),
        MERGES,
        "right",
    ),
    "the first relation": Case("learned_order", "join_reorder", ordered(), -50.0, "candidate"),
    "a join that was seen": Case(
        "learned_order",
        "join_reorder",
        ordered({"runs": 2, "rows_p50": 7}, 1000),
        7.0,
        "candidate",
    ),
    "a join that was never seen": Case(
        "learned_order", "join_reorder", ordered(None, 1000), 250.0, "candidate"
    ),
    "one that Spark has statistics of": Case(
        "learned_order", "join_reorder", ordered(None, 1000, row_count=500), 100.0, "candidate"
    ),
    "a join by a range": Case(
        "learned_order",
        "join_reorder",
        ordered(None, 1000, conditions=["(a.k < b.k)"]),
        250.0e6,
        "candidate",
    ),
    "a large shuffle": Case(
        "learned_partitions",
        "shuffle_partitions",
        shuffled(["JOIN"], shuffle_bytes_p50=6400 * MB),
        100,
        "shuffles",
    ),
    "a small shuffle": Case(
        "learned_partitions",
        "shuffle_partitions",
        shuffled(["JOIN"], shuffle_bytes_p50=MB),
        4,
        "shuffles",
    ),
    "a shuffle whose rows take long": Case(
        "learned_partitions",
        "shuffle_partitions",
        shuffled(["PYTHON"], shuffle_bytes_p50=10 * MB, ms_per_mb=40_000.0),
        100,
        "shuffles",
    ),
    "groups that may be much work": Case(
        "learned_partitions",
        "shuffle_partitions",
        shuffled(["GROUPED_UDF"], shuffle_bytes_p50=MB, ms_per_mb=4000.0),
        200,
        "shuffles",
    ),
    "few tasks that take long": Case(
        "learned_partitions",
        "partition_coalescing",
        merged(1, 8 * MB, ms_per_mb=500.0),
        {"min_partitions": 4, "min_partition_bytes": MB},
        "shuffle",
    ),
    "a partition that takes long": Case(
        "learned_skew",
        "skew_join",
        skewed(30 * MB, ms_per_mb=100.0),
        {
            "skew_factor": 1.0,
            "left_threshold_bytes": 20 * MB,
            "left_target_bytes": 10 * MB,
            "max_splits": 8,
        },
        "left",
    ),
}
SILENT = {
    "small partitions": (CASES["a partition that takes long"], skewed(9 * MB, ms_per_mb=1e6)),
    "quick ones": (CASES["a partition that takes long"], skewed(30 * MB, ms_per_mb=1.0)),
    "unknown times": (CASES["a partition that takes long"], skewed(30 * MB)),
    "enough tasks": (CASES["few tasks that take long"], merged(4, 8 * MB, ms_per_mb=5000.0)),
    "quick tasks": (CASES["few tasks that take long"], merged(1, MB, ms_per_mb=500.0)),
    "a large side": (CASES["a side that was small"], joined(side(), side(bytes_max=11 * MB))),
    "a shuffle of unknown bytes": (CASES["a large shuffle"], shuffled(["JOIN"])),
}
UNRELIABLE = {
    "one run": {"runs": 1},
    "old": {"age_days": 31.0},
    "less input": {"input_ratio": 0.4},
    "more input": {"input_ratio": 2.1},
    "held": {"runs": None, "held": "slower", "bytes_max": None},
}


def answers(spark: SparkSession, folder: Path, cases: list[Case]) -> list[Any]:
    """What each recipe answers to its facts, without what is null."""
    made = {}
    for case in dict.fromkeys((case.recipe, case.point) for case in cases):
        rows = [
            {"n": n} | one.facts for n, one in enumerate(cases) if (one.recipe, one.point) == case
        ]
        path = folder / f"{case[0]}-{case[1]}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        schema = f"n int, {catalog.facts_schema(case[1])}"
        text = recipes.get(case[0]).points[case[1]]
        frame = spark.read.schema(schema).json(str(path)).selectExpr("n", f"{text} AS answer")
        for n, answer in frame.collect():
            known = answer.asDict() if hasattr(answer, "asDict") else answer
            if isinstance(known, dict):
                known = {name: value for name, value in known.items() if value is not None}
            made[n] = known
    return [made[n] for n in range(len(cases))]


def test_the_recipes_answer_by_what_was_seen(spark: SparkSession, tmp_path: Path) -> None:
    made = answers(spark, tmp_path, list(CASES.values()))
    assert dict(zip(CASES, made, strict=True)) == {name: c.answer for name, c in CASES.items()}


def test_they_say_nothing_where_nothing_is_to_gain(spark: SparkSession, tmp_path: Path) -> None:
    cases = [case._replace(facts=facts) for case, facts in SILENT.values()]
    made = answers(spark, tmp_path, cases)
    assert dict(zip(SILENT, made, strict=True)) == dict.fromkeys(SILENT)


@pytest.mark.parametrize("why", [*UNRELIABLE, "never seen"])
def test_they_say_nothing_of_what_they_cannot_rely_on(
    spark: SparkSession, tmp_path: Path, why: str
) -> None:
    cases = []
    for case in CASES.values():
        facts = deepcopy(case.facts)
        for part in map(facts.__getitem__, case.at.split()):
            part["history"] = part["history"] | UNRELIABLE[why] if why in UNRELIABLE else None
        cases.append(case._replace(facts=facts))
    made = answers(spark, tmp_path, cases)
    assert dict(zip(CASES, made, strict=True)) == dict.fromkeys(CASES)
