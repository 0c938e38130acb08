"""Times the planning of queries in sessions of one JVM; prints milliseconds as JSON.

spark-submit plan.py <JSON file: tables' folder, queries, policies, warm_up, timed, rounds>

Sessions without the extension ("plain", "plain again"), with it but without a policy ("idle"), and
with policies ("recipes") share one SparkContext and what the JVM has compiled: two JVMs differ by
more than what is measured. They plan in turn, back and forth. A figure is the median of a round's
passes over all queries.
"""

import json
import statistics
import sys
import time
from pathlib import Path

from py4j.java_gateway import JavaObject
from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
spark = SparkSession.builder.appName("bench-plan").getOrCreate()
jvm = spark.sparkContext._jvm
conf = spark.sparkContext._jsc.sc().conf()
ours = conf.get(EXTENSIONS)


def session(has_aqepilot: bool, policies: dict[str, str]) -> JavaObject:
    """A session of this SparkContext, made as an application's first one is."""
    conf.set(EXTENSIONS, ours if has_aqepilot else "")
    sessions = jvm.org.apache.spark.sql.SparkSession
    sessions.clearActiveSession()
    sessions.clearDefaultSession()
    made = sessions.builder().getOrCreate()
    for path in sorted(Path(work["tables"]).glob("*.parquet")):
        made.read().parquet(str(path)).createOrReplaceTempView(path.stem)
    for key, value in policies.items():
        made.conf().set(key, value)
    functions = [f.name() for f in made.catalog().listFunctions().collectAsList()]
    assert ("aqepilot_status" in functions) == has_aqepilot
    return made


sessions = {"plain": session(False, {}), "idle": session(True, {})}
if work["policies"]:
    sessions["recipes"] = session(True, work["policies"])
sessions["plain again"] = session(False, {})
turn = list(sessions)


def planned_ms(made: JavaObject, query: str) -> float:
    jvm.org.apache.spark.sql.SparkSession.setActiveSession(made)
    start = time.perf_counter()
    made.sql(query).queryExecution().executedPlan()
    return (time.perf_counter() - start) * 1000


def passed_ms() -> dict[str, float]:
    """A pass over all queries, by session."""
    ms = dict.fromkeys(sessions, 0.0)
    for query in work["queries"]:
        for name in turn:
            ms[name] += planned_ms(sessions[name], query)
        turn.append(turn.pop(0))
        turn.reverse()
    return ms


for _ in range(work["warm_up"]):
    passed_ms()
times = {name: [] for name in sessions}
for _ in range(work["rounds"]):
    passes = [passed_ms() for _ in range(work["timed"])]
    for name in sessions:
        times[name].append(statistics.median(ms[name] for ms in passes))
print(json.dumps(times))
spark.stop()
