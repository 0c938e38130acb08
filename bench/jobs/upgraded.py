"""Runs queries in rounds with the policies that were submitted; some with settings of their own.

spark-submit upgraded.py <tables' folder> <JSON file: texts by number> <rounds> <JSON: settings>
"""

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

folder, texts, rounds, planted = sys.argv[1:]
spark = SparkSession.builder.appName("bench-upgraded").getOrCreate()
for path in Path(folder).glob("*.parquet"):
    spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
queries = json.loads(Path(texts).read_text())
plants = json.loads(planted)
for number in range(int(rounds) + 1):
    for name, text in queries.items():
        # The first round warms the driver up.
        spark.sparkContext.setJobDescription(f"{name}" if number else f"warm-up {name}")
        own = plants.get(name, {})
        before = {key: spark.conf.get(key, None) for key in own}
        for key, value in own.items():
            spark.conf.set(key, value)
        spark.sql(text).collect()
        for key, value in before.items():
            if value is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, value)
spark.stop()
