"""The jar on the driver's class path alone: executors, JVMs of their own here, never see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import little
import places
import policies
import servers
import tiers
from conftest import Submit

JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import plans, policies, waiting
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sc = spark.sparkContext
spark.range(20000).selectExpr("id % 1000 AS k", "id AS v").createOrReplaceTempView("a")
spark.range(1000).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("b")
sql = "SELECT count(*) AS n, sum(b.w + a.v) AS w FROM a JOIN b ON a.k = b.k"
spark.conf.set("spark.aqepilot.mode", "off")
print("plain", plans.execute(spark.sql(sql))[:2])
spark.conf.unset("spark.aqepilot.mode")
df = spark.sql(sql)
print("decided", plans.execute(df)[:2])
for d in policies.decisions(spark):
    if d.applied:
        print("decision", d.reason, d.fate)
print("as rows", spark.sql("SELECT kind FROM aqepilot_status()").rdd.map(lambda r: r.kind).first())

jvm = sc._jvm
executors = set(sc.parallelize(range(8), 4).map(lambda _: __import__("os").getppid()).collect())
driver = jvm.java.lang.ProcessHandle.current().pid()
tracker = sc._jsc.sc().statusTracker()
waiting.until(lambda: len(tracker.getExecutorInfos()) >= 3)
print("elsewhere", driver not in executors, len(tracker.getExecutorInfos()))
print("jars", sc._jsc.sc().listJars().size())
"""


@pytest.fixture
def master(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Executors of one core each, in JVMs of their own."""
    if request.param != "standalone":
        yield request.param
        return
    with servers.standalone(tmp_path / "cluster") as url:
        yield url


@tiers.on("3.5")
@pytest.mark.parametrize(
    "master",
    ["local-cluster[2,1,1024]", pytest.param("standalone", marks=tiers.LONG)],
    indirect=True,
)
def test_executors_need_no_jar(spark_submit: Submit, spark_jar: Path, master: str) -> None:
    run = spark_submit(
        JOB,
        ["--driver-class-path", str(spark_jar)],
        master=master,
        own_jvm=True,
        extension=False,
        conf=little.SORT_MERGE
        | {
            "spark.sql.extensions": "io.aqepilot.AqePilotExtension",
            "spark.executor.memory": "1g",
            "spark.executor.cores": "1",
            "spark.sql.shuffle.partitions": "4",
        }
        | policies.conf(policies.HASH_RIGHT),
        job_words=[str(places.SUPPORT)],
    )
    assert run.returncode == 0, run.stderr[-5000:]
    answers = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    rows = "[Row(n=20000, w=219970000)]"
    assert answers["plain"].startswith(f"({rows}, [Join(strategy='SortMergeJoin'")
    assert answers["decided"].startswith(f"({rows}, [Join(strategy='ShuffledHashJoin BuildRight'")
    assert answers["decision"] == "APPLIED adopted"
    assert answers["as"] == "rows version"
    assert answers["elsewhere"] == "True 3"
    assert answers["jars"] == "0"
