"""Runs one query; prints how many rows it has and its seconds as JSON.

spark-submit first_query.py <JSON file: the query, and the tables' folder if it has one>
    [asked: prints each ask's point and microseconds, too]
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

job = json.loads(Path(sys.argv[1]).read_text())
spark = SparkSession.builder.appName("bench-first-query").getOrCreate()
begun = time.perf_counter()
if job["tables"]:
    for path in Path(job["tables"]).glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
else:
    spark.range(1_000_000).selectExpr("id % 50000 AS k", "id AS v").createOrReplaceTempView("big")
    spark.range(100_000).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("small")
rows = spark.sql(job["query"]).collect()
seconds = time.perf_counter() - begun
asked = []
if sys.argv[2:] == ["asked"]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    decided = "SELECT point, asked_us FROM aqepilot_decisions() ORDER BY decision_id"
    asked = [tuple(row) for row in spark.sql(decided).collect()]
print(json.dumps({"rows": len(rows), "query_s": seconds, "asked": asked}))
spark.stop()
