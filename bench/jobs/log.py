"""Reads an event log, and replays a policy over its decisions; prints figures as JSON.

The log is a real one's events again and again, as of many applications of that size in one file,
so that the JSON is what Spark writes. Decisions are replayed from a table, cached.

spark-submit log.py <event log> <megabytes> <decisions>
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession, functions

from aqepilot import read_log
from aqepilot.eventlog.frames import columns

spark = SparkSession.builder.appName("bench-log").getOrCreate()
lines = Path(sys.argv[1]).read_bytes()
times = max(1, int(sys.argv[2]) * 1_000_000 // len(lines))
large = Path("large")
with large.open("wb") as out:
    for _ in range(times):
        out.write(lines)
megabytes = large.stat().st_size / 1e6
path = large.absolute().as_uri()


def seconds(frame):
    began = time.monotonic()
    frame.write.format("noop").mode("overwrite").save()
    return time.monotonic() - began


# Our events have a field user, and Spark's one User.
spark.conf.set("spark.sql.caseSensitive", "true")
began = time.monotonic()
schema = spark.read.json(path).schema
inferred = time.monotonic() - began
log = read_log(spark, path)
speed = {
    "spark.read.json: infer the schema": megabytes / inferred,
    "spark.read.json with its schema: read all": megabytes
    / seconds(spark.read.schema(schema).json(path)),
}
spark.conf.unset("spark.sql.caseSensitive")
for name in columns.FRAMES:
    speed[f"read_log: {name}"] = megabytes / seconds(getattr(log, name))

decisions = read_log(spark, Path(sys.argv[1]).as_uri()).decisions.cache()
copies = int(sys.argv[3]) // max(1, decisions.where("facts IS NOT NULL").count())
many = decisions.join(functions.broadcast(spark.range(copies).toDF("copy"))).withColumn(
    "log", functions.concat("log", functions.lit(" "), "copy")
)
many.drop("copy").write.parquet("decisions")
table = spark.read.parquet("decisions")
table = table.cache()
count = table.count()
policy = {
    "name": "sizes",
    "dynamic_join_selection": "CASE WHEN side.max_bytes > 8 * side.median_bytes THEN "
    "'SHUFFLE_HASH' END",
}
of_point = table.where("point = 'dynamic_join_selection'")
replayed = log.replace(decisions=table).replay(policy).asked
seconds(replayed.limit(10))
cores = spark.sparkContext.defaultParallelism
answers = {"answers": replayed.drop("facts"), "answers with their facts": replayed}
# The first of a session waits for the JVM to compile what it runs.
replays = {
    f"{what}, {when}": of_point.count() / seconds(answer) / cores
    for when in ("first", "again")
    for what, answer in answers.items()
}
facts_kb = of_point.agg(functions.avg(functions.length("facts"))).collect()[0][0] / 1000
print(
    json.dumps(
        {
            "megabytes": megabytes,
            "megabytes_per_second": speed,
            "decisions": of_point.count(),
            "facts_kilobytes": facts_kb,
            "decisions_per_second_and_core": replays,
        }
    )
)
