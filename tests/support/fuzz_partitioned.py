"""Storage-partitioned tables for drawn queries: see `storage_partitioned`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import storage_partitioned
from fuzz_drawing import Draw, Relation, one_in, one_of
from fuzz_tables import COLUMNS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Each has the rows of another table, and at most so many in a split: several splits a key, or one.
OF_SPLIT = {"stored_facts": ("facts", 2), "stored_more": ("more", 3), "stored_dims": ("dims", 50)}

_PARTLY = "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled"
ALWAYS = {"spark.sql.sources.v2.bucketing.enabled": "true"}
MAYBE = {
    _PARTLY: ["true", "true", "false"],
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": ["true"],
    "spark.sql.sources.v2.bucketing.shuffle.enabled": ["true", "false"],
    "spark.sql.sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled": ["true", "false"],
}
# Spark 3.5's own force breaks the joins of partly clustered tables.
_FORCE = "spark.sql.adaptive.forceOptimizeSkewedJoin"

_JOINS = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]


def write(spark: SparkSession) -> None:
    """Makes of each table a global temporary view; wants those that it has the rows of."""
    for name, (table, rows) in OF_SPLIT.items():
        df = spark.table(f"global_temp.{table}").select(*COLUMNS)
        stored = storage_partitioned.table(spark, name, df, rows)
        stored.createOrReplaceGlobalTempView(name)


def settled(settings: dict[str, str]) -> dict[str, str]:
    """The settings, without what plain Spark gives wrong rows at."""
    if settings.get(_PARTLY) == "true":
        return {key: value for key, value in settings.items() if key != _FORCE}
    return settings


def among(draw: Draw, sources: list[Relation]) -> list[Relation]:
    """In one of four queries most of what is read is stored so, and joined by that."""
    stored = [
        Relation(f"global_temp.{name}", TABLES[table].profile)
        for name, (table, _) in OF_SPLIT.items()
    ]
    if not one_in(draw, 4):
        return sources + stored
    pairs = [_pair(draw, *stored) for _ in range(2)]
    return [*pairs, *pairs, one_of(draw, stored), *(one_of(draw, sources) for _ in range(3))]


def _pair(draw: Draw, *stored: Relation) -> Relation:
    """Two tables joined by the column that they are partitioned by."""
    left, right = one_of(draw, stored), one_of(draw, stored)
    join = one_of(draw, _JOINS)
    side = "b" if join == "RIGHT JOIN" else "a"
    columns = ", ".join(f"{side}.{c}" for c in COLUMNS)
    sql = f"(SELECT {columns} FROM {left.sql} a {join} {right.sql} b ON a.k = b.k)"
    source = right if side == "b" else left
    profile = source.profile if join.startswith("LEFT S") or join.startswith("LEFT A") else None
    return Relation(sql, profile or left.profile.times(right.profile).plus(source.profile))
