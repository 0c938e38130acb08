"""The streamed side of a broadcast join that was a shuffled join when its query began."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import plans
import skewed
import tiers
from plans import Executed
from rows import assert_same_rows
from skewed import PARTITIONS, decisions, enforce, last, struct

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]

# `r` is broadcast once its size is measured; `l` is larger.
BROADCASTS = {"spark.sql.adaptive.autoBroadcastJoinThreshold": "300KB"}
NO_LOCAL_READS = {"spark.sql.adaptive.localShuffleReader.enabled": "false"}
# Spark's own rule splits these, too.
SINCE_4_2 = tuple(int(n) for n in pyspark.__version__.split(".")[:2]) >= (4, 2)
KINDS = {
    # the query, and whether `l`, which is streamed, is its join's left side
    "INNER": ("SELECT l.k, l.v, r.w FROM l JOIN r ON l.k = r.k", True),
    "INNER BuildLeft": ("SELECT l.k, l.v, r.w FROM r JOIN l ON l.k = r.k", False),
    "LEFT OUTER": ("SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND r.n % 3 = 0", True),
    "RIGHT OUTER": ("SELECT l.k, l.v, r.w FROM r RIGHT JOIN l ON l.k = r.k AND l.v > 'c'", False),
    "LEFT SEMI": ("SELECT l.k, l.v FROM l LEFT SEMI JOIN r ON l.k = r.k", True),
    "LEFT ANTI": ("SELECT l.k, l.v FROM l LEFT ANTI JOIN r ON l.k = r.k", True),
    "EXISTENCE": (
        "SELECT l.k, l.v FROM l WHERE l.v < '1' OR l.k IN (SELECT k FROM r WHERE n > 90)",
        True,
    ),
}
INNER = KINDS["INNER"][0]
IN_THREE = "transform({side}.bytes_by_partition_id, (b, i) -> if(i IN (2, 5), 3, 1))"
SPLIT = {2: 3, 5: 3}


def in_three(side: str) -> str:
    """An answer that splits partitions 2 and 5 of one side, where it is a shuffle."""
    answer = struct(**{f"{side}_splits": IN_THREE.format(side=side)})
    return f"CASE WHEN {side}.num_partitions > 0 THEN {answer} END"


def checksum(sql: str) -> str:
    """One row that stands for the query's multiset of rows."""
    return f"SELECT count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) FROM ({sql})"


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_split_where_local_reads_are_off(
    skewed_tables: SparkSession, executed: Run, plain: Any, kind: str
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, BROADCASTS, NO_LOCAL_READS)
    query, is_left = KINDS[kind]
    sql = checksum(query)
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, in_three("left" if is_left else "right"))
    df = spark.sql(sql)
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    build = "BuildRight" if is_left else "BuildLeft"
    assert before.strategies == after.strategies == [f"BroadcastHashJoin {build}"]
    (read,) = plans.reads(df)
    assert read.splits() == ((SPLIT, {}) if is_left else ({}, SPLIT))
    assert len((read.left if is_left else read.right) or []) == PARTITIONS + 4
    decision = last(spark)
    assert (decision.reason, decision.fate) == ("APPLIED", "adopted")
    assert decision.final_strategy == (
        f"BroadcastHashJoin {build}, {PARTITIONS + 4} tasks, 2 partitions split"
    )
    assert after.joins[0].skewed == SINCE_4_2
    assert json.loads(decision.facts)["join"]["type"] == kind.removesuffix(" BuildLeft")


def test_where_spark_reads_locally_nothing_is_left_to_split(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, BROADCASTS)
    with plain(spark):
        before = executed(spark.sql(INNER))
    enforce(spark, in_three("left"))
    after = executed(spark.sql(INNER))
    assert after.plan == before.plan
    decision = last(spark)
    assert decision.reason == "LOCAL_READ_ALREADY_SPLITS"
    assert json.loads(decision.facts)["join"]["is_read_locally"] is True


