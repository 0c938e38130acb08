"""Tiny tasks: many short queries at once on few slots.

What is seen in Spark's UI: a dashboard's queries wait for each other. Their stages read a few
megabytes, and write shuffles of 200 partitions, as `spark.sql.shuffle.partitions` says: the SQL
tab shows `AQEShuffleRead` merge 200 partitions into one or two, so that each block was written,
registered and fetched for nothing. *Duration* of most tasks is below 50 ms.

This computes, so it runs at `local[2]`: 24 queries of 4 clients. What counts is their time
together, which is throughput.

Counter-shape: one query alone that aggregates a million groups.
"""

from __future__ import annotations

from bench.shapes.shape import Query, Shape, Table, one


def _tables(size: float) -> dict[str, Table]:
    return {
        "sales": Table(
            f"SELECT id % 1000 AS shop, id % 5000 AS product, id % 365 AS day, id % 97 AS amount"
            f" FROM range({int(300_000 * size)})",
            4,
        ),
        "shops": Table("SELECT id AS shop, id % 20 AS region FROM range(1000)", 1),
        "many": Table(
            f"SELECT xxhash64(id) % {int(1_000_000 * size)} AS k, id AS v"
            f" FROM range({int(3_000_000 * size)})",
            4,
        ),
    }


def _texts() -> list[str]:
    kinds = (
        "SELECT region, sum(amount) FROM sales JOIN shops USING (shop) WHERE day < {} GROUP BY 1",
        "SELECT product, max(amount) FROM sales WHERE day > {} GROUP BY 1 ORDER BY 2, 1 LIMIT 9",
        "SELECT count(*) FROM (SELECT shop, day, sum(amount) AS s FROM sales WHERE day <> {}"
        " GROUP BY 1, 2) WHERE s > 100",
    )
    return [kinds[number % 3].format(100 + number) for number in range(24)]


SHAPE = Shape(
    master="local[2]",
    tables=_tables,
    queries={"24 queries of 4 clients": Query(_texts(), clients=4)},
    counters={
        "a million groups": one(
            "SELECT count(*), max(n) FROM (SELECT k, count(*) AS n FROM many GROUP BY k)"
        )
    },
    recipes=["right_sized_shuffles"],
    by_hand={"spark.sql.shuffle.partitions": "8"},
)
