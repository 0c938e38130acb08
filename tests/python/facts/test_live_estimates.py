"""Where Spark fails to estimate a plan that it runs without an estimate, every point still decides.

The statistics of a column with NaN make Spark's `FilterEstimation` fail an assertion, on each
release from 3.5 to 4.3. Join hints, writes and aggregates run without asking it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import places
import policies
from aqepilot import catalog
from rows import assert_same_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from conftest import Plain

SOURCES = places.ROOT / "jvm/src/main"
A_PLANS_STATISTICS = (
    ".stats.sizeInBytes",
    ".stats.rowCount",
    ".stats.attributeStats",
    ".stats.isRun",
)
FAILING = "(SELECT * FROM has_nan WHERE x > 1)"
QUERIES = {
    "an aggregate": f"SELECT k % 3, count(*) FROM {FAILING} GROUP BY 1",
    "a broadcast": f"SELECT /*+ BROADCAST(b) */ b.x FROM {FAILING} a JOIN has_nan b USING (k)",
    "a sort-merge join": f"SELECT /*+ MERGE(b) */ b.x FROM {FAILING} a JOIN has_nan b USING (k)",
    "a chain": f"""SELECT /*+ BROADCAST(b), BROADCAST(c) */ c.x FROM {FAILING} a
        JOIN has_nan b ON a.k = b.k JOIN has_nan c ON b.k = c.k""",
    "a write": f"INSERT OVERWRITE TABLE written SELECT k, x FROM {FAILING}",
}
COALESCED = {"shuffle_partitions", "partition_coalescing"}
POINTS = {
    "an aggregate": COALESCED,
    "a broadcast": {"join_selection"},
    "a sort-merge join": COALESCED | {"join_selection", "dynamic_join_selection", "skew_join"},
    "a chain": {"join_selection"},
    "a write": {"write_distribution"},
}


@pytest.fixture(scope="module")
def _tables(_spark_context: SparkSession) -> Iterator[None]:
    _spark_context.sql(
        """CREATE TABLE has_nan USING parquet AS
        SELECT id AS k, IF(id % 13 = 0, double('NaN'), id / 4) AS x FROM range(40)"""
    )
    _spark_context.sql("ANALYZE TABLE has_nan COMPUTE STATISTICS FOR ALL COLUMNS")
    _spark_context.sql("CREATE TABLE written (k LONG, x DOUBLE) USING parquet PARTITIONED BY (x)")
    yield
    _spark_context.sql("DROP TABLE has_nan")
    _spark_context.sql("DROP TABLE written")


@pytest.fixture
def session(spark: SparkSession, _tables: None) -> SparkSession:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    # Its rule asks for estimates also where a join has hints.
    spark.conf.set("spark.sql.optimizer.runtime.bloomFilter.enabled", "false")
    with pytest.raises(Exception, match="assertion failed"):
        spark.sql(f"SELECT * FROM {FAILING}")._jdf.queryExecution().optimizedPlan().stats()
    return spark


@pytest.mark.parametrize("name", QUERIES)
def test_facts_of_a_plan_without_an_estimate_are_those_of_an_unknown_size(
    session: SparkSession, name: str, plain: Plain
) -> None:
    with plain(session):
        expected = session.sql(QUERIES[name]).collect()
    session.conf.set("spark.aqepilot.policies", "test")
    for point in catalog.points():
        session.conf.set(f"spark.aqepilot.policy.test.{point.name}", "NULL")
    assert_same_rows(session.sql(QUERIES[name]).collect(), expected)
    decisions = policies.decisions(session)
    assert {d.reason for d in decisions} == {"NULL_ANSWER"}
    assert {d.point for d in decisions} == POINTS[name]
    facts = [json.loads(d.facts) for d in decisions if d.facts]
    words = [f[s].get("estimate_from") for f in facts for s in ("left", "input") if s in f]
    is_estimated = not POINTS[name].isdisjoint({"join_selection", "write_distribution"})
    assert [word for word in words if word][:1] == (["GUESS"] if is_estimated else [])
    assert [s["size_in_bytes"] for f in facts if (s := f.get("shuffles"))] in ([], [None])


def test_only_estimates_ask_a_plan_for_its_statistics() -> None:
    files = [f for f in SOURCES.rglob("*.scala") if f.name != "Estimates.scala"]
    assert len(files) > 100
    asking = [f.name for f in files if any(s in f.read_text() for s in A_PLANS_STATISTICS)]
    assert asking == []
