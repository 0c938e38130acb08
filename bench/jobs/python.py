"""Asks a Python function about joins of many shuffle partitions; prints what asks took, as JSON.

spark-submit --py-files asked.py python.py <queries> <busy>

Tells those of so many queries, after as many to warm up. With ``busy`` the driver's own Python
computes in a thread meanwhile.
"""

import json
import sys
import threading

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("bench-python").getOrCreate()
spark.range(200_000).selectExpr("id % 50000 AS k", "id AS v").write.parquet("big")
spark.range(50_000).selectExpr("id AS k", "id * 2 AS w").write.parquet("small")
for name in ("big", "small"):
    spark.read.parquet(name).createOrReplaceTempView(name)


def compute():
    number = 0
    while True:
        number += 1


queries = int(sys.argv[1])
if sys.argv[2] == "busy":
    threading.Thread(target=compute, daemon=True).start()
join = "SELECT count(*), sum(v + w) FROM big JOIN small ON big.k = small.k WHERE v < 1000"
for query in range(2 * queries):
    if query == queries:
        spark.conf.set("spark.aqepilot.policies", "bench")
    spark.sql(join).collect()
function = "name LIKE 'python:asked:%' AND name NOT LIKE 'python:asked:warm%'"
status = f"SELECT detail FROM aqepilot_status() WHERE kind = 'python' AND {function}"
newest = f"SELECT asked_us FROM aqepilot_decisions() ORDER BY decision_id DESC LIMIT {queries}"
asked_ms = spark.sql(f"SELECT median(asked_us) / 1000 AS ms FROM ({newest})").first().ms
print(json.dumps({**json.loads(spark.sql(status).first().detail), "asked_ms": asked_ms}))
spark.stop()
