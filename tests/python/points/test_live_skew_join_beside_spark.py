"""skew_join beside Spark's own rule: parity, null, shadow, off, policies, faults, record."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import plans
import skewed
import tiers
from aqepilot import Policy, recipes
from plans import Executed
from rows import assert_same_rows
from skewed import enforce, last, struct

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]

FACTOR = "spark.sql.adaptive.skewJoin.skewedPartitionFactor"
THRESHOLD = "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes"
ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"

QUERIES = {
    "inner": "SELECT l.k, l.v, r.w FROM l JOIN r ON l.k = r.k",
    "left outer": "SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k",
    "right outer": "SELECT l.k, l.v, r.w FROM l RIGHT JOIN r ON l.k = r.k",
    "full outer": "SELECT l.k, l.v, r.w FROM l FULL JOIN r ON l.k = r.k",
    "hash": "SELECT /*+ SHUFFLE_HASH(r) */ l.k, l.v, r.w FROM l JOIN r ON l.k = r.k",
    "aggregate on the key": "SELECT l.k, max(l.v) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "aggregate on another": "SELECT r.n, count(*) FROM l JOIN r ON l.k = r.k GROUP BY r.n",
    "window on the key": "SELECT l.k, row_number() OVER (PARTITION BY l.k ORDER BY r.n, l.v) AS i "
    "FROM l JOIN r ON l.k = r.k",
    "two joins on one key": "SELECT l.k, r.w, d.x FROM l JOIN r ON l.k = r.k JOIN d ON d.k = l.k",
    "two joins": "SELECT l.k, r.w, d.x FROM l JOIN r ON l.k = r.k JOIN d ON d.k = r.n",
    "union": "SELECT l.k, r.w FROM l JOIN r ON l.k = r.k UNION ALL "
    "SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k",
    "distribute by": "SELECT /*+ REPARTITION(8, k) */ l.k, r.w FROM l JOIN r ON l.k = r.k",
    "exists": "SELECT l.k FROM l WHERE l.v < '1' OR l.k IN (SELECT k FROM r)",
}
each_query = pytest.mark.parametrize(
    "sql", QUERIES.values(), ids=[q.replace(" ", "_") for q in QUERIES]
)
SPARKS_OWN = struct(
    skew_factor="conf.skewed_partition_factor",
    left_threshold_bytes="conf.skewed_partition_threshold_in_bytes",
    right_threshold_bytes="conf.skewed_partition_threshold_in_bytes",
)


@each_query
def test_null_and_sparks_own_values_give_sparks_own_plan(
    skewed_tables: SparkSession, executed: Run, plain: Any, sql: str
) -> None:
    spark = skewed_tables
    recipe = recipes.get("optimize_skewed_join", spark.version).points["skew_join"]
    for settings in (skewed.SPLITS, skewed.FORCED):
        skewed.settings(spark, settings)
        with plain(spark):
            before = executed(spark.sql(sql))
        for text in ("NULL", SPARKS_OWN, recipe):
            enforce(spark, text)
            assert executed(spark.sql(sql)).plan == before.plan


@each_query
def test_a_decision_splits_as_spark_does_under_settings_of_the_same_values(
    skewed_tables: SparkSession, executed: Run, plain: Any, sql: str
) -> None:
    """Over what Spark's own rule has done by other values, and where it is switched off."""
    spark = skewed_tables
    values = {FACTOR: "1.5", THRESHOLD: "12KB", ADVISORY: "25KB"}
    skewed.settings(spark, values)
    with plain(spark):
        wanted = executed(spark.sql(sql))
    text = struct(
        skew_factor=1.5,
        left_threshold_bytes="12 * 1024",
        right_threshold_bytes="12 * 1024",
        left_target_bytes=target("left"),
        right_target_bytes=target("right"),
    )
    enforce(spark, f"CASE WHEN join.shuffles = 2 AND join.type <> 'EXISTENCE' THEN {text} END")
    for settings in (skewed.SPLITS, skewed.OFF):
        skewed.settings(spark, settings)
        after = executed(spark.sql(sql))
        assert after.plan == wanted.plan
        assert_same_rows(after.rows, wanted.rows)


