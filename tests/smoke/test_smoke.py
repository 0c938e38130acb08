"""A policy under spark-submit, by settings alone, on any Spark that is supported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jar_matrix
import pyspark
import pytest

from aqepilot import catalog
from aqepilot.policies import Policy
from aqepilot.submit import conf, jars

# With the policies, then without the extension: one JVM, as its start takes longest.
JOB = """
import json, sys
from pyspark.sql import SparkSession

BUILD_LEFT = "named_struct('strategy', 'SHUFFLE_HASH', 'build_side', 'LEFT')"

every, tests, tries_all = json.loads(sys.argv[1])
sys.path.append(tests)
import shared_relations

def run(kind, further=""):
    joined = f"left_side l {kind} JOIN right_side r ON l.k = r.k"
    df = spark.sql(f"SELECT l.k, v, w FROM {joined} {further}")
    rows = sorted(tuple(row) for row in df.collect())
    plan = df._jdf.queryExecution().executedPlan().toString().split("== Initial Plan ==")[0]
    return {"rows": rows, "plan": plan}

def written(folder):
    # Into how many files tells the plan.
    parts = spark.sql("SELECT v, k % 3 AS part FROM left_side")
    parts.write.partitionBy("part").parquet(folder)
    back = spark.read.parquet(folder)
    return {"rows": sorted(tuple(row) for row in back.collect()), "plan": len(back.inputFiles())}

def decided():
    columns = "point, join_id, policy, answer, applied, reason, detail, fate, final_strategy"
    query = f"SELECT {columns} FROM aqepilot_decisions() ORDER BY decision_id"
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    return [row.asDict() for row in spark.sql(query).collect()]

def views():
    for name in ("left", "right", "third"):
        spark.read.parquet(name).createOrReplaceTempView(name + "_side")

def runs_of_every(folder):
    third = run("INNER", "JOIN third_side t ON l.k = t.k")
    return [run("INNER"), run("LEFT"), third, written(folder)]

def left_built():
    on = "l.k = r.k AND v < w"
    rows = spark.sql(f"SELECT v, w FROM left_side l LEFT JOIN right_side r ON {on}").collect()
    return sorted(tuple(row) for row in rows if row.w is not None), len(rows)

spark = SparkSession.builder.getOrCreate()
spark.range(0, 5000, 1, 4).selectExpr("id % 1000 AS k", "id AS v").write.parquet("left")
spark.range(1000).selectExpr("id AS k", "id * 2 AS w").write.parquet("right")
spark.range(500).selectExpr("id AS k", "id * 3 AS u").write.parquet("third")
views()
found = {"version": spark.version, "runs": [run("INNER"), run("LEFT")]}
found["decisions"] = decided()
status = spark.sql("SELECT kind, name, value FROM aqepilot_status()").collect()
found["status"] = [list(row) for row in status]
spark.conf.set("spark.aqepilot.policies", "every")
for point, text in every.items():
    spark.conf.set("spark.aqepilot.policy.every." + point, text)
found["every"] = runs_of_every("written")
found["decisions of every"] = decided()[len(found["decisions"]):]
spark.conf.set("spark.aqepilot.policy.function.dynamic_join_selection", "python:hashing:choose")
spark.conf.set("spark.aqepilot.policies", "function")
found["by function"] = run("INNER")
found["decisions of function"] = [d for d in decided() if d["policy"] == "function"]
spark.conf.set("spark.aqepilot.policy.built.join_selection", BUILD_LEFT)
spark.conf.set("spark.aqepilot.policies", "built")
found["left built"] = left_built()
found["decisions of built"] = [d for d in decided() if d["policy"] == "built"]
relations = spark.newSession()
relations.conf.set("spark.sql.shuffle.partitions", "1")
relations.conf.set("spark.sql.codegen.wholeStage", "false")
found["relations"] = shared_relations.compared(relations, tries_all)
spark.stop()

spark = SparkSession.builder.config("spark.sql.extensions", "").getOrCreate()
views()
plain = {"left built": left_built()}
plain |= {"runs": [run("INNER"), run("LEFT")], "every": runs_of_every("written by plain Spark")}
try:
    spark.sql("SELECT * FROM aqepilot_status()")
except Exception as error:
    plain["has no function of ours"] = "aqepilot_status" in str(error)
with open("found.json", "w") as out:
    json.dump([plain, found], out)
"""
HASH_THE_RIGHT = Policy(
    name="smoke", dynamic_join_selection="CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END"
)
HASHING = """
def choose(facts):
    return None if facts.side.is_left else "SHUFFLE_HASH"
