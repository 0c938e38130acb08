"""Runs the queries of TPC-H by turns under each of Comet's settings of joins, and under the recipe.

spark-submit joins_job.py <JSON: tables, numbers, arms, rounds>
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import generated
import rows
import tpch

JOINS = ("CometSortMergeJoin", "CometHashJoin", "CometBroadcastHashJoin")


def session(root: SparkSession, tables: str, settings: dict[str, str]) -> SparkSession:
    """Returns a session of its own with the tables."""
    spark = root.newSession()
    generated.register(spark, Path(tables))
    for key, value in settings.items():
        spark.conf.set(key, value)
    return spark


def main() -> None:
    asked = json.loads(sys.argv[1])
    root = SparkSession.builder.getOrCreate()
    arms = {name: session(root, asked["tables"], own) for name, own in asked["arms"].items()}
    queries = tpch.queries()
    expected = dict[int, list[Any]]()
    for turn in range(asked["rounds"]):
        for number in asked["numbers"]:
            names = list(arms) if turn % 2 == 0 else list(reversed(arms))
            for name in names:
                one: dict[str, Any] = {"arm": name, "query": number, "round": turn}
                df = arms[name].sql(queries[number])
                started = time.monotonic()
                try:
                    actual = [tuple(row) for row in df.collect()]
                    one["seconds"] = time.monotonic() - started
                    plan = df._jdf.queryExecution().executedPlan().toString()
                    plan = plan.partition("Initial Plan")[0]
                    one["joins"] = Counter({join: plan.count(f"{join} ") for join in JOINS})
                    rows.assert_same_rows(actual, expected.setdefault(number, actual))
                except AssertionError as difference:
                    one["differ"] = str(difference)[:600]
                except Exception as error:
                    one["error"] = str(error)[:600]
                print("FOUND " + json.dumps(one), flush=True)


if __name__ == "__main__":
    main()