def target(side: str) -> str:
    """Spark's own target for these values, in SQL."""
    threshold = f"greatest(12 * 1024, bigint(1.5 * {side}.median_bytes))"
    small = f"filter({side}.bytes_by_partition_id, b -> b <= {threshold})"
    return f"greatest(25 * 1024, aggregate({small}, 0L, (s, b) -> s + b) div size({small}))"


def test_shadow_records_and_leaves_sparks_plan(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS)
    sql = QUERIES["inner"]
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, struct(max_splits=2), mode="shadow")
    assert executed(spark.sql(sql)).plan == before.plan
    decision = last(spark)
    assert (decision.reason, decision.applied, decision.fate) == ("SHADOW", False, None)
    assert json.loads(decision.answer) == {"max_splits": 2}


def test_nothing_is_asked_without_a_policy_at_this_point(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS)
    with plain(spark):
        before = executed(spark.sql(QUERIES["inner"]))
    spark.conf.set("spark.aqepilot.policies", "other")
    spark.conf.set("spark.aqepilot.policy.other.dynamic_join_selection", "NULL")
    assert executed(spark.sql(QUERIES["inner"])).plan == before.plan
    assert skewed.decisions(spark) == []


def test_the_first_policy_that_answers_decides(skewed_tables: SparkSession) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    for name, text in (
        ("silent", "CASE WHEN left.max_bytes < 0 THEN named_struct('max_splits', 9) END"),
        ("watches", struct(max_splits=3, skew_factor=1.0)),
        ("decides", exactly(2)),
        ("late", exactly(4)),
    ):
        enforce(spark, text, name)
    spark.conf.set("spark.aqepilot.policy.watches.mode", "shadow")
    spark.conf.set("spark.aqepilot.policies", "silent,watches,decides,late")
    df = spark.sql(QUERIES["inner"])
    df.collect()
    assert plans.reads(df)[0].splits()[0] == {5: 2}
    asked = [(d.policy, d.reason) for d in skewed.decisions(spark)]
    assert asked == [("watches", "SHADOW"), ("decides", "APPLIED")]


def exactly(n: int) -> str:
    parts = f"transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, {n}, 1))"
    return struct(left_splits=parts)


def test_a_policy_that_fails_leaves_sparks_plan(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS)
    with plain(spark):
        before = executed(spark.sql(QUERIES["inner"]))
    enforce(spark, struct(left_target_bytes="left.max_bytes div (left.num_mappers - 6)"))
    assert executed(spark.sql(QUERIES["inner"])).plan == before.plan
    assert last(spark).reason == "EVALUATION_FAILED"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (struct(left_target_bytes=1), "GUARD_PARTITIONS"),
        (struct(max_splits=1000000), "GUARD_PARTITIONS"),
        (struct(skew_factor="double('NaN')"), "OUT_OF_RANGE"),
        (struct(right_threshold_bytes=0), "OUT_OF_RANGE"),
        (struct(left_splits="array(2)"), "WRONG_LENGTH"),
    ],
)
def test_a_refused_answer_leaves_sparks_plan(
    skewed_tables: SparkSession, executed: Run, plain: Any, text: str, reason: str
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS)
    with plain(spark):
        before = executed(spark.sql(QUERIES["inner"]))
    enforce(spark, text)
    assert executed(spark.sql(QUERIES["inner"])).plan == before.plan
    assert (last(spark).reason, last(spark).applied) == (reason, False)


def test_the_guard_counts_the_tasks(skewed_tables: SparkSession, executed: Run) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    enforce(spark, exactly(3))
    spark.conf.set("spark.aqepilot.guard.max_partitions", "10")
    assert executed(spark.sql(QUERIES["inner"])).joins[0].skewed
    spark.conf.set("spark.aqepilot.guard.max_partitions", "9")
    assert not executed(spark.sql(QUERIES["inner"])).joins[0].skewed
    assert last(spark).reason == "GUARD_PARTITIONS"


