"""All applications of one simulated day of the autopilot's fleet, one after the other.

spark-submit autopilot.py <folder of TPC-DS> <folder for shapes' tables> <file with the day>
"""

import json
import re
import sys
from pathlib import Path

from bench.shapes import SHAPES
from bench.shapes.shape import prepare, register
from pyspark.sql import SparkSession

tpcds_folder, shapes_folder, day_file = sys.argv[1:4]
day = json.loads(Path(day_file).read_text("utf-8"))
files = {path.stem: str(path) for path in sorted(Path(tpcds_folder).glob("*.parquet"))}
schemas = {}
for application in day["applications"]:
    builder = SparkSession.builder.appName(application["name"])
    for key, value in application["conf"].items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if application["shape"]:
        shape, tables = SHAPES[application["shape"]], f"{shapes_folder}/{application['shape']}"
        if not Path(tables).exists():
            prepare(shape, spark, tables, application["size"])
        register(shape, spark, tables)
    else:
        text = " ".join(application["queries"])
        for name, path in files.items():
            if not re.search(rf"\b{name}\b", text):
                continue
            reader = spark.read if name not in schemas else spark.read.schema(schemas[name])
            table = reader.parquet(path)
            schemas[name] = table.schema
            table.createOrReplaceTempView(name)
    for sql in application["queries"]:
        spark.sql(sql).collect()
    spark.stop()
    builder._options.clear()
