"""Joins on one key in one stage: which shuffles may be split, and that the rows stay right."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import places
import plans
import skewed
import tiers
from plans import Executed
from rows import assert_same_rows
from skewed import PARTITIONS, decisions, enforce, last, struct

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]

CASES = json.loads((places.CASES / "skew_join.json").read_text("utf-8"))
each_stage = pytest.mark.parametrize("stage", CASES["stages"], ids=lambda s: s["name"])


def checksum(sql: str) -> str:
    """One row that stands for the query's multiset of rows."""
    return f"SELECT count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) FROM ({sql})"


def split(tables: list[str], n: int) -> str:
    """A policy that splits partitions 2 and 5 of these tables."""

    def bytes_of(side: str) -> str:
        parts = f"transform({side}.bytes_by_partition_id, (b, i) -> if(i = 2 OR i = 5, {n}, 1))"
        names = ", ".join(f"'{table}'" for table in tables)
        return f"IF(arrays_overlap({side}.tables, array({names})), {parts}, NULL)"

    some = " OR ".join(
        f"array_contains({side}.tables, '{table}')"
        for side in ("left", "right")
        for table in tables
    )
    splits = struct(left_splits=bytes_of("left"), right_splits=bytes_of("right"))
    return f"CASE WHEN {some} THEN {splits} END"


def splits(df: DataFrame) -> dict[str, dict[int, int]]:
    """The parts of each table's partitions."""
    parts_by_side = {}
    for join, read in zip(plans.joins(df), plans.reads(df), strict=True):
        for tables, parts in zip((join.left, join.right), read.splits(), strict=True):
            if parts:
                (table,) = tables
                parts_by_side[table] = parts
    return parts_by_side


@each_stage
def test_a_shuffle_is_split_where_every_join_above_it_admits_it(
    skewed_tables: SparkSession, executed: Run, plain: Any, stage: dict[str, Any]
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    sql = checksum(stage["sql"])
    with plain(spark):
        before = executed(spark.sql(sql))
    may = [table for table, can in stage["can_split"].items() if can]
    for table, can in stage["can_split"].items():
        enforce(spark, split([table], 3))
        df = spark.sql(sql)
        after = executed(df)
        assert_same_rows(after.rows, before.rows)
        assert splits(df) == ({table: {2: 3, 5: 3}} if can else {})
        assert all(join.skewed == can for join in after.joins)
        answered = [d for d in decisions(spark) if d.answer][-1]
        assert answered.reason == ("APPLIED" if can else "NOT_ADMITTED")
    if len(may) > 1:
        enforce(spark, split(may, 2))
        df = spark.sql(sql)
        after = executed(df)
        assert_same_rows(after.rows, before.rows)
        assert splits(df) == {table: {2: 2, 5: 2} for table in may}
        read = next(r for r in plans.reads(df) if r.left)
        assert len(read.left or []) == PARTITIONS + 2 * (2 ** len(may) - 1)


def test_the_parts_of_three_shuffles_are_coalesced_alike(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, {"spark.sql.adaptive.coalescePartitions.enabled": "true"})
    sql = checksum(CASES["stages"][0]["sql"])
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, split(["l"], 3))
    df = spark.sql(sql)
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    assert splits(df) == {"l": {2: 3, 5: 3}}
    read = [specs for each in plans.reads(df) for specs in each if specs]
    assert len(read) == 3
    assert {len(specs) for specs in read} == {len(read[0])}
    assert len(read[0]) < PARTITIONS + 4


def test_can_split_is_a_fact(skewed_tables: SparkSession, executed: Run) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    (stage,) = (s for s in CASES["stages"] if s["name"] == "(LEFT OUTER) RIGHT OUTER")
    enforce(spark, "NULL")
    executed(spark.sql(stage["sql"]))
    facts_by_case = {}
    for decision in decisions(spark):
        facts = json.loads(decision.facts)
        assert facts["join"]["shuffles"] == 3
        for side in (facts["left"], facts["right"]):
            if side["tables"]:
                facts_by_case[side["tables"][0]] = side["can_split"]
    assert facts_by_case == stage["can_split"]


@pytest.mark.parametrize(
    "above",
    [
        "SELECT k, count(*) FROM ({join}) GROUP BY k",
        "SELECT k, sum(x) OVER (PARTITION BY k) FROM ({join})",
        "SELECT DISTINCT k FROM ({join})",
    ],
)
def test_what_needs_a_key_in_one_task_takes_a_shuffle(
    skewed_tables: SparkSession, executed: Run, plain: Any, above: str
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    sql = above.format(join="SELECT l.k, d.x FROM l JOIN r ON l.k = r.k JOIN d ON d.k = l.k")
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, split(["l"], 3))
    assert executed(spark.sql(sql)).plan == before.plan
    assert "EXTRA_SHUFFLE" in {d.reason for d in decisions(spark)}
    skewed.settings(spark, {"spark.sql.adaptive.forceOptimizeSkewedJoin": "true"})
    df = spark.sql(sql)
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    assert splits(df) == {"l": {2: 3, 5: 3}}


def test_an_aggregate_below_a_join_is_not_read_twice(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """Its partition would be aggregated once for each part of the other side's."""
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    sql = "SELECT l.k, a.n FROM l JOIN (SELECT k, count(*) AS n FROM r GROUP BY k) a ON a.k = l.k"
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, split(["l"], 3))
    assert executed(spark.sql(sql)).plan == before.plan
    assert decisions(spark) == []


def test_what_spark_split_by_force_is_undone(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """The shuffle that Spark's own rule took for it included."""
    spark = skewed_tables
    skewed.settings(spark, skewed.FORCED)
    sql = "SELECT l.k, max(l.v) FROM l JOIN r ON l.k = r.k GROUP BY l.k"
    with plain(spark):
        before = executed(spark.sql(sql))
        skewed.settings(spark, skewed.OFF)
        unsplit = executed(spark.sql(sql))
    assert before.joins[0].skewed
    skewed.settings(spark, {"spark.sql.adaptive.skewJoin.enabled": "true"})
    enforce(spark, struct(max_splits=1))
    assert executed(spark.sql(sql)).plan == unsplit.plan
    assert last(spark).fate == "adopted"
