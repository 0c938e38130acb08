"""Writes TPC-H's lineitem with a best-seller: one part of one supplier holds 3 rows in 10.

    spark-submit skew.py <folder with TPC-H as Parquet> <folder to write>

Every row of an order whose key ends in 0, 1 or 2 moves to part 1 and its first supplier, a pair
that partsupp has; all else stays. The same in every run.
"""

import sys

from pyspark.sql import SparkSession

source, target = sys.argv[1:]
spark = SparkSession.builder.appName("skew-lineitem").getOrCreate()
partsupp = spark.read.parquet(f"{source}/partsupp.parquet")
supplier = partsupp.where("ps_partkey = 1").agg({"ps_suppkey": "min"}).collect()[0][0]
best_seller = {"l_partkey": 1, "l_suppkey": supplier}

lineitem = spark.read.parquet(f"{source}/lineitem.parquet")
for column, key in best_seller.items():
    skewed = f"CAST(IF(l_orderkey % 10 < 3, {key}, {column}) AS bigint)"
    lineitem = lineitem.selectExpr(
        *(f"{skewed} AS {name}" if name == column else name for name in lineitem.columns)
    )
lineitem.write.parquet(target)
spark.stop()
