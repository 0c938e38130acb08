"""How long an experiment would take: from runs that were made up, and runs out of logs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import aqepilot
import tiers
from aqepilot import Log
from aqepilot.analysis.experiment import history, planning
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.cli import main
from aqepilot.errors import AqePilotError
from aqepilot.eventlog.frames import columns
from aqepilot.submit import check

pytestmark = tiers.on("4.3")


def made(jobs: int, days: int = 30, noise: float = 0.1) -> Runs:
    """Daily jobs whose input varies by 30 percent."""
    generator = np.random.default_rng(1)
    n = jobs * days
    day, job = np.repeat(np.arange(days), jobs), np.tile(np.arange(jobs), days)
    size = np.exp(generator.normal(20, 2, jobs)[job]) * generator.uniform(0.7, 1.3, n)
    return Runs(
        ended=20_000.5 + day,
        job=np.array([f"job{j}" for j in job]),
        treated=np.zeros(n, dtype=bool),
        counted=np.zeros(n, dtype=bool),
        share=np.full(n, 0.5),
        exposed=np.zeros(n, dtype=bool),
        failed=np.zeros(n, dtype=bool),
        input_bytes=size,
        metrics={"task_ms": size**0.9 * np.exp(generator.normal(0, noise, n))},
    )


def test_more_jobs_and_larger_effects_take_less_time() -> None:
    many, few = planning.plan(made(40), top=1), planning.plan(made(8), top=1)
    assert many.days
    assert few.days
    assert many.days < few.days / 2
    assert (many.jobs, round(many.runs_per_day)) == (40, 40)
    larger = planning.plan(made(8), effect=0.2, top=0)
    assert larger.days
    assert larger.days < few.days / 3
    assert larger.by_job == {}


def test_a_tenth_of_the_runs_takes_longer_than_half_of_them() -> None:
    half, tenth = (planning.plan(made(30), share=share, top=0).days for share in (0.5, 0.1))
    assert half
    assert tenth
    assert tenth > 1.5 * half


def test_what_is_not_found_in_time_is_said() -> None:
    plan = planning.plan(made(3), most_days=30, top=2)
    assert plan.days is None
    assert list(plan.by_job.values()) == [None, None]


def test_the_past_explains_what_the_input_does() -> None:
    plan = planning.plan(made(20), top=0)
    assert plan.sd < 0.15 < plan.raw_sd


def test_a_plan_is_kept() -> None:
    """Experiments with the effect that was planned for find it in as many days as were said."""
    from aqepilot.analysis.experiment.analysis import analyse

    days = planning.plan(made(30), top=0).days
    assert days
    hits = 0
    for seed in range(10):
        runs = made(30, days=15 + days)
        generator = np.random.default_rng(seed)
        counted = runs.ended >= 20_015
        treated = (generator.random(len(runs.job)) < 0.5) & counted
        took = runs.metrics["task_ms"] * np.where(treated, 0.95, 1)
        runs = runs._replace(
            treated=treated, counted=counted, exposed=counted, metrics={"task_ms": took}
        )
        hits += analyse(runs, "task_ms").verdict == "ship"
    assert hits >= 6


def test_a_short_history_is_refused() -> None:
    with pytest.raises(AqePilotError, match="runs of 4 days: at least 5 days are needed"):
        planning.plan(made(5, days=4))


def test_a_history_of_failures_is_refused() -> None:
    runs = made(5)
    with pytest.raises(AqePilotError, match="no run in the logs has succeeded"):
        planning.plan(runs._replace(failed=np.ones(len(runs.job), dtype=bool)))


AT = datetime(2026, 11, 1, 12, tzinfo=timezone.utc).replace(tzinfo=None)


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Log:
    """Two attempts of one run, a job that broke off, one that failed, one that caught a failure."""
    later = AT + timedelta(hours=1)
    applications = [
        {"log": "a", "app_id": "app-a", "app_name": "x", "ended": AT},
        {"log": "b", "app_id": "app-b", "app_name": "x", "ended": later},
        {"log": "c", "app_id": "app-c", "app_name": "broken", "ended": None},
        {"log": "d", "app_id": "app-d", "app_name": "failed", "ended": AT + timedelta(days=1)},
        {"log": "e", "app_id": "app-e", "app_name": "caught", "ended": AT + timedelta(days=2)},
    ]
    daily: dict[str, Any] = {"job": "daily", "run": "1", "task_ms": 10, "wall_ms": 1}
    queries = [
        daily | {"log": "a", "succeeded": False, "ended": AT, "input_bytes": 5},
        daily | {"log": "b", "succeeded": True, "ended": later, "input_bytes": 7},
        # Without a decision there is neither job nor run.
        {"log": "b", "succeeded": True, "task_ms": 100, "wall_ms": 2, "input_bytes": 1},
        {"log": "c", "succeeded": True, "task_ms": 3, "ended": AT, "input_bytes": 0},
        {"log": "d", "succeeded": True, "ended": AT, "task_ms": 4, "input_bytes": 0},
        {"log": "d", "succeeded": False, "ended": later, "task_ms": 4, "input_bytes": 0},
        {"log": "e", "succeeded": False, "ended": AT, "task_ms": 5, "input_bytes": 0},
        {"log": "e", "succeeded": True, "ended": later, "task_ms": 5, "input_bytes": 0},
    ]

    def frame(name: str, rows: list[dict[str, Any]]) -> Any:
        listed = columns.FRAMES[name]
        values = [tuple(row.get(column.name) for column in listed) for row in rows]
        return spark.createDataFrame(values, columns.ddl(listed))

    return Log(applications=frame("applications", applications), queries=frame("queries", queries))


def test_runs_are_put_together_from_logs(log: Log) -> None:
    runs = history.runs_of(log)
    joined = {
        job: (failed, task_ms, size)
        for job, failed, task_ms, size in zip(
            runs.job, runs.failed, runs.metrics["task_ms"], runs.input_bytes, strict=True
        )
    }
    # The first attempt failed, the run did not; it took what both attempts took.
    assert joined == {
        "daily": (False, 120.0, 13.0),
        "broken": (True, 3.0, 0.0),
        "failed": (True, 8.0, 0.0),
        "caught": (False, 10.0, 0.0),
    }
    assert (np.diff(runs.ended) >= 0).all()
    assert runs.ended[-1] - runs.ended[0] == pytest.approx(2.0)


def test_logs_without_a_query_are_refused(log: Log) -> None:
    with pytest.raises(AqePilotError, match="no run with a query"):
        history.runs_of(log.replace(queries=log.queries.where("false")))


def planned(monkeypatch: pytest.MonkeyPatch, runs: Runs, *words: str) -> str:
    @contextmanager
    def no_spark(*_: Any) -> Iterator[None]:
        yield None

    monkeypatch.setattr(check, "local_session", no_spark)
    monkeypatch.setattr(aqepilot, "read_log", lambda *_: Log())
    monkeypatch.setattr(history, "runs_of", lambda _: runs)
    done = CliRunner().invoke(main, ["experiment", "plan", "--log", "logs", *words])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_plan_is_told_in_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = made(20)
    shown = planned(monkeypatch, runs, "--effect", "10", "--top", "2").splitlines()
    plan = planning.plan(runs, effect=0.1, top=2)
    assert shown[0].startswith("20 jobs, 20.0 runs a day. Their time of tasks varies by 1")
    assert shown[0].endswith(" % around each job's mean.")
    assert shown[1] == f"10 % less is found within {plan.days} days, for all jobs together."
    assert shown[2].split("  ")[0] == "job by itself"
    assert len(shown) == 3 + 2
    assert [line.split()[0] for line in shown[3:]] == list(plan.by_job)


def test_a_plan_that_takes_too_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = planned(monkeypatch, made(1), "--effect", "1", "--days", "5", "--top", "0")
    assert shown.startswith("1 job, 1.0 runs a day.")
    assert shown.endswith("1 % less is not found within 5 days, for all jobs together.\n")


def test_a_plan_is_told_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.loads(planned(monkeypatch, made(8), "--effect", "20", "--top", "1", "--json"))
    assert set(answer) == set(planning.Plan._fields)
    assert answer["days"] > 0
    assert len(answer["by_job"]) == 1
