"""Writes events, of which 3 in 10 are one customer's, and the customers.

    spark-submit write.py <folder to write>

The same in every run.
"""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("write-events").getOrCreate()
events = """
    SELECT id, IF(id % 10 < 3, 0, 1 + id % 2000) AS customer,
           array_join(transform(sequence(1, 32), i -> sha2(concat_ws(' ', id, i), 256)), '') AS text
    FROM range(8000)
"""
spark.sql(events).repartition(8).write.parquet(f"{sys.argv[1]}/events")
customers = spark.sql("SELECT id AS customer, id % 5 AS region FROM range(2001)")
customers.repartition(2).write.parquet(f"{sys.argv[1]}/customers")
spark.stop()
