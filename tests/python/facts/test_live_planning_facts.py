"""What a policy reads of a side before it has run: where its size comes from, and what is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import policies
import tiers

pytestmark = tiers.ON_ONE

POINT = "join_selection"
# As the right side of a join on k, with and without statistics.
SIDES: dict[str, tuple[str, dict[str, Any]]] = {
    "files": (
        "files",
        {
            **{"tables": ["files"], "estimate_from": "FILES", "row_count": None, "join_count": 0},
            **{"is_distributed": False, "is_sorted": False, "distinct_count": None},
            **{"can_broadcast": True, "can_shuffle_hash": True, "broadcasts_by_size": True},
        },
    ),
    "filters": (
        "(SELECT * FROM files WHERE v > 3 AND v < 30)",
        {
            "estimate_from": "FILES",
            "filters": [
                *("(files.v IS NOT NULL)", "(files.v > 3L)", "(files.v < 30L)"),
                "(b.k IS NOT NULL)",
            ],
        },
    ),
    "a join": (
        "(SELECT files.k FROM files JOIN counted ON files.v = counted.v)",
        {"estimate_from": "GUESS", "join_count": 1},
    ),
    "explode": ("(SELECT k, explode(array(1, 2)) FROM files)", {"estimate_from": "GUESS"}),
    "an RDD": ("rdd", {"estimate_from": "GUESS"}),
    "local data": ("(SELECT * FROM VALUES (1, 2) AS t(k, v))", {"estimate_from": "STATISTICS"}),
    "an aggregate": (
        "(SELECT k, count(*) FROM files GROUP BY k)",
        {"is_distributed": True, "is_sorted": False},
    ),
    "an aggregate by more": (
        "(SELECT k, v, count(*) FROM files GROUP BY k, v)",
        {"is_distributed": False},
    ),
    "a bucketed table": ("bucketed", {"is_distributed": True, "is_sorted": True}),
    "another name": (
        "(SELECT c AS k FROM (SELECT k AS c FROM bucketed WHERE v > 2))",
        {"is_distributed": True, "is_sorted": True},
    ),
}


@pytest.fixture(scope="module")
def path(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Makes the tables; returns the path of one."""
    rows = _spark_context.sql("SELECT id AS k, id % 7 AS v FROM range(40)")
    written = str(tmp_path_factory.mktemp("facts") / "files")
    rows.write.parquet(written)
    rows.write.saveAsTable("counted")
    _spark_context.sql("ANALYZE TABLE counted COMPUTE STATISTICS FOR ALL COLUMNS")
    rows.write.bucketBy(4, "k").sortBy("k").saveAsTable("bucketed")
    yield written
    _spark_context.sql("DROP TABLE counted")
    _spark_context.sql("DROP TABLE bucketed")


@pytest.fixture
def tables(spark: SparkSession, path: str) -> SparkSession:
    spark.read.parquet(path).createOrReplaceTempView("files")
    rows = spark.sparkContext.parallelize([(1, 2)])
    spark.createDataFrame(rows, "k long, v long").createTempView("rdd")
    little.settings(spark, {"spark.sql.shuffle.partitions": "3"})
    spark.conf.set("spark.aqepilot.policies", "test")
    spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", "NULL")
    return spark


def facts(spark: SparkSession, right: str) -> list[dict[str, Any]]:
    """The facts of each asking about the topmost join, whose right side this is."""
    spark.sql(f"SELECT a.v FROM files a JOIN {right} b ON a.k = b.k").collect()
    decisions = policies.decisions(spark)
    by_id = {d.facts_id: json.loads(d.facts) for d in decisions if d.facts}
    recorded = [by_id[d.facts_id] for d in decisions if d.point == POINT]
    top = max(recorded, key=lambda f: len(f["left"]["tables"] + f["right"]["tables"]))
    return [f for f in recorded if f["join"]["id"] == top["join"]["id"]]


@tiers.EIGHTH
@pytest.mark.parametrize("name", SIDES)
def test_what_is_known_of_a_side(tables: SparkSession, name: str) -> None:
    sql, expected = SIDES[name]
    side = facts(tables, sql)[0]["right"]
    assert {fact: side.get(fact) for fact in expected} == expected


def test_statistics_give_rows_and_distinct_counts(tables: SparkSession) -> None:
    tables.conf.set("spark.sql.cbo.enabled", "true")
    side = facts(tables, "counted")[0]["right"]
    assert (side["estimate_from"], side["row_count"]) == ("STATISTICS", 40)
    assert side["distinct_count"] == pytest.approx(40, abs=3)  # Spark's own estimate


def test_a_finished_stage_is_measured(tables: SparkSession) -> None:
    little.settings(
        tables,
        {
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        },
    )
    first, *later = facts(tables, "files")
    assert (first["join"]["is_replan"], first["right"].get("max_bytes")) == (False, None)
    last = later[-1]
    assert last["join"]["is_replan"]
    assert last["right"]["estimate_from"] == "STAGE"
    assert last["right"]["row_count"] == 40
    assert 0 < last["right"]["max_bytes"] <= last["right"]["shuffle_bytes"]


def test_what_spark_would_do_and_why(tables: SparkSession) -> None:
    queries = {
        "SELECT a.v FROM files a JOIN files b ON a.k = b.k": ("BROADCAST", "RIGHT", "SIZE"),
        "SELECT /*+ MERGE(a) */ a.v FROM files a JOIN files b ON a.k = b.k": (
            *("SHUFFLE_MERGE", None, "HINT"),
        ),
        "SELECT a.v FROM files a FULL JOIN files b ON a.k = b.k": (
            "SHUFFLE_MERGE",
            None,
            "SORTABLE",
        ),
        "SELECT a.v FROM files a FULL JOIN files b ON a.k < b.k": ("BROADCAST", "RIGHT", "SIZE"),
        "SELECT v FROM files WHERE k NOT IN (SELECT k FROM counted)": (
            *("BROADCAST", "RIGHT", "NULL_AWARE"),
        ),
    }
    for sql, expected in queries.items():
        seen = len(policies.decisions(tables))
        tables.sql(sql).collect()
        of_join = [d for d in policies.decisions(tables)[seen:] if d.point == POINT]
        own = json.loads(of_join[0].facts)["spark"]
        assert (own["strategy"], own.get("build_side"), own["reason"]) == expected, sql
    tables.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    tables.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    for join, expected in {
        "CROSS JOIN files b": ("SHUFFLE_REPLICATE_NL", None, "CROSS"),
        "LEFT JOIN files b ON a.k < b.k": ("BROADCAST", "RIGHT", "LAST_RESORT"),
    }.items():
        seen = len(policies.decisions(tables))
        tables.sql(f"SELECT a.v FROM files a {join}").collect()
        of_join = [d for d in policies.decisions(tables)[seen:] if d.point == POINT]
        own = json.loads(of_join[0].facts)["spark"]
        assert (own["strategy"], own.get("build_side"), own["reason"]) == expected, join
