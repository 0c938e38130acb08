"""Each field of a decision at skew_join, on each join type that admits it, in the executed plan."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

import plans
import skewed
import tiers
from plans import Executed
from rows import assert_same_rows
from skewed import MAPPERS, PARTITIONS, enforce, last, struct

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]

INNER = "SELECT l.k, l.v, r.w FROM l JOIN r ON l.k = r.k"
HOT = 5  # the partition of keys 0 and 1


class JoinKind(NamedTuple):
    """A join type: its SQL, and whether its left and right side may be split."""

    name: str
    sql: str
    left: bool
    right: bool


KINDS = (
    JoinKind("INNER", INNER, True, True),
    JoinKind(
        "LEFT OUTER",
        "SELECT l.k, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND r.n % 3 = 0",
        True,
        False,
    ),
    JoinKind(
        "RIGHT OUTER",
        "SELECT l.k, l.v, r.w FROM l RIGHT JOIN r ON l.k = r.k AND l.v > 'c'",
        False,
        True,
    ),
    JoinKind(
        "FULL OUTER", "SELECT l.k, l.v, r.w FROM l FULL JOIN r ON l.k = r.k + 3", False, False
    ),
    JoinKind("LEFT SEMI", "SELECT l.k, l.v FROM l LEFT SEMI JOIN r ON l.k = r.k", True, False),
    JoinKind("LEFT ANTI", "SELECT l.k, l.v FROM l LEFT ANTI JOIN r ON l.k = r.k", True, False),
    JoinKind(
        "EXISTENCE",
        "SELECT l.k, l.v FROM l WHERE l.v < '1' OR l.k IN (SELECT k FROM r WHERE n > 90)",
        True,
        False,
    ),
)
OF_PARTITION = "transform({side}.bytes_by_partition_id, (b, i) -> if(i = 2 OR i = 5, {n}, null))"


def exact(side: str, n: int) -> str:
    """An answer that splits partitions 2 and 5 of one side."""
    return struct(**{f"{side}_splits": OF_PARTITION.format(side=side, n=n)})


def checksum(sql: str) -> str:
    """One row that stands for the query's multiset of rows."""
    return f"SELECT count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) FROM ({sql})"


def run(spark: SparkSession, sql: str) -> tuple[DataFrame, list[Any]]:
    df = spark.sql(sql)
    return df, df.collect()


