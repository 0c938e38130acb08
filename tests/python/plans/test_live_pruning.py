"""Decisions that would have Spark read rows that its own plan never reads are refused.

The partitions that are pruned hold a text that is no number, so that who reads them fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import plans
import policies
import tiers
from conftest import Plain
from rows import assert_same_rows

SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
}
BROADCAST_ONLY = "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly"
# Spark's own query for the filter instead of a broadcast.
BY_QUERY = {BROADCAST_ONLY: "false"}
SCANNED = "SELECT count(*), sum(w) FROM fact f JOIN dim d ON f.p = d.p WHERE d.name = 'n3' AND"
QUERIES = {
    "scan": f"{SCANNED} cast(f.s AS INT) % 2 = 1",
    "key": "SELECT count(*), sum(d.w) FROM fact f JOIN dim d ON f.p = d.p JOIN ids r"
    " ON cast(f.s AS BIGINT) = r.id WHERE d.name = 'n3'",
    "semi": "SELECT sum(cast(s AS INT)) FROM fact WHERE p IN (SELECT p FROM dim WHERE name = 'n3')",
    # The side that prunes has a shuffle.
    "grouped_side": "SELECT sum(cast(f.s AS INT)) FROM fact f JOIN"
    " (SELECT p, count(*) AS c FROM dim WHERE name = 'n3' GROUP BY p) x ON f.p = x.p",
    # The pruned scan is shuffled for another join.
    "shuffled_scan": "SELECT /*+ MERGE(f, r) */ sum(cast(f.s AS INT)) FROM fact f JOIN ids r"
    " ON f.k = r.id JOIN dim d ON f.p = d.p WHERE d.name = 'n3'",
    "subquery": f"SELECT ({SCANNED.replace('count(*), ', '')} cast(f.s AS INT) >= 0) AS n",
}
SELECTION = {
    "merge": "'SHUFFLE_MERGE'",
    "hash": "named_struct('strategy', 'SHUFFLE_HASH', 'build_side', 'RIGHT')",
    "left": "named_struct('strategy', 'BROADCAST', 'build_side', 'LEFT')",
}
# A semi-join builds from its right side only.
GRID = [(q, w) for q in QUERIES for w in SELECTION if (q, w) != ("semi", "left")]
ADAPTIVE = ("SHUFFLE_MERGE", "SHUFFLE_HASH", "NO_BROADCAST_HASH")


@pytest.fixture(scope="module")
def folder(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = str(tmp_path_factory.mktemp("pruning"))
    rows = "SELECT id AS k, if(p = 9, 'n/a', string(id)) AS s, p FROM"
    fact = _spark_context.sql(f"{rows} (SELECT id, id % 10 AS p FROM range(0, 2000, 1, 2))")
    fact.write.partitionBy("p").parquet(f"{made}/fact")
    dim = _spark_context.sql(
        "SELECT id AS p, concat('n', id) AS name, id * 3 AS w FROM range(0, 10, 1, 1)"
    )
    dim.write.parquet(f"{made}/dim")
    dim.select("p").write.parquet(f"{made}/more")
    _spark_context.range(0, 3000, 1, 1).write.parquet(f"{made}/ids")
    return made


@pytest.fixture
def tables(spark: SparkSession, folder: str) -> SparkSession:
    for table in ("fact", "dim", "more", "ids"):
        spark.read.parquet(f"{folder}/{table}").createOrReplaceTempView(table)
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    return spark


Compare = Callable[..., None]


@pytest.fixture
def reads_as_spark(tables: SparkSession, plain: Plain) -> Compare:
    """A query with a policy gives plain Spark's rows, and reads the partitions that Spark reads."""

    def compare(sql: str, is_pruned: bool = True, **policy: str) -> None:
        with plain(tables):
            df = tables.sql(sql)
            rows = df.collect()
            read = plans.partitions_read(df)
        assert not is_pruned or ("fact", 1) in read, read
        policies.use(tables, "NULL", **policy)
        df = tables.sql(sql)
        assert_same_rows(df.collect(), rows)
        assert plans.partitions_read(df) == read

    return compare


def reasons(spark: SparkSession, point: str) -> set[str]:
    return {d.reason for d in policies.decisions(spark) if d.point == point}


def refused(spark: SparkSession) -> set[str]:
    return {d.point for d in policies.decisions(spark) if d.reason == "READS_MORE"}


@pytest.mark.parametrize(("query", "word"), GRID)
@tiers.EIGHTH
def test_a_strategy_keeps_the_broadcast_that_prunes(
    tables: SparkSession, reads_as_spark: Compare, query: str, word: str
) -> None:
    reads_as_spark(QUERIES[query], join_selection=SELECTION[word])
    assert refused(tables) == {"join_selection"}


