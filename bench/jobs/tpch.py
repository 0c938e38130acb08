"""Runs TPC-H's queries, once for warm-up on small data; prints seconds as JSON.

spark-submit tpch.py <tables' folder> <small tables' folder> <JSON file: query texts by number>

Wall time of each, and the CPU time of driver and tasks for all.
"""

import json
import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

folder, small, texts = sys.argv[1:]
queries = json.loads(Path(texts).read_text())
spark = SparkSession.builder.appName("bench-tpch").getOrCreate()


def register(tables: str) -> None:
    for path in Path(tables).glob("*.parquet"):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)


def seconds(text: str) -> float:
    start = time.perf_counter()
    spark.sql(text).collect()
    return time.perf_counter() - start


def cpu_s() -> float:
    """Linux: user and system time of the JVM, which has started this Python."""
    with open(f"/proc/{os.getppid()}/stat") as stat:
        user, system = stat.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


register(small)
for text in queries.values():
    spark.sql(text).collect()
register(folder)
cpu_before = cpu_s()
wall = {number: seconds(text) for number, text in queries.items()}
print(json.dumps({"wall": wall, "cpu": cpu_s() - cpu_before}))
spark.stop()
