"""Storage-partitioned joins, and what else Spark partitions without a shuffle, beside decisions.

Spark's rule that adds shuffles and sorts counts the partitions of such a join anew when it is run
over a plan again: rows were lost and repeated when a forced split did so.
"""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import policies
import skewed
import storage_partitioned
import tiers
from plans import Executed, execute
from rows import assert_same_rows
from skewed import struct

# Two parts of each partition of both sides, whatever shuffle that takes.
SPLIT = "transform({side}.bytes_by_partition_id, b -> 2)"
FORCED = struct(
    left_splits=SPLIT.format(side="left"), right_splits=SPLIT.format(side="right"), force="true"
)
# Reads c and d, whose groups need a shuffle of their own once c is split.
SPLITTABLE = "(SELECT c.j, count(*) AS n FROM c JOIN d ON c.j = d.j GROUP BY c.j)"
# What stands beside; each reads its tables without a shuffle, or without a second one.
BESIDE = {
    "inner": "a JOIN b ON a.k = b.k",
    "left outer": "a LEFT JOIN b ON a.k = b.k AND b.v < 30",
    "right outer": "b RIGHT JOIN a ON a.k = b.k AND b.v < 30",
    "semi": "a LEFT SEMI JOIN b ON a.k = b.k",
    "groups": "(SELECT k, count(*) AS v FROM a GROUP BY k) a",
    "buckets": "bucketed a JOIN bucketed_too b ON a.k = b.k",
    "cache": "cached a",
    "union": "(SELECT k, sum(n) AS v FROM (SELECT k, count(*) AS n FROM a GROUP BY k UNION ALL"
    " SELECT j, count(*) FROM c GROUP BY j) GROUP BY k) a",
}
STORED = ("inner", "left outer", "right outer", "semi", "groups")
ELSEWHERE = {
    "partition_coalescing": struct(target_bytes="2048L", min_partition_bytes="1L"),
    "shuffle_partitions": "7",
    "join_selection": "'SHUFFLE_MERGE'",
    "dynamic_join_selection": "'SHUFFLE_HASH'",
}


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    """Storage-partitioned a and b, of which a has many splits, and plain c and d."""

    def keyed(name: str, rows: int, of_split: int) -> None:
        df = spark.range(rows).selectExpr("CAST(if(id % 3 = 0, 0, id % 5) AS INT) AS k", "id AS v")
        storage_partitioned.table(spark, name, df, of_split).createOrReplaceTempView(name)

    keyed("a", 400, 25)
    keyed("b", 50, 50)
    hot = spark.range(0, 2000, 1, 3).selectExpr("if(id % 10 < 8, 1, id % 7) AS j", "id AS v")
    hot.createOrReplaceTempView("c")
    spark.range(0, 70, 1, 2).selectExpr("id % 7 AS j").createOrReplaceTempView("d")
    settings = storage_partitioned.SETTINGS | {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "5",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
    }
    skewed.settings(spark, settings)
    return spark


def made(spark: SparkSession, name: str) -> None:
    """Makes what the query reads beside the split join, where that is no temporary view."""
    if name == "buckets":
        for table in ("bucketed", "bucketed_too"):
            rows = spark.range(60).selectExpr("CAST(id % 5 AS INT) AS k", "id AS v").coalesce(1)
            rows.write.bucketBy(4, "k").saveAsTable(table)
    elif name == "cache":
        spark.sql("CACHE TABLE cached AS SELECT CAST(j AS INT) AS k, max(v) AS v FROM c GROUP BY j")


def beside(name: str) -> str:
    """A query that joins what is read there and the groups of c and d."""
    hint = "/*+ BROADCAST(x) */"
    return f"SELECT {hint} a.k, a.v, x.n FROM {BESIDE[name]} JOIN {SPLITTABLE} x ON a.v % 7 = x.j"


def shuffles(run: Executed) -> int:
    return sum(line.lstrip().startswith("Exchange") for line in run.plan.splitlines())


def scans_of(run: Executed) -> list[str]:
    """Each scan of a data source, with the shuffle, join or grouping that reads it."""
    above: list[tuple[int, str]] = []
    scans = []
    for line in run.plan.splitlines():
        at = len(line) - len(line.lstrip())
        while above and above[-1][0] >= at:
            above.pop()
        word = line.split()[0]
        if word == "BatchScan":
            scans.append(f"{line.strip()} of {above[-1][1]}")
        elif word not in ("Project", "Filter", "Sort"):
            above.append((at, word))
    return scans


def last(spark: SparkSession, point: str) -> Any:
    return [d for d in policies.decisions(spark) if d.point == point][-1]


@pytest.mark.parametrize("name", BESIDE)
def test_a_forced_split_leaves_what_is_partitioned_beside_it_as_it_is(
    tables: SparkSession, plain: Any, name: str
) -> None:
    made(tables, name)
    sql = beside(name)
    with plain(tables):
        before = execute(tables.sql(sql))
    if name in STORED:
        assert not any("Exchange" in scan for scan in scans_of(before))
    skewed.enforce(tables, FORCED)
    after = execute(tables.sql(sql))
    assert_same_rows(after.rows, before.rows)
    decision = last(tables, "skew_join")
    assert (decision.reason, decision.fate) == ("APPLIED", "adopted")
    assert [j.skewed for j in after.joins].count(True) == 1
    assert shuffles(after) == shuffles(before) + 1
    assert scans_of(after) == scans_of(before)


@tiers.ON_ONE
@pytest.mark.parametrize("point", ELSEWHERE)
@pytest.mark.parametrize("name", ["inner", "groups", "buckets", "cache", "union"])
def test_other_decisions_leave_the_rows_beside_them(
    tables: SparkSession, plain: Any, name: str, point: str
) -> None:
    made(tables, name)
    sql = beside(name)
    with plain(tables):
        before = execute(tables.sql(sql))
    skewed.settings(tables, policies.conf("NULL", **{point: ELSEWHERE[point]}))
    after = execute(tables.sql(sql))
    assert_same_rows(after.rows, before.rows)
    # Spark's own check takes a partly clustered join for one that lacks its distribution.
    may = {"APPLIED", "DISTRIBUTION_BROKEN"} if name == "inner" else {"APPLIED"}
    assert may & {d.reason for d in policies.decisions(tables) if d.point == point}
    if name in ("inner", "groups"):
        assert not any("Exchange" in scan for scan in scans_of(after))


def test_a_split_below_a_storage_partitioned_join_in_its_own_stage_is_refused(
    tables: SparkSession, plain: Any
) -> None:
    """The rows of the split join and of b are united, and grouped by b's own partitions."""
    sql = f"""SELECT k, count(*) AS n FROM (
        SELECT CAST(j AS INT) AS k FROM {SPLITTABLE} UNION ALL SELECT k FROM b) GROUP BY k"""
    with plain(tables):
        before = execute(tables.sql(sql))
    skewed.enforce(tables, FORCED)
    after = execute(tables.sql(sql))
    assert_same_rows(after.rows, before.rows)
    decision = last(tables, "skew_join")
    assert decision.reason == "DISTRIBUTION_BROKEN"
    assert "as a data source says" in decision.detail
    assert scans_of(after) == scans_of(before)
