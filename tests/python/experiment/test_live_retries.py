"""A run that its scheduler tries again is plain Spark, and a run's name is in facts and record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyspark
import pytest

import submitting
import tiers

pytestmark = tiers.on("3.5")

AIRFLOW = {
    "AIRFLOW_CTX_DAG_ID": "daily",
    "AIRFLOW_CTX_TASK_ID": "sales",
    "AIRFLOW_CTX_DAG_RUN_ID": "scheduled__2026-11-23",
    "AIRFLOW_CTX_TRY_NUMBER": "2",
}
# By what follows from the environment and from settings, which each application has its own of.
APPLICATIONS = {
    "second try": {},
    "shadow": {"spark.aqepilot.on_retry": "shadow"},
    "enforce": {"spark.aqepilot.on_retry": "enforce"},
    "first try, as is set": {"spark.aqepilot.attempt": "1", "spark.aqepilot.job": "own"},
    "YARN's third": {"spark.app.attempt.id": "3"},
}
NAMES = ("job", "job_source", "run", "run_source", "attempt")
JOB = f"""
import json, os
from pyspark.sql import SparkSession

found = {{}}
for name, settings in {APPLICATIONS!r}.items():
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    joined = spark.range(1000).join(spark.range(500), "id")
    rows = joined.count()
    decided = spark.sql("SELECT * FROM aqepilot_decisions()").collect()
    facts = [json.loads(d.facts)["query"] for d in decided]
    status = spark.sql("SELECT * FROM aqepilot_status()").collect()
    found[name] = {{
        "rows": rows,
        "plan": joined._jdf.queryExecution().executedPlan().toString(),
        "modes": sorted({{d.mode for d in decided}}),
        "applied": sorted({{d.applied for d in decided}}),
        "named": [[f[name] for name in {NAMES!r}] for f in facts],
        "run": [[r.name, r.value, r.detail] for r in status if r.kind == "run"],
        "policy": [r.value for r in status if r.kind == "policy"],
        "problems": [r.name for r in status if r.kind == "problem"],
    }}
    spark.conf.set("spark.aqepilot.job", "another")
    spark.range(1000).join(spark.range(500), "id").count()
    newest = spark.sql("SELECT facts FROM aqepilot_decisions() ORDER BY decision_id").collect()
    found[name]["in session"] = [json.loads(d.facts)["query"]["job"] for d in newest][-1:]
    spark.stop()
    builder._options.clear()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """What was found in each application, all their events, and what the driver logged."""
    events = tmp_path_factory.mktemp("events")
    conf = {
        "spark.aqepilot.policies": "retried",
        "spark.aqepilot.policy.retried.join_selection": "'BROADCAST'",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
        "spark.log.structuredLogging.enabled": "true",  # of Spark 4
    }
    folder = tmp_path_factory.mktemp("job")
    done = submitting.submit(folder, JOB, conf=conf, env=AIRFLOW)
    assert done.returncode == 0, done.stderr[-3000:]
    logged = [
        json.loads(line)
        for path in sorted(Path(events).iterdir(), key=lambda path: path.stat().st_mtime)
        for line in path.read_text("utf-8").splitlines()
        if "AqePilot" in line
    ]
    return json.loads(done.stdout.strip().splitlines()[-1]), logged, done.stderr


def test_a_retried_run_is_plain_spark_unless_submitted_otherwise(ran):
    answers, _, _ = ran
    assert {application["rows"] for application in answers.values()} == {500}
    assert [not f["problems"] for f in answers.values()] == [True] * len(APPLICATIONS)
    modes = {name: (f["policy"], f["modes"], f["applied"]) for name, f in answers.items()}
    assert modes == {
        "second try": (["off"], [], []),
        "shadow": (["shadow"], ["shadow"], [False]),
        "enforce": (["enforce"], ["enforce"], [True]),
        "first try, as is set": (["enforce"], ["enforce"], [True]),
        "YARN's third": (["off"], [], []),
    }
    broadcast = {name: "BroadcastHashJoin" in f["plan"] for name, f in answers.items()}
    assert broadcast == {name: f["applied"] == [True] for name, f in answers.items()}


def test_a_run_is_named_by_its_scheduler_or_its_settings(ran):
    answers, _, _ = ran
    run = ["scheduled__2026-11-23", "AIRFLOW"]
    assert answers["enforce"]["named"] == [["daily.sales", "AIRFLOW", *run, 2]]
    assert answers["first try, as is set"]["named"] == [["own", "SETTING", *run, 1]]
    assert answers["enforce"]["in session"] == ["another"]
    assert answers["second try"]["run"] == [
        ["job", "daily.sales", "AIRFLOW"],
        ["run", *run],
        ["attempt", "2", "attempt 2 (AIRFLOW_CTX_TRY_NUMBER): spark.aqepilot.on_retry=off"],
    ]
    assert answers["YARN's third"]["run"][2][1:] == [
        "3",
        "attempt 3 (spark.app.attempt.id): spark.aqepilot.on_retry=off",
    ]


def test_the_record_and_the_log_say_so(ran):
    _, events, log = ran
    limits = [e.get("limit") for e in events if e["Event"].endswith("AqePilotPolicyLoaded")]
    assert "attempt 2 (AIRFLOW_CTX_TRY_NUMBER): spark.aqepilot.on_retry=off" in limits
    assert None in limits
    closed = [e for e in events if e["Event"].endswith("AqePilotQueryClosed")]
    named = {(e["job"], e["run"], e["attempt"]) for e in closed}
    assert named == {
        ("daily.sales", "scheduled__2026-11-23", 2),
        ("own", "scheduled__2026-11-23", 1),
        ("another", "scheduled__2026-11-23", 2),
        ("another", "scheduled__2026-11-23", 1),
        ("daily.sales", "scheduled__2026-11-23", 3),
        ("another", "scheduled__2026-11-23", 3),
    }
    sources = {(e["jobSource"], e["runSource"], e["attemptSource"]) for e in closed}
    assert sources == {
        ("AIRFLOW", "AIRFLOW", "AIRFLOW_CTX_TRY_NUMBER"),
        ("SETTING", "AIRFLOW", "AIRFLOW_CTX_TRY_NUMBER"),
        ("SETTING", "AIRFLOW", "spark.aqepilot.attempt"),
        ("AIRFLOW", "AIRFLOW", "spark.app.attempt.id"),
        ("SETTING", "AIRFLOW", "spark.app.attempt.id"),
    }
    assert "RETRIED_RUN: attempt 2 (AIRFLOW_CTX_TRY_NUMBER)" in log
    assert "RETRIED_RUN: attempt 3 (spark.app.attempt.id)" in log


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no structured logs")
def test_a_structured_log_has_what_a_line_is_about(ran):
    _, _, log = ran
    (line,) = [
        json.loads(line)
        for line in log.splitlines()
        if line.startswith("{") and "RETRIED_RUN: attempt 3" in line
    ]
    context = {key: line["context"].get(key) for key in ("reason", "job", "run")}
    assert context == {
        "reason": "RETRIED_RUN",
        "job": "daily.sales",
        "run": "scheduled__2026-11-23",
    }
