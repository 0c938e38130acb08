"""Explode: rows multiply 500 times after a small shuffle.

What is seen in Spark's UI: a stage of one or two tasks runs for minutes while all other cores
idle. Its *Input Size* or *Shuffle Read Size* is below a megabyte; the SQL tab shows a `Generate`
above an `AQEShuffleRead` whose *number of coalesced partitions* is 1, and hundreds of times as many
output rows as came in.

Spark counts bytes: what is below 1 MB is read by one task. This computes, so it runs at `local[2]`,
where two tasks instead of one gain at most 2 times; a cluster has more slots to gain.

Counter-shapes: an explode into two rows, and a shuffle that is read by as many tasks as there are
slots already, in a stage with an aggregation of which each task begins its own.
"""

from __future__ import annotations

from bench.shapes.shape import Shape, Table, one

ADAPTIVE = "spark.sql.adaptive."


def _tables(size: float) -> dict[str, Table]:
    return {
        "orders": Table(
            f"SELECT id % {int(100_000 * size)} AS customer, id AS item FROM"
            f" range({int(400_000 * size)})",
            2,
        )
    }


SHAPE = Shape(
    master="local[2]",
    tables=_tables,
    queries={
        "500 rows of each": one(
            "SELECT max(md5(concat(customer, '-', day)))"
            " FROM (SELECT DISTINCT customer FROM orders)"
            " LATERAL VIEW explode(sequence(1, 500)) AS day"
        )
    },
    counters={
        "2 rows of each": one(
            "SELECT max(md5(concat(customer, '-', day)))"
            " FROM (SELECT DISTINCT customer FROM orders)"
            " LATERAL VIEW explode(sequence(1, 2)) AS day"
        ),
        "an aggregation in each task": one(
            "SELECT day, count(*), max(customer) FROM (SELECT DISTINCT customer, item FROM orders)"
            " LATERAL VIEW explode(sequence(1, 20)) AS day GROUP BY day"
        ),
    },
    recipes=["expanding_stages"],
    by_hand={ADAPTIVE + "coalescePartitions.minPartitionSize": "16KB"},
)
