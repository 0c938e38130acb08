"""Where a shuffle may undo what the author said, or change what is written, Spark writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import little
import tiers
from distributed_writes import (
    EVENLY,
    TASKS,
    asked,
    assert_same,
    by_day,
    facts,
    files,
    joined,
    nodes,
    rebalances,
    use,
)

pytestmark = tiers.ON_ONE


def test_null_and_shadow_leave_sparks_plan(table: SparkSession, tmp_path: Path) -> None:
    by_day(table.table("t"), tmp_path / "plain")
    before = nodes(table)
    for number, (text, mode) in enumerate(
        [("null", "enforce"), ("true", "shadow"), ("true", "off"), ("false", "enforce")]
    ):
        use(table, text, mode)
        by_day(table.table("t"), tmp_path / str(number))
        assert nodes(table) == before
        assert sorted(files(tmp_path / str(number)))[0].startswith("p=0")
        assert len(files(tmp_path / str(number))) == 5 * TASKS
    outcomes = [(d.reason, d.fate) for d in asked(table)]
    assert outcomes == [("NULL_ANSWER", None), ("SHADOW", None), ("APPLIED", "no_change")]


def cached(df: DataFrame) -> DataFrame:
    return df.persist(StorageLevel.MEMORY_ONLY)


LEFT: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "repartition": (lambda df: df.repartition(3), "USER_REPARTITION"),
    "repartition by": (lambda df: df.repartition("k"), "USER_REPARTITION"),
    "repartition by range": (lambda df: df.repartitionByRange(3, "n"), "USER_REPARTITION"),
    "coalesce": (lambda df: df.coalesce(2), "USER_REPARTITION"),
    "rebalance": (lambda df: df.hint("rebalance"), "USER_REPARTITION"),
    "repartition under a filter": (
        lambda df: df.repartition(3).where("n > 9").withColumn("m", sf.col("n") + 1),
        "USER_REPARTITION",
    ),
    "repartition under an aggregate": (
        lambda df: df.repartition(5, "k", "p").groupBy("k", "p").count(),
        "USER_REPARTITION",
    ),
    "repartition under a join": (
        lambda df: joined(df.repartition(5, "k")),
        "USER_REPARTITION",
    ),
    "repartition in a union": (
        lambda df: df.union(df.repartition(2)),
        "USER_REPARTITION",
    ),
    "repartition that is cached": (lambda df: cached(df.repartition(3)), "USER_REPARTITION"),
    "sort": (lambda df: df.orderBy("n"), "USER_SORT"),
    "sort within partitions": (lambda df: df.sortWithinPartitions("p", "n"), "USER_SORT"),
    "sort under a filter": (lambda df: df.orderBy("n").where("n % 2 = 0"), "USER_SORT"),
    "sort that is cached": (lambda df: cached(df.orderBy("n")), "USER_SORT"),
    "sort that is a checkpoint": (
        lambda df: df.orderBy("n").localCheckpoint(),
        "USER_REPARTITION",
    ),
    "an RDD's rows": (
        lambda df: df.sparkSession.createDataFrame(df.rdd, df.schema).where("k > 0"),
        "USER_REPARTITION",
    ),
    "limit": (lambda df: df.limit(100), "LIMITED_ROWS"),
    "limit of a sort": (lambda df: df.orderBy("n").limit(100), "USER_SORT"),
    "offset": (lambda df: df.offset(10), "LIMITED_ROWS"),
    "limit below an aggregate": (
        lambda df: df.limit(100).groupBy("k", "p").count(),
        "LIMITED_ROWS",
    ),
    "limit in a subquery": (
        lambda df: df.where("k IN (SELECT k FROM t LIMIT 5)"),
        "LIMITED_ROWS",
    ),
    "sample": (lambda df: df.sample(0.5, 7), "LIMITED_ROWS"),
    "rand": (lambda df: df.withColumn("r", sf.rand(7)), "NOT_DETERMINISTIC"),
    "monotonically_increasing_id": (
        lambda df: df.withColumn("r", sf.monotonically_increasing_id()),
        "NOT_DETERMINISTIC",
    ),
}


@tiers.EIGHTH
@pytest.mark.parametrize("query", LEFT)
def test_what_the_author_said_and_what_may_differ_is_left_to_spark(
    table: SparkSession, tmp_path: Path, query: str
) -> None:
    change, reason = LEFT[query]
    # The aggregate of a limit gives other rows in each run, so the plan tells, and how many files.
    by_day(change(table.table("t")), tmp_path / "plain")
    before = nodes(table)
    table.catalog.clearCache()
    use(table)
    by_day(change(table.table("t")), tmp_path / "decided")
    assert nodes(table) == before
    assert len(files(tmp_path / "decided")) == len(files(tmp_path / "plain"))
    assert [(d.reason, d.fate) for d in asked(table)] == [(reason, None)]


def test_buckets_are_left_to_spark(table: SparkSession) -> None:
    use(table)
    table.table("t").write.bucketBy(4, "k").format("parquet").saveAsTable("made")
    assert [d.reason for d in asked(table)] == ["BUCKETED_TABLE"]
    assert not rebalances(table)
    assert facts(table)["write"]["bucket_columns"] == ["k"]
    table.sql("INSERT INTO made SELECT * FROM t")
    assert [d.reason for d in asked(table)] == ["BUCKETED_TABLE"] * 2
    assert table.table("made").count() == 6000


def test_nothing_is_shuffled_without_aqe(table: SparkSession, tmp_path: Path) -> None:
    table.conf.set("spark.sql.adaptive.enabled", "false")
    use(table)
    by_day(table.table("t"), tmp_path / "decided")
    assert [d.reason for d in asked(table)] == ["ADAPTIVE_OFF"]
    assert len(files(tmp_path / "decided")) == 5 * TASKS


def test_a_stream_is_left_to_spark(table: SparkSession, tmp_path: Path) -> None:
    table.table("t").repartition(1).write.parquet(str(tmp_path / "source"))
    use(table)
    stream = table.readStream.schema("n BIGINT, p BIGINT").parquet(str(tmp_path / "source"))

    def write(df: DataFrame, _number: int) -> None:
        by_day(df, tmp_path / "batch")

    query = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    sink = stream.writeStream.format("parquet").trigger(availableNow=True)
    sink = sink.option("checkpointLocation", str(tmp_path / "d")).option("path", f"{tmp_path}/s")
    sink.start().awaitTermination()
    reasons = table.sql(
        "SELECT reason FROM aqepilot_decisions() WHERE point = 'write_distribution'"
    )
    assert {d.reason for d in reasons.collect()} <= {"STREAMING_WRITE"}
    assert table.read.parquet(f"{tmp_path}/s").count() == 3000
    assert len(files(tmp_path / "batch")) == 5


AMBIGUOUS = {
    "zeros": "if(spark_partition_id() < 6, 0D, -0D)",
    "an hour that is there twice": "timestamp_seconds(1729989000 + if(n < 1500, 0, 3600))",
    "bytes": "if(n < 1500, x'ff', x'fe')",
}


@tiers.EIGHTH
@pytest.mark.parametrize("values", AMBIGUOUS)
def test_values_that_fail_in_one_task_do_not_meet(
    table: SparkSession, tmp_path: Path, values: str
) -> None:
    """Spark's writer opens a file twice where it sorts two values alike, or names them alike."""
    table.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    source = table.sql(f"SELECT n, {AMBIGUOUS[values]} AS p FROM t")
    source.write.parquet(str(tmp_path / "source"))
    little.settings(
        table,
        {"spark.sql.files.maxPartitionBytes": "1MB", "spark.sql.files.openCostInBytes": "1MB"},
    )
    df = table.read.parquet(str(tmp_path / "source"))
    by_day(df, tmp_path / "plain")
    with pytest.raises(Exception, match=r"(?s)already exists|Task failed"):
        by_day(df.hint("rebalance"), tmp_path / "by the author")
    use(table, EVENLY)
    by_day(df, tmp_path / "decided")
    assert asked(table)[-1].reason == "AMBIGUOUS_PARTITION"
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


def test_sums_of_doubles_distribute_nothing(table: SparkSession, tmp_path: Path) -> None:
    """Their last bits hang on the order of rows, which is another when a map task runs again.

    A mean of integers adds doubles.
    """
    df = table.sql(
        "SELECT k, p, count(*) AS c, sum(d) AS s, max(d) AS m,"
        " collect_list(n) AS l, first(n) AS f, sum(n) AS i, avg(n) AS a FROM t GROUP BY k, p"
    )
    use(table)
    for name, written in {"evenly": df, "mean": df.drop("s", "l", "f")}.items():
        written.write.parquet(str(tmp_path / name))
        assert asked(table)[-1].reason == "NOT_DETERMINISTIC"
    assert facts(table)["input"]["distributing_columns"] == ["k", "p", "c", "m", "i"]
    by_day(df, tmp_path / "decided")
    assert asked(table)[-1].reason == "APPLIED"
    df.drop("s", "l", "f", "a").write.parquet(str(tmp_path / "others"))
    assert asked(table)[-1].reason == "APPLIED"
    table.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    df.drop("s", "l", "f", "a").write.parquet(str(tmp_path / "unsorted"))
    assert asked(table)[-1].reason == "NOT_DETERMINISTIC"
