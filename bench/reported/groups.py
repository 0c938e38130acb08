"""Few bytes that are much work: groups, rows, and one group that has most of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions

from bench.reported.job import Job, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _fitted(series: Any) -> Any:
    import pandas as pd

    time.sleep(0.8)
    return pd.DataFrame({"item": [series["item"].iloc[0]], "f": [int(series["y"].sum())]})


def _series(spark: SparkSession, _folder: Path, _changed: bool) -> Rows:
    """databricks-cli#386, fugue#493: a model for each of few series, 0.8 s each."""
    sold = spark.range(0, 12 * 104, 1, 4).selectExpr("id % 12 AS item", "id * 7 % 101 AS y")
    return sold.groupBy("item").applyInPandas(_fitted, "item long, f long").collect()


SERIES = Job("expanding", "local[16]", _series)


def _native_rows(spark: SparkSession, _folder: Path, _changed: bool) -> Rows:
    """databrickslabs/mosaic#415: few rows that each take long in the JVM."""
    totals = spark.range(0, 60_000, 1, 4).selectExpr("id % 6000 AS k", "id AS v").groupBy("k")
    stepped = "aggregate(sequence(1, 4000), v, (x, y) -> (x * 31 + y) % 1000003) AS z"
    return (
        totals.agg(functions.max("v").alias("v"))
        .selectExpr("k", stepped)
        .agg(functions.sum("z"), functions.count("*"))
        .collect()
    )


NATIVE_ROWS = Job("expanding", "local[2]", _native_rows)


def _scored(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        time.sleep(len(batch) * 6e-5)
        yield batch[["v", "total"]]


def _one_tenant(spark: SparkSession, _folder: Path, changed: bool) -> Rows:
    """A window by tenant, of whom one has nine rows in ten: one task has them, and all above."""
    events = spark.range(0, 200_000, 1, 16).selectExpr(
        "IF(id % 10 < 9, 0, id % 500) AS tenant", "id AS v"
    )
    if changed:
        totals = events.groupBy("tenant").agg(functions.sum("v").alias("total"))
        events = events.join(functions.broadcast(totals), "tenant")
    else:
        events = events.selectExpr("tenant", "v", "sum(v) OVER (PARTITION BY tenant) AS total")
    scored = events.mapInPandas(_scored, "v long, total long")
    return (
        scored.groupBy((functions.col("v") % 100).alias("g")).agg(functions.sum("total")).collect()
    )


ONE_TENANT = Job(
    "one_group",
    "local[16]",
    _one_tenant,
    conf={"spark.sql.execution.arrow.maxRecordsPerBatch": "2000"},
)
