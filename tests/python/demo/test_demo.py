"""The demo: runs, shows tasks and the decision, saves a picture; its log reader."""

from __future__ import annotations

import json
from pathlib import Path

import pyspark
import pytest

import processes
import submitting
import tiers
from aqepilot import demo
from aqepilot.demo import query, screen, sparks
from aqepilot.errors import AqePilotError

WORDS = processes.words(
    {"spark.driver.extraJavaOptions": submitting.SHORT_JVM, "spark.sql.shuffle.partitions": "32"}
)


@tiers.on("3.5")
def test_demo_shows_the_tasks_of_both_runs_and_the_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "demo.svg"
    words = ["--wait-ms", "0", "--data", str(tmp_path), "--svg", str(picture), *WORDS]
    assert demo.main(words) == 0
    shown = capsys.readouterr().out
    assert pyspark.__version__ in shown
    for word in ("SortMergeJoin", "█", "left_target_bytes", "adopted", "5 rows", "the same"):
        assert word in shown
    assert "spark-submit" in shown
    assert "<svg" in picture.read_text("utf-8")


def test_an_unknown_minor_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AqePilotError, match=r"no demo for Spark 2\.4; there is for 3\.5"):
        sparks.find("2.4", tmp_path)


def test_a_failed_job_says_why(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text("raise SystemExit('out of cheese')", encoding="utf-8")
    with pytest.raises(AqePilotError, match=r"job\.py failed under Spark(.|\n)*out of cheese"):
        sparks.submit(sparks.find(None, tmp_path), (), job, ())


def test_a_log_without_a_join_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app").write_text(json.dumps({"Event": "SparkListenerLogStart"}), encoding="utf-8")
    with pytest.raises(ValueError, match="no finished query with a join"):
        query.read(tmp_path)


def test_a_task_killed_before_it_ran_has_no_cpu_time(tmp_path: Path) -> None:
    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
    plan = {"nodeName": "SortMergeJoin", "simpleString": "", "children": []}
    task = {"Event": "SparkListenerTaskEnd", "Stage ID": 0}
    times = {"Task Info": {"Launch Time": 1000, "Finish Time": 3000}}
    events = [
        {"Event": f"{sql}ExecutionStart", "executionId": 0, "time": 0, "sparkPlanInfo": plan},
        task | times | {"Task Metrics": {"Executor CPU Time": 1_500_000_000}},
        task | times,
        {"Event": f"{sql}ExecutionEnd", "executionId": 0, "time": 4000},
    ]
    (tmp_path / "app").write_text("\n".join(map(json.dumps, events)), encoding="utf-8")
    assert query.read(tmp_path) == (("SortMergeJoin",), 4.0, (), (2.0, 2.0), 1.5)


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(9, "9 B"), (1536, "1.5 KB"), (33 << 20, "33 MB"), (None, "?")]
)
def test_sizes(size_bytes: int | None, text: str) -> None:
    assert screen._size(size_bytes) == text


def test_a_decision_has_the_fields_of_its_event_and_its_fate() -> None:
    prefix = "io.aqepilot.log.AqePilot"
    decided = {"Event": f"{prefix}Decision", "time": 1_763_800_000_000, "decisionId": 7}
    decided |= {"sessionId": "s", "executionId": 3, "point": "skew_join", "factsId": "f"}
    decided |= {"facts": "{}", "mode": "enforce", "applied": True, "reason": "APPLIED"}
    decided |= {"askedMicros": 1.5, "sparkAnswer": "x", "subject": "join 1"}
    fate = {"decisionId": 7, "fate": "adopted", "finalStrategy": "SortMergeJoin"}
    closed = {"Event": f"{prefix}QueryClosed", "executionId": 3, "fates": [fate]}
    (decision,) = query.decisions([decided, closed])
    assert decision.time.isoformat() == "2025-11-22T08:26:40+00:00"
    assert (decision.decision_id, decision.execution_id, decision.facts_json) == (7, 3, "{}")
    assert (decision.asked_us, decision.spark_answer, decision.policy) == (1.5, "x", None)
    assert (decision.fate, decision.final_strategy) == ("adopted", "SortMergeJoin")
