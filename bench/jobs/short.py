"""Runs a short query under `balanced` again and again; prints each ask's point and microseconds.

The query reads Parquet files, joins three tables, groups and sorts. Its literals differ each time.

spark-submit short.py <warm-up queries> <timed queries>
"""

import json
import sys

from pyspark.sql import SparkSession

ROWS = {
    "big": (100_000, "id % 5000 AS k", "id AS v"),
    "small": (20_000, "id AS k", "id * 2 AS w"),
    "tiny": (5_000, "id AS k", "id * 2 AS x"),
}
QUERY = (
    "SELECT b.k % 100 AS g, count(*), sum(v + w) FROM big b"
    " JOIN small s ON b.k = s.k AND v < w + {}"
    " LEFT JOIN tiny t ON b.k = t.k WHERE w % 3 = 0 AND v <> {} GROUP BY 1 ORDER BY 1"
)

spark = SparkSession.builder.appName("bench-short").getOrCreate()
for name, (rows, *columns) in ROWS.items():
    spark.range(rows).selectExpr(*columns).write.parquet(name)
    spark.read.parquet(name).createOrReplaceTempView(name)

warm_up, timed = map(int, sys.argv[1:3])
seen = 0
asks = []
for queries, is_timed in ((warm_up, False), (timed, True)):
    for query in range(queries):
        spark.sql(QUERY.format(1_000_000, query)).collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    asked = spark.sql(
        f"SELECT decision_id, point, asked_us FROM aqepilot_decisions() WHERE decision_id > {seen}"
    ).collect()
    seen = max((row.decision_id for row in asked), default=0)
    if is_timed:
        asks = [(row.point, row.asked_us) for row in asked]
print(json.dumps(asks))
spark.stop()
