"""Runs one query, a join of two shuffles below an aggregation; prints its seconds as JSON.

spark-submit first_query.py [asked: prints each ask's point and microseconds, too]
"""

import json
import sys
import time

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("bench-first-query").getOrCreate()
begun = time.perf_counter()
spark.range(1_000_000).selectExpr("id % 50000 AS k", "id AS v").createOrReplaceTempView("big")
spark.range(100_000).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("small")
query = "SELECT b.k % 100 AS g, count(*), sum(v + w) FROM big b JOIN small s ON b.k = s.k"
rows = spark.sql(f"{query} WHERE w % 3 = 0 GROUP BY 1").collect()
seconds = time.perf_counter() - begun
asked = []
if sys.argv[1:] == ["asked"]:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    decided = "SELECT point, asked_us FROM aqepilot_decisions() ORDER BY decision_id"
    asked = [tuple(row) for row in spark.sql(decided).collect()]
print(json.dumps({"rows": len(rows), "query_s": seconds, "asked": asked}))
spark.stop()
