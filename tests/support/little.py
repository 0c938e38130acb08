"""Little tables whose shuffles are skewed or sparse, and settings at which Spark's rule fires."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 20_000  # of the larger tables
# Every join starts as a sort-merge join; what a stage measured may make it a broadcast.
SORT_MERGE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "16",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
}
# Spark's rule demotes the broadcast of `sparse`: 2 of its 16 partitions are not empty.
DEMOTES = SORT_MERGE | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "64KB"}
# Spark's rule (4.3: its conversion) prefers shuffled hash joins: each partition is below 4 MB.
PREFERS_SHUFFLED_HASH = SORT_MERGE | {
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1MB",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "4MB",
}

BIG_SPARSE = "SELECT b.k, b.v, s.w FROM big b JOIN sparse s ON b.k = s.k"
BIG_DENSE = "SELECT b.k, b.v, d.w FROM big b JOIN dense d ON b.k = d.k"
SKEWED_DENSE = "SELECT s.k, s.v, d.w FROM skewed s JOIN dense d ON s.k = d.k"

_TABLES = {
    # every key of 0..9999 alike
    "big": f"SELECT id % 10000 AS k, uuid_like(id) AS v FROM range({ROWS})",
    # 6 in 10 of key 0
    "skewed": f"SELECT if(id % 10 < 6, 0, id % 10000) AS k, uuid_like(id) AS v FROM range({ROWS})",
    # 10,000 rows, every key once
    "dense": "SELECT id AS k, id * 2 AS w FROM range(10000)",
    # 2 keys: at most 2 non-empty partitions; one row of each
    "sparse": "SELECT id AS k, id * 3 AS w FROM range(2)",
}


def write(spark: SparkSession, folder: Path) -> None:
    """Writes each table as Parquet."""
    for table, query in _TABLES.items():
        text = query.replace("uuid_like(id)", "sha2(cast(id AS string), 256)")
        spark.sql(text).coalesce(2).write.parquet(str(folder / table))


def register(spark: SparkSession, folder: Path) -> None:
    """Makes a temporary view of each table."""
    for table in _TABLES:
        spark.read.parquet(str(folder / table)).createOrReplaceTempView(table)


def settings(spark: SparkSession, values: dict[str, str]) -> None:
    """Sets them in the session."""
    for key, value in values.items():
        spark.conf.set(key, value)


def ranges(spark: SparkSession) -> None:
    """Makes the views a, with null keys, and b; no join of them is a broadcast by its size."""
    settings(
        spark,
        {
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
            "spark.sql.shuffle.partitions": "3",
        },
    )
    spark.sql(
        "SELECT if(id % 9 = 0, NULL, id % 60) AS k, id AS v FROM range(0, 200, 1, 2)"
    ).createOrReplaceTempView("a")
    spark.sql(
        "SELECT id % 40 + 5 AS k, id * 3 AS w FROM range(0, 80, 1, 2)"
    ).createOrReplaceTempView("b")
