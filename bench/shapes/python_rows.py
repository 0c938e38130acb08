"""Python for each row: a pandas UDF after a shuffle of few bytes.

What is seen in Spark's UI: the last stage has one task, or a handful on a large cluster, with an
`ArrowEvalPython` in the SQL tab above an `AQEShuffleRead` of few *coalesced partitions*; *Shuffle
Read Size* is below a megabyte a task, and the task runs for minutes. Adding executors changes
nothing.

The UDF asks a model's service about each batch, 1 ms for each row, and no core: `local[16]` shows
what sixteen slots gain on any machine.

Counter-shapes: a pandas UDF that is done at once, on as many rows and on few.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pandas as pd

from bench.shapes.shape import Shape, Table, one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 0.001
ADAPTIVE = "spark.sql.adaptive."


def _tables(size: float) -> dict[str, Table]:
    return {
        "orders": Table(
            f"SELECT id % {int(20_000 * size)} AS customer, id % 97 AS amount FROM"
            f" range({int(200_000 * size)})",
            4,
        )
    }


def _functions(spark: SparkSession, pace: float) -> None:
    from pyspark.sql.functions import pandas_udf

    wait_s = WAIT_S * pace

    def scored(amounts: pd.Series) -> pd.Series:
        if wait_s:
            time.sleep(wait_s * len(amounts))
        return amounts % 10

    def tenth(amounts: pd.Series) -> pd.Series:
        return amounts % 10

    spark.udf.register("scored", pandas_udf(scored, "long"))
    spark.udf.register("tenth", pandas_udf(tenth, "long"))


SHAPE = Shape(
    master="local[16]",
    tables=_tables,
    queries={
        "a look-up for each row": one(
            "SELECT sum(scored(total)) FROM"
            " (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer)"
        )
    },
    counters={
        "nothing to do for a row": one(
            "SELECT sum(tenth(total)) FROM"
            " (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer)"
        ),
        "few rows": one(
            "SELECT sum(tenth(total)) FROM"
            " (SELECT amount, sum(customer) AS total FROM orders GROUP BY amount)"
        ),
    },
    recipes=["expanding_stages"],
    by_hand={ADAPTIVE + "coalescePartitions.minPartitionSize": "16KB"},
    functions=_functions,
)
