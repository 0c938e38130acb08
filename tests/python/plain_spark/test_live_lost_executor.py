"""An executor dies after it wrote shuffle files: Spark runs stages again, as policies decided."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import places
import skewed
import tiers
from aqepilot import read_log
from conftest import Submit
from submitting import EXTENSION

pytestmark = tiers.on("3.5")

POLICY = {
    "skew_join": skewed.struct(
        left_splits="transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, 3, null))"
    ),
    "shuffle_partitions": "CASE WHEN shuffles.num_shuffles = 1 THEN 6 END",
    "partition_coalescing": "CASE WHEN shuffle.num_partitions = 6 "
    "THEN named_struct('min_partitions', 3, 'min_partition_bytes', 1) END",
}
# The last stage's tasks wait at a gate: the driver kills an executor and opens it.
JOB = """
import sys, time
tests, root = sys.argv[1:]
sys.path.insert(0, tests)
from pathlib import Path
from threading import Thread
import plans, policies, reads, skewed, waiting
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
root = Path(root)
skewed.write(spark, root)
skewed.register(spark, root)

def gate(folder, n):
    folder = Path(folder)
    (folder / "reached").touch()
    end = time.monotonic() + 120
    while not (folder / "open").exists() and time.monotonic() < end:
        time.sleep(0.05)
    return n

def kill_one(folder):
    assert waiting.until((folder / "reached").exists)
    children = sc._jvm.java.lang.ProcessHandle.current().children().iterator()
    executors = []
    while children.hasNext():
        child = children.next()
        if child.info().command().orElse("").endswith("java"):
            executors.append(child)
    print("executors:", len(executors))
    executors[0].destroyForcibly()
    assert waiting.until(lambda: not executors[0].isAlive())
    (folder / "open").touch()

spark.udf.register("gate", gate, "long")
for mode in ("off", "enforce"):
    spark.conf.set("spark.aqepilot.mode", mode)
    folder = root / mode
    folder.mkdir()
    if mode == "off":
        (folder / "open").touch()
    else:
        killer = Thread(target=kill_one, args=(folder,))
        killer.start()
    sc.setJobGroup(mode, mode)
    df = spark.sql(
        f"SELECT gate('{folder}', n) AS n, hashes FROM (SELECT r.n % 40 AS n, "
        "count(*) AS c, sum(hash(l.k, l.v, r.w)) AS hashes FROM l JOIN r ON l.k = r.k GROUP BY 1)")
    ran = plans.execute(df)
    print(mode, "rows:", sorted(tuple(row) for row in ran.rows))
    print(mode, "splits:", *(read.splits() for read in plans.reads(df)))
    print(mode, "reads:", *(read.kind or "unchanged" for read in reads.listed(df)))
    sc._jsc.sc().listenerBus().waitUntilEmpty(60000)
    tracker = sc.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(mode))
    stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
    print(mode, "retried:", any(stage.currentAttemptId for stage in stages))
killer.join()
print("adopted:", *sorted({d.point for d in policies.decisions(spark) if d.fate == "adopted"}))
print("jars:", sc._jsc.sc().listJars().size())
"""


@pytest.mark.parametrize("on_executors", [True, pytest.param(False, marks=tiers.LONG)])
def test_stages_run_again_as_decided(
    spark: SparkSession,
    spark_submit: Submit,
    spark_jar: Path,
    tmp_path: Path,
    on_executors: bool,
) -> None:
    """Whether or not the executors, JVMs of their own here, have the jar."""
    events = tmp_path / "events"
    events.mkdir()
    ran = spark_submit(
        JOB,
        ["--jars" if on_executors else "--driver-class-path", str(spark_jar)],
        master="local-cluster[2,1,1024]",
        own_jvm=True,
        extension=False,
        conf=skewed.SETTINGS
        | {
            "spark.sql.extensions": EXTENSION,
            "spark.executor.memory": "512m",
            "spark.scheduler.minRegisteredResourcesRatio": "1",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.shuffle.io.retryWait": "100ms",
        }
        | {"spark.aqepilot.policies": "p"}
        | {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
        }
        | {f"spark.aqepilot.policy.p.{point}": text for point, text in POLICY.items()},
        job_words=[str(places.SUPPORT), str(tmp_path / "tables")],
        timeout_s=400,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr[-5000:]
    answers = dict(line.split(": ", 1) for line in ran.stdout.splitlines())
    assert len(ast.literal_eval(answers["off rows"])) == 24
    assert answers["enforce rows"] == answers["off rows"]
    assert answers["off splits"] == "({}, {})"
    assert answers["off reads"] == "plain plain plain"
    assert answers["enforce splits"] == "({5: 3}, {})"
    assert answers["enforce reads"] == "coalesced skewed unchanged"
    assert answers["adopted"] == "partition_coalescing shuffle_partitions skew_join"
    assert (answers["executors"], answers["jars"]) == ("2", str(int(on_executors)))
    assert (answers["off retried"], answers["enforce retried"]) == ("False", "True")
    assert_counted_as_the_log_is_read(spark, events)


def assert_counted_as_the_log_is_read(spark: SparkSession, events: Path) -> None:
    """Retried stages, lost tasks, and the cores and memory of executors that came and went."""
    (log,) = (file for file in events.iterdir() if not file.name.startswith("."))
    read = read_log(spark, log)
    queries = {q.execution_id: q.asDict() for q in read.queries.collect()}
    (app,) = read.applications.collect()
    assert {e.memory_mib for e in app.executors} == {512}
    assert sum(e.removed is not None for e in app.executors) > 0
    assert sum(query["retried_stages"] for query in queries.values()) > 0
    decided = [query for query in queries.values() if query["decisions"]]
    assert decided
    assert all(query["executor_memory_mib_s"] > 0 for query in decided)
