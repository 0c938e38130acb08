"""Runs queries under policies, with several ways to log decisions; prints a line for each run.

spark-submit overhead.py <JSON file: code, small, tables, queries, ways, rounds>

All ways are in one session of one JVM, each query in all of them one after the other, in an order
that rotates and turns around; before the first round, each once on small tables. A run's figures
are the seconds until its rows are there, those until all of it is in the event log, and the
driver's processor seconds until then.
"""

import json
import sys
import time
from pathlib import Path

from bench.turns import in_turn
from pyspark.sql import SparkSession

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
root = SparkSession.builder.appName("bench-overhead").getOrCreate()
compiler = root.sparkContext._jvm.org.codehaus.janino.SimpleCompiler()
compiler.cook(work["code"])
logs = compiler.getClassLoader().loadClass("EventLogs").newInstance()
logs.begin(root.sparkContext._jsc.sc())

for number in range(-1, work["rounds"]):
    spark = root.newSession()
    for path in sorted(Path(work["tables"] if number >= 0 else work["small"]).glob("*.parquet")):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    logs.finish()
    for at, (query, text) in enumerate(work["queries"].items()):
        for way in in_turn(work["ways"], number + at):
            logs.log(work["ways"][way])
            processor, start = logs.processorNanos(), time.perf_counter()
            spark.sql(text).collect()
            until_rows = time.perf_counter() - start
            logs.finish()
            until_logged = time.perf_counter() - start
            processor_s = (logs.processorNanos() - processor) / 1e9
            run = [number, query, way, until_rows, until_logged, processor_s]
            print("RUN", json.dumps(run), flush=True)
root.stop()
