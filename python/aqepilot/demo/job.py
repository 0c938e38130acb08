"""An ordinary job: what does each way of shipping earn?

    spark-submit job.py <folder with TPC-H as Parquet>

It knows nothing of aqepilot.
"""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("profit-by-ship-mode").getOrCreate()
for table in ("lineitem", "partsupp"):
    spark.read.parquet(f"{sys.argv[1]}/{table}.parquet").createOrReplaceTempView(table)

spark.sql(
    """
    SELECT l_shipmode,
           count(*) AS items,
           sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
    FROM lineitem
    JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
    GROUP BY l_shipmode
    ORDER BY l_shipmode
    """
).show()
spark.stop()
