"""Joins that wait for one task, or that compare all pairs of rows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from bench.reported.job import Job, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PAIRED = 30_000


def _looked_up(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(len(batch) * 6e-5)
        yield batch


def _null_keys(spark: SparkSession, _folder: Path, _changed: bool) -> Rows:
    """SPARK-56899: most keys of a left outer join are null, and one task has their rows."""
    key = (
        functions.when(functions.col("id") % 10 < 7, functions.lit(None))
        .otherwise(functions.col("id") % 5000)
        .cast("long")
    )
    events = spark.range(0, 300_000, 1, 16).select(key.alias("k"), functions.col("id").alias("v"))
    named = spark.range(0, 5000, 1, 4).selectExpr("id AS k", "id * 3 AS w")
    looked_up = (
        events.join(named, "k", "left")
        .select("v", "w")
        .mapInPandas(_looked_up, "v long, w long")
        .groupBy((functions.col("v") % 100).alias("g"))
    )
    return looked_up.agg(functions.count("*"), functions.sum("w")).collect()


NULL_KEYS = Job(
    "hot_key",
    "local[16]",
    _null_keys,
    conf={
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
    },
)


def _pairs(spark: SparkSession, folder: Path) -> None:
    """Keys of which a reader may think that some are null, as of any file."""
    for name, step in (("orders", 3), ("blocked", 7)):
        spark.range(0, _PAIRED, 1, 4).selectExpr(
            f"id * {step} AS shop",
            f"id * {step} % 1009 AS item",
            f"concat('m', id * {step}) AS mail",
            f"concat('p', id * {step + 1}) AS phone",
        ).write.parquet(str(folder / name))


def _tables(spark: SparkSession, folder: Path) -> None:
    for name in ("orders", "blocked"):
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)


def _not_in(spark: SparkSession, folder: Path, changed: bool) -> Rows:
    """NOT IN of two columns: null-aware, so that each row is compared with all others."""
    _tables(spark, folder)
    condition = (
        "NOT EXISTS (SELECT 1 FROM blocked b WHERE b.shop = o.shop AND b.item = o.item)"
        if changed
        else "(shop, item) NOT IN (SELECT shop, item FROM blocked)"
    )
    return spark.sql(
        f"SELECT item % 10, count(*) FROM orders o WHERE {condition} GROUP BY 1"
    ).collect()


NOT_IN = Job("not_in", "local[2]", _not_in, _pairs)


def _either_key(spark: SparkSession, folder: Path, changed: bool) -> Rows:
    """Customers matched by mail or by phone: the join has no key, and compares all pairs."""
    _tables(spark, folder)
    pairs = "SELECT o.shop, b.shop AS other FROM orders o JOIN blocked b ON "
    matched = (
        f"{pairs} o.mail = b.mail UNION {pairs} o.phone = b.phone"
        if changed
        else f"{pairs} o.mail = b.mail OR o.phone = b.phone"
    )
    return spark.sql(
        f"SELECT shop % 10, count(*), sum(other) FROM ({matched}) GROUP BY 1"
    ).collect()


EITHER_KEY = Job("no_keys", "local[2]", _either_key, _pairs)