def test_a_split_that_takes_a_shuffle_needs_force(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    sql = QUERIES["aggregate on the key"]
    with plain(spark):
        before = executed(spark.sql(sql))
    parts = "transform(left.bytes_by_partition_id, b -> 2)"
    enforce(spark, struct(left_splits=parts, force="false"))
    assert executed(spark.sql(sql)).plan == before.plan
    assert (last(spark).reason, last(spark).applied) == ("EXTRA_SHUFFLE", False)
    for theirs, force in (("false", "true"), ("true", "null"), ("true", "true")):
        skewed.settings(spark, {"spark.sql.adaptive.forceOptimizeSkewedJoin": theirs})
        enforce(spark, struct(left_splits=parts, force=force))
        df = spark.sql(sql)
        after = executed(df)
        assert_same_rows(after.rows, before.rows)
        assert set(plans.reads(df)[0].splits()[0].values()) == {2}
        assert (last(spark).reason, last(spark).fate) == ("APPLIED", "adopted")


def test_force_needs_a_cost_evaluator_that_lets_it_pass(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """A session that unsets ours has Spark's own."""
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    spark.conf.unset("spark.sql.adaptive.customCostEvaluatorClass")
    sql = QUERIES["aggregate on the key"]
    with plain(spark):
        before = executed(spark.sql(sql))
    parts = "transform(left.bytes_by_partition_id, b -> 2)"
    enforce(spark, struct(left_splits=parts, force="true"))
    assert executed(spark.sql(sql)).plan == before.plan
    assert (last(spark).reason, last(spark).applied) == ("NEEDS_COST_EVALUATOR", False)


def test_hot_keys_splits_up_to_the_map_tasks(skewed_tables: SparkSession, executed: Run) -> None:
    """The recipe, with its sizes made as small as the tables are."""
    spark = skewed_tables
    skewed.settings(spark)
    text = recipes.text("hot_keys", spark.version).replace("1MB'", "1KB'").replace("256KB", "4KB")
    text = text.replace("'max_splits', 2 * cluster.default_parallelism", "'max_splits', 100")
    enforce(spark, Policy.from_toml(text).points["skew_join"])
    df = spark.sql(QUERIES["inner"])
    executed(df)
    assert plans.reads(df)[0].splits()[0] == {5: skewed.MAPPERS}
    assert last(spark).fate == "adopted"


def test_hot_keys_takes_no_partition_for_hot_beside_empty_ones(
    skewed_tables: SparkSession, executed: Run
) -> None:
    """With 8 of 64 partitions filled alike the median is that of an empty one."""
    spark = skewed_tables
    skewed.settings(spark, {"spark.sql.shuffle.partitions": "64"})
    text = recipes.text("hot_keys", spark.version).replace("1MB'", "1KB'").replace("256KB", "4KB")
    enforce(spark, Policy.from_toml(text).points["skew_join"])
    sql = "SELECT a.k, a.w FROM (SELECT n % 8 AS k, w FROM r) a JOIN d ON a.k = d.k"
    executed(spark.sql(sql))
    facts = json.loads(last(spark).facts)
    assert facts["left"]["median_bytes"] == 1
    assert not last(spark).applied


def test_the_record_has_sparks_answer_in_the_decisions_fields(
    skewed_tables: SparkSession, executed: Run
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS)
    enforce(spark, struct(max_splits=2))
    executed(spark.sql(QUERIES["inner"]))
    decision = last(spark)
    facts = json.loads(decision.facts)
    spark_answer = json.loads(decision.spark_answer)
    assert spark_answer["left_threshold_bytes"] == 20 * 1024
    assert spark_answer["skew_factor"] == 2.0
    assert spark_answer["left_target_bytes"] > 20 * 1024
    assert facts["spark"]["left_skewed_partitions"] == 1
    tasks = facts["spark"]["tasks"]
    assert decision.spark_strategy == f"SortMergeJoin, {tasks} tasks, 1 partition split"
    assert decision.final_strategy == "SortMergeJoin, 11 tasks, 1 partition split"
    assert (decision.tables, decision.side) == ("l ⋈ r", None)
    sizes = facts["left"]["bytes_by_partition_id"]
    assert facts["left"]["p90_bytes"] == max(sizes) == facts["left"]["p99_bytes"]
    assert facts["left"]["num_mappers"] == skewed.MAPPERS
    assert facts["join"]["shuffles"] == 2


def test_one_record_for_each_asking(skewed_tables: SparkSession, executed: Run) -> None:
    """However often AQE plans anew."""
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    enforce(spark, exactly(2))
    sql = f"SELECT x.n, count(*) AS c FROM ({QUERIES['inner'].replace('r.w', 'r.n')}) x "
    executed(spark.sql(sql + "GROUP BY x.n ORDER BY c, n"))
    assert [(d.reason, d.fate) for d in skewed.decisions(spark)] == [("APPLIED", "adopted")]
