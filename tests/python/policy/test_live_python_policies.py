"""Python functions as policies, asked from queries that run."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession
from test_live_cancellation import JavaThread

import each_point
import little
import policies
import python_policies
import skewed
import tiers
import tpch as tpch_data
from rows import assert_same_rows
from waiting import until

pytestmark = tiers.on("3.5")

SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "10KB",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "50KB",
    "spark.sql.shuffle.partitions": "7",
}


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the module `functions`."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "functions.py").write_text(python_policies.SOURCE, encoding="utf-8")
    return folder


def listed(spark: SparkSession, named: Mapping[str, Mapping[str, str]]) -> None:
    """Sets policies: name to texts by key."""
    for name, texts in named.items():
        for key, text in texts.items():
            spark.conf.set(f"spark.aqepilot.policy.{name}.{key}", text)
    spark.conf.set("spark.aqepilot.policies", ",".join(named))


def test_a_function_decides_as_the_same_policy_in_sql_at_every_point_of_every_query(
    tpch: SparkSession, module: Path, tmp_path: Path
) -> None:
    functions = {name: python_policies.allow(tpch, name, module) for name in python_policies.SQL}
    listed(
        tpch,
        {
            "sql": python_policies.SQL | {"mode": "shadow"},
            "function": functions | {"mode": "shadow"},
        },
    )
    little.settings(tpch, SETTINGS)
    for query in tpch_data.queries().values():
        tpch.sql(query).collect()
    tpch.table("nation").write.parquet(str(tmp_path / "written"))
    answers: dict[str, dict[tuple[Any, ...], list[Row]]] = {"sql": {}, "function": {}}
    for d in policies.decisions(tpch):
        if d.policy is not None:
            key = (d.execution_id, d.point, d.subject, d.facts_id)
            answers[d.policy].setdefault(key, []).append((d.answer, d.reason, d.detail))
    assert answers["function"] == answers["sql"]
    asked = Counter(key[1] for key in answers["sql"])
    assert set(asked) == set(python_policies.SQL), asked


@pytest.mark.parametrize("point", each_point.POINTS)
def test_what_a_function_decides_is_in_the_executed_plan(
    skewed_tables: SparkSession,
    module: Path,
    point: str,
) -> None:
    spark = skewed_tables
    little.settings(spark, each_point.SETTINGS)
    sql = each_point.SETS["one"][point]
    plain = each_point.run(spark, each_point.QUERIES[point])
    listed(spark, {"test": {point: sql}})
    by_sql = each_point.run(spark, each_point.QUERIES[point])
    name = f"as_{point}"
    (module / f"{name}.py").write_text(ENFORCED[point], encoding="utf-8")
    listed(spark, {"test": {point: python_policies.allow(spark, "choose", module, name)}})
    by_function = each_point.run(spark, each_point.QUERIES[point])
    assert by_function.effects == by_sql.effects != plain.effects
    assert_same_rows(by_function.rows, plain.rows)


ENFORCED = {
    "skew_join": """
def choose(facts):
    sizes = facts.left.bytes_by_partition_id
    return {"left_splits": [3 if i == 5 else None for i in range(len(sizes))]} if sizes else None
""",
    "shuffle_partitions": """
def choose(facts):
    of = facts.shuffles
    return 6 if of.num_shuffles == 1 and of.feeds == ("AGGREGATE",) else None
""",
    "partition_coalescing": """
def choose(facts):
    rows = facts.shuffle.row_count
    return {"min_partitions": 1} if rows is not None and rows < 450 else None
""",
    "dynamic_join_selection": """
def choose(facts):
    of_r = "r" in (*facts.side.tables, *facts.other.tables)
    return "SHUFFLE_HASH" if of_r and not facts.side.is_left else None
""",
    "cost_evaluation": """
def choose(facts):
    return facts.spark.cost + facts.plan.broadcast_hash_joins * 100
