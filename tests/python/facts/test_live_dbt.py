"""A query with the comment of dbt is of the job that is its model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import policies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

JOINED = "SELECT a.id FROM range(100) a JOIN range(40) b ON a.id = b.id"
# What dbt runs for a model by its materialization.
MATERIALIZED = {
    "table": f"CREATE TABLE dbt_orders USING parquet AS {JOINED}",
    "incremental": f"INSERT OVERWRITE TABLE dbt_sales {JOINED}",
    "query": JOINED,
}
POLICY = "spark.aqepilot.policy.test."


def of_model(sql: str, model: str) -> str:
    comment = {"app": "dbt", "dbt_version": "1.11.2", "profile_name": "shop", "node_id": model}
    return f"/* {json.dumps(comment)} */\n\n    {sql}"


def jobs(spark: SparkSession) -> set[tuple[str, str]]:
    facts = [json.loads(d.facts)["query"] for d in policies.decisions(spark)]
    return {(query["job"], query["job_source"]) for query in facts}


@pytest.fixture
def session(spark: SparkSession) -> Iterator[SparkSession]:
    spark.sql("CREATE TABLE dbt_sales (id LONG) USING parquet")
    spark.conf.set("spark.aqepilot.policies", "test")
    for point in ("join_selection", "write_distribution", "cost_evaluation"):
        spark.conf.set(POLICY + point, "NULL")
    yield spark
    for table in ("dbt_sales", "dbt_orders"):
        spark.sql(f"DROP TABLE IF EXISTS {table}")


@pytest.mark.parametrize("materialized", MATERIALIZED)
def test_a_model_is_the_job_of_its_query_alone(session: SparkSession, materialized: str) -> None:
    sql = MATERIALIZED[materialized]
    session.sql(of_model(sql, "model.shop.orders")).collect()
    assert jobs(session) == {("model.shop.orders", "DBT")}
    session.sql(of_model(JOINED, "model.shop.others")).collect()
    session.sql(JOINED).collect()
    assert jobs(session) == {
        ("model.shop.orders", "DBT"),
        ("model.shop.others", "DBT"),
        (session.sparkContext.appName, "UNKNOWN_RUN"),
    }


def test_a_policy_of_one_model_acts_in_its_query_alone(session: SparkSession) -> None:
    session.conf.set(POLICY + "join_selection", "'SHUFFLE_MERGE'")
    session.conf.set(POLICY + "when", "query.job = 'model.shop.orders'")
    session.sql(of_model(JOINED, "model.shop.orders")).collect()
    assert {d.reason for d in policies.decisions(session)} >= {"APPLIED"}
    before = len(policies.decisions(session))
    session.sql(of_model(JOINED, "model.shop.others")).collect()
    assert "APPLIED" not in {d.reason for d in policies.decisions(session)[before:]}


def test_a_job_that_is_set_wins(session: SparkSession) -> None:
    session.conf.set("spark.aqepilot.job", "nightly")
    session.sql(of_model(JOINED, "model.shop.orders")).collect()
    assert jobs(session) == {("nightly", "SETTING")}
