"""Wherever a join runs: decided or left alone, rows right, the record linked to the right query."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import little
import plans
import policies
import tiers
from plans import Executed
from rows import assert_same_rows

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]
RIGHT, MERGE = "ShuffledHashJoin BuildRight", "SortMergeJoin"
JOIN = "SELECT x.k, x.v, d.w FROM big x JOIN dense d ON x.k = d.k"


@pytest.fixture
def session(little_tables: SparkSession) -> SparkSession:
    """Sort-merge joins unless a policy says otherwise."""
    little.settings(little_tables, little.SORT_MERGE)
    little_tables.conf.set("spark.sql.shuffle.partitions", "4")
    return little_tables


def decided(spark: SparkSession, description: str) -> list[Row]:
    """Returns the decision that was applied last on each side of a join, under a description.

    Each is checked against the SQL executions that Spark's status store has under that name. A
    side is asked again when the other one has run, too: the same answer has the same fate.
    """
    made = [
        d
        for d in policies.decisions(spark)
        if json.loads(d.facts)["query"]["description"] == description and d.applied
    ]
    known = policies.described(spark, description)
    for d in made:
        assert d.execution_id in known, (d.execution_id, known)
        assert json.loads(d.facts)["query"]["execution_id"] == d.execution_id
    last = {(d.execution_id, d.join_id, d.side): d for d in made}
    for d in made:
        assert d.fate == last[(d.execution_id, d.join_id, d.side)].fate
    return list(last.values())


def named(spark: SparkSession, description: str) -> None:
    """The thread's next queries have this job description."""
    spark.sparkContext.setJobDescription(description)


@pytest.fixture(autouse=True)
def _no_description(spark: SparkSession) -> Any:
    yield
    spark.sparkContext.setJobDescription(None)


def test_collect(session: SparkSession, executed: Run, plain: Any) -> None:
    with plain(session):
        before = executed(session.sql(JOIN))
    assert before.strategies == [MERGE]
    policies.use(session, policies.HASH_RIGHT)
    named(session, "collect")
    after = executed(session.sql(JOIN))
    assert_same_rows(after.rows, before.rows)
    assert after.strategies == [RIGHT]
    (made,) = decided(session, "collect")
    assert (made.reason, made.fate, made.final_strategy) == ("APPLIED", "adopted", RIGHT)
    assert made.spark_strategy == MERGE
    assert made.tables == "big ⋈ dense"


def test_explain_before_collect(session: SparkSession) -> None:
    """The plan is made before there is an execution; the decision comes with the execution."""
    policies.use(session, policies.HASH_RIGHT)
    df = session.sql(JOIN)
    named(session, "explain")
    df.explain(True)
    df.explain("formatted")
    assert policies.decisions(session) == []
    named(session, "then collect")
    assert len(df.collect()) == 20000
    assert plans.strategies(df) == [RIGHT]
    assert [d.fate for d in decided(session, "then collect")] == ["adopted"]
    asked = len(policies.decisions(session))
    df.collect()
    df.explain()
    assert len(policies.decisions(session)) == asked


def test_a_policy_set_between_explain_and_collect(session: SparkSession) -> None:
    df = session.sql(JOIN)
    df.explain()
    policies.use(session, policies.HASH_RIGHT)
    df.collect()
    assert plans.strategies(df) == [RIGHT]


def test_to_pandas(session: SparkSession) -> None:
    named(session, "pandas")
    policies.use(session, policies.HASH_RIGHT)
    for arrow in ("true", "false"):
        session.conf.set("spark.sql.execution.arrow.pyspark.enabled", arrow)
        df = session.sql(JOIN)
        frame = df.toPandas()
        assert (len(frame), int(frame["w"].sum())) == (20000, 199980000)
    assert {d.fate for d in decided(session, "pandas")} == {"adopted"}
    assert len({d.execution_id for d in decided(session, "pandas")}) == 2


def assert_left_to_spark(session: SparkSession) -> None:
    """Nobody executes an RDD's query: its partitions are Spark's, as code sees them."""
    made = [d for d in policies.decisions(session) if d.reason != "NULL_ANSWER"]
    assert {(d.execution_id, d.reason) for d in made} == {(None, "RDD_PARTITIONS")}


@pytest.mark.parametrize("action", ["rdd", "iterator", "foreach", "count", "take"])
def test_other_actions(session: SparkSession, action: str) -> None:
    policies.use(session, policies.HASH_RIGHT)
    df = session.sql(JOIN)
    named(session, action)
    if action == "rdd":
        assert sum(row.w for row in df.rdd.collect()) == 199980000
        assert_left_to_spark(session)
        return
    if action == "iterator":
        assert sum(row.w for row in df.toLocalIterator()) == 199980000
    elif action == "foreach":
        df.foreachPartition(lambda rows: None)
    elif action == "count":
        assert df.count() == 20000
    else:
        assert len(df.orderBy("k", "v").take(5)) == 5
    if action == "foreach":  # Python's foreachPartition goes through df.rdd
        assert_left_to_spark(session)
    else:
        assert {d.fate for d in decided(session, action)} == {"adopted"}


