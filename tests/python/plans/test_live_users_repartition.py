"""What the author's repartition promises holds where Spark leaves it out for an equal shuffle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import plans
import policies
import skewed
import tiers
from rows import assert_same_rows
from skewed import PARTITIONS, struct

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

JOINED = "SELECT l.k, l.v, r.n FROM l JOIN r ON l.k = r.k"
LEFT_JOINED = "SELECT l.k, l.v, r.n FROM l LEFT JOIN r ON l.k = r.k"
OF_PARTITION_5 = "transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, 3, null))"
OF_ALL = "transform(left.bytes_by_partition_id, b -> 3)"
BROADCASTS = {
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "1MB",
    "spark.sql.adaptive.localShuffleReader.enabled": "true",
}
BROADCAST = "'BROADCAST'"
NO_LOCAL_READS = {"spark.sql.adaptive.localShuffleReader.enabled": "false"}


def split(splits: str = OF_PARTITION_5, **more: Any) -> str:
    """An answer that splits the left side."""
    return struct(left_splits=splits, **more)


def use(spark: SparkSession, **texts: str) -> None:
    """Makes it the session's only policy."""
    spark.conf.set("spark.aqepilot.policies", "test")
    for point, text in texts.items():
        spark.conf.set(f"spark.aqepilot.policy.test.{point}", text)


def partitions(df: DataFrame) -> list[list[Any]]:
    """The rows of each partition, in their order, of the plan that ran as a query."""
    df.collect()
    return df.rdd.glom().collect()


