"""Where somebody counts a stage's tasks, they are plain Spark's: in barrier mode, and in an RDD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import each_point
import policies
import skewed
from rows import assert_same_rows

# Two map tasks and two partitions: as many tasks as there are slots.
FEW = skewed.SETTINGS | {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.files.maxPartitionBytes": "1GB",
    "spark.sql.files.minPartitionNum": "2",
    "spark.sql.files.openCostInBytes": "1",
}
COALESCED = {
    "spark.sql.shuffle.partitions": "5",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
}
# What Spark itself makes a broadcast when it has run; read where it was written.
MEASURED = {"spark.sql.adaptive.autoBroadcastJoinThreshold": "20KB"}
SIX_MAPPERS = {
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
}
JOINED = "SELECT l.k, l.v, d.x FROM l JOIN d ON l.k = d.k"
CHAIN = "SELECT l.k, r.n, d.x FROM l, r, d WHERE l.k = r.k AND r.n = d.k"


class Case(NamedTuple):
    """A query of two tasks at most, and a policy that would give its last stage others."""

    query: str
    text: str
    settings: dict[str, str]


CASES = {
    "skew_join": Case(JOINED, skewed.struct(left_splits="array(3, 3)"), SIX_MAPPERS),
    "shuffle_partitions": Case(JOINED, "5", {}),
    "partition_coalescing": Case(JOINED, "named_struct('keep', true)", COALESCED),
    "dynamic_join_selection": Case(
        JOINED, "CASE WHEN NOT side.is_left THEN 'BROADCAST' END", SIX_MAPPERS
    ),
    "join_selection": Case(
        JOINED, "named_struct('strategy', 'BROADCAST', 'build_side', 'RIGHT')", SIX_MAPPERS
    ),
    "join_reorder": Case(CHAIN, "array(2, 1, 0)", {}),
    "cost_evaluation": Case(JOINED, "spark.cost + plan.broadcast_hash_joins * 100", MEASURED),
}
POINT = pytest.mark.parametrize("point", CASES)


def in_barrier_mode(df: DataFrame) -> DataFrame:
    """How many rows each task of a stage in barrier mode reads."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"n": [sum(b.num_rows for b in batches)]})

    return df.mapInArrow(count, "n bigint", barrier=True)


def counted(df: DataFrame) -> list[int]:
    return [row.n for row in in_barrier_mode(df).collect()]


def sizes(df: DataFrame) -> list[int]:
    """How many rows each partition of the RDD has."""
    return df.rdd.mapPartitions(lambda rows: [sum(1 for _ in rows)]).collect()


def ran(df: DataFrame) -> list[int]:
    """The same of the plan that ran as a query, which PySpark converts then."""
    df.collect()
    return sizes(df)


def prepare(spark: SparkSession, case: Case) -> None:
    for key, value in (FEW | case.settings).items():
        spark.conf.set(key, value)


def reasons(spark: SparkSession, since: int) -> set[str]:
    return {d.reason for d in policies.decisions(spark)[since:]}


def assert_decided(spark: SparkSession, since: int = 0) -> None:
    assert reasons(spark, since) - {"NULL_ANSWER"} == {"APPLIED"}


def test_each_point_has_a_case() -> None:
    # What is written leaves no partitions: its rebalance stands above the query.
    assert {*CASES, "write_distribution"} == set(each_point.POINTS)


@POINT
def test_an_rdd_has_plain_sparks_partitions(
    skewed_tables: SparkSession, plain: Any, point: str
) -> None:
    spark, case = skewed_tables, CASES[point]
    prepare(spark, case)
    with plain(spark):
        expected = sizes(spark.sql(case.query))
        rows = spark.sql(case.query).collect()
    each_point.use(spark, {point: case.text})
    df = spark.sql(case.query)
    assert ran(df) != expected, "the policy has no effect on a query"
    assert_same_rows(df.collect(), rows)
    since = len(policies.decisions(spark))
    assert sizes(spark.sql(case.query)) == expected
    assert "RDD_PARTITIONS" in reasons(spark, since)
    assert sizes(spark.sql(case.query).localCheckpoint()) == expected


