"""Policies number the shuffles that Spark adds; what the user numbered stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import little
import policies
import tiers
from aqepilot import recipes
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

POINT = "shuffle_partitions"
Run = Callable[[DataFrame], Executed]

SHUFFLE = re.compile(
    r"^ *Exchange (?:hash|range|nullaware\w*)partitioning\(.*, (\d+)\), (\w+)", re.M | re.I
)
JOIN = little.BIG_DENSE
BY_KEY = "SELECT k, count(*) AS n FROM big GROUP BY k"
TWICE = f"SELECT a.k, a.n, b.n AS m FROM ({BY_KEY}) a JOIN ({BY_KEY}) b ON a.k = b.k"
QUERIES = {
    "join": JOIN,
    "left join": "SELECT b.k, b.v, d.w FROM big b LEFT JOIN dense d ON b.k = d.k + 5000",
    "full join": "SELECT b.k, b.v, d.w FROM big b FULL JOIN dense d ON b.k = d.k + 5000",
    "anti join": "SELECT b.k, b.v FROM big b LEFT ANTI JOIN dense d ON b.k = d.k + 5000",
    "three": f"SELECT x.*, s.w AS w2 FROM ({JOIN}) x JOIN dense s ON x.w = s.w",
    "aggregate": BY_KEY,
    "aggregates joined": f"SELECT a.k, a.n, d.w FROM ({BY_KEY}) a JOIN dense d ON a.k = d.k",
    "distinct": "SELECT DISTINCT k % 7 AS k FROM big",
    "window": "SELECT k, w, sum(w) OVER (PARTITION BY w % 10) AS s FROM dense",
    "union": f"SELECT k, n FROM ({BY_KEY}) UNION ALL SELECT k, count(*) FROM skewed GROUP BY k",
    "union above": f"SELECT k, max(n) AS n FROM ({BY_KEY} UNION ALL "
    "SELECT k, count(*) FROM dense GROUP BY k) GROUP BY k",
    "sort": "SELECT k, w FROM dense ORDER BY w DESC",
    "subquery": "SELECT k, w FROM dense WHERE w > (SELECT avg(n) FROM "
    "(SELECT k, count(*) AS n FROM skewed GROUP BY k))",
    "twice": TWICE,
}


def use(spark: SparkSession, text: str, name: str = "test", mode: str = "enforce") -> None:
    spark.conf.set("spark.aqepilot.policies", name)
    spark.conf.set(f"spark.aqepilot.policy.{name}.{POINT}", text)
    spark.conf.set(f"spark.aqepilot.policy.{name}.mode", mode)


def decisions(spark: SparkSession) -> list[Any]:
    return [d for d in policies.decisions(spark) if d.point == POINT]


def numbers(run: Executed) -> list[int]:
    """Of the shuffles that Spark added and that may have any number of partitions."""
    shuffles = SHUFFLE.findall(run.plan)
    return [int(number) for number, origin in shuffles if origin == "ENSURE_REQUIREMENTS"]


def unnumbered(run: Executed) -> str:
    return re.sub(r", \d+\), ENSURE_REQUIREMENTS", ", n), ENSURE_REQUIREMENTS", run.plan)


def before_and_after(
    spark: SparkSession, executed: Run, plain: Any, sql: str, text: str, mode: str = "enforce"
) -> tuple[Executed, Executed]:
    with plain(spark):
        before = executed(spark.sql(sql))
    use(spark, text, mode=mode)
    after = executed(spark.sql(sql))
    assert_same_rows(after.rows, before.rows, ordered="ORDER BY" in sql)
    return before, after


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, 5) for name in QUERIES),
        *((name, 40) for name in ("three", "union above", "sort")),
    ],
)
def test_every_shuffle_of_sparks_gets_the_number(
    little_tables: SparkSession, executed: Run, plain: Any, name: str, number: int
) -> None:
    """And the plan is plain Spark's in all else: nothing is shuffled anew for the number's sake."""
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    before, after = before_and_after(spark, executed, plain, QUERIES[name], str(number))
    assert set(numbers(before)) == {16}
    assert set(numbers(after)) == {number}
    if name != "sort":
        assert unnumbered(after) == unnumbered(before)
    recorded = decisions(spark)
    assert {(d.answer, d.reason, d.spark_answer) for d in recorded} == {
        (str(number), "APPLIED", "16")
    }
    assert {d.fate for d in recorded} <= {"adopted", "gone"}
    assert f"{number} partitions" in {d.final_strategy for d in recorded}


def test_as_many_tasks_run(little_tables: SparkSession) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    use(spark, "6")
    where = spark.sql(f"SELECT DISTINCT spark_partition_id() AS p, k FROM ({JOIN})")
    assert {row.p for row in where.select("p").collect()} == set(range(6))


@tiers.EIGHTH
@pytest.mark.parametrize(
    "text",
    ["NULL", "shuffles.num_partitions", recipes.get("initial_partition_num").points[POINT]],
    ids=["null", "number", "recipe"],
)
@pytest.mark.parametrize("name", ["three", "union above", "twice"])
def test_sparks_own_number_gives_sparks_own_plan(
    little_tables: SparkSession, executed: Run, plain: Any, name: str, text: str
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    before, after = before_and_after(spark, executed, plain, QUERIES[name], text)
    assert after.plan == before.plan
    reason = ("NULL_ANSWER", None) if text == "NULL" else ("APPLIED", "no_change")
    assert reason in {(d.reason, d.fate) for d in decisions(spark)}
    assert {d.reason for d in decisions(spark)} == {reason[0]}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("text", "reason"),
    [("0", "OUT_OF_RANGE"), ("-3", "OUT_OF_RANGE"), ("1000000", "GUARD_PARTITIONS")],
)
def test_a_refused_number_leaves_sparks(
    little_tables: SparkSession, executed: Run, plain: Any, text: str, reason: str
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    before, after = before_and_after(spark, executed, plain, JOIN, text)
    assert after.plan == before.plan
    assert {(d.reason, d.applied) for d in decisions(spark)} == {(reason, False)}


def test_shadow_changes_nothing(little_tables: SparkSession, executed: Run, plain: Any) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    before, after = before_and_after(spark, executed, plain, JOIN, "5", mode="shadow")
    assert after.plan == before.plan
    assert {(d.reason, d.fate) for d in decisions(spark)} == {("SHADOW", None)}


@tiers.EIGHTH
@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT /*+ REPARTITION(16, k) */ * FROM ({JOIN})",
        f"SELECT /*+ REPARTITION(20, k) */ * FROM ({JOIN})",
        "SELECT k, v FROM (SELECT /*+ REPARTITION(9, k) */ * FROM big) b LEFT SEMI JOIN "
        "(SELECT /*+ REPARTITION(9, k) */ * FROM dense) d USING (k)",
    ],
    ids=["16", "20", "below"],
)
def test_the_users_repartition_is_kept(
    little_tables: SparkSession, executed: Run, plain: Any, sql: str
) -> None:
    """Spark optimises the first one away: the join is partitioned so already."""
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    spark.conf.set("spark.sql.shuffle.partitions", "9" if "9, k" in sql else "16")
    with plain(spark):
        before = spark.sql(sql)
        expected = executed(before)
        count = before.rdd.getNumPartitions()
    use(spark, "5")
    df = spark.sql(sql)
    assert_same_rows(executed(df).rows, expected.rows)
    assert df.rdd.getNumPartitions() == count == int(re.search(r"\((\d+), k", sql)[1])
    if "16" in sql:
        assert {d.reason for d in decisions(spark)} == {"DISTRIBUTION_BROKEN"}


def test_a_bucketed_table_gives_the_number(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    spark.conf.set("spark.sql.shuffle.partitions", "4")
    spark.table("dense").write.bucketBy(8, "k").saveAsTable("bucketed")
    sql = "SELECT b.k, b.v, d.w FROM big b JOIN bucketed d ON b.k = d.k"
    before, after = before_and_after(spark, executed, plain, sql, "5")
    assert after.plan == before.plan
    assert decisions(spark) == []


def test_a_shuffle_that_served_twice_still_does(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """The same aggregate feeds a join and, elsewhere, a union: one number, one shuffle."""
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    sql = f"{TWICE} UNION ALL SELECT k, n, 0 FROM ({BY_KEY}) WHERE k IS NOT NULL"
    text = "IF(array_contains(shuffles.feeds, 'JOIN'), 6, 9)"
    before, after = before_and_after(spark, executed, plain, sql, text)
    assert before.plan.count("ReusedExchange") == after.plan.count("ReusedExchange") == 2
    assert set(numbers(after)) == {6}
    assert len({d.subject for d in decisions(spark) if d.fate == "adopted"}) == 1


def test_each_group_has_an_answer_of_its_own(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    text = "IF(array_contains(shuffles.tables, 'skewed'), 3, 11)"
    _, after = before_and_after(spark, executed, plain, QUERIES["union"], text)
    assert sorted(numbers(after)) == [3, 11]


def test_a_later_join_keeps_a_broadcast_by_size(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """Fewer partitions than Spark's default do not lead to another shuffle at a re-plan."""
    spark = little_tables
    little.settings(
        spark, little.SORT_MERGE | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "256KB"}
    )
    sql = (
        f"SELECT x.k, x.v, y.n FROM ({JOIN}) x JOIN "
        f"(SELECT k, max(n) AS n FROM (SELECT k, w, count(*) AS n FROM ({JOIN}) GROUP BY k, w) "
        "GROUP BY k) y ON x.k = y.k"
    )
    before, after = before_and_after(spark, executed, plain, sql, "5")
    assert after.strategies == before.strategies
    assert len(numbers(after)) == len(numbers(before))
    assert set(numbers(after)) == {5}


