"""Times the planning of a six-table join; prints milliseconds as JSON.

spark-submit plan.py <tables' folder> <warm-up plans> <timed plans>

Wall time of each, and the driver's CPU time a planning: the latter hardly minds a busy machine.
"""

import json
import os
import sys
import time

from pyspark.sql import SparkSession

TABLES = ("customer", "orders", "lineitem", "supplier", "nation", "region")
QUERY = """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC
"""

folder, warm_up, timed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
spark = SparkSession.builder.appName("bench-plan").getOrCreate()
for table in TABLES:
    spark.read.parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)


def planned_ms() -> float:
    start = time.perf_counter()
    spark.sql(QUERY)._jdf.queryExecution().executedPlan()
    return (time.perf_counter() - start) * 1000


def driver_cpu_ms() -> float:
    """Linux: user and system time of the JVM, which has started this Python."""
    with open(f"/proc/{os.getppid()}/stat") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return 1000 * (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


for _ in range(warm_up):
    planned_ms()
cpu_before = driver_cpu_ms()
wall = [planned_ms() for _ in range(timed)]
print(json.dumps({"wall": wall, "cpu": [(driver_cpu_ms() - cpu_before) / timed]}))
spark.stop()
