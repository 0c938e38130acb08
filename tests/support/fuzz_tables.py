"""The small tables that drawn queries read, and how many rows a join of them finds."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pyspark

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

IS_SPARK_4 = int(pyspark.__version__.split(".")[0]) >= 4

# Every table has these columns, so that any two can be joined, united or nested.
COLUMNS = ("k", "j", "n", "d", "x", "day", "tags", "info")
KEYS = 17


class Profile(NamedTuple):
    """About how many rows have key 0, key 1, null, and each of the other keys."""

    zero: float
    one: float
    null: float
    other: float

    @property
    def rows(self) -> float:
        return self.zero + self.one + self.null + (KEYS - 2) * self.other

    def times(self, other: Profile) -> Profile:
        return Profile(*(a * b for a, b in zip(self, other, strict=True)))

    def plus(self, other: Profile) -> Profile:
        return Profile(*(a + b for a, b in zip(self, other, strict=True)))

    def scaled(self, by: float) -> Profile:
        return Profile(*(a * by for a in self))


class Table(NamedTuple):
    """A table.

    Attributes:
        rows: How many it has.
        files: In how many files or slices they are: each is one map task.
        hot: The key of four in ten rows; null for none, then no key is null either.
        keys: How many keys there are; 0 for none but null.
        source: What holds the rows: `files` of Parquet or a `range` below a view, a table `parted`
            or `bucketed` by the key.
        weight: How often a query reads it, compared with the others.
    """

    rows: int
    files: int
    hot: int | None
    keys: int
    source: str
    weight: int = 4

    def key(self, i: int) -> int | None:
        """The key of a row."""
        if not self.keys or (self.hot is not None and i % 10 == 9):
            return None
        return self.hot if self.hot is not None and i % 10 < 4 else i % self.keys

    @property
    def sql(self) -> str:
        """The same as SQL."""
        if not self.keys:
            return "CAST(NULL AS INT)"
        key = f"CAST(id % {self.keys} AS INT)"
        if self.hot is None:
            return key
        return f"CASE WHEN id % 10 = 9 THEN NULL WHEN id % 10 < 4 THEN {self.hot} ELSE {key} END"

    @property
    def profile(self) -> Profile:
        counts = Counter(map(self.key, range(self.rows)))
        other = sum(counts[key] for key in range(2, KEYS)) / (KEYS - 2)
        return Profile(counts[0], counts[1], counts[None], other)


# Ranges mostly: to scan a file, Spark sends each task the whole Hadoop configuration.
TABLES = {
    "facts": Table(60, 3, 0, KEYS, "range", 5),
    "more": Table(40, 2, 1, KEYS, "range", 5),
    "dims": Table(20, 2, 7, KEYS, "range", 5),
    # Each key once: a dimension to Spark's detection of star joins.
    "keys": Table(KEYS, 1, None, KEYS, "range", 4),
    "filed": Table(24, 2, 3, KEYS, "files", 1),
    "parted": Table(24, 1, 0, 3, "parted", 1),
    "bucketed": Table(30, 1, 1, KEYS, "bucketed", 1),
    "tiny": Table(5, 1, 1, KEYS, "range", 1),
    "one": Table(1, 1, 0, KEYS, "range", 1),
    "none": Table(0, 1, 0, KEYS, "range", 1),
    "nulls": Table(6, 2, None, 0, "range", 1),
}


def write(spark: SparkSession, folder: Path) -> None:
    """Makes of each table a global temporary view, and a table with statistics in the catalog."""
    spark.sql("CREATE DATABASE tables")
    for name, table in TABLES.items():
        df = spark.sql(_rows(table))
        writer = df.write
        if table.source == "bucketed":
            writer = writer.bucketBy(2, "k").sortBy("k")
        elif table.source == "parted":
            writer = writer.partitionBy("k")
        writer.saveAsTable(f"tables.{name}")
        columns = ", ".join(COLUMNS[:6])
        spark.sql(f"ANALYZE TABLE tables.{name} COMPUTE STATISTICS FOR COLUMNS {columns}")
        if table.source == "files":
            df.write.parquet(str(folder / name))
            df = spark.read.parquet(str(folder / name))
        elif table.source != "range":
            df = spark.table(f"tables.{name}")
        df.select(*COLUMNS).createOrReplaceGlobalTempView(name)


def _rows(table: Table) -> str:
    return f"""
        SELECT k, CASE WHEN id % 7 = 0 THEN NULL WHEN id % 5 = 0 THEN concat('S', k)
            ELSE concat('s', if(id % 3 = 0, id % 13, k)) END AS j,
          id AS n, CAST(id * 7 % 1000 / 10 AS DECIMAL(12, 2)) AS d,
          CASE WHEN id % 13 = 0 THEN double('NaN') WHEN id % 11 = 0 THEN -0.0D ELSE k / 4 END AS x,
          date_add(DATE'2024-01-01', CAST(id % 30 AS INT)) AS day,
          CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN array()
            ELSE array(concat('s', id % 5), concat('s', id % 17)) END AS tags,
          named_struct('a', CAST(id % 5 AS INT), 'b', substr(sha2(CAST(id AS STRING), 256), 1, 30))
            AS info
        FROM (SELECT id, {table.sql} AS k FROM range(0, {table.rows}, 1, {table.files}))"""