def test_the_facts(little_tables: SparkSession, executed: Run) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    use(spark, "NULL")
    executed(spark.sql(f"SELECT v, count(*) AS n FROM ({JOIN}) GROUP BY v"))
    rows = [json.loads(d.facts)["shuffles"] for d in decisions(spark)]
    join = next(r for r in rows if "JOIN" in r["feeds"])
    assert (join["num_shuffles"], join["num_partitions"], join["partitioning"]) == (2, 16, "HASH")
    assert (join["key_count"], join["tables"]) == (1, ["big", "dense"])
    assert join["feeds"] == ["AGGREGATE", "JOIN"]
    assert 0 < join["max_size_in_bytes"] < join["size_in_bytes"]
    assert join.get("known_bytes") is None
    above = [r for r in rows if r["feeds"] == ["AGGREGATE"]]
    assert above[0].get("known_bytes") is None
    assert above[-1]["known_bytes"] > little.ROWS * 64
    assert above[0]["size_in_bytes"] > above[0]["input_bytes"] > 0
    assert len(rows) == len({json.dumps(r) for r in rows})


def test_right_sized_shuffles_follow_the_bytes(
    little_tables: SparkSession, executed: Run, plain: Any, tmp_path: Path
) -> None:
    spark = little_tables
    many = {
        "spark.sql.shuffle.partitions": "200",
        "spark.sql.adaptive.coalescePartitions.enabled": "true",
    }
    little.settings(spark, little.SORT_MERGE | many)
    text = recipes.get("right_sized_shuffles").points[POINT]
    before, after = before_and_after(spark, executed, plain, JOIN, text)
    assert (set(numbers(before)), set(numbers(after))) == ({200}, {8})
    spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "32KB")
    finer = set(numbers(executed(spark.sql(JOIN))))
    assert len(finer) == 1
    assert min(finer) > 20