def test_parquet_is_written(session: SparkSession, tmp_path: Path) -> None:
    policies.use(session, policies.HASH_RIGHT)
    named(session, "write")
    session.sql(JOIN).write.parquet(str(tmp_path / "out"))
    (made,) = decided(session, "write")
    assert (made.fate, made.final_strategy) == ("adopted", RIGHT)
    named(session, "read")
    out = session.read.parquet(str(tmp_path / "out"))
    assert out.selectExpr("count(*)", "sum(w)").collect() == [(20000, 199980000)]


def test_a_table_is_saved(session: SparkSession) -> None:
    policies.use(session, policies.HASH_RIGHT)
    named(session, "table")
    try:
        session.sql(JOIN).write.mode("overwrite").saveAsTable("aqepilot_saved")
        session.sql(f"INSERT INTO aqepilot_saved {JOIN}")
        named(session, "read")
        assert session.table("aqepilot_saved").selectExpr("sum(w)").collect() == [(2 * 199980000,)]
    finally:
        session.sql("DROP TABLE IF EXISTS aqepilot_saved")
    made = decided(session, "table")
    assert {d.fate for d in made} == {"adopted"}
    assert len({d.execution_id for d in made}) == 2


def test_a_cached_table(session: SparkSession, executed: Run, plain: Any) -> None:
    """Spark plans what is cached in a copy of the session, and runs it with its first reader."""
    sql = "SELECT c.k, count(*) AS n, sum(c.w + s.w) AS w FROM cached c JOIN sparse s ON c.k = s.k"
    sql = f"{sql} GROUP BY c.k"
    with plain(session):
        session.sql(JOIN).createOrReplaceTempView("cached")
        before = executed(session.sql(sql))
    policies.use(session, policies.HASH_RIGHT)
    named(session, "cache")
    session.catalog.cacheTable("cached")
    after = executed(session.sql(sql))
    assert_same_rows(after.rows, before.rows)
    again = executed(session.sql(sql))
    assert_same_rows(again.rows, before.rows)
    assert after.strategies[0] == RIGHT
    made = decided(session, "cache")
    assert {d.fate for d in made if d.tables.endswith("sparse")} == {"adopted"}
    inner = [d for d in made if d.tables == "big ⋈ dense" and d.applied]
    assert {d.fate for d in inner} == {"adopted"}


def test_what_is_planned_when_a_table_is_cached(session: SparkSession) -> None:
    """Spark does so outside of any execution; the first query that reads the table claims it."""
    policies.use(session, "NULL", shuffle_partitions="7")
    session.sql(JOIN).createOrReplaceTempView("cached")
    session.catalog.cacheTable("cached")
    for _ in range(2):
        named(session, "reads the cache")
        session.sql("SELECT max(w) FROM cached").collect()
    first = min(policies.described(session, "reads the cache"))
    made = [d for d in policies.decisions(session) if d.point == "shuffle_partitions"]
    assert {(d.answer, d.reason, d.execution_id, d.fate) for d in made} == {
        ("7", "APPLIED", first, "adopted")
    }


def test_a_scalar_subquery_with_a_join_inside(
    session: SparkSession, executed: Run, plain: Any
) -> None:
    sql = f"SELECT k FROM big WHERE k < (SELECT max(w) / 4 FROM ({JOIN})) GROUP BY k"
    with plain(session):
        before = executed(session.sql(sql))
    policies.use(session, policies.HASH_RIGHT)
    named(session, "scalar")
    after = executed(session.sql(sql))
    assert_same_rows(after.rows, before.rows)
    assert (before.strategies, after.strategies) == ([MERGE], [RIGHT])
    assert [d.fate for d in decided(session, "scalar")] == ["adopted"]


