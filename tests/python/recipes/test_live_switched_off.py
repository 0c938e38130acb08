"""No recipe does what a session has switched off: by its answers to drawn facts, and in plans."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import aqepilot
import little
import reads
import skewed
import tiers
from aqepilot import catalog, recipes

pytestmark = tiers.ON_ONE

ROWS = 300  # of facts, for each setting and with all of them on
Facts = dict[str, dict[str, Any]]
ADAPTIVE = "org.apache.spark.sql.execution.adaptive."


class Off(NamedTuple):
    """A setting that is switched off.

    Attributes:
        value: Of the fact.
        overruled: By decision point, whether an answer does what is off.
    """

    value: Any
    overruled: Mapping[str, Callable[[Any, Facts], bool]]


def broadcasts(answer: Any, facts: Facts) -> bool:
    """A hint asks for a broadcast, and some joins have no other way: Spark's own rule."""
    join, hints = facts["join"], [facts["join"]["left_hint"], facts["join"]["right_hint"]]
    hints += [facts[side]["run_time_hint"] for side in ("left", "right")]
    only_way = join["is_null_aware"] or (not join["key_count"] and join["type"] != "INNER")
    return answer["strategy"] == "BROADCAST" and not only_way and "BROADCAST" not in hints


def any_answer(_answer: Any, _facts: Facts) -> bool:
    return True


NO_BROADCAST = {
    "join_selection": broadcasts,
    "dynamic_join_selection": lambda answer, _: answer == "BROADCAST",
}
OFF = {
    "coalesce_partitions_enabled": Off(
        False,
        {
            "partition_coalescing": lambda answer, _: (
                any(answer[size] for size in ("target_bytes", "min_partition_bytes"))
                or answer["min_partitions"] is not None
                or answer["keep"] is False
            ),
            "shuffle_partitions": lambda answer, f: answer != f["conf"]["shuffle_partitions"],
        },
    ),
    "local_shuffle_reader_enabled": Off(
        False, {"partition_coalescing": lambda answer, _: answer["local_read"] is True}
    ),
    "skew_join_enabled": Off(False, {"skew_join": any_answer}),
    "optimize_skews_in_rebalance_partitions_enabled": Off(
        False, {"write_distribution": any_answer}
    ),
    "auto_broadcast_join_threshold": Off(-1, NO_BROADCAST),
    "adaptive_auto_broadcast_join_threshold": Off(-1, NO_BROADCAST),
    "convert_sort_merge_join_to_shuffled_hash_join_enabled": Off(
        False, {"dynamic_join_selection": lambda answer, _: "SHUFFLE_HASH" in answer}
    ),
    "optimizer_excluded_rules": Off(
        ["org.apache.spark.sql.catalyst.optimizer.ReorderJoin"], {"join_reorder": any_answer}
    ),
    "adaptive_optimizer_excluded_rules": Off(
        [ADAPTIVE + "DynamicJoinSelection", ADAPTIVE + "DemoteBroadcastHashJoin"],
        {"dynamic_join_selection": any_answer},
    ),
}
# The texts for each Spark, once, but for those that never answer.
TEXTS = {
    (name, point, text): row.minor
    for row in catalog.spark_minors()
    for name in recipes.names()
    for point, text in recipes.get(name, row.minor).points.items()
    if text != "NULL"
}
# Settings that older Sparks do not have, by the first that has.
SINCE = {"convert_sort_merge_join_to_shuffled_hash_join_enabled": "4.3"}
WORDS = {
    "type": ["INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI", "LEFT ANTI"],
    "strategy": ["BROADCAST", "SHUFFLE_MERGE", "SHUFFLE_HASH"],
    "reason": ["SIZE", "HINT"],
    "build_side": ["LEFT", "RIGHT"],
    "estimate_from": ["GUESS", "FILES"],
    "last_shuffle": [None, "AGGREGATE", "JOIN"],
    "key_count": [0, 1, 2],
    "join_count": [0, 1],
    "spark_version": ["3.5.9", "4.3.0"],
    "ms_per_mb": [1.0, 1000.0, 100_000.0],
}
HINTS = ("left_hint", "right_hint", "run_time_hint")
NUMBERS = [1, 2, 7, 16, 200, 1000, 5000]
SIZES = [0, 100, 10_000, 1 << 20, 30 << 20, 64 << 20, 300 << 20, 5 << 30]
COLUMNS = ["k", "day", "region"]


def drawn(kind: str, name: str, rng: random.Random) -> Any:
    if name in WORDS:
        return rng.choice(WORDS[name])
    if kind.startswith("struct<"):
        return {name: drawn(inner, name, rng) for name, inner in catalog.fields_of(kind).items()}
    if name in HINTS:
        return rng.choice([None, None, None, "BROADCAST", "NO_BROADCAST_HASH"])
    plain: dict[str, Callable[[], Any]] = {
        "boolean": lambda: rng.random() < 0.6,
        "double": lambda: rng.choice([0.05, 0.1, 0.5, 1.0]),
        "string": lambda: rng.choice(COLUMNS),
        "array<string>": lambda: rng.sample(COLUMNS, rng.randrange(3)),
        "int": lambda: rng.choice(NUMBERS),
        "bigint": lambda: rng.choice(NUMBERS if "bytes" not in name else SIZES),
        "array<bigint>": lambda: rng.choices(SIZES, k=5),
        "array<int>": lambda: rng.choices(NUMBERS, k=2),
    }
    return plain[kind]() if kind in plain else None


