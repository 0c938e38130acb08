"""Each query in so many rounds, after one more: which it was is in its description in the log."""

import json
import random
import sys
from pathlib import Path

from pyspark.sql import SparkSession

tables, queries_file, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
spark = SparkSession.builder.getOrCreate()
for path in sorted(Path(tables).glob("*.parquet")):
    spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
queries = json.loads(Path(queries_file).read_text("utf-8"))
order = random.Random(1)
for number in range(rounds + 1):
    for name in order.sample(list(queries), len(queries)):
        spark.sparkContext.setJobDescription(f"{name} {number}")
        spark.sql(queries[name]).write.format("noop").mode("overwrite").save()
spark.stop()