SHAPES = {
    "cte": f"WITH j AS ({JOIN}) SELECT a.k, b.w FROM j a JOIN j b ON a.k = b.k AND a.v = b.v",
    "self_join": "SELECT a.k, b.w FROM dense a JOIN dense b ON a.k = b.k",
    "union": f"SELECT k, sum(w) FROM ({JOIN} UNION ALL {JOIN}) GROUP BY k",
    "three_tables": "SELECT x.k, d.w, s.w AS u FROM big x JOIN dense d ON x.k = d.k "
    "JOIN sparse s ON x.k = s.k",
    "in": "SELECT k, v FROM big WHERE k IN (SELECT w FROM dense)",
    "exists": "SELECT k, v FROM big x WHERE EXISTS (SELECT 1 FROM dense d WHERE d.w = x.k)",
    "not_exists": "SELECT k FROM big x WHERE NOT EXISTS (SELECT 1 FROM dense d WHERE d.w = x.k)",
    "not_in": "SELECT k FROM big WHERE k NOT IN (SELECT w FROM dense)",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(session: SparkSession, executed: Run, plain: Any, shape: str) -> None:
    with plain(session):
        before = executed(session.sql(SHAPES[shape]))
    policies.use(session, policies.HASH_RIGHT)
    named(session, shape)
    after = executed(session.sql(SHAPES[shape]))
    assert_same_rows(after.rows, before.rows)
    expected = [RIGHT if strategy == MERGE else strategy for strategy in before.strategies]
    assert after.strategies == expected
    made = decided(session, shape)
    assert {d.fate for d in made} == ({"adopted"} if MERGE in before.strategies else set())
    assert len({d.execution_id for d in made}) <= 1


def test_the_same_dataframe_twice(session: SparkSession, executed: Run) -> None:
    policies.use(session, policies.HASH_RIGHT)
    named(session, "twice")
    df = session.sql(JOIN)
    doubled = executed(df.union(df))
    assert len(doubled.rows) == 40000
    assert set(doubled.strategies) == {RIGHT}
    squared = executed(df.alias("a").join(df.alias("b"), ["k", "v"]).groupBy().count())
    assert squared.rows == [(20000,)]
    assert set(squared.strategies) == {RIGHT}
    # Of the joins below the last one, the second was not run: Spark reused what the first wrote.
    fates = [(d.fate, d.final_strategy) for d in decided(session, "twice")]
    assert sorted(fates, key=str) == [*[("adopted", RIGHT)] * 4, ("gone", None)]


@pytest.mark.parametrize("hint", ["SHUFFLE_HASH(d)", "MERGE(d)"])
@pytest.mark.parametrize("form", ["in", "exists", "scalar"])
def test_the_users_hint_in_a_subquery_wins(
    session: SparkSession, executed: Run, plain: Any, form: str, hint: str
) -> None:
    sql = {
        "in": f"SELECT k FROM big WHERE k IN (SELECT /*+ {hint} */ w FROM dense d)",
        "exists": f"SELECT k FROM big x WHERE EXISTS "
        f"(SELECT /*+ {hint} */ 1 FROM dense d WHERE d.w = x.k)",
        "scalar": f"SELECT 1 WHERE 5 < (SELECT /*+ {hint} */ max(w) FROM big x "
        "JOIN dense d ON x.k = d.k)",
    }[form]
    with plain(session):
        before = executed(session.sql(sql))
    assert before.strategies == [MERGE if hint == "MERGE(d)" else RIGHT]
    other = "SHUFFLE_HASH" if hint == "MERGE(d)" else "SHUFFLE_MERGE"
    policies.use(session, f"CASE WHEN NOT side.is_left THEN '{other}' END")
    after = executed(session.sql(sql))
    assert_same_rows(after.rows, before.rows)
    assert after.plan == before.plan
    right = [d for d in policies.decisions(session) if d.side == "right"]
    assert {(d.reason, d.applied) for d in right} == {("USER_HINT", False)}


@pytest.mark.parametrize("adaptive", [None, "true"])
def test_foreach_batch(session: SparkSession, tmp_path: Path, adaptive: str | None) -> None:
    """Micro-batches run in a session of the stream's own that has this session's settings.

    On 3.5 Spark switches adaptive execution off there, unless the batch's code turns it on again.
    """
    policies.use(session, policies.HASH_RIGHT)
    source, batches = tmp_path / "in", []
    session.sql("SELECT k, v FROM big").repartition(2).write.parquet(str(source))
    dense = session.table("dense")

    def batch(df: DataFrame, number: int) -> None:
        inner = df.sparkSession
        if adaptive:
            inner.conf.set("spark.sql.adaptive.enabled", adaptive)
        is_adaptive = inner.conf.get("spark.sql.adaptive.enabled") == "true"
        ran = plans.execute(df.join(dense, "k").selectExpr("count(*) AS n", "sum(w) AS w"))
        batches.append((ran.rows[0], ran.strategies, is_adaptive, policies.decisions(inner)))

    stream = (
        session.readStream.schema("k long, v string")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(source))
        .writeStream.foreachBatch(batch)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert stream.awaitTermination(120)
    assert len(batches) == 2
    assert sum(row.n for row, *_ in batches) == 20000
    assert sum(row.w for row, *_ in batches) == 199980000
    for _, strategies, is_adaptive, _ in batches:
        assert is_adaptive or (adaptive is None and session.version < "4")
        assert strategies == [RIGHT if is_adaptive else MERGE]
    made = [d for d in batches[-1][-1] if d.applied]
    assert {d.fate for d in made} <= {"adopted", "superseded", "gone"}
    adopted = {d.execution_id for d in made if d.fate == "adopted"}
    assert len(adopted) == (2 if batches[0][2] else 0)


def test_a_streaming_join_with_a_static_table(session: SparkSession, tmp_path: Path) -> None:
    """Spark runs a micro-batch adaptively only if nothing in it is stateful, and not on 3.5."""
    policies.use(session, policies.HASH_RIGHT)
    source = tmp_path / "in"
    session.sql("SELECT k, v FROM big").coalesce(1).write.parquet(str(source))
    streamed = session.readStream.schema("k long, v string").parquet(str(source))
    stream = (
        streamed.join(session.table("dense"), "k")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "out"))
    )
    assert stream.awaitTermination(120)
    out = session.read.parquet(str(tmp_path / "out"))
    assert out.selectExpr("count(*)", "sum(w)").collect() == [(20000, 199980000)]
