"""Errors of the user's own queries are plain Spark's, whatever was compiled and asked before."""

from __future__ import annotations

import json
from typing import Any

import tiers
from conftest import Submit

pytestmark = tiers.on("3.5")

# What a literal has no place of its own in (`LIMIT true`), what the parser finds, what the analyser
# finds, and what an executor finds.
JOB = """
import json, re
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.getOrCreate()
FAILING = [
    "SELECT * FROM range(10) LIMIT true",
    "SELECT * FROM range(10) LIMIT false",
    "SELECT * FROM range(10) LIMIT 'a'",
    "SELECT * FROM range(10",
    "SELECT no_such FROM range(10)",
    "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 'a' FOLLOWING) FROM range(9)",
    "SELECT nth_value(id, 0) OVER () FROM range(10)",
    "SELECT array_sort(array(map(1, 2)))",
    "SELECT transform(array(id), x -> no_such) FROM range(10)",
    "SELECT raise_error('user ' || id) FROM range(0, 1, 1, 1)",
    "SELECT CAST('a' || id AS INT) FROM range(0, 1, 1, 1)",
    "SELECT id / (id - id) FROM range(0, 1, 1, 1)",
]
def errors():
    for query in FAILING:
        try:
            spark.sql(query).collect()
            yield [query, "no error"]
        except Exception as e:
            context = getattr(e, "getQueryContext", list)()
            # A call and a task have numbers, and an executor's error has a stack.
            text = re.sub(r"#\\d+", "#", str(e)).split("Driver stacktrace")[0]
            text = re.sub(r"calling o\\d+|stage \\S+|TID \\d+|\\n\\tat .*", "", text)
            yield [query, text, [[c.fragment(), c.startIndex()] for c in context]]
spark.range(3).select(F.lit(1)).collect()
spark.conf.set("spark.sql.ansi.enabled", "true")
before = list(errors())
a = spark.range(20000).selectExpr("id % 50 AS k", "id AS n")
b = spark.range(500).selectExpr("id % 50 AS k", "id % 20 AS j")
c = spark.range(20).withColumnRenamed("id", "j")
a.join(b, "k").join(c, "j").groupBy("j").count().collect()
b.write.mode("overwrite").parquet("written")
live = spark.conf.get("spark.aqepilot.policies", None)
asked = [list(r) for r in spark.sql(
    "SELECT point, reason FROM aqepilot_decisions()").distinct().collect()] if live else []
print("FOUND", json.dumps([before, list(errors()), asked]))
"""
POINTS = {
    "dynamic_join_selection": "CASE WHEN {} THEN 'SHUFFLE_HASH' END",
    "skew_join": "CASE WHEN {} THEN named_struct('skew_factor', 97D) END",
    "partition_coalescing": "CASE WHEN {} THEN named_struct('min_partitions', 97) END",
    "shuffle_partitions": "CASE WHEN {} THEN 97 END",
    "cost_evaluation": "CASE WHEN {} THEN 97D END",
    "join_selection": "CASE WHEN {} THEN 'SHUFFLE_MERGE' END",
    "write_distribution": "CASE WHEN {} THEN true END",
    "join_reorder": "CASE WHEN {} THEN 97D ELSE double(candidate.position) END",
}


def policies(name: str, condition: str) -> dict[str, str]:
    """Returns the settings of one policy at all points."""
    prefix = f"spark.aqepilot.policy.{name}."
    return {prefix + point: text.format(condition) for point, text in POINTS.items()}


def test_after_policies_of_all_points(spark_submit: Submit) -> None:
    """Compiled, refused, answering and failing ones: each error is as in a driver without them."""
    settings = {
        "spark.aqepilot.policies": "broken,throws,answers",
        **policies("broken", "sum(97) OVER () > no_such_fact"),
        **policies("throws", "1 / (length(query.app_name) - length(query.app_name)) > 97"),
        **policies("answers", "exists(array(97), x -> x = 97 OR NOT true)"),
    }

    def ran(**options: Any) -> Any:
        done = spark_submit(JOB, **options)
        lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
        assert lines, done.stderr[-3000:]
        return json.loads(lines[0].removeprefix("FOUND "))

    plain_before, plain_after, _ = ran(extension=False)
    before, after, asked = ran(conf=settings)
    assert before == plain_before
    assert after == plain_after
    assert all(error[1] != "no error" for error in before)
    assert {point for point, _ in asked} == set(POINTS)
    assert {reason for _, reason in asked} >= {"EVALUATION_FAILED", "APPLIED"}
