"""Runs queries once, and writes compressed event logs beside the application's own.

spark-submit log_sizes.py <JSON file: code, tables, queries, with, without>

The two more have the same events, one with aqepilot's and one without.
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
spark = SparkSession.builder.appName("bench-log-sizes").getOrCreate()
compiler = spark.sparkContext._jvm.org.codehaus.janino.SimpleCompiler()
compiler.cook(work["code"])
logs = compiler.getClassLoader().loadClass("EventLogs").newInstance()
logs.another(spark.sparkContext._jsc.sc(), work["with"], True)
logs.another(spark.sparkContext._jsc.sc(), work["without"], False)
for path in sorted(Path(work["tables"]).glob("*.parquet")):
    spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
for text in work["queries"].values():
    spark.sql(text).collect()
logs.finish()
spark.stop()
logs.stop()