"""
# What changes the plan at each point.
EVERY = jar_matrix.POLICY | {
    "dynamic_join_selection": "CASE WHEN join.type = 'LEFT OUTER' THEN 'SHUFFLE_MERGE' END",
}


def test_a_jar_of_another_spark_or_scala_is_never_said_to_fit() -> None:
    assert jar_matrix.expected("4.3.0", "2.13", "4.3_2.13") == ("fits",)
    assert jar_matrix.expected("4.3.0", "2.13", "4.2_2.13") == ("WRONG_SPARK_JAR",)
    for other in ("3.5_2.13", "4.3_2.13"):
        assert "fits" not in jar_matrix.expected("3.5.9", "2.12", other)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict]:
    """The job's findings as plain Spark and with the policy.

    TEST_ALL=1 in the environment tries every order of relations that are used twice.
    """
    folder = tmp_path_factory.mktemp("smoke")
    (folder / "job.py").write_text(JOB, encoding="utf-8")
    (folder / "hashing.py").write_text(HASHING, encoding="utf-8")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        # Each file is a map task.
        "spark.sql.files.maxPartitionBytes": "64KB",
        "spark.sql.files.openCostInBytes": "64KB",
        # Else half of the time goes into compiling what runs a few times.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 "
        "-XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
        **conf.settings([HASH_THE_RIGHT], str(jars.find(pyspark.__version__))),
        "spark.aqepilot.strict": "true",
        "spark.aqepilot.python.allow_session": "true",
        "spark.aqepilot.ask.deadline": "20s",
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    home = Path(pyspark.__file__).parent
    tests = str(Path(__file__).parents[1] / "support")
    job_words = [json.dumps([EVERY, tests, os.environ.get("TEST_ALL") == "1"])]
    job = subprocess.run(
        [
            *(str(home / "bin" / "spark-submit"), "--master", "local[1]"),
            *("--driver-memory", "700m", *words, "job.py", *job_words),
        ],
        cwd=folder,
        env=os.environ
        | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1900,
        check=False,
    )
    assert job.returncode == 0, job.stdout[-5000:]
    plain, decided = json.loads((folder / "found.json").read_text())
    assert plain.get("has no function of ours"), "plain Spark has a function of ours"
    return plain, decided


@pytest.mark.timeout(2000)
def test_a_relation_used_twice_gives_its_rows_at_every_order(runs: tuple[dict, dict]) -> None:
    relations = runs[1]["relations"]
    assert relations["wrong"] == []
    assert "APPLIED" in relations["reasons"]


def _off(version: str) -> set[str]:
    return set(jar_matrix.OFF.get(version, ()))


def test_the_jar_is_the_running_sparks(runs: tuple[dict, dict]) -> None:
    version = runs[1]["version"]
    assert version == pyspark.__version__
    spark = {name: value for kind, name, value in runs[1]["status"] if kind == "spark"}
    assert jars.minor_of(spark["built_for"]) == jars.minor_of(version) == spark["running"][:3]
    points = {name: value for kind, name, value in runs[1]["status"] if kind == "point"}
    off = _off(version)
    assert set(points) == set(catalog.point_names())
    assert {name for name, value in points.items() if value != "live"} == off
    # Nothing is wrong with a job that needs none of these, not even with strict=true.
    assert [name for kind, name, _ in runs[1]["status"] if kind == "problem"] == []


def test_the_decision_is_in_the_executed_plan(runs: tuple[dict, dict]) -> None:
    plain, decided = runs
    for run in plain["runs"]:
        assert "SortMergeJoin" in run["plan"]
        assert "ShuffledHashJoin" not in run["plan"]
    for run in decided["runs"]:
        assert "SortMergeJoin" not in run["plan"]
        assert "ShuffledHashJoin" in run["plan"]
        assert "BuildRight" in run["plan"]


def test_the_rows_are_plain_sparks(runs: tuple[dict, dict]) -> None:
    plain, decided = runs
    assert [len(run["rows"]) for run in plain["runs"]] == [5000, 5000]
    for before, after in zip(plain["runs"], decided["runs"], strict=True):
        assert before["rows"] == after["rows"]


def test_the_record_says_adopted(runs: tuple[dict, dict]) -> None:
    applied = [decision for decision in runs[1]["decisions"] if decision["applied"]]
    assert applied
    adopted = [decision for decision in applied if decision["fate"] == "adopted"]
    assert len({decision["join_id"] for decision in adopted}) == 2
    for decision in adopted:
        assert decision["policy"] == "smoke"
        assert decision["answer"] == "SHUFFLE_HASH"
        assert decision["final_strategy"] == "ShuffledHashJoin BuildRight"


def test_every_point_changes_plans_and_no_row(runs: tuple[dict, dict]) -> None:
    plain, decided = runs
    for before, after in zip(plain["every"], decided["every"], strict=True):
        assert before["rows"] == after["rows"]
        assert before["plan"] != after["plan"]
    of_points = {point: [] for point in EVERY}
    for decision in decided["decisions of every"]:
        assert decision["reason"] != "INTERNAL_ERROR", decision
        of_points[decision["point"]].append(decision)
    live = set(EVERY) - _off(decided["version"])
    assert {point for point, made in of_points.items() if made} == live
    fates = {point: {d["fate"] for d in made if d["applied"]} for point, made in of_points.items()}
    # The run-time policy takes back what the planning one did.
    applied_only = {"cost_evaluation", "dynamic_join_selection"}
    assert {point for point in live - applied_only if "adopted" not in fates[point]} == set(), fates
    assert all(fates[point] for point in applied_only)


def test_a_python_function_decides(runs: tuple[dict, dict]) -> None:
    plain, decided = runs
    assert decided["by function"]["rows"] == plain["runs"][0]["rows"]
    assert "ShuffledHashJoin" in decided["by function"]["plan"]
    reasons = {(d["answer"], d["reason"]) for d in decided["decisions of function"]}
    assert reasons == {("SHUFFLE_HASH", "APPLIED")}


def test_a_fault_of_the_release_is_not_met(runs: tuple[dict, dict]) -> None:
    plain, decided = runs
    assert decided["left built"] == plain["left built"]
    has_fault = decided["version"] in ("3.5.0", "3.5.1", "3.5.2")
    reason = "SPARK_FAULT" if has_fault else "APPLIED"
    assert {d["reason"] for d in decided["decisions of built"]} == {reason}
    for decision in decided["decisions of built"]:
        if has_fault:
            assert "SPARK-46037" in decision["detail"]
            assert "3.5.3" in decision["detail"]