def test_a_strategy_keeps_the_broadcast_that_prunes_without_aqe(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    tables.conf.set("spark.sql.adaptive.enabled", "false")
    reads_as_spark(QUERIES["scan"], join_selection=SELECTION["merge"])
    assert refused(tables) == {"join_selection"}


@pytest.mark.parametrize("word", ADAPTIVE)
def test_a_measured_side_stays_a_broadcast_that_prunes(
    tables: SparkSession, reads_as_spark: Compare, word: str
) -> None:
    reads_as_spark(
        QUERIES["grouped_side"], **{"dynamic_join_selection": f"'{word}'", "join_selection": "NULL"}
    )
    assert refused(tables) == {"dynamic_join_selection"}


def test_shuffles_of_a_side_that_prunes_keep_their_number(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    number = "CASE WHEN array_contains(shuffles.feeds, 'AGGREGATE') THEN 3 END"
    reads_as_spark(QUERIES["grouped_side"], shuffle_partitions=number)
    assert refused(tables) == {"shuffle_partitions"}


@pytest.mark.parametrize(
    ("point", "text"),
    [
        ("partition_coalescing", "named_struct('keep', true)"),
        ("skew_join", "named_struct('skew_factor', 1.0D, 'force', true)"),
        ("cost_evaluation", "if(plan.is_current, 1D, 0D)"),
        ("cost_evaluation", "if(plan.is_current, 0D, 1D)"),
        ("write_distribution", "true"),
    ],
)
@pytest.mark.parametrize("query", ["key", "grouped_side", "shuffled_scan"])
@tiers.EIGHTH
def test_other_points_leave_the_pruning(
    reads_as_spark: Compare, query: str, point: str, text: str
) -> None:
    reads_as_spark(QUERIES[query], **{point: text})


def test_an_order_keeps_the_relation_that_prunes_apart(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    sql = (
        "SELECT sum(cast(f.s AS INT)) FROM fact f JOIN dim d ON f.p = d.p JOIN more m ON d.p = m.p"
        " AND d.name = 'n3'"
    )
    reads_as_spark(sql, join_reorder="array(2, 1, 0)")
    assert refused(tables) == {"join_reorder"}


def test_an_order_that_prunes_alike_is_applied(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    sql = (
        "SELECT sum(cast(f.s AS INT)) FROM fact f JOIN ids r ON f.k = r.id JOIN dim d ON f.p = d.p"
        " WHERE d.name = 'n3'"
    )
    reads_as_spark(sql, join_reorder="array(1, 0, 2)")
    (made,) = (d for d in policies.decisions(tables) if d.point == "join_reorder")
    assert (made.applied, made.fate) == (True, "adopted")


RUNTIME_FILTERS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "true",
    "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
    # The first join that could have one has it.
    "spark.sql.optimizer.runtimeFilter.number.threshold": "1",
}


def test_an_order_keeps_runtime_filters(
    tables: SparkSession, plain: Plain, executed: Callable[[Any], plans.Executed]
) -> None:
    sql = (
        "SELECT a.id, b.id FROM ids a JOIN dim d ON a.id = d.p JOIN ids b ON b.id = d.p"
        " WHERE d.name = 'n3'"
    )
    for key, value in RUNTIME_FILTERS.items():
        tables.conf.set(key, value)
    with plain(tables):
        without = executed(tables.sql(sql))
    assert "might_contain" in without.plan
    policies.use(tables, "NULL", join_reorder="array(2, 1, 0)")
    ran = executed(tables.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert refused(tables) == {"join_reorder"}
    assert ran.plan == without.plan


@pytest.mark.parametrize(
    ("settings", "policy"),
    [
        # Spark's own choice by another name.
        ({}, "named_struct('strategy', 'BROADCAST', 'build_side', 'RIGHT')"),
        # The filter is a query of its own then.
        (BY_QUERY, "'SHUFFLE_MERGE'"),
    ],
)
def test_what_loses_nothing_is_applied(
    tables: SparkSession, reads_as_spark: Compare, settings: dict[str, str], policy: str
) -> None:
    for key, value in settings.items():
        tables.conf.set(key, value)
    # Else Spark does not find a query of its own worth it.
    tables.conf.set("spark.sql.optimizer.dynamicPartitionPruning.fallbackFilterRatio", "1000")
    reads_as_spark(QUERIES["scan"], join_selection=policy)
    assert reasons(tables, "join_selection") == {"APPLIED"}


def test_a_join_that_prunes_nothing_is_decided(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    joins = "JOIN ids r ON f.k = r.id JOIN dim d ON f.p = d.p"
    sql = f"SELECT sum(f.k) FROM fact f {joins}"
    reads_as_spark(sql, is_pruned=False, join_selection="'SHUFFLE_MERGE'")
    assert reasons(tables, "join_selection") == {"APPLIED"}


EMPTY = (
    "SELECT count(*) FROM (SELECT cast(s AS INT) AS i FROM fact WHERE p = 9) f JOIN"
    " (SELECT p FROM dim WHERE name = 'none' GROUP BY p) d ON f.i = d.p"
)


def test_a_cost_does_not_keep_a_scan_that_an_empty_relation_makes_needless(
    tables: SparkSession, reads_as_spark: Compare
) -> None:
    reads_as_spark(EMPTY, is_pruned=False, cost_evaluation="if(plan.is_current, 0D, 1D)")
    assert refused(tables) == {"cost_evaluation"}