""",
    "join_selection": """
def choose(facts):
    if facts.join.type == "LEFT OUTER":
        return {"strategy": "SHUFFLE_HASH", "build_side": "RIGHT"}
""",
    "join_reorder": """
def choose(facts):
    return [2, 1, 0] if facts.chain.num_relations == 3 else None
""",
    "write_distribution": """
def choose(facts):
    return {"rebalance": True, "columns": ["g"]} if "g" in facts.write.columns else None
""",
}

FAULTS = """
import os, signal, sys, time

def raises(facts):
    raise ValueError("as it should")

def sleeps(facts):
    time.sleep(600)

def spins(facts):
    while True:
        pass

def dies(facts):
    os.kill(os.getpid(), signal.SIGKILL)

def wrong(facts):
    return {"no": "decision"}
"""
JOB = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(20000).selectExpr("id % 500 AS k", "id AS v").createOrReplaceTempView("l")
spark.range(500).selectExpr("id AS k", "id * 2 AS w").createOrReplaceTempView("r")
query = "SELECT l.k, count(*) AS n, sum(v + w) AS s FROM l JOIN r ON l.k = r.k GROUP BY l.k"
rows = sorted(tuple(row) for row in spark.sql(query).collect())
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
decided = "SELECT reason FROM aqepilot_decisions() WHERE policy IS NOT NULL"
reasons = [row.reason for row in spark.sql(decided).collect()]
status = spark.sql("SELECT * FROM aqepilot_status() WHERE kind IN ('python', 'problem')").collect()
print(json.dumps([rows, reasons, [list(s) for s in status]]))
"""
EXPECTED = [(k, 40, sum(range(k, 20000, 500)) + 40 * 2 * k) for k in range(500)]
SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


def workers_of(folder: Path) -> list[Path]:
    """Returns the worker processes whose driver runs, or ran, in this folder."""
    workers = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            command = (process / "cmdline").read_bytes()
            if b"aqepilot_worker.main" in command and (process / "cwd").readlink() == folder:
                workers.append(process)
    return workers


class Submitted(NamedTuple):
    """What a job found out: how often each reason was recorded; rows of the status."""

    reasons: Counter[str]
    status: list[list[str]]
    stderr: str


def submitted(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]],
    module: Path,
    function: str,
    conf: Mapping[str, str],
    **options: Any,
) -> Submitted:
    """Runs the job with a function of a module; its rows are plain Spark's."""
    done = spark_submit(
        JOB,
        ["--py-files", str(module)],
        conf=SHUFFLED
        | {
            "spark.aqepilot.policies": "test",
            "spark.aqepilot.policy.test.dynamic_join_selection": python_policies.text(
                function, module.stem
            ),
        }
        | dict(conf),
        **options,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows, reasons, status = json.loads(done.stdout.strip().splitlines()[-1])
    assert [tuple(row) for row in rows] == EXPECTED
    return Submitted(Counter(reasons), status, done.stderr)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        pytest.param("raises", "PYTHON_RAISED", marks=tiers.LONG),
        pytest.param("sleeps", "PYTHON_DEADLINE", marks=tiers.LONG),
        ("spins", "PYTHON_DEADLINE"),
        ("dies", "PYTHON_DIED"),
        ("wrong", "PYTHON_WRONG_ANSWER"),
    ],
)
def test_a_function_at_fault_costs_a_submitted_job_its_decisions_only(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    function: str,
    reason: str,
) -> None:
    module = tmp_path / "faults.py"
    module.write_text(FAULTS, encoding="utf-8")
    # Time enough for what answers and for a new process, however busy the machine.
    conf = {
        "spark.aqepilot.ask.breaker_failures": "2",
        "spark.aqepilot.ask.breaker_time": "10min",
        "spark.aqepilot.ask.deadline": "4s" if reason == "PYTHON_DEADLINE" else "20s",
    }
    reasons, status, stderr = submitted(spark_submit, module, function, conf)
    assert reasons[reason] == 2
    assert set(reasons) <= {reason, "PYTHON_BREAKER_OPEN", "PYTHON_BUSY"}
    assert any(row[2] == "breaker open" and reason in row[3] for row in status)
    assert f"python:faults:{function} at dynamic_join_selection: {reason}" in stderr
    assert until(lambda: not workers_of(tmp_path / "submit-0"))


