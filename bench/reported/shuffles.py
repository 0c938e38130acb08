"""Too many tasks, too few of them, and too many files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from bench.reported.job import Job, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _cached_200(spark: SparkSession, _folder: Path, _changed: bool) -> Rows:
    """SPARK-41262, SPARK-46995: a small cached result keeps 200 partitions: 200 tasks a query."""
    kept = (
        spark.range(0, 200_000, 1, 4)
        .selectExpr("id % 20000 AS k", "id AS v")
        .dropDuplicates(["k"])
        .cache()
    )
    try:
        kept.count()
        groups = (functions.col("k") % 50).alias("g")
        return [
            row
            for part in range(12)
            for row in kept.where(functions.col("k") % 12 == part).groupBy(groups).count().collect()
        ]
    finally:
        # The next session's would be this one.
        kept.unpersist(blocking=True)


CACHED_200 = Job("tiny_tasks", "local[2]", _cached_200)


def _priced(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(len(batch) * 6e-5)
        yield batch


def _coalesce_1(spark: SparkSession, folder: Path, changed: bool) -> Rows:
    """One file is wanted, so the job ends in coalesce(1), and one task does all of its work."""
    priced = spark.range(0, 200_000, 1, 16).mapInPandas(_priced, "id long")
    one = priced.repartition(1) if changed else priced.coalesce(1)
    target = str(folder / "one_file")
    one.write.mode("overwrite").parquet(target)
    return spark.read.parquet(target).agg(functions.sum("id"), functions.count("*")).collect()


COALESCE_1 = Job(
    "coalesce",
    "local[16]",
    _coalesce_1,
    conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "2000"},
)


def _days(spark: SparkSession, folder: Path) -> None:
    rows = spark.range(0, 400_000, 1, 100).selectExpr("id AS c1", "string(id % 2) AS p1")
    rows.write.partitionBy("p1").parquet(str(folder / "days"))


def _one_partition(spark: SparkSession, folder: Path, _changed: bool) -> Rows:
    """kyuubi#5079: a partition that a filter chose is written by a task for each small file."""
    target = str(folder / "one_day")
    days = spark.read.parquet(str(folder / "days")).where("p1 = '1'")
    days.write.mode("overwrite").partitionBy("p1").parquet(target)
    return spark.read.parquet(target).agg(functions.sum("c1"), functions.count("*")).collect()


ONE_PARTITION = Job(
    "small_files",
    "local[2]",
    _one_partition,
    _days,
    conf={
        "spark.sql.files.openCostInBytes": "0",
        "spark.sql.files.maxPartitionBytes": "8k",
    },
)
