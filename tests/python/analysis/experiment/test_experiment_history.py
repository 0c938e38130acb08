"""Units of an experiment out of logs: whose, how they went, and what is left out."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from rich.console import Console

import tiers
from aqepilot import Log, control
from aqepilot.analysis.experiment import history, verdicts
from aqepilot.analysis.experiment.analysis import analyse
from aqepilot.analysis.experiment.experiment import Experiment
from aqepilot.analysis.experiment.metrics import METRICS
from aqepilot.analysis.experiment.money import money
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.analysis.prices import Prices
from aqepilot.analysis.report import experiments as reported
from aqepilot.errors import AqePilotError
from aqepilot.eventlog.frames import columns

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

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
        error: str | None = None,
        stopped_arm: str | None = None,
        fingerprints: str = "f",
        breaks_off: bool = False,
    ) -> Logs:
        ended = at + HOUR if has_ended else None
        self.rows["applications"].append(
            {"log": log, "app_id": f"app-{log}", "app_name": "job", "ended": ended}
        )
        tags = {"experiment": name, "unit": unit} if unit else {}
        for i, ms in enumerate(took):
            self.rows["queries"].append(
                {
                    "log": log,
                    "job": "job",
                    "run": run or log,
                    "fingerprint": fingerprints[i % len(fingerprints)],
                    "task_ms": ms,
                    "executor_core_ms": 4 * ms,
                    "error": error,
                    "started": at,
                    "input_bytes": 7,
                    "disk_spill_bytes": 0,
                    "ended": at + timedelta(minutes=i),
                    "succeeded": succeeded or i + 1 < len(took),
                    **tags,
                }
            )
        if breaks_off:
            self.rows["queries"].append({"log": log, "started": at})
        events = [("assigned", None)] + [("exposed", None)] * exposed
        for what, detail in [*events, *([("stopped", stopped)] if stopped else [])]:
            if unit:
                self.rows["experiments"].append(
                    {
                        "log": log,
                        "time": at,
                        "unit_kind": self.unit_kind,
                        "arm": stopped_arm if what == "stopped" and stopped_arm else arm,
                        "arms": arms,
                        "metric": "task_ms",
                        "what": what,
                        "detail": detail,
                        "job": "job",
                        "run": run or log,
                        **tags,
                    }
                )
        return self

    def read_in(self, spark: SparkSession) -> Log:
        def frame(name: str) -> Any:
            listed = columns.FRAMES[name]
            values = [tuple(row.get(c.name) for c in listed) for row in self.rows[name]]
            return spark.createDataFrame(values, columns.ddl(listed))

        return Log(**{name: frame(name) for name in ("applications", "queries", "experiments")})


def counted(runs: Runs) -> list[tuple[Any, ...]]:
    """Of each unit of the experiment: treated, exposed, failed, time of tasks, share."""
    shown = zip(
        runs.treated,
        runs.exposed,
        runs.failed,
        runs.metrics["task_ms"],
        np.round(runs.share, 3),
        strict=True,
    )
    return [tuple(row) for row, counts in zip(shown, runs.counted, strict=True) if counts]


def test_a_run_is_what_all_its_attempts_took(spark: SparkSession) -> None:
    logs = (
        Logs()
        .application("past", AT - DAY, took=(3, 4))
        .application("a1", AT, unit="job|1", run="1", succeeded=False, took=(10,))
        .application("a2", AT + HOUR, unit="job|1", run="1", took=(20, 5))
        .application("b", AT + DAY, unit="job|2", arm="wide", exposed=True, took=(8,))
    )
    about, runs = history.runs_in(logs.read_in(spark))
    assert about == Experiment(
        "wider", "job_run", "spark", "wide", ("spark", "wide"), "task_ms", {}
    )
    assert counted(runs) == [
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
        .application("ended in a query", AT + 4 * HOUR, unit="job|5", breaks_off=True)
    )
    _, runs = history.runs_in(logs.read_in(spark))
    assert [(treated, failed) for treated, _, failed, _, _ in counted(runs)] == [
        (True, True),
        (True, True),
        (False, True),
        (False, False),
        (False, True),
    ]
    # A run without a query says nothing of any metric, where it did not fail.
    idle = np.isnan(runs.metrics["task_ms"]) & ~runs.failed
    assert idle.tolist() == [False, False, False, True, False]
    assert analyse(runs, "task_ms").without_query == 1


def test_what_may_still_run_is_left_out(spark: SparkSession) -> None:
    now = datetime.now(timezone.utc)
    logs = (
        Logs()
        .application("running", now - HOUR, unit="job|1", has_ended=False)
        .application("done", now - 2 * HOUR, unit="job|2")
        .application("backfill", AT, unit="job|3", run="backfill__2026-01-01")
    )
    log = logs.read_in(spark)
    about, runs = history.runs_in(log)
    assert len(counted(runs)) == about.running == 1
    about, runs = history.runs_in(log, abandoned_after_hours=0.5)
    assert (len(counted(runs)), about.running) == (2, 0)
    # A backfill does not count, nor does it say what to expect of the job.
    (backfill,) = np.flatnonzero(runs.backfill)
    assert (runs.job[backfill], runs.counted[backfill]) == ("job (backfill)", False)
    sentences = verdicts.sentences(about, analyse(runs, "task_ms"))
    assert sentences[-1].startswith(
        "Beside them backfills, which do not count: 0 (0 failed) compared "
    )


def test_a_change_of_weights_counts_from_then_on(spark: SparkSession) -> None:
    three = "spark:60,wide:30,other:10"
    logs = (
        Logs()
        .application("a", AT, unit="job|1")
        .application("b", AT + HOUR, unit="job|2", arms=three, arm="wide")
        .application("c", AT + 2 * HOUR, unit="job|3", arms=three, arm="other")
    )
    log = logs.read_in(spark)
    about, runs = history.runs_in(log)
    assert about.arms == ("spark", "wide", "other")
    assert [(row[0], row[-1]) for row in counted(runs)] == [(False, 0.1), (True, 0.333)]
    # Where an arm was none yet, nobody could get it.
    about, runs = history.runs_in(log, arm="other")
    assert np.isnan(runs.share[runs.counted]).sum() == 1
    analysis = analyse(runs, "task_ms")
    assert (analysis.undrawn, sum(analysis.runs)) == (1, 1)
    assert "1 run could have got one of the two arms only: is left out." in verdicts.sentences(
        about, analysis
    )
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
    _, runs = history.runs_in(logs.read_in(spark))
    assert set(runs.job) == {"job|f"}
    # That the application broke off later is not the query's.
    assert [(treated, failed) for treated, _, failed, _, _ in counted(runs)] == [
        (False, False),
        (True, True),
    ]
    assert (~runs.counted).sum() == 1


def test_which_experiment_is_asked_for_where_there_are_several(spark: SparkSession) -> None:
    logs = Logs().application("a", AT, unit="job|1").application("b", AT, unit="u", name="second")
    log = logs.read_in(spark)
    assert history.runs_in(log, "second")[0].name == "second"
    with pytest.raises(AqePilotError, match="there are several: name one of second, wider"):
        history.runs_in(log)
    with pytest.raises(
        AqePilotError, match=r"no experiment 'wide' in the logs.*Did you mean wider"
    ):
        history.runs_in(log, "wide")
    with pytest.raises(AqePilotError, match="no unit of an experiment"):
        history.runs_in(Logs().application("a", AT).read_in(spark))


def test_what_stopped_the_treatment_is_counted(spark: SparkSession) -> None:
    logs = Logs()
    for i in range(2):
        logs.application(f"a{i}", AT, unit=f"job|{i}", arm="wide", stopped="1 failed queries")
    about, runs = history.runs_in(logs.read_in(spark))
    assert about.stopped == {"1 failed queries": 2}
    sentences = verdicts.sentences(about, analyse(runs, "task_ms"))
    assert sentences[-1] == "Stopped by a guard rail in 2 applications: 1 failed queries."


def test_an_arm_that_another_units_query_stopped_is_not_that_units(spark: SparkSession) -> None:
    logs = Logs().application(
        "a", AT, unit="job|1", stopped="asking took 30 %", stopped_arm="wide", arm="spark"
    )
    about, runs = history.runs_in(logs.read_in(spark))
    assert about.stopped == {"asking took 30 %": 1}
    assert counted(runs)[0][0] == np.False_


def test_each_query_of_units_that_have_several_is_looked_at(spark: SparkSession) -> None:
    heap = "Job aborted: java.lang.OutOfMemoryError: Java heap space"
    logs = (
        Logs()
        .application("past", AT - DAY, took=(3, 4), fingerprints="fg")
        .application("a", AT, unit="job|1", took=(10, 20, 30), fingerprints="fg")
        .application("b", AT + DAY, unit="job|2", arm="wide", error=heap, succeeded=False)
        .application("c", AT + DAY, unit="job|3", run="backfill__1")
    )
    with history.cached(logs.read_in(spark)) as log:
        about, runs = history.runs_in(log)
        queries = history.queries_in(log, about)
    shown = sorted(
        zip(queries.job, queries.counted, queries.treated, queries.metrics["task_ms"], strict=True)
    )
    assert shown == [
        ("job|f", False, False, 3.0),
        ("job|f", True, False, 40.0),
        ("job|f", True, True, 10.0),
        ("job|g", False, False, 4.0),
        ("job|g", True, False, 20.0),
    ]
    assert runs.out_of_memory is not None
    assert runs.out_of_memory[runs.counted].tolist() == [False, True]
    assert np.nansum(runs.metrics["core_ms"][runs.counted]) == 4 * 70.0


def test_what_it_saves_is_told_at_the_users_prices() -> None:
    runs = made(0.9, 0.9)
    prices = Prices(currency="EUR", per_core_hour=3.6)
    analysis = analyse(runs, "task_ms")
    cost = money(runs, analysis, prices)
    assert cost is not None
    # 20 jobs a day of about 1,000 core-seconds, at a thousandth of a EUR each.
    assert cost.control == pytest.approx(20 * 1.0, rel=0.1)
    assert cost.change == pytest.approx(-2.0, rel=0.2)
    assert cost.lower < cost.change < cost.upper < 0
    (sentence,) = (
        s for s in verdicts.sentences(of_arms("spark", "wide"), analysis, money=cost) if "EUR" in s
    )
    assert sentence.startswith("All runs cost about 2")
    assert " EUR a day under the control; under the treatment -" in sentence
    unknown = runs._replace(metrics={**runs.metrics, "core_ms": np.full(len(runs.job), np.nan)})
    assert money(unknown, analyse(unknown, "task_ms"), prices) is None


def test_what_is_told_has_all_that_is_known() -> None:
    analysis = analyse(made(3.0, 0.9), "task_ms")
    about, queries = of_arms("spark", "wide"), {"job0|0123456789abcdef": analysis.harmed["job0"]}
    sentences = verdicts.sentences(about, analysis, queries=queries)
    assert any(s.startswith("job0: its time is +") for s in sentences)
    assert any(
        s.startswith("A query of job0, with the fingerprint 0123456789ab: ") for s in sentences
    )
    console = Console(width=120)
    with console.capture() as shown:
        console.print(verdicts.table(about, analysis))
    (failed,) = (line for line in shown.get().splitlines() if line.startswith("failed"))
    assert failed.count(" % to ") == 2
    data = json.loads(json.dumps(verdicts.data(about, analysis, queries=queries), allow_nan=False))
    assert data["harmed_queries"][0]["job"] == "job0"
    assert data["spilled"]["is_worse"] is False
    assert data["undrawn"] == data["running"] == 0


def test_the_report_says_of_each_experiment_what_the_analysis_says(spark: SparkSession) -> None:
    logs = (
        Logs()
        .application("a", AT, unit="job|1")
        .application("b", AT, unit="job|2", arm="wide")
        .application("c", AT + DAY, unit="u", name="mixed")
    )
    logs.unit_kind = "session"
    log = logs.application("d", AT + DAY, unit="v", name="mixed").read_in(spark)
    mixed, wider = reported.newest_tried(log)
    assert (mixed.name, mixed.verdict) == ("mixed", None)
    assert "with several kinds of units" in (mixed.problem or "")
    assert (wider.name, wider.verdict, wider.problem) == ("wider", "keep running", None)
    about, runs = history.runs_in(log, "wider")
    assert wider.sentences == verdicts.sentences(about, analyse(runs, "task_ms"))
    assert (wider.effects[0].what, len(wider.effects)) == ("time of tasks", len(METRICS))
    assert [row.what for row in wider.shares][:2] == ["failed", "over twice as long"]
    assert reported.newest_tried(Logs().application("a", AT).read_in(spark)) == ()


def test_a_job_whose_treated_runs_all_fail_has_no_number(tmp_path: Path) -> None:
    runs = made(1.0, 0.9)
    runs = runs._replace(failed=runs.treated & (runs.job == "job0"))
    analysis = analyse(runs, "task_ms")
    sentences = verdicts.sentences(of_arms("spark", "wide"), analysis)
    assert any(
        "job0: its time is without measure, as most runs of the treatment" in s for s in sentences
    )
    data = json.loads(
        json.dumps(verdicts.data(of_arms("spark", "wide"), analysis), allow_nan=False)
    )
    assert data["harmed"]["job0"]["mean"] is None
    rules = verdicts.roll_back(of_arms("spark", "wide"), analysis, str(tmp_path / "control.json"))
    assert [rule.selectors for rule in rules] == [{"policy": "wide", "job": "job0"}]


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
            for name in METRICS
        },
    )


def of_arms(control_arm: str, treatment: str) -> Experiment:
    arms = (control_arm, treatment)
    return Experiment("e", "job_run", control_arm, treatment, arms, "task_ms", {})


def test_a_harmed_job_is_rolled_back(tmp_path: Path) -> None:
    analysis = analyse(made(3.0, 0.9), "task_ms")
    assert analysis.verdict == "ship"
    assert list(analysis.harmed) == ["job0"]
    path = str(tmp_path / "control.json")
    rules = verdicts.roll_back(of_arms("spark", "wide"), analysis, path)
    assert [rule.selectors for rule in rules] == [{"policy": "wide", "job": "job0"}]
    (written,) = control.read(path).rules
    assert written.mode == "off"
    assert written.reason.startswith("experiment e: The treatment makes runs shorter")


def test_what_hurts_all_is_rolled_back_for_all(tmp_path: Path) -> None:
    path = str(tmp_path / "control.json")
    for runs in (made(1.2, 1.2), made(0.9, 0.9, fails=0.2)):
        analysis = analyse(runs, "task_ms")
        assert analysis.verdict == "stop"
        rules = verdicts.roll_back(of_arms("base", "base+wide"), analysis, path)
        assert [rule.selectors for rule in rules] == [{"policy": "wide"}]


def test_what_helps_or_is_broken_is_not_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "control.json"
    about = of_arms("spark", "wide")
    helps = analyse(made(0.9, 0.9), "task_ms")
    assert verdicts.roll_back(about, helps, str(path)) == []
    broken = analyse(made(1.3, 1.3)._replace(share=np.full(1200, 0.9)), "task_ms")
    assert broken.verdict == "broken"
    assert verdicts.roll_back(about, broken, str(path)) == []
    # Plain Spark has no policy to switch off.
    slower = analyse(made(1.3, 1.3), "task_ms")
    assert verdicts.roll_back(of_arms("wide", "spark"), slower, str(path)) == []
    assert not path.exists()