@POINT
def test_a_barrier_stage_has_plain_sparks_tasks(
    skewed_tables: SparkSession, plain: Any, point: str
) -> None:
    spark, case = skewed_tables, CASES[point]
    prepare(spark, case)
    with plain(spark):
        expected = counted(spark.sql(case.query))
    assert len(expected) <= 2
    each_point.use(spark, {point: case.text})
    since = len(policies.decisions(spark))
    assert counted(spark.sql(case.query)) == expected
    assert "BARRIER_STAGE" in reasons(spark, since)


def test_a_barrier_stage_that_fills_a_cache_has_plain_sparks_tasks(
    skewed_tables: SparkSession, plain: Any
) -> None:
    spark, case = skewed_tables, CASES["skew_join"]
    prepare(spark, case)

    def cached() -> list[int]:
        df = spark.sql(case.query).cache()
        try:
            return counted(df)
        finally:
            df.unpersist(blocking=True)

    with plain(spark):
        expected = cached()
    each_point.use(spark, {"skew_join": case.text})
    assert cached() == expected


def test_a_barrier_stage_has_no_fewer_tasks_either(skewed_tables: SparkSession, plain: Any) -> None:
    """Its function counts the others: `BarrierTaskContext.getTaskInfos`."""
    spark = skewed_tables
    prepare(spark, Case(JOINED, "", {}))
    with plain(spark):
        expected = counted(spark.sql(JOINED))
    assert len(expected) == 2
    each_point.use(spark, {"partition_coalescing": "named_struct('min_partitions', 1)"})
    since = len(policies.decisions(spark))
    assert counted(spark.sql(JOINED)) == expected
    assert "BARRIER_STAGE" in reasons(spark, since)


@pytest.mark.parametrize("point", ["skew_join", "join_selection", "dynamic_join_selection"])
def test_what_is_below_a_shuffle_of_the_users_number_is_decided(
    skewed_tables: SparkSession, plain: Any, point: str
) -> None:
    spark, case = skewed_tables, CASES[point]
    prepare(spark, case)

    def query() -> DataFrame:
        return spark.sql(case.query).repartition(1 if point == "skew_join" else 3, "x")

    with plain(spark):
        expected = sizes(query())
    each_point.use(spark, {point: case.text})
    since = len(policies.decisions(spark))
    assert sizes(query()) == expected
    assert_decided(spark, since)
    since = len(policies.decisions(spark))
    assert sum(counted(spark.sql(case.query).repartition(2))) == sum(expected)
    assert_decided(spark, since)


def test_what_is_above_a_barrier_stage_is_decided(skewed_tables: SparkSession) -> None:
    spark = skewed_tables
    prepare(spark, Case(JOINED, "", {}))
    made = in_barrier_mode(spark.table("l").repartition(2)).alias("a")
    each_point.use(spark, {"join_selection": "'SHUFFLE_HASH'"})
    df = made.join(spark.table("d"), f.expr("a.n = d.k"))
    df.collect()
    assert_decided(spark)


def test_no_product_of_a_barrier_stage(skewed_tables: SparkSession, plain: Any) -> None:
    """Spark runs no stage in barrier mode whose operators have other numbers of partitions."""
    spark = skewed_tables
    prepare(spark, Case(JOINED, "", {"spark.sql.autoBroadcastJoinThreshold": "10MB"}))
    made = in_barrier_mode(spark.table("l").repartition(2)).alias("a")
    df = made.join(spark.table("d").limit(3), f.expr("a.n > d.k"))
    with plain(spark):
        expected = df.collect()
    each_point.use(spark, {"join_selection": "'SHUFFLE_REPLICATE_NL'"})
    assert_same_rows(df.alias("again").collect(), expected)
    assert "BARRIER_STAGE" in reasons(spark, 0)


def test_conversions_of_related_queries_agree(skewed_tables: SparkSession) -> None:
    """One query counts rows by partition, the next uses the numbers: as trainers do."""
    spark = skewed_tables
    prepare(spark, Case(JOINED, "", {}))
    each_point.use(spark, {point: case.text for point, case in CASES.items()})
    data = spark.table("l").groupBy("k").agg(f.max("v").alias("v"))
    assert sizes(data.select(f.lit(0))) == sizes(data)


def test_an_explained_query_still_shows_what_is_decided(skewed_tables: SparkSession) -> None:
    spark, case = skewed_tables, CASES["join_selection"]
    prepare(spark, case)
    each_point.use(spark, {"join_selection": case.text})
    df = spark.sql(case.query)
    df.explain()
    assert_decided(spark)
    assert "BroadcastHashJoin" in df._jdf.queryExecution().toString()
