"""What is asked about finished shuffles, by whom, and what the record says of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import reads
from reads import POINT
from rows import assert_same_rows

SETTINGS = {
    "spark.sql.shuffle.partitions": "12",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "64KB",
}
AGGREGATED = "SELECT k, count(*) AS n FROM big GROUP BY k"
KEEP = "named_struct('keep', true)"


@pytest.fixture
def spark(little_tables: SparkSession) -> SparkSession:
    little.settings(little_tables, SETTINGS)
    return little_tables


def test_the_record_has_spark_answer_and_fate(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(AGGREGATED))
    reads.decide(spark, "named_struct('min_partitions', 6, 'local_read', true)")
    after = reads.run(spark.sql(AGGREGATED))
    assert_same_rows(after.rows, before.rows)
    (of,) = reads.decisions(spark)
    assert (of.applied, of.reason, of.fate) == (True, "APPLIED", "adopted")
    assert json.loads(of.answer) == {"min_partitions": 6, "local_read": True}
    assert json.loads(of.spark_answer) == {
        "target_bytes": 64 << 20,
        "min_partition_bytes": 64 << 10,
        "min_partitions": 2,
        "local_read": True,
        "keep": False,
    }
    assert before.tasks != after.tasks
    assert of.spark_strategy.startswith(f"{before.tasks[0]} task")
    assert of.final_strategy == f"{after.tasks[0]} tasks, coalesced from 12"
    assert of.subject.startswith("query stage 0 (shuffle ")
    assert of.tables == "big"


def test_local_reads_and_kept_partitions_have_words(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB")
    reads.decide(
        spark,
        "CASE WHEN shuffle.tables = array('big') "
        "THEN named_struct('local_read', false, 'keep', true) END",
    )
    after = reads.run(spark.sql(little.BIG_DENSE))
    of = next(d for d in reads.decisions(spark) if d.policy)
    assert of.spark_strategy.startswith("local read, ")
    assert (of.final_strategy, of.fate) == ("12 tasks", "adopted")
    assert ("big",) in [read.tables for read in after.reads if read.kind == "plain"]


def test_facts_are_what_was_measured(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(little.BIG_DENSE))
    reads.decide(spark, "NULL")
    reads.run(spark.sql(little.BIG_DENSE))
    (of,) = reads.decisions(spark)
    facts = json.loads(of.facts)
    shuffle, stage = facts["shuffle"], facts["stage"]
    assert stage["shuffles"] == [0, 1]
    assert stage["num_shuffles"] == 2
    assert shuffle["tables"] == ["big", "dense"]
    assert shuffle["num_partitions"] == len(shuffle["bytes_by_partition_id"]) == 12
    assert shuffle["row_count"] == 210000
    assert shuffle["num_mappers"] >= 2
    assert (
        shuffle["shuffle_bytes"] == sum(shuffle["bytes_by_partition_id"]) == stage["shuffle_bytes"]
    )
    assert shuffle["max_bytes"] == max(shuffle["bytes_by_partition_id"])
    assert shuffle["size_in_bytes"] > shuffle["shuffle_bytes"] > 0
    assert shuffle["bytes_are_exact"] is True
    assert facts["spark"] == {"num_partitions": before.tasks[0], "is_local_read": False}
    assert (of.reason, of.applied, of.fate) == ("NULL_ANSWER", False, None)


FLAGS = {
    "has_aggregate": AGGREGATED,
    "has_join": little.BIG_DENSE,
    "has_sort": little.BIG_DENSE,
    "has_window": "SELECT k, count(*) OVER (PARTITION BY k) FROM big",
    "has_generate": f"SELECT explode(array(n, k)) FROM ({AGGREGATED})",
    "has_exploding_join": f"SELECT n, w FROM ({AGGREGATED}) a JOIN sparse s ON a.k < s.w",
    "is_final": AGGREGATED,
    "is_rebalance": "SELECT /*+ REBALANCE(k) */ * FROM big",
}


@pytest.mark.parametrize("flag", FLAGS)
def test_what_the_stage_does_is_known(spark: SparkSession, flag: str) -> None:
    reads.decide(spark, "NULL")
    spark.sql(FLAGS[flag]).collect()
    last = [json.loads(d.facts)["stage"] for d in reads.decisions(spark)][-1]
    quiet = {"has_sort", "is_final"} if flag in ("has_join", "has_window") else {"is_final"}
    if flag == "has_sort":
        quiet = {"has_join", "is_final"}
    if flag == "has_generate":
        quiet = {"has_aggregate", "is_final"}
    if flag == "has_exploding_join":
        quiet = {"has_aggregate", "has_join", "is_final"}
    flags = {name for name, value in last.items() if value is True}
    assert flag in flags
    assert flags <= quiet | {flag}


def test_a_stage_before_the_last_is_not_final(spark: SparkSession) -> None:
    reads.decide(spark, "NULL")
    spark.sql(f"SELECT n, count(*) FROM ({AGGREGATED}) GROUP BY n").collect()
    assert [json.loads(d.facts)["stage"]["is_final"] for d in reads.decisions(spark)] == [
        False,
        True,
    ]


def test_python_in_the_stage_is_known(spark: SparkSession) -> None:
    def same(batches: Any) -> Any:
        yield from batches

    reads.decide(spark, "NULL")
    frame = spark.sql("SELECT /*+ REPARTITION(k) */ k FROM dense")
    assert frame.mapInPandas(same, "k long").count() == 10000
    stages = [json.loads(d.facts)["stage"] for d in reads.decisions(spark)]
    assert stages[0]["has_python_udf"] is True
    assert stages[-1]["has_python_udf"] is False


def test_shadow_off_and_no_policy_change_nothing(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(little.BIG_DENSE))
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    reads.decide(spark, KEEP, mode="off")
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    assert reads.decisions(spark) == []
    reads.decide(spark, KEEP, mode="shadow")
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    (of,) = reads.decisions(spark)
    assert (of.reason, of.applied, of.mode) == ("SHADOW", False, "shadow")
    reads.decide(spark, KEEP, mode="enforce")
    assert reads.run(spark.sql(little.BIG_DENSE)).tasks == [12, 12]


def test_of_two_policies_the_first_answer_holds(spark: SparkSession) -> None:
    reads.decide(spark, "named_struct('min_partitions', 5)", name="second")
    reads.decide(spark, f"CASE WHEN stage.has_join THEN {KEEP} END", name="first")
    spark.conf.set("spark.aqepilot.policies", "first,second")
    joined = reads.run(spark.sql(little.BIG_DENSE))
    grouped = reads.run(spark.sql(AGGREGATED))
    assert joined.tasks == [12, 12]
    assert 5 <= grouped.tasks[0] < 12
    assert [d.policy for d in reads.decisions(spark)] == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("named_struct('target_bytes', 0)", "INVALID_VALUE"),
        ("named_struct('target_bytes', 1)", "GUARD_TARGET_BYTES"),
        ("named_struct('min_partitions', 100001)", "GUARD_PARTITIONS"),
        ("named_struct('keep', true, 'min_partitions', 4)", "CONTRADICTION"),
        ("named_struct('target_bytes', double('NaN') + shuffle.max_bytes)", "EVALUATION_FAILED"),
    ],
)
def test_a_refused_answer_leaves_sparks_plan(
    spark: SparkSession, plain: Any, text: str, reason: str
) -> None:
    with plain(spark):
        before = reads.run(spark.sql(AGGREGATED))
    reads.decide(spark, text)
    assert reads.run(spark.sql(AGGREGATED)).how == before.how
    (of,) = reads.decisions(spark)
    assert (of.reason, of.applied, of.fate) == (reason, False, None)
    assert of.detail


def test_a_broken_distribution_is_refused_with_a_reason(spark: SparkSession) -> None:
    reads.decide(spark, "named_struct('target_bytes', 100000000, 'min_partitions', 1)")
    frame = spark.sql(little.BIG_DENSE).repartition(12, "k")
    assert reads.run(frame).tasks == [12, 12]
    (of,) = reads.decisions(spark)
    assert (of.reason, of.applied) == ("DISTRIBUTION_BROKEN", False)


def test_no_setting_of_the_user_is_changed(spark: SparkSession) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    reads.decide(spark, "named_struct('target_bytes', 100000, 'local_read', false)")
    reads.run(spark.sql(little.BIG_DENSE))
    after = {row.key: row.value for row in spark.sql("SET").collect()}
    assert {k: v for k, v in after.items() if not k.startswith("spark.aqepilot.")} == {
        k: v for k, v in before.items() if not k.startswith("spark.aqepilot.")
    }


def test_the_same_cached_table_is_decided_once(spark: SparkSession) -> None:
    reads.decide(spark, KEEP)
    frame = spark.sql(AGGREGATED).cache()
    assert frame.count() == 10000
    assert frame.count() == 10000
    of_big = [d for d in reads.decisions(spark) if d.tables == "big"]
    assert [d.point for d in of_big].count(POINT) <= 2
