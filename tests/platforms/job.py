"""A join that a policy decides; what was decided, and whose job it was, goes to the file RECORD."""

import json
import os

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
left, right = (spark.range(n).repartition(4, "id") for n in (3000, 1000))
joined = left.join(right, "id")
rows = joined.count()
decided = spark.sql("SELECT facts, reason, applied, fate FROM aqepilot_decisions()").collect()
job = [json.loads(row.facts)["query"] for row in decided]
status = spark.sql("SELECT kind, name, value FROM aqepilot_status()").collect()
record = {
    "rows": rows,
    "jobs": [{key: query.get(key) for key in ("job", "job_source", "run_source")} for query in job],
    "fates": [row.fate for row in decided],
    "status": [list(row) for row in status],
}
with open(os.environ["RECORD"], "w") as file:
    json.dump(record, file)
spark.stop()
