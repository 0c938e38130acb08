"""Cartesian products that a policy asks for: what they multiply, and what they run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import policies
import tiers
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

POINT = "join_selection"
# Columns k and u: u may be another one when the side runs again.
DIFFERING = {
    "a function": "SELECT k, reflect('java.util.UUID', 'randomUUID') AS u FROM a WHERE v < 20",
    "a random number": "SELECT k, rand(1) AS u FROM a WHERE v < 20",
    "of an aggregate": "SELECT k, first(v) AS u FROM a GROUP BY k",
    "a sum of doubles": "SELECT k, sum(v / 7e0) AS u FROM a GROUP BY k",
    "a mean": "SELECT k, avg(v) AS u FROM a GROUP BY k",
    "some rows of many": "SELECT k, v AS u FROM a LIMIT 20",
    "one of equals": "SELECT k, row_number() OVER (PARTITION BY k ORDER BY k) AS u FROM a",
}
ALIKE = {
    "a table": "SELECT k, v + 1 AS u FROM a WHERE v < 20",
    "an aggregate": "SELECT k, sum(v) AS u, count(*), max(v / 7e0) FROM a GROUP BY k",
    "a join": "SELECT a.k, c.v AS u FROM a LEFT JOIN a c ON a.k = c.k AND c.v < 5 WHERE a.v < 5",
    "a union": "SELECT k, v AS u FROM a WHERE v < 9 UNION ALL SELECT k, v FROM a WHERE v > 190",
    "distinct rows": "SELECT DISTINCT k, v % 3 AS u FROM a",
}


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    """The views a and b, and a policy by which each join is a Cartesian product."""
    little.ranges(spark)
    spark.conf.set("spark.aqepilot.policies", "test")
    spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'SHUFFLE_REPLICATE_NL'")
    return spark


def test_cartesian_products_are_not_put_below_each_other(
    tables: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    """Each multiplies the tasks of the one above: 4, 8, 16 and so on of two partitions each."""
    sql = (
        "SELECT count(*) FROM a JOIN b ON a.k = b.k JOIN a c ON b.k = c.k AND c.v < 20 "
        "JOIN b d ON c.k = d.k JOIN a e ON d.k = e.k AND e.v < 20 WHERE a.v < 20"
    )
    with plain(tables):
        without = executed(tables.sql(sql))
    ran = executed(tables.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert ran.strategies == ["CartesianProduct", *without.strategies[1:]]
    made = {d.join_id: d for d in policies.decisions(tables)}
    assert sorted(d.reason for d in made.values()) == ["APPLIED", *["GUARD_PARTITIONS"] * 3]
    assert {d.detail for d in made.values() if d.detail} == {
        f"join {min(i for i, d in made.items() if d.applied)}, above it, is a Cartesian product "
        "already: the partitions of all sides would be multiplied"
    }


def test_a_cartesian_product_of_too_many_tasks_is_refused(
    tables: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    sql = (
        "SELECT count(*) FROM (SELECT k, count(*) FROM a GROUP BY k) "
        "JOIN (SELECT k, count(*) FROM b GROUP BY k) USING (k)"
    )
    with plain(tables):
        without = executed(tables.sql(sql))
    little.settings(tables, {"spark.aqepilot.guard.max_partitions": "8"})
    refused = executed(tables.sql(sql))
    assert refused.strategies == without.strategies
    assert_same_rows(refused.rows, without.rows)
    assert policies.reasons(tables) == {"GUARD_PARTITIONS"}
    assert "3 and 3 partitions has more tasks than the 8" in policies.decisions(tables)[-1].detail
    little.settings(tables, {"spark.aqepilot.guard.max_partitions": "9"})
    assert executed(tables.sql(sql)).strategies == ["CartesianProduct"]


@pytest.mark.parametrize("swapped", [False, True], ids=["left", "right"])
@pytest.mark.parametrize("side", DIFFERING)
def test_a_side_that_may_differ_when_it_runs_again_is_refused(
    tables: SparkSession, executed: Callable[..., Executed], side: str, swapped: bool
) -> None:
    """Plain Spark runs a side of an equi-join once: its rows are the same in all their pairs."""
    ran = executed(tables.sql(_joined(DIFFERING[side], swapped)))
    assert "CartesianProduct" not in ran.strategies
    made = [d for d in policies.decisions(tables) if d.reason == "NOT_DETERMINISTIC"]
    assert made
    assert all("may give other rows" in d.detail for d in made)


def test_a_row_has_one_value_in_all_its_pairs(tables: SparkSession) -> None:
    values = tables.sql(
        "SELECT id, count(DISTINCT u) AS n FROM (SELECT id, id % 2 AS k, "
        "reflect('java.util.UUID', 'randomUUID') AS u FROM range(0, 8, 1, 2)) "
        "JOIN (SELECT id % 2 AS k FROM range(0, 40, 1, 4)) USING (k) GROUP BY id"
    ).collect()
    assert {row.n for row in values} == {1}
    assert "NOT_DETERMINISTIC" in policies.reasons(tables)


@pytest.mark.parametrize("side", ALIKE)
def test_a_side_that_is_alike_each_time_is_multiplied(
    tables: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed], side: str
) -> None:
    sql = _joined(ALIKE[side], False)
    with plain(tables):
        without = executed(tables.sql(sql))
    ran = executed(tables.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert ran.strategies[0] == "CartesianProduct"


@pytest.mark.parametrize("v1", ["parquet", ""], ids=["v1", "v2"])
def test_files_and_listed_rows_are_multiplied(
    tables: SparkSession,
    plain: Callable[..., Any],
    executed: Callable[..., Executed],
    tmp_path: Path,
    v1: str,
) -> None:
    tables.conf.set("spark.sql.sources.useV1SourceList", v1)
    tables.sql(ALIKE["a table"]).write.parquet(f"{tmp_path}/files")
    sql = (
        f"SELECT x.k, x.u, w FROM parquet.`{tmp_path}/files` x "
        "JOIN (VALUES (1, 7), (2, 8), (2, 9)) AS y(k, w) ON x.k = y.k"
    )
    with plain(tables):
        without = executed(tables.sql(sql))
    ran = executed(tables.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert ran.strategies == ["CartesianProduct"]


def test_a_cached_side_is_refused(tables: SparkSession, executed: Callable[..., Executed]) -> None:
    """Executors that need a block at once compute it each by itself."""
    kept = tables.sql(DIFFERING["a function"]).cache()
    try:
        kept.createOrReplaceTempView("kept")
        ran = executed(tables.sql(_joined("SELECT k, u FROM kept", False)))
    finally:
        kept.unpersist()
    assert "CartesianProduct" not in ran.strategies
    assert "its InMemoryRelation may give other rows then" in _refusal(tables)


def test_a_side_of_a_database_is_refused(
    tables: SparkSession, executed: Callable[..., Executed], tmp_path: Path
) -> None:
    """It is asked again for each partition of the other side, and may have changed by then."""
    jvm: Any = tables._jvm
    jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    url = f"jdbc:derby:memory:{tmp_path.name};create=true"
    connection = jvm.java.sql.DriverManager.getConnection(url)
    for sql in ("CREATE TABLE asked (k INT, u INT)", "INSERT INTO asked VALUES (1, 2), (3, 4)"):
        connection.createStatement().execute(sql)
    tables.read.jdbc(url, "asked").createOrReplaceTempView("asked")
    ran = executed(tables.sql(_joined("SELECT k, u FROM asked", False)))
    assert "CartesianProduct" not in ran.strategies
    assert "may give other rows then" in _refusal(tables)


def _refusal(spark: SparkSession) -> str:
    made = {d.detail for d in policies.decisions(spark) if d.reason == "NOT_DETERMINISTIC"}
    (detail,) = made
    return str(detail)


def _joined(side: str, swapped: bool) -> str:
    other = "(SELECT k, w FROM b) y"
    sides = [f"({side}) x", other]
    left, right = reversed(sides) if swapped else sides
    return f"SELECT x.k, u, w FROM {left} JOIN {right} ON x.k = y.k"
