"""Times the planning of a six-table join in sessions of one JVM; prints milliseconds as JSON.

spark-submit plan.py <tables' folder> <warm-up plans> <timed plans> <rounds>

Sessions without the extension ("plain", "plain again") and with it but without a policy ("idle")
share one SparkContext and what the JVM has compiled: two JVMs differ by more than what is measured.
They plan in turn, back and forth. A figure is the median of a round's plannings.
"""

import json
import statistics
import sys
import time

from py4j.java_gateway import JavaObject
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
EXTENSIONS = "spark.sql.extensions"

folder = sys.argv[1]
warm_up, timed, rounds = map(int, sys.argv[2:])
spark = SparkSession.builder.appName("bench-plan").getOrCreate()
jvm = spark.sparkContext._jvm
conf = spark.sparkContext._jsc.sc().conf()
ours = conf.get(EXTENSIONS)


def session(extensions: str, has_aqepilot: bool) -> JavaObject:
    """A session of this SparkContext, made as an application's first one is."""
    conf.set(EXTENSIONS, extensions)
    sessions = jvm.org.apache.spark.sql.SparkSession
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    made = sessions.builder().getOrCreate()
    for table in TABLES:
        made.read().parquet(f"{folder}/{table}.parquet").createOrReplaceTempView(table)
    functions = [f.name() for f in made.catalog().listFunctions().collectAsList()]
    assert ("aqepilot_status" in functions) == has_aqepilot, extensions
    return made


sessions = {
    "plain": session("", has_aqepilot=False),
    "idle": session(ours, has_aqepilot=True),
    "plain again": session("", has_aqepilot=False),
}


def planned_ms(made: JavaObject) -> float:
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(made)
    start = time.perf_counter()
    made.sql(QUERY).queryExecution().executedPlan()
    return (time.perf_counter() - start) * 1000


for _ in range(warm_up):
    for made in sessions.values():
        planned_ms(made)
found = {name: [] for name in sessions}
names = list(sessions)
for number in range(rounds):
    turn = names if number % 2 == 0 else names[::-1]
    ms = {name: [] for name in names}
    for _ in range(timed):
        for name in turn:
            ms[name].append(planned_ms(sessions[name]))
        turn = turn[::-1]
    for name in names:
        found[name].append(statistics.median(ms[name]))
print(json.dumps(found))
spark.stop()
