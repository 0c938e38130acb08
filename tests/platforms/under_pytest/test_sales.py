"""A team's test of its job with its policy, as pytest finds it in their own repository."""

import os
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

import aqepilot


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark for all tests, with the policy that the job is submitted with."""
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.autoBroadcastJoinThreshold", "-1")
    spark = aqepilot.configure(builder, os.environ["POLICY"]).getOrCreate()
    yield spark
    spark.stop()


def sales(spark: SparkSession) -> DataFrame:
    left, right = (spark.range(0, n, 1, 4) for n in (3000, 1000))
    return left.join(right, "id")


def test_the_policy_decides_the_join(spark: SparkSession) -> None:
    assert sales(spark).count() == 1000
    assert "hashed" in {decision.policy for decision in aqepilot.decisions(spark)}


def test_the_rows_are_those_of_plain_spark(spark: SparkSession) -> None:
    decided = sorted(sales(spark).collect())
    spark.conf.set("spark.aqepilot.mode", "off")
    assert sorted(sales(spark).collect()) == decided
