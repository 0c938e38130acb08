"""All applications of one simulated day, one after the other: each has a context of its own."""

import json
import random
import sys
from pathlib import Path

from pyspark.sql import SparkSession

tables, day_file = sys.argv[1:3]
day = json.loads(Path(day_file).read_text("utf-8"))
files = {path.stem: str(path) for path in sorted(Path(tables).glob("*.parquet"))}
schemas = {}
applications = day["applications"]
random.Random(day["seed"]).shuffle(applications)
for application in applications:
    builder = SparkSession.builder.appName(application["name"])
    for key, value in application["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    for name, path in files.items():
        reader = spark.read if name not in schemas else spark.read.schema(schemas[name])
        table = reader.parquet(path)
        schemas[name] = table.schema
        table.createOrReplaceTempView(name)
    for sql in application["queries"]:
        spark.sql(sql).write.format("noop").mode("overwrite").save()
    spark.stop()
    builder._options.clear()
