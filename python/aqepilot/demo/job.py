"""An ordinary job: each customer's events are looked up in a service, and counted by region.

    spark-submit job.py <folder with events and customers as Parquet> <milliseconds of a look-up>

It knows nothing of aqepilot. What the service takes is slept here: it needs no core.
"""

import sys
import time

from pyspark.sql import SparkSession

folder, wait_s = sys.argv[1], float(sys.argv[2]) / 1000
spark = SparkSession.builder.appName("events-by-region").getOrCreate()
for table in ("events", "customers"):
    spark.read.parquet(f"{folder}/{table}").createOrReplaceTempView(table)


def look_up(text: str) -> int:
    """Asks the service."""
    time.sleep(wait_s)
    return len(text)


spark.udf.register("look_up", look_up, "int")
spark.sql(
    """
    SELECT region, count(*) AS events, sum(look_up(concat(region, text))) AS found
    FROM events JOIN customers USING (customer)
    GROUP BY region
    ORDER BY region
    """
).show()
spark.stop()
