"""Tables whose shuffles have large partitions, written by several map tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Row

import policies

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MAPPERS = 6
PARTITIONS = 8
POINT = "skew_join"
# Sort-merge joins; each file of a table is one map task; nothing is coalesced.
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": str(PARTITIONS),
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
}
# Settings at which Spark's own rule splits `l` (key 0) and `r` (key 1).
SPLITS = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "20KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "20KB",
}
# Settings at which it splits them below an aggregate on the key, too, for one more shuffle.
FORCED = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "1KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.2",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1KB",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
}
OFF = {"spark.sql.adaptive.skewJoin.enabled": "false"}

_TABLES = {
    # 6,000 rows, 4 in 10 of key 0, some keys null, some without a partner
    "l": "SELECT if(id % 10 < 4, 0, nullif(id % 500, 77)) AS k, sha2(cast(id AS string), 256) AS v"
    " FROM range(0, 6000, 1, 6)",
    # 1,500 rows, 4 in 10 of key 1
    "r": "SELECT if(id % 10 < 4, 1, id % 450) AS k, sha2(cast(-id AS string), 256) AS w, id AS n"
    " FROM range(0, 1500, 1, 6)",
    # 500 rows, every key once
    "d": "SELECT id AS k, id * 2 AS x FROM range(0, 500, 1, 6)",
}


def write(spark: SparkSession, folder: Path) -> None:
    """Writes each table as Parquet, in as many files as there are to be map tasks."""
    for table, query in _TABLES.items():
        spark.sql(query).write.parquet(str(folder / table))


def register(spark: SparkSession, folder: Path) -> None:
    """Makes a temporary view of each table."""
    for table in _TABLES:
        spark.read.parquet(str(folder / table)).createOrReplaceTempView(table)


def settings(spark: SparkSession, *values: dict[str, str]) -> None:
    """Sets them in the session, over `SETTINGS`."""
    for key, value in {k: v for each in (SETTINGS, *values) for k, v in each.items()}.items():
        spark.conf.set(key, value)


def enforce(spark: SparkSession, text: str, name: str = "test", **more: str) -> None:
    """Makes it the session's only policy; ``more`` are its ``when`` and ``mode``."""
    spark.conf.set("spark.aqepilot.policies", name)
    for key, value in {POINT: text, **more}.items():
        spark.conf.set(f"spark.aqepilot.policy.{name}.{key}", value)


def struct(**fields: Any) -> str:
    """Returns an answer's SQL text, e.g. ``named_struct('skew_factor', 2.0)``."""
    pairs = ", ".join(f"'{name}', {value}" for name, value in fields.items())
    return f"named_struct({pairs})"


def decisions(spark: SparkSession) -> list[Row]:
    """Returns the session's decisions at this point, oldest first."""
    return [d for d in policies.decisions(spark) if d.point == POINT]


def last(spark: SparkSession) -> Row:
    """Returns the newest decision."""
    return decisions(spark)[-1]
