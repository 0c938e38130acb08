"""Jobs of a Spark Connect client, with a server of their own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

import aqepilot
import places
import processes
import submitting

CONNECT = """
import json, sys
import little
from pyspark.sql import SparkSession, functions as F
import aqepilot

builder = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false")
if sys.argv[2:]:
    builder = builder.config("spark.jars", sys.argv[2])
if sys.argv[1] == "live":
    builder = aqepilot.configure(builder, {"name": "base", "dynamic_join_selection": "null"})
spark = builder.getOrCreate()
told = {}
try:
    aqepilot.use(spark, {"name": "bad", "dynamic_join_selection": "CASE\\nWHEN side.max_byte > 1"})
except aqepilot.AqePilotError as error:
    told["error"] = str(error)
if sys.argv[1] == "live":
    text = "-- it's ${spark.app.name}\\nIF(side.is_left, 'SHUFFLE_HASH', null)"
    aqepilot.use(spark, {"name": "hash", "dynamic_join_selection": text})
    little.settings(spark, little.SORT_MERGE)
    big = spark.range(0, 20000, 1, 4).selectExpr("id % 100 AS k", "id AS v")
    small = spark.range(0, 100, 1, 2).selectExpr("id AS k", "id AS w")
    told["rows"] = int(big.join(small, "k").where("v + w >= 0").count())
    told["policies"] = spark.conf.get("spark.aqepilot.policies")
    there = spark.conf.get("spark.aqepilot.policy.hash.dynamic_join_selection")
    told["text_is_whole"] = there == text
    told["decisions"] = [[d.policy, d.answer, d.reason] for d in aqepilot.decisions(spark)]
    told["explain"] = aqepilot.explain(spark)
    aqepilot.use(spark)
    told["after"] = spark.conf.get("spark.aqepilot.policies")
    told["refused"] = {}
    for name, given in {
        "function": lambda facts: None,
        "text": "python:os:getpid",
        "column": F.when(F.col("side.is_left"), "SHUFFLE_HASH"),
    }.items():
        try:
            aqepilot.use(spark, dynamic_join_selection=given)
        except aqepilot.AqePilotError as error:
            told["refused"][name] = error.problems[0].code
    told["after refusals"] = spark.conf.get("spark.aqepilot.policies")
print("TOLD" + json.dumps(told))
spark.stop()
"""


# A client of `remote("local")` looks for the server at 15002, where the other Spark's tests, run at
# the same time, may have theirs. Spark's own way out, SPARK_TESTING, changes more than the port.
OWN_PORT = """
import pyspark.sql.connect.client.core as core
client = getattr(core, "DefaultChannelBuilder", core.ChannelBuilder)
client.default_port = staticmethod(lambda: {port})
"""


def run_connect(tmp_path, *words, job=CONNECT):
    port = processes.free_port()
    (tmp_path / "conf").mkdir()
    defaults = tmp_path / "conf" / "spark-defaults.conf"
    defaults.write_text(f"spark.connect.grpc.binding.port {port}\n")
    script = tmp_path / "job.py"
    script.write_text(OWN_PORT.format(port=port) + job)
    jar = Path(sys.prefix, "spark-connect.jar")
    if pyspark.__version__.startswith("3.") and not jar.exists():
        pytest.skip("Spark Connect's jar is not in this environment: make env")
    extra = [str(jar)] if jar.exists() else []
    path = [str(Path(aqepilot.__file__).parents[1]), str(places.SUPPORT)]
    env = submitting.environment(
        short=True, PYTHONPATH=os.pathsep.join(path), SPARK_CONF_DIR=str(defaults.parent)
    )
    done = subprocess.run(
        [sys.executable, str(script), *words, *extra],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    line = next((x for x in done.stdout.splitlines() if "TOLD" in x), None)
    assert line is not None, done.stdout + done.stderr
    return json.loads(line.partition("TOLD")[2])