@pytest.mark.parametrize("strategy", ["MERGE", "SHUFFLE_HASH"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name.replace(" ", "_"))
def test_either_side_is_split_where_the_join_type_admits_it(
    skewed_tables: SparkSession, plain: Any, kind: JoinKind, strategy: str
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    sql = kind.sql.replace("SELECT", f"SELECT /*+ {strategy}(r) */", 1)
    if strategy == "SHUFFLE_HASH":
        sql = sql.replace("SELECT k FROM r", "SELECT /*+ SHUFFLE_HASH(r) */ k FROM r")
    sql = checksum(sql)
    with plain(spark):
        _, before = run(spark, sql)
    for side, admitted in (("left", kind.left), ("right", kind.right)):
        enforce(spark, exact(side, 3))
        df, rows = run(spark, sql)
        assert_same_rows(rows, before)
        (joined,), decision = plans.reads(df), last(spark)
        if admitted:
            split = {2: 3, HOT: 3}
            assert joined.splits() == ((split, {}) if side == "left" else ({}, split))
            assert len(joined.left) == len(joined.right) == PARTITIONS + 4
            assert (decision.reason, decision.fate) == ("APPLIED", "adopted")
            assert decision.final_strategy == (
                f"{plans.strategies(df)[0]}, {PARTITIONS + 4} tasks, 2 partitions split"
            )
            assert plans.joins(df)[0].skewed
        else:
            assert joined == (None, None)
            assert (decision.reason, decision.fate) == ("NOT_ADMITTED", None)
    assert json.loads(last(spark).facts)["join"]["type"] == kind.name


FIELDS = [
    # the policy, what is split on the left and on the right
    (struct(left_threshold_bytes=39000, skew_factor=1.0), {1: 2, HOT: 6}, {HOT: 3}),
    (struct(right_threshold_bytes=11000, skew_factor=1.0), {1: 2, 2: 2, 7: 2, HOT: 6}, {HOT: 3}),
    (struct(skew_factor=5.26), {HOT: 6}, {}),
    (struct(skew_factor=8.0), {}, {}),
    (struct(left_target_bytes=70000), {HOT: 3}, {HOT: 3}),
    (struct(right_target_bytes=5000), {HOT: 6}, {HOT: 6}),
    (struct(max_splits=4), {HOT: 4}, {HOT: 3}),
    (struct(max_splits=1), {}, {}),
    (exact("left", 5), {2: 5, HOT: 5}, {HOT: 3}),
    (exact("right", 2), {HOT: 6}, {2: 2, HOT: 2}),
]


@pytest.mark.parametrize("enabled", ["true", "false"])
@pytest.mark.parametrize(("text", "left", "right"), FIELDS)
def test_each_field_is_seen_in_the_executed_plan(
    skewed_tables: SparkSession,
    plain: Any,
    text: str,
    left: dict[int, int],
    right: dict[int, int],
    enabled: str,
) -> None:
    """Whether or not the user's own settings have skew handling on."""
    spark = skewed_tables
    skewed.settings(spark, skewed.SPLITS, {"spark.sql.adaptive.skewJoin.enabled": enabled})
    with plain(spark):
        _, before = run(spark, checksum(INNER))
    enforce(spark, text)
    df, rows = run(spark, checksum(INNER))
    assert_same_rows(rows, before)
    assert plans.reads(df)[0].splits() == (left, right)
    assert last(spark).reason == "APPLIED"


def test_parts_are_bounded_by_the_map_tasks(skewed_tables: SparkSession, plain: Any) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    enforce(spark, exact("left", 100))
    df, _ = run(spark, INNER)
    assert plans.reads(df)[0].splits()[0] == {2: MAPPERS, HOT: MAPPERS}
    assert f"of which there are {MAPPERS}" in last(spark).detail


def test_what_one_map_task_wrote_is_not_split(skewed_tables: SparkSession, plain: Any) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    one_task = "SELECT * FROM l ORDER BY v LIMIT 5000"
    sql = f"SELECT /*+ MERGE(r) */ a.k, r.w FROM ({one_task}) a JOIN r ON a.k = r.k"
    with plain(spark):
        before, _ = run(spark, sql)
    enforce(spark, exact("left", 4))
    df, _ = run(spark, sql)
    assert (last(spark).reason, last(spark).fate) == ("ONE_MAPPER", None)
    assert plans.canonical_plan(df) == plans.canonical_plan(before)


def test_both_sides_splits_are_joined_each_with_each(
    skewed_tables: SparkSession, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    with plain(spark):
        _, before = run(spark, INNER)
    arrays = {f"{s}_splits": OF_PARTITION.format(side=s, n=2) for s in ("left", "right")}
    enforce(spark, struct(**arrays))
    df, rows = run(spark, INNER)
    assert_same_rows(rows, before)
    read = plans.reads(df)[0]
    assert read.splits() == ({2: 2, HOT: 2}, {2: 2, HOT: 2})
    assert len(read.left) == len(set(zip(read.left, read.right, strict=True))) == PARTITIONS + 6


def test_split_joins_are_coalesced_as_sparks_own_are(
    skewed_tables: SparkSession, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF, {"spark.sql.adaptive.coalescePartitions.enabled": "true"})
    with plain(spark):
        _, before = run(spark, INNER)
    enforce(spark, exact("left", 3))
    df, rows = run(spark, INNER)
    assert_same_rows(rows, before)
    read = plans.reads(df)[0]
    assert read.splits()[0] == {2: 3, HOT: 3}
    assert "0-1" in read.right
    assert len(read.right) < PARTITIONS + 4
    assert last(spark).fate == "adopted"


def test_the_users_number_of_partitions_holds(
    skewed_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = skewed_tables
    skewed.settings(spark, skewed.OFF)
    with plain(spark):
        before = executed(spark.sql(INNER).repartition(20, "k"))
    for text in (exact("left", 3), struct(force="true", left_splits="null", max_splits=3)):
        enforce(spark, text)
        df = spark.sql(INNER).repartition(20, "k")
        after = executed(df)
        assert_same_rows(after.rows, before.rows)
        assert df.rdd.getNumPartitions() == 20
    enforce(spark, exact("left", 3))
    df = spark.sql(INNER).repartition(PARTITIONS, "k")
    after = executed(df)
    assert_same_rows(after.rows, before.rows)
    assert df.rdd.getNumPartitions() == PARTITIONS
