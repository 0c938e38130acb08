"""Writes of a view of twelve tasks, by a policy at `write_distribution`, and what came of them."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

import little
import policies
from rows import assert_same_rows

POINT = "write_distribution"
TASKS = 12
SETTINGS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
TABLE = f"SELECT id AS n, id % 5 AS p, id % 7 AS k, id / 8D AS d FROM range(0, 3000, 1, {TASKS})"
EVENLY = "named_struct('rebalance', true, 'columns', array())"


def register(spark: SparkSession) -> SparkSession:
    """Makes the view `t` of twelve tasks."""
    little.settings(spark, SETTINGS)
    spark.conf.set("spark.sql.ui.explainMode", "formatted")  # `nodes` reads the whole plan there
    spark.sql(TABLE).createOrReplaceTempView("t")
    return spark


def use(spark: SparkSession, text: str = "true", mode: str = "enforce") -> None:
    spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", text)
    spark.conf.set("spark.aqepilot.policy.test.mode", mode)
    spark.conf.set("spark.aqepilot.policies", "test")


def plain(spark: SparkSession) -> None:
    spark.conf.unset("spark.aqepilot.policies")


def asked(spark: SparkSession) -> list[Row]:
    return [d for d in policies.decisions(spark) if d.point == POINT]


def facts(spark: SparkSession) -> dict[str, Any]:
    return json.loads(asked(spark)[-1].facts)


def shown_plans(spark: SparkSession) -> str:
    """The plans of the newest execution that wrote something, as far as Spark has told them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    texts = [executions.apply(i).physicalPlanDescription() for i in range(executions.size())]
    return [text for text in texts if "Execute Insert" in text][-1]


def ran(spark: SparkSession) -> str:
    """The same, with the final plan. 4.3 does not tell it where a write is not planned."""
    give_up = time.monotonic() + 120
    while "isFinalPlan=false" in (text := shown_plans(spark)):
        assert time.monotonic() < give_up, text
        time.sleep(0.05)
    return text


def nodes(spark: SparkSession) -> list[str]:
    """The operators of its final plan, from the root."""
    text = ran(spark)
    final = (text.partition("== Final Plan ==")[2] or text).partition("== Initial Plan ==")[0]
    tree = final.partition("\n\n")[0]
    operators = re.findall(r"^[ :+-]*(?:\* )?([A-Z]\w+(?: Insert\w+)?)", tree, re.MULTILINE)
    return [name for name in operators if name not in ("WholeStageCodegen", "InputAdapter")]


def rebalances(spark: SparkSession) -> bool:
    return "REBALANCE" in shown_plans(spark)


def files(folder: Path | str) -> list[str]:
    return [str(f.relative_to(folder)) for f in Path(folder).rglob("*.parquet")]


def written(spark: SparkSession, folder: Path) -> dict[str, list[Row]]:
    """The rows of each directory."""
    files = {}
    for part in {f.parent for f in folder.rglob("*.parquet")}:
        files[str(part.relative_to(folder))] = spark.read.parquet(str(part)).collect()
    return files


def assert_same(spark: SparkSession, one: Path, other: Path) -> None:
    here, there = written(spark, one), written(spark, other)
    assert here.keys() == there.keys()
    for part, rows in here.items():
        assert_same_rows(rows, there[part])


def by_day(df: DataFrame, folder: Path | str) -> None:
    df.write.partitionBy("p").parquet(str(folder))


def insert_into_made(df: DataFrame, path: str, what: str, by: str) -> None:
    spark = df.sparkSession
    spark.sql(
        "CREATE TABLE made (n BIGINT, d DOUBLE, p BIGINT, k BIGINT) USING parquet"
        f" PARTITIONED BY ({by}) LOCATION '{path}'"
    )
    spark.sql(f"INSERT INTO made {what}")


def joined(df: DataFrame) -> DataFrame:
    return df.join(df.sparkSession.range(7).withColumnRenamed("id", "k"), "k")
