"""Runs queries in several ways in turn, and says what each came to; prints a line for each run.

spark-submit drift.py <JSON file: tables, queries, ways, rounds, warm_up>

A line has the query, the way, its seconds, its rows as text, and the decisions that changed its
plan.
"""

import json
import sys
import time
from pathlib import Path

from bench.turns import in_turn
from pyspark.sql import SparkSession

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
root = SparkSession.builder.appName("bench-drift").getOrCreate()


def session(conf):
    made = root.newSession()
    for path in Path(work["tables"]).glob("*.parquet"):
        made.read.parquet(str(path)).createOrReplaceTempView(path.stem)
    for key, value in conf.items():
        made.conf.set(key, value)
    return made


def decided(spark, since):
    """The decisions since one of them that changed a plan, and the last of all."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    rows = spark.sql(
        "SELECT decision_id, point, answer, fate FROM aqepilot_decisions() "
        f"WHERE decision_id > {since} ORDER BY decision_id"
    ).collect()
    changes = sorted({f"{row.point} {row.answer}" for row in rows if row.fate == "adopted"})
    return changes, max((row.decision_id for row in rows), default=since)


sessions = {way: session(conf) for way, conf in work["ways"].items()}
last = dict.fromkeys(sessions, -1)
for number in range(-work["warm_up"], work["rounds"]):
    for at, (query, text) in enumerate(work["queries"].items()):
        for way in in_turn(work["ways"], number + at):
            start = time.perf_counter()
            rows = sessions[way].sql(text).collect()
            seconds = time.perf_counter() - start
            changes, last[way] = decided(sessions[way], last[way])
            if number >= 0:
                shown = str(sorted(map(tuple, rows), key=str))
                print("RUN", json.dumps([query, way, seconds, shown, changes]), flush=True)
root.stop()
