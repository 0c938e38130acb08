"""Runs joins beside an engine, with policies and without; prints what came of each.

spark-submit native_engine_job.py <JSON: policies by name>
"""

import json
import sys

from pyspark.sql import SparkSession

QUERIES = {
    "inner": "SELECT l.k, count(*), sum(r.w) FROM l JOIN r ON l.k = r.k GROUP BY l.k",
    "outer": "SELECT l.k, r.w FROM l LEFT JOIN r ON l.k = r.k",
    "semi": "SELECT l.k, l.v FROM l LEFT SEMI JOIN r ON l.k = r.k",
}


def run(spark, sql, since):
    df = spark.sql(sql)
    rows = sorted(map(repr, df.collect()))
    decided = spark.sql(
        "SELECT decision_id, point, side, answer, reason, detail, fate, final_strategy, facts"
        f" FROM aqepilot_decisions() WHERE decision_id > {since} ORDER BY decision_id"
    ).collect()
    return {
        "rows": rows,
        "plan": df._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0],
        "decisions": [row.asDict() for row in decided],
    }


def main():
    spark = SparkSession.builder.getOrCreate()
    spark.range(0, 4000, 1, 3).selectExpr("id % 50 AS k", "id AS v").createTempView("l")
    spark.range(0, 900, 1, 2).selectExpr("id % 70 AS k", "id AS w").createTempView("r")
    results, since = {}, -1
    for name, texts in json.loads(sys.argv[1]).items():
        for point, text in texts.items():
            spark.conf.set(f"spark.aqepilot.policy.{name}.{point}", text)
        spark.conf.set("spark.aqepilot.policies", name if texts else "")
        for query, sql in QUERIES.items():
            one = run(spark, sql, since)
            since = max([since, *(d["decision_id"] for d in one["decisions"])])
            results[f"{name}, {query}"] = one
        status = spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
        results[f"{name}, status"] = [row.asDict() for row in status]
        spark.conf.unset("spark.aqepilot.policies")
    print("FOUND " + json.dumps(results))


if __name__ == "__main__":
    main()
