"""The order that a policy picks is the executed one, or the record says how it differs."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import policies
import tiers
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

POINT = "join_reorder"
SIZES = (3, 4, 6, 9, 12)


@pytest.fixture
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """The views t0 to t11: a key each, and a column named after the table."""
    folder = tmp_path_factory.mktemp("chains")
    for i in range(max(SIZES)):
        path = str(folder / f"t{i}")
        spark.sql(f"SELECT id AS k, id % 3 AS g, id AS v{i} FROM range({20 + i})").coalesce(
            1
        ).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(f"t{i}")
    little.settings(
        spark,
        {"spark.sql.shuffle.partitions": "2", "spark.sql.autoBroadcastJoinThreshold": "10MB"},
    )
    return spark


def _edges(shape: str, n: int) -> list[tuple[int, int]]:
    return {
        "star": [(0, i) for i in range(1, n)],
        "chain": [(i, i + 1) for i in range(n - 1)],
        "clique": [(i, j) for i in range(n) for j in range(i + 1, n)],
    }[shape]


def query(shape: str, n: int) -> str:
    columns = ", ".join(f"t{i}.v{i}" for i in range(n))
    tables = ", ".join(f"t{i}" for i in range(n))
    where = " AND ".join(f"t{i}.k = t{j}.k" for i, j in _edges(shape, n))
    return f"SELECT {columns} FROM {tables} WHERE {where}"


def use(spark: SparkSession, text: str) -> None:
    spark.conf.set("spark.aqepilot.policies", "test")
    spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", text)


def ran_order(executed: Executed) -> list[int]:
    """The tables in the order in which the executed joins, bottom up, took them in."""
    order: list[int] = []
    for join in reversed(executed.joins):
        for table in (*join.left, *join.right):
            number = int(table.removeprefix("t"))
            if number not in order:
                order.append(number)
    return order


def decision(spark: SparkSession) -> Any:
    return [d for d in policies.decisions(spark) if d.point == POINT][-1]


@tiers.EIGHTH
@pytest.mark.parametrize(("shape", "n"), list(product(["star", "chain", "clique"], SIZES)))
def test_the_order_by_scores_is_executed(
    tables: SparkSession,
    shape: str,
    n: int,
    plain: Callable[..., Any],
    executed: Callable[..., Executed],
) -> None:
    sql = query(shape, n)
    with plain(tables):
        without = executed(tables.sql(sql))
    scores = list(range(n))
    random.Random(n).shuffle(scores)
    words = " ".join(f"WHEN {i} THEN {score}" for i, score in enumerate(scores))
    use(tables, f"CASE candidate.position {words} END")
    ran = executed(tables.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert [row.asDict().keys() for row in ran.rows[:1]] == [
        row.asDict().keys() for row in without.rows[:1]
    ]
    made = decision(tables)
    assert (made.reason, made.spark_answer) == (
        "APPLIED",
        json.dumps([*range(n)], separators=(",", ":")),
    )
    order = json.loads(made.answer)
    assert order[0] == min(range(n), key=lambda i: scores[i])
    assert ran_order(ran) == order
    assert made.fate == "adopted", made


def test_no_order_has_a_cross_product_that_sparks_does_not_have(
    tables: SparkSession, executed: Callable[..., Executed]
) -> None:
    sql = query("chain", 4)
    use(tables, "array(0, 3, 1, 2)")
    ran = executed(tables.sql(sql))
    made = decision(tables)
    assert (made.applied, made.reason) == (False, "CROSS_PRODUCT")
    assert ran_order(ran) == [0, 1, 2, 3]
    tables.conf.set("spark.aqepilot.guard.max_cross_products", "5")
    executed(tables.sql(sql))
    assert decision(tables).reason == "CROSS_PRODUCT"  # a session cannot loosen it


def test_a_whole_order_is_executed(tables: SparkSession, executed: Callable[..., Executed]) -> None:
    use(tables, "array(2, 1, 3, 0)")
    ran = executed(tables.sql(query("chain", 4)))
    assert ran_order(ran) == [2, 1, 3, 0]
    assert (decision(tables).reason, decision(tables).fate) == ("APPLIED", "adopted")


def test_columns_stay_where_they_are(tables: SparkSession) -> None:
    use(tables, "-candidate.position")
    df = tables.sql("SELECT * FROM t0 JOIN t1 ON t0.k = t1.k JOIN t2 ON t1.k = t2.k")
    assert df.columns == ["k", "g", "v0", "k", "g", "v1", "k", "g", "v2"]
    rows = df.collect()
    assert len(rows) == 20
    assert all(row[2] == row[5] == row[8] == row[0] for row in rows)
    assert decision(tables).applied


@tiers.EIGHTH
@pytest.mark.parametrize("score", ["candidate.position", "NULL"])
def test_sparks_own_order_leaves_the_plan_as_it_is(
    tables: SparkSession, score: str, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    sql = query("clique", 6)
    with plain(tables):
        without = executed(tables.sql(sql))
    use(tables, score)
    assert executed(tables.sql(sql)).plan == without.plan


def test_hints_and_outer_joins_bound_a_chain(
    tables: SparkSession, executed: Callable[..., Executed]
) -> None:
    use(tables, "-candidate.position")
    sql = """SELECT /*+ BROADCAST(t1) */ t0.v0 FROM t0 JOIN t1 ON t0.k = t1.k
             JOIN t2 ON t0.k = t2.k JOIN t3 ON t0.k = t3.k"""
    executed(tables.sql(sql))
    assert decision(tables).tables == "t0+t1 ⋈ t2 ⋈ t3"
    sql = """SELECT t0.v0 FROM t0 JOIN t1 ON t0.k = t1.k
             LEFT JOIN t2 ON t0.k = t2.k JOIN t3 ON t0.k = t3.k JOIN t4 ON t0.k = t4.k"""
    executed(tables.sql(sql))
    assert decision(tables).tables == "t0+t1+t2 ⋈ t3 ⋈ t4"


def test_statistics_do_not_order_again_what_a_policy_ordered(
    tables: SparkSession, executed: Callable[..., Executed]
) -> None:
    little.settings(
        tables, {"spark.sql.cbo.enabled": "true", "spark.sql.cbo.joinReorder.enabled": "true"}
    )
    use(tables, "-candidate.position")
    ran = executed(tables.sql(query("clique", 5)))
    assert ran_order(ran) == json.loads(decision(tables).answer) == [4, 3, 2, 1, 0]
