"""Threads of the application whose context class loader does not see a jar given by `--jars`."""

from __future__ import annotations

import pytest

import little
import places
import tiers
from conftest import Submit

# An EventHandler is Java code that calls `collectAsList` on whatever thread it is run.
JOB = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import little, plans, policies
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
java = spark._jvm.java
little.write(spark, Path("little"))
little.register(spark, Path("little"))

def collecting(query):
    callable = java.lang.Class.forName("java.util.concurrent.Callable")
    return java.beans.EventHandler.create(callable, query._jdf, "collectAsList")

def in_the_common_pool(query):
    task = java.util.concurrent.ForkJoinPool.commonPool().submit(collecting(query))
    while not task.isDone():  # get() might run it on the thread that waits
        time.sleep(0.1)
    return task.get()

def without_any(query):
    task = java.util.concurrent.FutureTask(collecting(query))
    thread = java.lang.Thread(task)
    thread.setContextClassLoader(None)
    thread.start()
    return task.get()

def in_this_thread(query):
    return query._jdf.collectAsList()

spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "256KB")
for text in (None, "spark.cost + plan.broadcast_hash_joins * 100"):
    if text:
        spark.conf.set("spark.aqepilot.policies", "p")
        spark.conf.set("spark.aqepilot.policy.p.cost_evaluation", text)
    for run in (in_the_common_pool, without_any, in_this_thread):
        query = spark.sql(f"SELECT count(*), sum(w) FROM ({little.BIG_DENSE})")
        rows = run(query).toString()
        print("decided" if text else "plain", run.__name__, rows, *plans.strategies(query))
print("point", *(p.value for p in policies.status(spark, "point") if p.name == "cost_evaluation"))
"""


@pytest.mark.parametrize("user_first", tiers.share(["false", "true"]))
def test_costs_decide_on_any_thread(spark_submit: Submit, user_first: str) -> None:
    """Spark loads the cost evaluator by name, with the loader of the thread that plans a query."""
    ran = spark_submit(
        JOB,
        conf=little.SORT_MERGE | {"spark.driver.userClassPathFirst": user_first},
        job_words=[str(places.SUPPORT)],
        own_jvm=True,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    ways = (("plain", "BroadcastHashJoin BuildRight"), ("decided", "SortMergeJoin"))
    threads = ("in_the_common_pool", "without_any", "in_this_thread")
    assert ran.stdout.splitlines() == [
        *(f"{how} {run} [[20000,199980000]] {join}" for how, join in ways for run in threads),
        "point live",
    ]
