"""Queries that use a relation twice, with a projection in between that keeps a column to itself.

Spark 3.5 lets both uses have the same expression ids there.
"""

from __future__ import annotations

import itertools
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POINT = "join_reorder"
JOINED = "SELECT key1 FROM sd1 JOIN sd2 ON key1 = key2"
SQL = {
    "aggregate": f"""SELECT count(*), sum(key1) FROM ({JOINED}) t1
        JOIN (SELECT key2 FROM sd2 GROUP BY key2) t2 ON key1 = key2""",
    "distinct": f"""SELECT count(*), sum(key1) FROM ({JOINED}) t1
        JOIN (SELECT DISTINCT key2 FROM sd2) t2 ON key1 = key2""",
    "limit": f"""SELECT count(*), sum(key1) FROM ({JOINED}) t1
        JOIN (SELECT key2 FROM sd2 ORDER BY key2 LIMIT 30) t2 ON key1 = key2""",
    "CTE": f"""WITH t1 AS ({JOINED}), t2 AS (SELECT key2 FROM sd2 GROUP BY key2)
        SELECT count(*), sum(key1) FROM t1 JOIN t2 ON key1 = key2""",
    "bare": f"""SELECT count(*), sum(key1) FROM ({JOINED}) t1
        JOIN (SELECT key2 FROM sd2) t2 ON key1 = key2""",
    "twice hidden": """SELECT count(*), sum(a.key1) FROM
        (SELECT key1 FROM sd1 JOIN sd2 ON key1 = key2) a
        JOIN (SELECT key1 AS k FROM sd1 JOIN sd2 ON key1 + 1 = key2) b ON a.key1 = b.k
        JOIN (SELECT key2 FROM sd2 GROUP BY key2) c ON b.k = c.key2""",
    "further relations": f"""SELECT count(*), sum(key1), sum(v) FROM ({JOINED}) t1
        JOIN sd3 ON key1 = key3 JOIN (SELECT key2 FROM sd2 GROUP BY key2) t2 ON key1 = key2
        WHERE v < 40""",
    "lateral": """SELECT count(*), sum(key3), sum(cnt) FROM sd3,
        LATERAL (SELECT count(*) cnt FROM sd3 o WHERE sd3.key3 = o.key3 HAVING cnt > 0)""",
    "lateral in a chain": """SELECT count(*), sum(sd3.key3), sum(cnt) FROM sd3
        JOIN sd2 ON key3 = key2, LATERAL (SELECT count(*) cnt FROM sd3 o WHERE sd3.key3 = o.key3
        HAVING cnt > 0)""",
    "scalar subquery": """SELECT count(*), sum(key3) FROM sd3 JOIN sd2 ON key3 = key2
        JOIN sd1 ON key3 = key1 WHERE v > (SELECT avg(v) FROM sd3 o WHERE o.key3 = sd3.key3)""",
    "IN": """SELECT count(*), sum(key1) FROM sd1 JOIN sd2 ON key1 = key2 JOIN sd3 ON key2 = key3
        WHERE key1 IN (SELECT key2 FROM sd2 JOIN sd3 ON key2 = key3 JOIN sd1 ON key1 = key2)""",
}


def _grouped(df: DataFrame) -> DataFrame:
    return df.groupBy("key2").count().select("key2")


def _frames(t2: Callable[[DataFrame], DataFrame]) -> Callable[[SparkSession], DataFrame]:
    """The issue's query of DataFrame objects, `sd2` used twice."""

    def form(spark: SparkSession) -> DataFrame:
        sd1, sd2 = spark.table("sd1"), spark.table("sd2")
        t1 = sd1.join(sd2, sd1["key1"] == sd2["key2"]).select("key1")
        other = t2(sd2)
        joined = t1.join(other, t1["key1"] == other["key2"])
        return joined.selectExpr("count(*)", "sum(key1)")

    return form


def _three_uses(spark: SparkSession) -> DataFrame:
    sd1, sd2 = spark.table("sd1"), spark.table("sd2")
    one = sd1.join(sd2, sd1["key1"] == sd2["key2"]).select("key1")
    two = sd2.select(sd2["key2"].alias("k")).distinct()
    both = one.join(two, one["key1"] == two["k"]).select("key1")
    three = sd2.groupBy("key2").count()
    return both.join(three, both["key1"] == three["key2"]).selectExpr("count(*)", "sum(count)")


FORMS: dict[str, Callable[[SparkSession], DataFrame]] = {
    **{name: lambda spark, text=text: spark.sql(text) for name, text in SQL.items()},
    "DataFrame aggregate": _frames(_grouped),
    "DataFrame distinct": _frames(lambda sd2: sd2.select("key2").distinct()),
    "DataFrame limit": _frames(lambda sd2: sd2.select("key2").orderBy("key2").limit(30)),
    "DataFrame bare": _frames(lambda sd2: sd2.select("key2")),
    "DataFrame thrice": _three_uses,
}


def write(spark: SparkSession) -> None:
    """Makes the views of the queries."""
    spark.range(60).selectExpr("id % 3 AS key1").createOrReplaceTempView("sd1")
    spark.range(60).selectExpr("id % 5 AS key2").createOrReplaceTempView("sd2")
    spark.range(50).selectExpr("id % 7 AS key3", "id AS v").createOrReplaceTempView("sd3")


def orders(every: bool = False) -> Iterator[str]:
    """Every order of chains of three and some, or every one, of four; scores that tell relations by
    their facts.
    """
    fours = list(itertools.permutations(range(4)))[:: 1 if every else 5]
    threes = list(itertools.permutations(range(3)))
    for four, three in cycled(fours, threes):
        yield (
            f"CASE chain.num_relations WHEN 3 THEN array{three} WHEN 4 THEN array{four}"
            " ELSE reverse(sequence(0, chain.num_relations - 1)) END"
        )
    for seed in range(6 if every else 2):
        yield f"double(hash(candidate.size_in_bytes, candidate.position, {seed}))"


def cycled(one: list[Any], other: list[Any]) -> Iterator[tuple[Any, Any]]:
    for i in range(max(len(one), len(other))):
        yield one[i % len(one)], other[i % len(other)]


def rows(spark: SparkSession, form: str) -> Counter[Any]:
    return Counter(tuple(row) for row in FORMS[form](spark).collect())


def use(spark: SparkSession, text: str | None) -> None:
    spark.conf.set("spark.aqepilot.policies", "orders" if text else "")
    spark.conf.set(f"spark.aqepilot.policy.orders.{POINT}", text or "NULL")


def compared(spark: SparkSession, every: bool = False) -> dict[str, Any]:
    """Runs each form under every order, or under one, not the same on each Spark.

    Returns:
        What differed, and the reasons of decisions.
    """
    write(spark)
    wrong = []
    tried = list(orders(every))
    for i, form in enumerate(FORMS, zlib.crc32(spark.version.encode())):
        use(spark, None)
        plain = rows(spark, form)
        for order in tried if every else [tried[i % len(tried)]]:
            use(spark, order)
            pairs = rows(spark, form)
            if pairs != plain:
                wrong.append([form, order, str(plain), str(pairs)])
    made = "SELECT DISTINCT reason FROM aqepilot_decisions()"
    return {"wrong": wrong, "reasons": [row.reason for row in spark.sql(made).collect()]}