def facts(point: str, fact: str | None, rng: random.Random) -> Facts:
    """Facts in which only this setting is off."""
    facts: Facts = {}
    for known in catalog.point(point).facts:
        group, name = known.path.split(".")
        facts.setdefault(group, {})[name] = drawn(known.type, name, rng)
    conf = facts["conf"]
    conf |= {name: True for name in conf if name.endswith("_enabled")}
    conf |= {name: [] for name in conf if name.endswith("_excluded_rules")}
    conf |= {"auto_broadcast_join_threshold": 10 << 20}
    conf |= {"adaptive_auto_broadcast_join_threshold": None}
    conf |= {"non_empty_partition_ratio_for_broadcast_join": 0.2}
    if fact:
        conf[fact] = OFF[fact].value
    if point == "join_selection":
        # Spark compares all sides with the one; with the other, once they have been measured.
        threshold = conf["adaptive_auto_broadcast_join_threshold"]
        threshold = conf["auto_broadcast_join_threshold"] if threshold is None else threshold
        for side in (facts["left"], facts["right"]):
            side["broadcasts_by_size"] = side["size_in_bytes"] <= threshold
    return facts


def schema(point: str) -> str:
    groups: dict[str, list[str]] = {}
    for fact in catalog.point(point).facts:
        group, field = fact.path.split(".")
        groups.setdefault(group, []).append(f"`{field}`: {fact.type}")
    of_all = ", ".join(f"`{name}`: struct<{', '.join(fields)}>" for name, fields in groups.items())
    return f"n int, f struct<{of_all}>"


def test_each_setting_that_can_be_off_is_among_these() -> None:
    conf = [f for f in catalog.points()[0].facts if f.path.startswith("conf.")]
    can_be_off = {
        f.path.removeprefix("conf.")
        for f in conf
        if f.path.endswith(("_enabled", "_excluded_rules", "broadcast_join_threshold"))
    }
    assert can_be_off == set(OFF)


@pytest.mark.parametrize(
    ("name", "point", "text"), [pytest.param(*key, id="-".join(key[:2])) for key in TEXTS]
)
def test_a_recipe_answers_nothing_that_is_off(
    spark: SparkSession, tmp_path: Path, name: str, point: str, text: str
) -> None:
    rng = random.Random(point)
    off = [None, *(fact for fact, switch in OFF.items() if point in switch.overruled)]
    rows = [(fact, facts(point, fact, rng)) for fact in off for _ in range(ROWS)]
    path = tmp_path / "facts.json"
    path.write_text("\n".join(json.dumps({"n": n, "f": f}) for n, (_, f) in enumerate(rows)))
    spark.read.schema(schema(point)).json(str(path)).createOrReplaceTempView("drawn")
    sql = "SELECT n, aqepilot_answer(:point, :text, f).answer FROM drawn"
    answers = dict(spark.sql(sql, args={"point": point, "text": text}).collect())
    assert any(answers[n] is not None for n, (fact, _) in enumerate(rows) if fact is None)
    minor = TEXTS[name, point, text]
    wrong = [
        (fact, answers[n], f)
        for n, (fact, f) in enumerate(rows)
        if fact and minor >= SINCE.get(fact, "") and answers[n] is not None
        if OFF[fact].overruled[point](answers[n], f)
    ]
    assert wrong == []


COUNTED = "SELECT k, count(*) AS n FROM big GROUP BY k"


def test_numbers_stay_where_coalescing_is_off(little_tables: SparkSession, plain: Any) -> None:
    """Code that counts rows by partition has it off, and needs the same ones in each query."""
    spark = little_tables
    little.settings(spark, {"spark.sql.shuffle.partitions": "20"})
    for enabled, tasks in (("true", 1), ("false", 20)):
        spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", enabled)
        with plain(spark):
            before = reads.run(spark.sql(COUNTED))
        for recipe in ("right_sized_shuffles", "balanced"):
            aqepilot.use(spark, recipes.get(recipe, spark.version))
            after = reads.run(spark.sql(COUNTED))
            assert after.digest == before.digest
            numbered = [d for d in aqepilot.decisions(spark) if d.applied]
            if enabled == "true":
                assert numbered[-1].final_strategy == "8 partitions"
            else:
                assert after.how == before.how
                assert after.tasks == [tasks]
        aqepilot.use(spark)


FEWER_BYTES = {"1MB'": "1KB'", "256KB": "4KB"}


@pytest.mark.parametrize("enabled", [True, False])
def test_hot_keys_stay_whole_where_skew_handling_is_off(
    skewed_tables: SparkSession, enabled: bool
) -> None:
    spark = skewed_tables
    skewed.settings(spark, {} if enabled else skewed.OFF)
    sql = "SELECT v, w FROM l JOIN r ON l.k = r.k"
    before = reads.run(spark.sql(sql))
    text = recipes.get("hot_keys", spark.version).points["skew_join"]
    for bytes_of_recipe, fewer in FEWER_BYTES.items():
        text = text.replace(bytes_of_recipe, fewer)
    skewed.enforce(spark, text)
    after = reads.run(spark.sql(sql))
    assert after.digest == before.digest
    assert (after.how == before.how) == (not enabled)
