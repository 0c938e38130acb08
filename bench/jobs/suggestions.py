"""Runs queries under policy files in turn, in sessions of one JVM; prints a line for each run.

spark-submit suggestions.py <file with the JSON of `bench.suggestions.Work`>

Each round runs each case once in each of its ways, one after the other; the order rotates and turns
around. A query that fails is told, and the bench goes on.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from bench.shapes import SHAPES
from bench.shapes.shape import prepare, register
from bench.turns import adopted, in_turn
from pyspark.sql import SparkSession

import aqepilot

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
shape = SHAPES.get(work["shape"])
root = SparkSession.builder.appName("bench-suggestions").getOrCreate()
schema = cache(lambda path: root.read.parquet(path).schema)


@cache
def session(way: str, pace: float) -> SparkSession:
    made = root.newSession()
    if shape:
        register(shape, made, work["tables"], pace)
    else:
        for path in sorted(Path(work["tables"]).glob("*.parquet")):
            table = made.read.schema(schema(str(path))).parquet(str(path))
            table.createOrReplaceTempView(path.stem)
    if work["ways"][way]:
        aqepilot.use(made, work["ways"][way])
    return made


def run(spark: SparkSession, texts: dict[str, str], clients: int) -> None:
    """The log's queries have the names of their texts for a description."""

    def client(name: str) -> None:
        spark.sparkContext.setJobDescription(name)
        spark.sql(texts[name]).collect()
        spark.sparkContext.setJobDescription(None)

    if clients == 1:
        for name in texts:
            client(name)
        return
    # A thread of Python has a thread of the JVM for its own, which has the name and the session.
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(client, texts))


if shape and not Path(work["tables"]).exists():
    prepare(shape, root, work["tables"], work["size"])
last = {}
for number in range(-work["warm_up"], work["rounds"]):
    pace = 0.0 if number < 0 else 1.0
    for at, (name, case) in enumerate(work["cases"].items()):
        for way in in_turn(case["ways"], max(number, 0) + at):
            spark = session(way, pace)
            start, error = time.perf_counter(), None
            try:
                run(spark, case["texts"], case["clients"])
            except Exception as failed:
                error = str(failed).strip().splitlines()[0][:300]
            seconds, changes = time.perf_counter() - start, 0
            if work["counts"]:
                changes, last[way, pace] = adopted(spark, last.get((way, pace), -1))
            print("RUN", json.dumps([number, name, way, seconds, changes, error]), flush=True)
root.stop()