def test_a_join_is_asked_about_while_a_shuffle_of_another_still_runs(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """Found by the fuzz: the running shuffle was looked at for what Spark would read locally."""
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, BROADCASTS)
    slow = (
        "SELECT /*+ REPARTITION(k) */ id AS k,"
        " java_method('java.lang.Thread', 'sleep', 700L) AS v FROM range(0, 3, 1, 1)"
    )
    sql = (
        f"{INNER} UNION ALL"
        f" SELECT /*+ BROADCAST(d) */ s.k, s.v, CAST(d.x AS STRING) FROM ({slow}) s"
        " JOIN d ON d.k = s.k"
    )
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, in_three("left"))
    after = executed(spark.sql(sql))
    assert_same_rows(after.rows, before.rows)
    assert {d.reason for d in decisions(spark)} == {"LOCAL_READ_ALREADY_SPLITS"}


def test_it_is_split_below_a_join_that_forbids_local_reads(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """All in one stage: the other join's shuffle is read in whole by each part."""
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, BROADCASTS)
    sql = checksum(
        "SELECT /*+ MERGE(d) */ l.v, r.w, d.x FROM l JOIN r ON l.k = r.k JOIN d ON d.k = l.k"
    )
    with plain(spark):
        before = executed(spark.sql(sql))
    assert before.strategies == ["SortMergeJoin", "BroadcastHashJoin BuildRight"]
    enforce(
        spark,
        f"CASE WHEN join.strategy LIKE 'Broadcast%' THEN ({in_three('left')}) END",
    )
    df = spark.sql(sql)
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    assert after.strategies == before.strategies
    merge, broadcast = plans.reads(df)
    assert broadcast.splits() == (SPLIT, {})
    assert len(merge.right or []) == len(broadcast.left or []) == PARTITIONS + 4
    facts = json.loads(last(spark).facts)["join"]
    assert (facts["shuffles"], facts["is_read_locally"]) == (2, False)


def test_a_key_that_is_needed_in_one_task_takes_a_shuffle_and_force(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, BROADCASTS, NO_LOCAL_READS)
    sql = f"SELECT k, count(*), max(v) FROM ({INNER}) GROUP BY k"
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, in_three("left"))
    assert executed(spark.sql(sql)).plan == before.plan
    assert last(spark).reason == "EXTRA_SHUFFLE"
    splits = IN_THREE.format(side="left")
    forced = struct(left_splits=splits, force="true")
    enforce(spark, f"CASE WHEN left.num_partitions > 0 THEN {forced} END")
    df = spark.sql(sql)
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    assert after.strategies == ["BroadcastHashJoin BuildRight"]
    assert plans.reads(df)[0].splits() == (SPLIT, {})


def test_the_parts_are_coalesced_as_other_splits_are(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    more = {"spark.sql.adaptive.coalescePartitions.enabled": "true"}
    skewed.settings(spark, skewed.OFF, BROADCASTS, NO_LOCAL_READS, more)
    sql = checksum(INNER)
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, in_three("left"))
    df = spark.sql(sql)
    assert_same_rows(executed(df).rows, before.rows)
    (read,) = plans.reads(df)
    assert read.splits() == (SPLIT, {})
    assert len(read.left or []) < PARTITIONS + 4


def test_null_is_spark_and_what_spark_split_is_undone(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS, BROADCASTS, NO_LOCAL_READS)
    with plain(spark):
        splits = executed(spark.sql(INNER))
    assert splits.joins[0].skewed == SINCE_4_2
    enforce(spark, "NULL")
    assert executed(spark.sql(INNER)).plan == splits.plan
    enforce(spark, struct(max_splits=1))
    df = spark.sql(INNER)
    after = executed(df)
    assert_same_rows(after.rows, splits.rows)
    assert not after.joins[0].skewed
    assert plans.reads(df)[0].splits() == ({}, {})


def test_a_scan_is_not_asked_about(skewed_tables: SparkSession, executed: Run) -> None:
    spark = skewed_tables
    skewed.settings(spark, {"spark.sql.autoBroadcastJoinThreshold": "10MB"}, NO_LOCAL_READS)
    enforce(spark, in_three("left"))
    assert executed(spark.sql(INNER)).strategies[0].startswith("BroadcastHashJoin")
    assert decisions(spark) == []
