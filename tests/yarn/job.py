"""A join, run plain and as the session has it; writes what was found to <folder>/<attempt>.json."""

import json
import os
import signal
import sys
import time
import zlib
from pathlib import Path

from pyspark.sql import SparkSession

folder, asked = Path(sys.argv[1]), json.loads(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
attempt = spark.conf.get("spark.app.attempt.id", "1")
spark.range(20000).selectExpr("id % 1000 AS k", "id AS v").createOrReplaceTempView("a")
spark.range(1000).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("b")


def run():
    joined = spark.sql("SELECT a.k, b.w + a.v AS v FROM a JOIN b ON a.k = b.k")
    rows = sorted(map(list, joined.collect()))
    plan = joined._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    names = ("SortMergeJoin", "ShuffledHashJoin", "BroadcastHashJoin")
    return {
        "rows": [len(rows), zlib.crc32(str(rows).encode())],
        "join": [n for n in names if n in plan],
    }


def asked_of(text):
    """Returns the rows, or what Spark says where aqepilot is not there."""
    try:
        return [row.asDict() for row in spark.sql(text).collect()]
    except Exception as error:
        return str(error).splitlines()[0]


answer = {
    **run(),
    "decisions": asked_of("SELECT * FROM aqepilot_decisions()"),
    "status": asked_of("SELECT kind, name, value, detail FROM aqepilot_status()"),
    "application": spark.sparkContext.applicationId,
    "container": os.environ.get("CONTAINER_ID"),
}


def write():
    partial = folder / f"{attempt}.part"
    partial.write_text(json.dumps(answer, default=str), encoding="utf-8")
    partial.rename(folder / f"{attempt}.json")


write()
if asked.get("dies") and attempt == "1":
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
if "until" in asked:  # something that the status is to say
    deadline = time.monotonic() + 120
    while asked["until"] not in str(asked_of("SELECT * FROM aqepilot_status()")):
        assert time.monotonic() < deadline, asked
        time.sleep(1)
    answer["later"] = run()
    write()
spark.stop()
