"""The harness itself: its comparators find what differs, its data makes Spark's rule fire."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

import little
import plans
import tpch as tpch_data
from rows import assert_same_rows

BUILT_IN = "org.apache.spark.sql.execution.adaptive."
WITHOUT_BUILT_IN = f"{BUILT_IN}DynamicJoinSelection,{BUILT_IN}DemoteBroadcastHashJoin"


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([(1, None), (2, "x")], [(2, "x"), (1, None)]),
        ([(0.1 + 0.2, "a"), (0.3, "b")], [(0.3, "b"), (0.3, "a")]),
        ([(math.nan,)], [(math.nan,)]),
        ([({"b": 1, "a": [1.0]},)], [({"a": [1.0], "b": 1},)]),
        ([(Decimal("1.0"),)], [(Decimal("1.00"),)]),
    ],
)
def test_same_rows(actual: list[object], expected: list[object]) -> None:
    assert_same_rows(actual, expected)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([(1,)], []),
        ([(1,), (1,)], [(1,), (2,)]),
        ([(None,)], [(0,)]),
        ([(1.0,)], [(1.001,)]),
        ([(Decimal("1.00"),)], [(Decimal("1.01"),)]),
        ([(True,)], [(1,)]),
        ([([1, 2],)], [([2, 1],)]),
    ],
)
def test_rows_that_differ(actual: list[object], expected: list[object]) -> None:
    with pytest.raises(AssertionError, match="only"):
        assert_same_rows(actual, expected)


def test_ordered_rows() -> None:
    with pytest.raises(AssertionError):
        assert_same_rows([(1,), (2,)], [(2,), (1,)], ordered=True)


@pytest.mark.parametrize("number", [3, 13, 18])
def test_tpch_rows_are_those_of_duckdb(tpch: SparkSession, number: int) -> None:
    rows = tpch.sql(tpch_data.queries()[number]).collect()
    expected = tpch_data.answer(number, scale=0.01)
    assert_same_rows(rows, expected, rel_tol=tpch_data.ORACLE_REL_TOL, numbers_alike=True)


def test_a_plan_run_twice_reads_the_same(
    tpch: SparkSession, executed: Callable[..., plans.Executed]
) -> None:
    query = tpch_data.queries()[22]
    first, second = executed(tpch.sql(query)), executed(tpch.sql(query))
    assert first.plan == second.plan
    assert first.joins == second.joins


def test_sparse_makes_spark_demote_a_broadcast(little_tables: SparkSession) -> None:
    little.settings(little_tables, little.DEMOTES)
    demoted = plans.execute(little_tables.sql(little.BIG_SPARSE))
    little_tables.conf.set("spark.sql.adaptive.optimizer.excludedRules", WITHOUT_BUILT_IN)
    broadcast = plans.execute(little_tables.sql(little.BIG_SPARSE))
    assert demoted.strategies == ["SortMergeJoin"]
    assert broadcast.strategies == ["BroadcastHashJoin BuildRight"]
    assert_same_rows(demoted.rows, broadcast.rows)


def test_little_partitions_make_spark_prefer_hash_joins(little_tables: SparkSession) -> None:
    little.settings(little_tables, little.PREFERS_SHUFFLED_HASH)
    run = plans.execute(little_tables.sql(little.SKEWED_DENSE))
    assert run.joins == [
        plans.Join("ShuffledHashJoin BuildRight", "Inner", ("skewed",), ("dense",), skewed=False)
    ]
