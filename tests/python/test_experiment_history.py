"""Units of an experiment out of logs: whose, how they went, and what is left out."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

import tiers
from aqepilot import control
from aqepilot.errors import AqePilotError
from aqepilot.experiment import history, verdicts
from aqepilot.experiment.analysis import Runs, analyse
from aqepilot.experiment.history import Experiment
from aqepilot.log import Log, columns

pytestmark = tiers.on("4.3")

AT = datetime(2026, 11, 1, 12, tzinfo=timezone.utc)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ARMS = "spark:90,wide:10"


class Logs:
    """Rows of logs, an application after the other."""

    def __init__(self, unit_kind: str = "job_run") -> None:
        self.unit_kind = unit_kind
        self.rows: dict[str, list[dict[str, Any]]] = {
            "applications": [],
            "queries": [],
            "experiments": [],
        }

    def application(
        self,
        log: str,
        at: datetime,
        *,
        unit: str | None = None,
        arm: str = "spark",
        arms: str = ARMS,
        name: str = "wider",
        has_ended: bool = True,
        exposed: bool = False,
        stopped: str | None = None,
        took: tuple[int, ...] = (10,),
        succeeded: bool = True,
        run: str | None = None,
    ) -> Logs:
        ended = at + HOUR if has_ended else None
        self.rows["applications"].append(
            {"log": log, "app_id": f"app-{log}", "app_name": "job", "ended": ended}
        )
        of = {"experiment": name, "unit": unit} if unit else {}
        for i, ms in enumerate(took):
            self.rows["queries"].append(
                {
                    "log": log,
                    "job": "job",
                    "run": run or log,
                    "fingerprint": "f",
                    "task_ms": ms,
                    "input_bytes": 7,
                    "disk_spill_bytes": 0,
                    "ended": at + timedelta(minutes=i),
                    "succeeded": succeeded or i + 1 < len(took),
                    **of,
                }
            )
        told = [("assigned", None)] + [("exposed", None)] * exposed
        for what, detail in [*told, *([("stopped", stopped)] if stopped else [])]:
            if unit:
                self.rows["experiments"].append(
                    {
                        "log": log,
                        "time": at,
                        "unit_kind": self.unit_kind,
                        "arm": arm,
                        "arms": arms,
                        "metric": "task_ms",
                        "what": what,
                        "detail": detail,
                        "job": "job",
                        "run": run or log,
                        **of,
                    }
                )
        return self

    def of(self, spark: SparkSession) -> Log:
        def frame(name: str) -> Any:
            listed = columns.FRAMES[name]
            values = [tuple(row.get(c.name) for c in listed) for row in self.rows[name]]
            return spark.createDataFrame(values, columns.ddl(listed))

        nothing: Any = None
        return Log(
            frame("applications"), nothing, frame("queries"), nothing, nothing, frame("experiments")
        )


def told(runs: Runs) -> list[tuple[Any, ...]]:
    """Of each unit of the experiment: treated, exposed, failed, time of tasks, share."""
    shown = zip(
        runs.treated,
        runs.exposed,
        runs.failed,
        runs.metrics["task_ms"],
        np.round(runs.share, 3),
        strict=True,
    )
    return [tuple(of) for of, counts in zip(shown, runs.counted, strict=True) if counts]


def test_a_run_is_what_all_its_attempts_took(spark: SparkSession) -> None:
    logs = (
        Logs()
        .application("past", AT - DAY, took=(3, 4))
        .application("a1", AT, unit="job|1", run="1", succeeded=False, took=(10,))
        .application("a2", AT + HOUR, unit="job|1", run="1", took=(20, 5))
        .application("b", AT + DAY, unit="job|2", arm="wide", exposed=True, took=(8,))
    )
    of, runs = history.runs_in(logs.of(spark))
    assert of == Experiment("wider", "job_run", "spark", "wide", ("spark", "wide"), "task_ms", {})
    assert told(runs) == [
        (False, False, False, 35.0, 0.1),
        (True, True, False, 8.0, 0.1),
    ]
    (past,) = np.flatnonzero(~runs.counted)
    assert (runs.metrics["task_ms"][past], runs.job[past]) == (7.0, "job")
    assert (np.diff(runs.ended) > 0).all()
    # Less than a mebibyte counts as one.
    assert set(runs.metrics["spill_bytes"]) == {float(1 << 20)}


def test_a_run_without_an_outcome_has_failed(spark: SparkSession) -> None:
    logs = (
        Logs()
        .application("killed", AT, unit="job|1", arm="wide", has_ended=False)
        .application("at once", AT + HOUR, unit="job|2", arm="wide", has_ended=False, took=())
        .application("failing", AT + 2 * HOUR, unit="job|3", succeeded=False, took=(1, 1))
        .application("idle", AT + 3 * HOUR, unit="job|4", took=())
    )
    _, runs = history.runs_in(logs.of(spark))
    assert [(treated, failed) for treated, _, failed, _, _ in told(runs)] == [
        (True, True),
        (True, True),
        (False, True),
        (False, False),
    ]


def test_what_may_still_run_is_left_out(spark: SparkSession) -> None:
    now = datetime.now(timezone.utc)
    logs = (
        Logs()
        .application("running", now - HOUR, unit="job|1", has_ended=False)
        .application("done", now - 2 * HOUR, unit="job|2")
        .application("backfill", AT, unit="job|3", run="backfill__2026-01-01")
    )
    log = logs.of(spark)
    assert len(told(history.runs_in(log)[1])) == 1
    assert len(told(history.runs_in(log, abandoned_after_hours=0.5)[1])) == 2


def test_a_change_of_weights_counts_from_then_on(spark: SparkSession) -> None:
    three = "spark:60,wide:30,other:10"
    logs = (
        Logs()
        .application("a", AT, unit="job|1")
        .application("b", AT + HOUR, unit="job|2", arms=three, arm="wide")
        .application("c", AT + 2 * HOUR, unit="job|3", arms=three, arm="other")
    )
    log = logs.of(spark)
    of, runs = history.runs_in(log)
    assert of.arms == ("spark", "wide", "other")
    assert [(of[0], of[-1]) for of in told(runs)] == [(False, 0.1), (True, 0.333)]
    with pytest.raises(
        AqePilotError, match=r"'wid' is no arm beside the control.*Did you mean wide"
    ):
        history.runs_in(log, arm="wid")


def test_each_query_of_a_run_is_a_unit(spark: SparkSession) -> None:
    logs = (
        Logs("query_run")
        .application("past", AT - DAY)
        .application("a", AT, unit="job|1|f", has_ended=False)
        .application("b", AT + DAY, unit="job|2|f", arm="wide", succeeded=False)
    )
    _, runs = history.runs_in(logs.of(spark))
    assert set(runs.job) == {"job|f"}
    # That the application broke off later is not the query's.
    assert [(treated, failed) for treated, _, failed, _, _ in told(runs)] == [
        (False, False),
        (True, True),
    ]
    assert (~runs.counted).sum() == 1


def test_which_experiment_is_asked_for_where_there_are_several(spark: SparkSession) -> None:
    logs = Logs().application("a", AT, unit="job|1").application("b", AT, unit="u", name="second")
    log = logs.of(spark)
    assert history.runs_in(log, "second")[0].name == "second"
    with pytest.raises(AqePilotError, match="there are several: name one of second, wider"):
        history.runs_in(log)
    with pytest.raises(
        AqePilotError, match=r"no experiment 'wide' in the logs.*Did you mean wider"
    ):
        history.runs_in(log, "wide")
    with pytest.raises(AqePilotError, match="no unit of an experiment"):
        history.runs_in(Logs().application("a", AT).of(spark))


def test_what_stopped_the_treatment_is_counted(spark: SparkSession) -> None:
    logs = Logs()
    for i in range(2):
        logs.application(f"a{i}", AT, unit=f"job|{i}", arm="wide", stopped="1 failed queries")
    of, runs = history.runs_in(logs.of(spark))
    assert of.stopped == {"1 failed queries": 2}
    said = verdicts.sentences(of, analyse(runs, "task_ms"))
    assert said[-1] == "Stopped by a guard rail in 2 applications: 1 failed queries."


def made(factor_of_a: float, factor: float, fails: float = 0.0) -> Runs:
    """Of 20 daily jobs, `job0` takes `factor_of_a` and the others `factor` times as long."""
    generator = np.random.default_rng(1)
    jobs, days = 20, 60
    n = jobs * days
    job, treated = np.tile(np.arange(jobs), days), generator.random(n) < 0.5
    took = np.where(job == 0, factor_of_a, factor)
    return Runs(
        ended=20_000 + np.repeat(np.arange(days), jobs) + job / 100,
        job=np.array([f"job{j}" for j in job]),
        treated=treated,
        counted=np.ones(n, dtype=bool),
        share=np.full(n, 0.5),
        exposed=np.ones(n, dtype=bool),
        failed=treated & (generator.random(n) < fails),
        input_bytes=np.full(n, 1e6),
        metrics={
            name: 1e6 * np.where(treated, took, 1.0) * np.exp(generator.normal(0, 0.05, n))
            for name in history.METRICS
        },
    )


def of_arms(control_arm: str, treatment: str) -> Experiment:
    arms = (control_arm, treatment)
    return Experiment("e", "job_run", control_arm, treatment, arms, "task_ms", {})


def test_a_harmed_job_is_rolled_back(tmp_path: Path) -> None:
    found = analyse(made(3.0, 0.9), "task_ms")
    assert found.verdict == "ship"
    assert list(found.harmed) == ["job0"]
    path = str(tmp_path / "control.json")
    rules = verdicts.roll_back(of_arms("spark", "wide"), found, path)
    assert [rule.selectors for rule in rules] == [{"policy": "wide", "job": "job0"}]
    (written,) = control.read(path).rules
    assert written.mode == "off"
    assert written.reason.startswith("experiment e: The treatment makes runs shorter")


def test_what_hurts_all_is_rolled_back_for_all(tmp_path: Path) -> None:
    path = str(tmp_path / "control.json")
    for runs in (made(1.2, 1.2), made(0.9, 0.9, fails=0.2)):
        found = analyse(runs, "task_ms")
        assert found.verdict == "stop"
        rules = verdicts.roll_back(of_arms("base", "base+wide"), found, path)
        assert [rule.selectors for rule in rules] == [{"policy": "wide"}]


def test_what_helps_or_is_broken_is_not_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "control.json"
    of = of_arms("spark", "wide")
    helps = analyse(made(0.9, 0.9), "task_ms")
    assert verdicts.roll_back(of, helps, str(path)) == []
    broken = analyse(made(1.3, 1.3)._replace(share=np.full(1200, 0.9)), "task_ms")
    assert broken.verdict == "broken"
    assert verdicts.roll_back(of, broken, str(path)) == []
    # Plain Spark has no policy to switch off.
    slower = analyse(made(1.3, 1.3), "task_ms")
    assert verdicts.roll_back(of_arms("wide", "spark"), slower, str(path)) == []
    assert not path.exists()
