"""Facts on a stage whose rows may each take long: Python and JVM functions, groups, loops."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pytest
from pyspark.ml.functions import array_to_vector
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import PandasUDFType, array, pandas_udf

import little
import reads
import tiers

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

FACTS = ("has_python_udf", "has_jvm_udf", "has_grouped_udf", "has_loop")
GROUPED = {"has_python_udf", "has_grouped_udf"}
# What holds of the stage after a query's shuffle.
HOLD: dict[str, set[str]] = {
    "nothing": set(),
    "pandas": {"has_python_udf"},
    "applyInPandas": GROUPED,
    "cogroup": GROUPED,
    "aggregate in pandas": GROUPED,
    "method": {"has_jvm_udf"},
    "Scala UDF": {"has_jvm_udf"},
    "lambda": set(),
    "constant array": {"has_loop"},
    "sequence": {"has_loop"},
    "nested lambda": {"has_loop"},
}
BY_KEY = "(SELECT k, max(v) AS v, collect_list(v) AS a FROM big WHERE k < 20 GROUP BY k)"


def frames(spark: SparkSession) -> dict[str, DataFrame]:
    def alike(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.head(1)

    def both(one: pd.DataFrame, _other: pd.DataFrame) -> pd.DataFrame:
        return one.head(1)

    @pandas_udf("long", PandasUDFType.GROUPED_AGG)
    def total(v: pd.Series) -> int:
        return len(v)

    @pandas_udf("long")
    def same(v: pd.Series) -> pd.Series:
        return v

    big = spark.table("big").select("k", "v").where("k < 20")
    by_key = spark.sql(f"SELECT k, v FROM {BY_KEY}")

    def sql(text: str) -> DataFrame:
        return spark.sql(f"SELECT {text} FROM {BY_KEY}")

    return {
        "nothing": sql("k, length(v)"),
        "pandas": by_key.select(same("k")),
        "applyInPandas": big.groupBy("k").applyInPandas(alike, big.schema),
        "cogroup": big.groupBy("k").cogroup(big.groupBy("k")).applyInPandas(both, big.schema),
        "aggregate in pandas": big.groupBy("k").agg(total("k")),
        "method": sql("java_method('java.lang.Math', 'abs', length(v))"),
        "Scala UDF": by_key.select(array_to_vector(array(by_key.k.cast("double")))),
        "lambda": sql("transform(a, x -> length(x))"),
        "constant array": sql("aggregate(sequence(1, 9), length(v), (x, y) -> x + y)"),
        "sequence": sql("size(sequence(1, length(v)))"),
        "nested lambda": sql("transform(a, x -> exists(a, y -> y > x))"),
    }


@pytest.mark.parametrize("name", HOLD)
def test_facts_name_what_may_take_long(little_tables: SparkSession, name: str) -> None:
    spark = little_tables
    little.settings(spark, {"spark.sql.shuffle.partitions": "6"})
    frame = frames(spark)[name]
    reads.decide(spark, "NULL")
    frame.collect()
    stages: list[dict[str, Any]] = [json.loads(d.facts)["stage"] for d in reads.decisions(spark)]
    assert stages
    assert {fact for fact in FACTS if any(stage[fact] for stage in stages)} == HOLD[name]
