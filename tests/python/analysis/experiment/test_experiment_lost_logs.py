"""What the analysis says where logs of one arm are lost, or its applications are killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import tiers
from aqepilot import Log, read_log
from aqepilot.analysis.experiment import history, metrics
from aqepilot.analysis.experiment.analysis import Analysis, analyse
from aqepilot.analysis.experiment.experiment import Experiment
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.errors import AqePilotError
from bench import million

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

AT = 1_750_000_000_000
HOUR = 3_600_000


def analysed(runs: Runs) -> Analysis:
    """By one metric: the others say nothing of lost logs."""
    return analyse(runs._replace(metrics={"task_ms": runs.metrics["task_ms"]}), "task_ms")


def test_an_arm_that_lost_three_percent_of_its_logs_is_found(spark: SparkSession) -> None:
    """What is lost is in no table; of the others, the markers alone say how many there were."""
    tables = million.tables(spark, 110_000, "job_run", lost=0.03, each=1)
    tables["queries"] = tables["queries"].limit(0)
    tables["experiments"] = tables["experiments"].where("what = 'assigned'")
    _, runs = history.runs_in(Log(**tables))
    control, treatment = (int((runs.treated == arm).sum()) for arm in (False, True))
    assert 0.96 < treatment / control < 0.98
    analysis = analysed(runs)
    assert analysis.runs == (control, treatment)
    assert analysis.verdict == "broken"
    assert analysis.says == (
        "The arms have other numbers of runs than their weights say, and not by chance: logs of "
        "one arm are missing, or its runs never begin. No figure here can be trusted."
    )


def test_runs_are_collected_in_parts_and_too_many_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "_AT_ONCE", 2)
    monkeypatch.setattr(metrics, "MOST_RUNS", 7)
    columns = ("concat('job', id % 2) AS job", "nullif(id, 3) AS input_bytes", "id > 5 AS failed")
    values = metrics.collected(spark.range(7).repartition(2).selectExpr(*columns))
    order = np.argsort(values["input_bytes"])
    assert values["input_bytes"][order].tolist()[:6] == [0, 1, 2, 4, 5, 6]
    assert values["job"][order].tolist()[:6] == [f"job{i % 2}" for i in (0, 1, 2, 4, 5, 6)]
    assert values["failed"][order].tolist() == [False] * 5 + [True, False]
    with pytest.raises(AqePilotError, match="more than 7 runs: give fewer"):
        metrics.collected(spark.range(8).selectExpr(*columns))


def written(folder: Path, killed: Any) -> None:
    """Writes event logs of 20 jobs, once in each arm; `killed` says how a treated run ends."""
    for i in range(40):
        name, at, arm = f"app-{i}", AT + i * HOUR, ("spark", "wide")[i % 2]
        cut = killed(i // 2) if i % 2 else None
        events_of_job = events(f"job{i // 2}", name, at, arm)
        lines = [json.dumps(event, separators=(",", ":")) for event in events_of_job]
        of_run = len(lines) if cut is None else cut
        text = "".join(f"{line}\n" for line in lines[: int(of_run)])
        if of_run % 1:
            half = lines[int(of_run)]
            text += half[: len(half) // 2]
        # Spark takes the end of the name off when the application ends.
        path = folder / (name if cut is None else f"{name}.inprogress")
        path.write_text(text, encoding="utf-8")


def events(job: str, app: str, at: int, arm: str) -> Iterator[dict[str, Any]]:
    """Returns the events of an application of one query, its marker third."""
    spark, sql = "SparkListener", "org.apache.spark.sql.execution.ui.SparkListenerSQLExecution"
    ours = {"schemaVersion": 1, "experiment": "wider", "unit": f"{job}|{app}", "arm": arm}
    marker = {
        **{"Event": "io.aqepilot.log.AqePilotExperiment", "time": at, "unitKind": "job_run"},
        **ours,
        **{"arms": "spark:50,wide:50", "metric": "task_ms", "job": job, "run": app},
    }
    yield {"Event": f"{spark}LogStart", "Spark Version": "4.3.0"}
    yield {
        **{"Event": f"{spark}ApplicationStart", "App Name": job, "App ID": app},
        **{"Timestamp": at, "User": "u"},
    }
    yield {**marker, "what": "assigned"}
    yield {
        **{"Event": f"{sql}Start", "executionId": 0, "rootExecutionId": 0, "description": "q"},
        "time": at,
    }
    yield {**marker, "what": "exposed", "executionId": 0}
    yield {"Event": f"{sql}End", "executionId": 0, "time": at + 5000, "errorMessage": ""}
    yield {
        **{"Event": "io.aqepilot.log.AqePilotQueryClosed", "executionId": 0, "fingerprint": "f"},
        **ours,
        **{"job": job, "run": app},
    }
    yield {"Event": f"{spark}ApplicationEnd", "Timestamp": at + 6000}


def read(spark: SparkSession, folder: Path) -> tuple[Experiment, Runs]:
    with history.cached(read_log(spark, folder)) as log:
        return history.runs_in(log)


def test_an_application_whose_log_ends_after_its_marker_has_failed_for_its_arm(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It is killed behind the marker, in the middle of a line, in a query, or before its end."""
    ends = [3, 3.5, 5, 7, None]
    written(tmp_path, lambda job: ends[job % 5])
    about, runs = read(spark, tmp_path)
    assert (about.control, about.treatment, about.running) == ("spark", "wide", 0)
    assert int(runs.counted.sum()) == 40
    assert (~runs.failed & runs.treated).sum() == 4
    assert not (runs.failed & ~runs.treated).any()
    analysis = analysed(runs)
    assert analysis.runs == (20, 20)
    assert (analysis.failures.control.mean, analysis.failures.treatment.mean) == (0.0, 0.8)
    assert analysis.verdict == "stop"
    assert analysis.says == "More of the treatment's runs fail: 80.0 % instead of 0.0 %."
