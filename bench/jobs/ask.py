"""Asks a policy about joins of 2,000 shuffle partitions; prints each ask's microseconds as JSON.

Only asks at one decision point whose facts of these names are the number of partitions: a join's
first ask may know one side only. Of each query's asks, the first has to gather the facts. Queries
of few partitions come before, so that the JVM has compiled what is measured, as in a driver at
work.

spark-submit ask.py <warm-up queries> <timed queries> <decision point> <facts, by commas> <joins>
"""

import json
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("bench-ask").getOrCreate()
spark.range(200_000).selectExpr("id % 50000 AS k", "id AS v").write.parquet("big")
spark.range(50_000).selectExpr("id AS k", "id * 2 AS w").write.parquet("small")
for name in ("big", "small"):
    spark.read.parquet(name).createOrReplaceTempView(name)

warm_up, timed = map(int, sys.argv[1:3])
point, counted = sys.argv[3], [name.split(".") for name in sys.argv[4].split(",") if name]
partitions = int(spark.conf.get("spark.sql.shuffle.partitions"))
joined = "".join(f" JOIN small s{i} ON big.k = s{i}.k" for i in range(int(sys.argv[5])))
join = f"SELECT count(*), sum(v + s0.w) FROM big{joined}"
spark.conf.set("spark.sql.shuffle.partitions", 5)
for query in range(warm_up):
    spark.sql(f"{join} WHERE v < 1000 AND v <> {query}").collect()
spark.conf.set("spark.sql.shuffle.partitions", partitions)

asks = []
seen = -1
for query in range(timed):
    spark.sql(f"{join} WHERE v % 1000 <> {query}").collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    recorded = spark.sql(
        "SELECT decision_id, asked_us, answer, coalesce(facts, first_value(facts, true) OVER "
        "(PARTITION BY facts_id ORDER BY decision_id)) AS facts FROM aqepilot_decisions() "
        f"WHERE point = '{point}' AND decision_id > {seen} ORDER BY decision_id"
    ).collect()
    for row in recorded:
        seen = max(seen, row.decision_id)
        facts = json.loads(row.facts) if row.facts else {}
        numbers = [(facts.get(group) or {}).get(fact) for group, fact in counted]
        if all(number == partitions for number in numbers):
            is_first = not asks or asks[-1]["query"] != query
            asks.append({"query": query, "us": row.asked_us, "is_first": is_first})
print(json.dumps(asks))
spark.stop()
