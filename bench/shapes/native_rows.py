"""Rows that each take long in the JVM: a loop in SQL, or a function that is not Spark's.

What is seen in Spark's UI: a stage of one task, or a handful, runs for minutes over less than a
megabyte of *Shuffle Read Size*. The SQL tab shows no more than a `Project` above an
`AQEShuffleRead` of few *coalesced partitions*; its expressions have an `aggregate` with a lambda, a
Scala or Java UDF, or a function of a library, such as those for geometries.

The loop takes 4,000 steps for a row, and computes: two cores gain 2 times at most. The function
waits 1 ms for a row, and no core: `local[16]` shows what sixteen slots gain on any machine.

Counter-shapes: a loop of three steps, and a function that is done at once.
"""

from __future__ import annotations

from bench.shapes.shape import Query, Shape, Table, one

ADAPTIVE = "spark.sql.adaptive."
LATEST = "(SELECT customer, max(amount) AS v FROM orders GROUP BY customer)"


def _tables(size: float) -> dict[str, Table]:
    return {
        "orders": Table(
            f"SELECT id % {int(6_000 * size)} AS customer, id AS amount FROM"
            f" range({int(60_000 * size)})",
            4,
        )
    }


def _loop(steps: int) -> Query:
    return one(
        f"SELECT sum(aggregate(sequence(1, {steps}), v, (x, y) -> (x * 31 + y) % 1000003)) FROM"
        f" {LATEST}"
    )


def _method(call: str) -> Query:
    return one(f"SELECT sum(n) FROM (SELECT length(java_method({call})) AS n FROM {LATEST})")


SHAPE = Shape(
    master="local[16]",
    tables=_tables,
    queries={
        "a loop of 4000 steps": _loop(4000),
        "a function that waits": _method("'java.lang.Thread', 'sleep', 1L"),
    },
    counters={
        "a loop of 3 steps": _loop(3),
        "a function that is done at once": _method("'java.lang.Math', 'abs', v"),
    },
    recipes=["expanding_stages"],
    by_hand={ADAPTIVE + "coalescePartitions.minPartitionSize": "16KB"},
)
