"""How many rows each partition of a drawn query has, where somebody counts them.

Read as an RDD, or by Python in barrier mode, a query has plain Spark's partitions under any policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACTIONS = ("sizes", "barrier")
# As many tasks run at once as the fuzz has cores.
SLOTS = 2
# Spark merges what is so little to one task; with settings as they are drawn, few stages have
# no more tasks than slots.
MERGED = {
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "64MB",
}


def plain_action(df: DataFrame, action: str, *, is_cached: bool) -> str:
    """Returns what plain Spark can do with the query instead, if it cannot do this.

    It refuses a stage in barrier mode with more tasks than slots, or with a union or the like. A
    cached query has the partitions of the run that filled its cache.
    """
    if action not in ACTIONS or is_cached:
        return "rdd" if action in ACTIONS else action
    if action == "sizes" or df.rdd.getNumPartitions() > SLOTS:
        return "sizes"
    try:
        counted(df, action)
    except Exception as error:
        if "arrier" not in str(error):
            raise
        return "sizes"
    return action


def counted(df: DataFrame, action: str) -> list[Any]:
    """Returns the number of rows of each partition."""
    if action == "sizes":
        return df.rdd.mapPartitions(lambda rows: [("rows", sum(1 for _ in rows))]).collect()

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"rows": [sum(batch.num_rows for batch in batches)]})

    numbered = df.toDF(*(f"c{i}" for i in range(len(df.columns))))
    return numbered.mapInArrow(count, "rows bigint", barrier=True).collect()


def happens_again(act: Callable[[], list[Any]], expected: list[Any], times: int = 2) -> bool:
    """Whether a query has other partitions each time: which stage ends first may change a plan."""
    return all(sorted(act()) != sorted(expected) for _ in range(times))