def by_python(df: DataFrame) -> DataFrame:
    """The keys of each partition, once for each that has them."""

    def keys(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read_keys = {key for batch in batches for key in batch.column(0).to_pylist()}
        yield pa.RecordBatch.from_pydict({"k": sorted(read_keys)}, pa.schema([("k", pa.int64())]))

    return df.filter("k IS NOT NULL").select("k").mapInArrow(keys, "k bigint")


def by_partition_id(df: DataFrame) -> DataFrame:
    """The same by Spark's function for a partition's number."""
    return df.filter("k IS NOT NULL").select("k", f.spark_partition_id()).distinct().select("k")


def torn(df: DataFrame) -> int:
    """How many keys are in several partitions."""
    keys = [row.k for row in df.collect()]
    return len(keys) - len(set(keys))


WITHIN = pytest.mark.parametrize("within", [by_python, by_partition_id])


@pytest.mark.parametrize("sparks", [{}, skewed.FORCED], ids=["unsplit", "split by Spark"])
def test_a_forced_split_keeps_the_order_within_partitions(
    skewed_tables: SparkSession, sparks: dict[str, str]
) -> None:
    """The further shuffle goes where the author's repartition stood: below the sort."""
    spark = skewed_tables
    skewed.settings(spark, sparks)
    use(spark, skew_join=split(force="true"))
    df = spark.sql(JOINED).repartition(PARTITIONS, "k").sortWithinPartitions(f.desc("n"), "v")
    numbered = partitions(df)
    assert skewed.last(spark).reason == "APPLIED"
    assert plans.joins(df)[0].skewed
    assert plans.reads(df)[0].splits()[0] == {5: 3}
    assert len(numbered) == PARTITIONS
    for rows in numbered:
        assert rows == sorted(rows, key=lambda row: (-row.n, row.v))


def test_a_forced_split_keeps_the_numbers_of_partitions(skewed_tables: SparkSession) -> None:
    """A column that is computed of each partition says in which one the row is."""
    spark = skewed_tables
    skewed.settings(spark)
    use(spark, skew_join=split(force="true"))
    df = spark.sql(JOINED).repartition(PARTITIONS, "k").withColumn("p", f.spark_partition_id())
    numbered = partitions(df)
    assert plans.joins(df)[0].skewed
    assert [{row.p for row in rows} for rows in numbered] == [{p} for p in range(PARTITIONS)]


def test_a_forced_split_leaves_alone_what_becomes_an_rdd(
    skewed_tables: SparkSession, plain: Any
) -> None:
    """Its partitions are Spark's; and it ends in objects, which no further shuffle can carry."""
    spark = skewed_tables
    skewed.settings(spark)
    with plain(spark):
        expected = spark.sql(JOINED).count()
    use(spark, skew_join=split(force="true"))
    df = spark.sql(JOINED).repartition(PARTITIONS, "k")
    assert df._jdf.toJavaRDD().count() == expected
    assert skewed.last(spark).reason == "RDD_PARTITIONS"


def test_a_forced_split_leaves_rows_sorted_for_an_aggregate(skewed_tables: SparkSession) -> None:
    """The shuffle that the aggregate would need above the sort is not taken."""
    spark = skewed_tables
    skewed.settings(spark)
    use(spark, skew_join=split(force="true"))
    df = spark.sql(JOINED).sortWithinPartitions("n", "v").groupBy("k").agg(f.collect_list("n"))
    assert all(ns == sorted(ns) for _, ns in df.collect())
    assert not any(join.skewed for join in plans.joins(df))
    assert skewed.last(spark).reason == "DISTRIBUTION_BROKEN"
    again = (
        spark.sql(JOINED)
        .repartition(PARTITIONS, "k")
        .sortWithinPartitions("n", "v")
        .groupBy("k")
        .agg(f.collect_list("n"))
    )
    assert all(ns == sorted(ns) for _, ns in again.collect())
    assert plans.joins(again)[0].skewed
    assert skewed.last(spark).reason == "APPLIED"


@WITHIN
@pytest.mark.parametrize("force", ["false", "true"])
def test_a_split_does_not_tear_what_the_author_brought_together(
    skewed_tables: SparkSession, within: Callable[[DataFrame], DataFrame], force: str
) -> None:
    """Spark has left the repartition out: the join is partitioned so."""
    spark = skewed_tables
    skewed.settings(spark)
    use(spark, skew_join=split(force=force))
    df = within(spark.sql(JOINED).repartition(PARTITIONS, "k"))
    assert torn(df) == 0
    assert [join.skewed for join in plans.joins(df)] == [force == "true"]
    assert skewed.last(spark).reason == ("APPLIED" if force == "true" else "EXTRA_SHUFFLE")


def test_a_split_below_another_join_of_the_same_key(
    skewed_tables: SparkSession, plain: Any
) -> None:
    """The upper join has no partitioning until its sides are shuffled again."""
    spark = skewed_tables
    skewed.settings(spark)
    sql = f"""SELECT /*+ REPARTITION({PARTITIONS}, k) */ a.k, b.v
        FROM (SELECT k, max(x) FROM d GROUP BY k) a
        JOIN (SELECT l.k, l.v FROM l LEFT SEMI JOIN r ON l.k = r.k) b ON a.k = b.k"""
    with plain(spark):
        expected = spark.sql(sql).collect()
    for force, reason in (("false", "EXTRA_SHUFFLE"), ("true", "APPLIED")):
        use(spark, skew_join=f"CASE WHEN join.type = 'LEFT SEMI' THEN {split(force=force)} END")
        assert_same_rows(spark.sql(sql).collect(), expected)
        reasons = policies.reasons(spark)
        assert reason in reasons
        assert "INTERNAL_ERROR" not in reasons


@WITHIN
@pytest.mark.parametrize("settings", [{}, BROADCASTS], ids=["split", "local read"])
@pytest.mark.parametrize("sql", [JOINED, LEFT_JOINED], ids=["inner", "left"])
def test_the_authors_number_for_sparks_shuffles_does_not_tear_it_either(
    skewed_tables: SparkSession,
    within: Callable[[DataFrame], DataFrame],
    settings: dict[str, str],
    sql: str,
) -> None:
    """With it, Spark would leave the repartition out, and then split or read locally below."""
    spark = skewed_tables
    skewed.settings(spark, settings)
    use(spark, shuffle_partitions="5", skew_join=split(OF_ALL))
    df = within(spark.sql(sql).repartition(5, "k"))
    assert torn(df) == 0
    reasons = {d.reason for d in policies.decisions(spark) if d.point == "shuffle_partitions"}
    assert "DISTRIBUTION_BROKEN" in reasons


@WITHIN
def test_a_local_read_does_not_tear_it(
    skewed_tables: SparkSession, within: Callable[[DataFrame], DataFrame]
) -> None:
    spark = skewed_tables
    skewed.settings(spark, BROADCASTS, NO_LOCAL_READS)
    use(spark, partition_coalescing=struct(local_read="true"))
    df = within(spark.sql(JOINED).repartition(PARTITIONS, "k"))
    assert torn(df) == 0
    assert plans.strategies(df)[0].startswith("BroadcastHashJoin")
    assert "DISTRIBUTION_BROKEN" in policies.reasons(spark)


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        (NO_LOCAL_READS, {"partition_coalescing": struct(local_read="true")}),
        ({}, {"join_selection": f"CASE WHEN join.is_replan THEN {struct(strategy=BROADCAST)} END"}),
    ],
    ids=["coalescing", "selection"],
)
def test_what_stands_below_a_repartition_is_read_locally_as_ever(
    skewed_tables: SparkSession, settings: dict[str, str], texts: dict[str, str]
) -> None:
    """The repartition, which Spark has not left out, shuffles the rows anyway."""
    spark = skewed_tables
    skewed.settings(spark, BROADCASTS)

    def run() -> tuple[str, int]:
        df = spark.sql(LEFT_JOINED).repartition(PARTITIONS + 1, "k")
        rows = df.count()
        assert len(partitions(df)) == PARTITIONS + 1
        df.collect()
        return plans.canonical_plan(df), rows

    plain = run()
    skewed.settings(spark, BROADCASTS, settings)
    use(spark, **texts)
    assert run() == plain
    assert "DISTRIBUTION_BROKEN" not in policies.reasons(spark)


@WITHIN
@pytest.mark.parametrize(
    "texts",
    [
        {"dynamic_join_selection": "CASE WHEN NOT side.is_left THEN 'BROADCAST' END"},
        {"join_selection": f"CASE WHEN join.is_replan THEN {struct(strategy=BROADCAST)} END"},
    ],
    ids=["dynamic", "selection"],
)
def test_a_decided_broadcast_does_not_tear_it(
    skewed_tables: SparkSession,
    within: Callable[[DataFrame], DataFrame],
    texts: dict[str, str],
) -> None:
    """Spark would read the streamed side locally, as the join is no longer a shuffled one."""
    spark = skewed_tables
    skewed.settings(spark)
    use(spark, **texts)
    df = within(spark.sql(JOINED).repartition(PARTITIONS, "k"))
    assert torn(df) == 0
    assert plans.strategies(df)[0].startswith("BroadcastHashJoin")
