"""Hot key: a join in which 30 % of the rows have one key, and a step for each row that waits.

What is seen in Spark's UI: the stage after the join shows 199 of 200 tasks, or all but one of a
few, done within seconds; the last runs on for many times as long. In the stage's summary metrics
the maximum of *Duration* and of *Shuffle Read Size / Records* is many times their median.
*Executors* shows one active task.

Each row is looked up in a service, which takes 5 ms and no core. So sixteen slots gain on any
machine what they gain on a cluster: at best 0.3 x 16 = 4.8 times. Spark's own rule leaves a
partition below 256 MB whole. An expert lowers its thresholds for the session; no setting has it
split a join for `IN` below an `OR`.

Counter-shapes: the same joins without the step that waits, and a join whose keys are even.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from bench.shapes.shape import Shape, Table, one

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT_S = 0.005
ADAPTIVE = "spark.sql.adaptive."
# A kilobyte that does not compress, for each row.
PAYLOAD = "array_join(transform(sequence(1, 16), i -> sha2(concat_ws(' ', id, i), 256)), '')"


def _tables(size: float) -> dict[str, Table]:
    rows = int(16_000 * size)
    even = "id % 5000 + 1"
    return {
        "events": Table(
            f"SELECT id, IF(id % 10 < 3, 0, {even}) AS customer, {even} AS shop, id % 7 = 0 AS"
            f" urgent, {PAYLOAD} AS payload FROM range({rows})",
            8,
        ),
        "customers": Table("SELECT id AS customer, id % 9 AS region FROM range(5001)", 2),
    }


def _functions(spark: SparkSession, pace: float) -> None:
    wait_s = WAIT_S * pace

    def look_up(key: str) -> int:
        if wait_s:
            time.sleep(wait_s)
        return len(key)

    spark.udf.register("look_up", look_up, "int")


SHAPE = Shape(
    master="local[16]",
    tables=_tables,
    queries={
        "inner join": one(
            "SELECT region, sum(look_up(concat(region, payload))) FROM events"
            " JOIN customers USING (customer) GROUP BY region"
        ),
        "IN below an OR": one(
            "SELECT id % 9, sum(look_up(payload)) FROM events WHERE urgent OR customer IN"
            " (SELECT customer FROM customers WHERE region < 8) GROUP BY id % 9"
        ),
    },
    counters={
        "inner join without the wait": one(
            "SELECT region, sum(length(concat(region, payload))) FROM events"
            " JOIN customers USING (customer) GROUP BY region"
        ),
        "even keys without the wait": one(
            "SELECT region, sum(length(concat(region, payload))) FROM events"
            " JOIN customers ON shop = customers.customer GROUP BY region"
        ),
    },
    recipes=["hot_keys", "expanding_stages"],
    by_hand={
        ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "1MB",
        ADAPTIVE + "skewJoin.skewedPartitionFactor": "2",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "256KB",
    },
    # As if the customers were too many to broadcast.
    conf={
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        ADAPTIVE + "autoBroadcastJoinThreshold": "-1",
    },
    functions=_functions,
)