@pytest.mark.parametrize(
    "master", ["local[2]", pytest.param("local-cluster[2,1,1024]", marks=tiers.LONG)]
)
def test_a_submitted_function_decides_and_its_output_is_in_the_drivers_log(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, master: str
) -> None:
    module = tmp_path / "sales.py"
    module.write_text(
        "import sys\nprint('loaded by', sys.argv)\n"
        "def choose(facts):\n    return None if facts.side.is_left else 'SHUFFLE_HASH'\n",
        encoding="utf-8",
    )
    conf = {"spark.log.level": "INFO", "spark.aqepilot.ask.deadline": "20s"}
    if master != "local[2]":
        conf["spark.executor.memory"] = "1g"
    reasons, status, stderr = submitted(spark_submit, module, "choose", conf, master=master)
    assert "APPLIED" in reasons
    assert [row[2] for row in status] == ["running", "ready"]
    assert "aqepilot-python-0: loaded by" in stderr


def test_a_module_that_is_not_there_fails_a_strict_application_at_its_start_and_no_other(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    conf = SHUFFLED | {
        "spark.aqepilot.policies": "gone",
        "spark.aqepilot.policy.gone.dynamic_join_selection": "python:no_such_module:choose",
    }
    lenient = spark_submit(JOB, conf=conf)
    assert lenient.returncode == 0
    assert "POLICY_TEXT_INVALID" in lenient.stdout
    assert "ModuleNotFoundError" in lenient.stdout
    strict = spark_submit(JOB, conf=conf | {"spark.aqepilot.strict": "true"})
    assert strict.returncode != 0
    assert "No module named 'no_such_module'" in strict.stderr


def test_a_name_that_a_client_sets_runs_no_code(spark: SparkSession, module: Path) -> None:
    policies.use(spark, "python:os:getpid")
    (problem,) = policies.status(spark, "problem")
    assert "may not name one" in problem.detail
    assert "allow_session" in problem.detail
    checked = "SELECT code FROM aqepilot_check('skew_join', 'python:os:getpid')"
    assert spark.sql(checked).collect() == [("PYTHON_NOT_ALLOWED",)]
    with pytest.raises(Exception, match="PYTHON_NOT_ALLOWED"):
        spark.sql("SELECT * FROM aqepilot_decide('skew_join', 'python:os:getpid', '{}')").collect()
    assert spark.range(10).count() == 10


def test_a_query_is_cancelled_while_its_function_is_asked(
    skewed_tables: SparkSession, module: Path, tmp_path: Path
) -> None:
    spark = skewed_tables
    asked = tmp_path / "asked"
    (module / "slow.py").write_text(
        f"import time\ndef choose(facts):\n    open({str(asked)!r}, 'w').close()\n"
        "    time.sleep(600)\n",
        encoding="utf-8",
    )
    little.settings(spark, skewed.SETTINGS)
    query = each_point.QUERIES["dynamic_join_selection"]
    expected = [(str(tuple(row)),) for row in spark.sql(query).collect()]
    text = python_policies.allow(spark, "choose", module, "slow")
    listed(spark, {"test": {"dynamic_join_selection": text}})
    running = JavaThread(spark, query)
    assert until(asked.exists)
    running.thread.interrupt()
    begun = time.monotonic()
    assert until(running.is_done)
    assert time.monotonic() - begun < 15
    listed(spark, {})
    assert [(str(tuple(row)),) for row in spark.sql(query).collect()] == expected
