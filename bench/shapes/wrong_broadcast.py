"""Wrong broadcast: a side is broadcast that should not be.

What is seen in Spark's UI:

- *A range beside an equality*: a `BroadcastHashJoin` whose rows in are few and whose *number of
  output rows*, or those of the filter above, are hundreds of times as many; its stage has as many
  tasks as the streamed side has files, often one or two.
- *Larger than estimated*: `BroadcastExchange` shows a *data size* ten or a hundred times the
  threshold of 10 MB, and a long *time to build*; the driver's memory grows.
- *Fails*: `Total size of serialized results of n tasks is bigger than spark.driver.maxResultSize`,
  or `Cannot broadcast the table that is larger than 8GB`.

This computes, so it runs at `local[2]`. The driver takes results of 24 MB, as one that is
used for queries of many people may be set to.

Counter-shapes: a broadcast of unique keys with a condition that leaves few rows, and the broadcast
of a small side that is known by its files.
"""

from __future__ import annotations

from bench.shapes.shape import Shape, Table, one

ADAPTIVE = "spark.sql.adaptive."


def _tables(size: float) -> dict[str, Table]:
    return {
        # 1 row in 1,000 of these is in reach of each visit.
        "prices": Table(
            f"SELECT id % 500 AS product, xxhash64(id) % 1000000 AS since, id AS price"
            f" FROM range({int(500_000 * size)})",
            2,
        ),
        "visits": Table(
            f"SELECT xxhash64(id, 1) % 500 AS product, xxhash64(id, 2) % 1000000 AS at, id AS visit"
            f" FROM range({int(200_000 * size)})",
            1,
        ),
        "baskets": Table(
            f"SELECT id AS basket, id * 7 AS owner FROM range({int(100_000 * size)})", 2
        ),
        "items": Table(
            f"SELECT xxhash64(id) % {int(50_000_000 * size)} AS item, id AS n"
            f" FROM range({int(1_000_000 * size)})",
            4,
        ),
        "days": Table("SELECT id AS day, id % 7 AS weekday FROM range(20000)", 1),
    }


SHAPE = Shape(
    master="local[2]",
    tables=_tables,
    queries={
        "a range beside an equality": one(
            "SELECT count(*), max(price) FROM visits LEFT JOIN prices"
            " ON visits.product = prices.product AND at BETWEEN since AND since + 1000"
        ),
        "500 times larger than estimated: fails": one(
            "SELECT count(*), max(n) FROM items JOIN (SELECT basket * 500 + step AS item, owner"
            " FROM baskets LATERAL VIEW explode(sequence(0, 499)) AS step WHERE owner % 5 = 0)"
            " USING (item)"
        ),
        "50 times larger than estimated": one(
            "SELECT count(*), max(n) FROM items JOIN (SELECT basket * 500 + step AS item, owner"
            " FROM baskets LATERAL VIEW explode(sequence(0, 49)) AS step WHERE owner % 5 = 0)"
            " USING (item)"
        ),
    },
    counters={
        "unique keys and few rows": one(
            "SELECT count(*) FROM items JOIN days ON n % 20000 = day AND item % 7 < weekday"
        ),
        "a small table": one(
            "SELECT weekday, count(*) FROM items JOIN days ON n % 20000 = day GROUP BY 1"
        ),
    },
    recipes=["no_broadcast_of_range_joins", "no_broadcast_of_guesses"],
    by_hand={"spark.sql.autoBroadcastJoinThreshold": "-1"},
    start={"spark.driver.maxResultSize": "24m"},
)
