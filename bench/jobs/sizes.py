"""Measures planning by the number of joins, and queries that run by the number of partitions.

spark-submit sizes.py <JSON file: code, tables, cases, policies, warm_up, rounds>

Sessions without the extension ("plain", "plain again"), with it but without a policy ("idle") and
with each set of policies share one SparkContext and what the JVM has compiled; each query is
planned anew in all of them one after the other, in an order that rotates and turns around. Prints
as JSON, for each case and session, the milliseconds of each round: wall time, processor time of
the planning thread, processor time of the driver; then each point's reasons and the median
microseconds of what was asked there.
"""

import json
import shutil
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path
from statistics import median

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"
COST_EVALUATOR = "spark.sql.adaptive.customCostEvaluatorClass"

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
spark = SparkSession.builder.appName("bench-sizes").getOrCreate()
jvm = spark.sparkContext._jvm
compiler = jvm.org.codehaus.janino.SimpleCompiler()
compiler.cook(work["code"])
costs = compiler.getClassLoader().loadClass("Costs").newInstance()
conf = spark.sparkContext._jsc.sc().conf()
initial = {key: conf.get(key) for key in (EXTENSIONS, COST_EVALUATOR)}

# Two map tasks write each table; what is read of it is little, however many reduce tasks there are.
for number, columns in enumerate(work["columns"]):
    spark.range(0, 20_000, 1, 2).selectExpr(*columns).write.parquet(f"t{number}")
for number in range(2, work["tables"]):
    shutil.copytree("t1", f"t{number}")
schemas = [
    ", ".join(f"{name} BIGINT" for name in spark.read.parquet(f"t{number}").columns)
    for number in (0, 1)
]


def session(has_aqepilot: bool, policies: dict[str, str]) -> JavaObject:
    """A session of this SparkContext, made as an application's first one is."""
    for key, value in initial.items():
        if has_aqepilot:
            conf.set(key, value)
        else:
            conf.remove(key)
    sessions = jvm.org.apache.spark.sql.SparkSession
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    made = sessions.builder().getOrCreate()
    for number in range(work["tables"]):
        schema = schemas[min(number, 1)]
        made.read().schema(schema).parquet(f"t{number}").createOrReplaceTempView(f"t{number}")
    for key, value in policies.items():
        made.conf().set(key, value)
    functions = [f.name() for f in made.catalog().listFunctions().collectAsList()]
    assert ("aqepilot_status" in functions) == has_aqepilot
    return made


sessions = {"plain": session(False, {}), "idle": session(True, {})}
for name, texts in work["policies"].items():
    sessions[name] = session(True, texts)
sessions["plain again"] = session(False, {})
turn = list(sessions)
MODE = jvm.org.apache.spark.sql.execution.CommandExecutionMode.ALL()


@cache
def analysed_once(made: JavaObject, query: str) -> JavaObject:
    """To analyse 200 joins takes Spark longer than to plan them."""
    return made.sql(query).queryExecution().analyzed()


def cost(made: JavaObject, case: dict) -> list[float]:
    for key, value in case["conf"].items():
        made.conf().set(key, value)
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(made)
    if case["runs"]:
        took = costs.ofRunning(made.sql(case["query"]))
    else:
        analysed = analysed_once(made, case["query"])
        took = costs.ofPlanning(made.sessionState().executePlan(analysed, MODE))
    return [nanos / 1e6 for nanos in took]


def decided(made: JavaObject, after: int) -> list:
    """What was decided in a session after a decision: id, point, reason, microseconds."""
    rows = (
        made.sql(
            "SELECT decision_id, point, reason, asked_us FROM aqepilot_decisions() "
            f"WHERE decision_id > {after}"
        )
        .toJSON()
        .collectAsList()
    )
    return [json.loads(row) for row in rows]


def in_turn(case: dict) -> dict[str, list[float]]:
    costs = {name: cost(sessions[name], case) for name in turn}
    turn.append(turn.pop(0))
    turn.reverse()
    return costs


for case in work["cases"]:
    for _ in range(case["warm_up"]):
        in_turn(case)
    before = {
        name: max((d["decision_id"] for d in decided(sessions[name], -1)), default=-1)
        for name in work["policies"]
    }
    times = defaultdict(list)
    for _ in range(case["rounds"]):
        for name, took in in_turn(case).items():
            times[name].append(took)
    asked = {}
    for name in work["policies"]:
        by_reason = defaultdict(list)
        for d in decided(sessions[name], before[name]):
            by_reason[d["point"] + " " + d["reason"]].append(d["asked_us"])
        asked[name] = {key: [len(us), median(us)] for key, us in by_reason.items()}
    print("CASE " + json.dumps([case["name"], times, asked]), flush=True)
spark.stop()
