"""Joins that look for a first match, with a condition that throws for a later one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import policies
import tiers
from conftest import Plain
from plans import Executed
from rows import assert_same_rows

ON = "a.k = b.k AND 60 / b.n >= a.n"
JOINS = {
    "semi": f"SELECT a.k, a.n FROM a LEFT SEMI JOIN b ON {ON}",
    "anti": f"SELECT a.k, a.n FROM a LEFT ANTI JOIN b ON {ON}",
    "existence": f"SELECT a.k, a.n FROM a WHERE a.k = 7 OR EXISTS (SELECT 1 FROM b WHERE {ON})",
}
STATIC, ADAPTIVE = (f"spark.sql.{name}autoBroadcastJoinThreshold" for name in ("", "adaptive."))
MERGES = {STATIC: "-1", ADAPTIVE: "-1"}
HASHES = {
    "join_selection": {STATIC: "10MB", ADAPTIVE: "-1"},
    "dynamic_join_selection": {STATIC: "-1", ADAPTIVE: "10MB"},
}
# A sort-merge join comes to the first row of a key first, and a hash table gives the last one.
DIVISOR = {"SHUFFLE_HASH": "1 - id % 2", "SHUFFLE_MERGE": "id % 2"}


@tiers.EIGHTH
@pytest.mark.parametrize("word", DIVISOR)
@pytest.mark.parametrize("point", HASHES)
@pytest.mark.parametrize("join", JOINS)
def test_another_strategy_does_not_come_to_the_pair_that_throws(
    spark: SparkSession,
    join: str,
    point: str,
    word: str,
    executed: Callable[[Any], Executed],
    plain: Plain,
) -> None:
    def set_to(settings: dict[str, str]) -> None:
        for key, value in settings.items():
            spark.conf.set(key, value)

    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.range(0, 40, 1, 2).selectExpr("id DIV 2 AS k", "id % 3 AS n").createOrReplaceTempView("a")
    rows = spark.range(0, 32, 1, 1).selectExpr("id DIV 2 AS k", f"{DIVISOR[word]} AS n")
    rows.createOrReplaceTempView("b")
    of_spark, others = MERGES, HASHES[point]
    if word == "SHUFFLE_MERGE":
        of_spark, others = others, of_spark
    with plain(spark):
        set_to(others)
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            spark.sql(JOINS[join]).collect()
        set_to(of_spark)
        without = executed(spark.sql(JOINS[join]))
    policies.use(spark, "NULL", **{point: f"'{word}'"})
    ran = executed(spark.sql(JOINS[join]))
    assert_same_rows(ran.rows, without.rows)
    assert ran.strategies == without.strategies
    made = [d for d in policies.decisions(spark) if d.point == point]
    assert "CONDITION_CAN_THROW" in {d.reason for d in made}
    assert not any(d.applied for d in made), made
