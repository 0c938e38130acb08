"""Runs queries under sets of settings in turn, in sessions of one JVM; prints a line for each run.

spark-submit recipes.py <file with the JSON of `bench.recipes.Work`>

Each round runs each query once under each set of settings, one after the other; the order rotates
and turns around. Before the first round, each runs once on small tables, so that the JVM has
compiled what is measured. A round has new sessions.
"""

import json
import re
import sys
import time
from pathlib import Path

from bench.turns import adopted, in_turn
from pyspark.sql import SparkSession

import generated

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
root = SparkSession.builder.appName("bench-recipes").getOrCreate()
schemas = {}


def session(folder: str, conf: dict[str, str], is_analysed: bool) -> SparkSession:
    made = root.newSession()
    if is_analysed:
        made.sql(f"USE {analysed(folder)}")
    else:
        for path in map(str, Path(folder).glob("*.parquet")):
            if path not in schemas:
                schemas[path] = root.read.parquet(path).schema
            view = made.read.schema(schemas[path]).parquet(path)
            view.createOrReplaceTempView(Path(path).stem)
    made.udf.register("letters_in_python", lambda text: len(set(text)), "int")
    for key, value in (work["conf"] | conf).items():
        made.conf.set(key, value)
    return made


def analysed(folder: str) -> str:
    """Returns a database of these tables, with statistics of all columns."""
    database = re.sub(r"\W", "_", Path(folder).name)
    if not root.catalog.databaseExists(database):
        root.sql(f"CREATE DATABASE {database}")
        root.sql(f"USE {database}")
        generated.analyse(root, Path(folder))
    return database


for number in range(-1, work["rounds"]):
    folder = work["small"] if number < 0 else work["tables"]
    sessions = {
        name: session(folder, conf, name in work["analysed"])
        for name, conf in work["variants"].items()
    }
    last = dict.fromkeys(sessions, -1)
    for at, (query, text) in enumerate(work["queries"].items()):
        for variant in in_turn(work["variants"], number + at):
            start = time.perf_counter()
            sessions[variant].sql(text).collect()
            seconds = time.perf_counter() - start
            changes, last[variant] = adopted(sessions[variant], last[variant])
            print("RUN", json.dumps([number, query, variant, seconds, changes]), flush=True)
root.stop()
