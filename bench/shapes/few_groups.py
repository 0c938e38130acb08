"""Few groups, much work each: a model for each of a dozen series, by `applyInPandas`.

What is seen in Spark's UI: the last stage has one task, with `FlatMapGroupsInPandas` in the SQL tab
above an `AQEShuffleRead` of 200 partitions in one *coalesced partition*. It runs for as long as all
groups take one after the other, however many cores there are.

A group's model takes 0.8 s, in which it waits, and no core: `local[16]` shows what sixteen slots
gain on any machine. Twelve groups allow 12 times at most.

Counter-shapes: a function that is done at once, for the same groups, and one for a single group.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pandas as pd

from bench.shapes.shape import Shape, Table, one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS, ROWS = 12, 104
WAIT_S = 0.8
ADAPTIVE = "spark.sql.adaptive."


def _tables(size: float) -> dict[str, Table]:
    groups = max(2, int(GROUPS * size))
    return {
        "series": Table(
            f"SELECT id % {groups} AS item, id * 7 % 101 AS y FROM range({groups * ROWS})", 4
        )
    }


def _functions(spark: SparkSession, pace: float) -> None:
    wait_s = WAIT_S * pace

    def fitted(rows: pd.DataFrame) -> pd.DataFrame:
        if wait_s:
            time.sleep(wait_s)
        return pd.DataFrame({"item": [rows["item"].iloc[0]], "total": [int(rows["y"].sum())]})

    def total(rows: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"item": [rows["item"].iloc[0]], "total": [int(rows["y"].sum())]})

    series = spark.table("series")
    schema = "item long, total long"
    views = {
        "models": series.groupBy("item").applyInPandas(fitted, schema),
        "totals": series.groupBy("item").applyInPandas(total, schema),
        "first_total": series.where("item = 0").groupBy("item").applyInPandas(total, schema),
    }
    for name, view in views.items():
        view.createOrReplaceTempView(name)


SHAPE = Shape(
    master="local[16]",
    tables=_tables,
    queries={"a model for each group": one("SELECT * FROM models")},
    counters={
        "nothing to do for a group": one("SELECT * FROM totals"),
        "one group": one("SELECT * FROM first_total"),
    },
    recipes=["expanding_stages"],
    by_hand={ADAPTIVE + "coalescePartitions.minPartitionSize": "1B"},
    functions=_functions,
)
