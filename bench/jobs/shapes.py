"""Runs a shape's queries in turn, in sessions of one JVM; prints a line for each run.

spark-submit shapes.py <file with the JSON of `bench.shapes.runs.Work`>

Each round runs each query once in each way, one after the other; the order rotates and turns
around. A warm-up comes before. A query that fails is told, and the bench goes on.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.shapes import SHAPES
from bench.shapes.shape import prepare, register
from bench.turns import adopted, in_turn
from pyspark.sql import SparkSession

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
shape = SHAPES[work["shape"]]
queries = {**shape.queries, **shape.counters}
root = SparkSession.builder.appName("bench-shapes").getOrCreate()
if not Path(work["tables"]).exists():
    prepare(shape, root, work["tables"], work["size"])


def session(conf: dict[str, str], pace: float) -> SparkSession:
    made = root.newSession()
    register(shape, made, work["tables"], pace)
    for key, value in conf.items():
        made.conf.set(key, value)
    return made


def run(spark: SparkSession, query, group: str) -> list:
    """The rows of each text; the tasks are found in the event log by the group."""

    def client(text: str) -> list:
        spark.sparkContext.setJobGroup(group, group)
        return sorted(map(str, spark.sql(text).collect()))

    if query.clients == 1:
        return [client(text) for text in query.texts]
    # A thread of Python has a thread of the JVM for its own, which has the group and the session.
    with ThreadPoolExecutor(query.clients) as pool:
        return list(pool.map(client, query.texts))


def files(table: str) -> tuple[int, int]:
    """How many files of data a table has, and their bytes."""
    parts = [f for f in Path("spark-warehouse", table).rglob("part-*") if f.is_file()]
    return len(parts), sum(f.stat().st_size for f in parts)


rows = {}
for number in range(-work["warm_up"], work["rounds"]):
    pace = 0.0 if number < 0 else 1.0
    sessions = {name: session(conf, pace) for name, conf in work["ways"].items()}
    last = dict.fromkeys(sessions, -1)
    for at, name in enumerate(work["queries"]):
        for way in in_turn(work["ways"], max(number, 0) + at):
            start, error, frame = time.perf_counter(), None, None
            try:
                frame = run(sessions[way], queries[name], f"{number}|{name}|{way}")
            except Exception as failed:
                error = str(failed).strip().splitlines()[0][:300]
            seconds = time.perf_counter() - start
            # The first that ran, plain or not: all have to give the same.
            if frame is not None and rows.setdefault(name, frame) != frame:
                error = "OTHER ROWS"
            changes, last[way] = adopted(sessions[way], last[way])
            writes = queries[name].writes
            wrote = files(writes) if writes and not error else (None, None)
            line = [number, name, way, seconds, changes, error, *wrote]
            print("RUN", json.dumps(line), flush=True)
root.stop()
