"""The autopilot over a fleet that really runs: 20 jobs of TPC-DS and of shapes of production.

Real are the queries, the drivers, the event logs, the command and its files: each day's runs are
submitted with the settings that `aqepilot autopilot conf` prints for their job. Simulated are the
days, as in `bench.fleet`. The jobs of a day have a JVM together, as the start of twenty would take
most of one. No day has that of another: what is compiled and collected in it is then the same on
each. It may be ended and started again: it goes on with the next day.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from rich.console import Console

import submitting
import tpcds
from aqepilot import catalog, control, read_log
from aqepilot.autopilot import shown
from aqepilot.autopilot.definition import Definition
from aqepilot.cli import main
from aqepilot.eventlog.events import expr
from aqepilot.submit.check import local_session
from bench import turns
from bench.fleet import move
from bench.shapes import SHAPES

JOB = Path(__file__).parent / "jobs" / "autopilot.py"
JOBS = 20
# Of 20 jobs few have a trouble. The fewer experiments share the error rate, the sooner each ends.
EXPERIMENTS = 6
# So many first days are before the first experiment, and as many last ones are compared with them.
COMPARED = 3
FOLDER = Path("target/autopilot-days")
# The jobs with a trouble, the shape of each, and the size of its tables.
TROUBLED = {"hot_key": 1.0, "tiny_tasks": 0.5, "small_files": 0.1}
# Of a shuffle. With Spark's default, all queries of so little data have tiny blocks.
PARTITIONS = {"hot_key": "8", "tiny_tasks": "200"}
FEW_PARTITIONS = "4"
# How often a job has its queries, as a dashboard does that is refreshed.
TIMES = {"tiny_tasks": 3}
# At a larger share there are fewer controls, so a run says less of the effect.
SHARE = 50
# Of jobs whose rows wait. With more, the Python workers take longer to start than the rows wait.
SLOTS = 8
# Spark keeps what is left of each stopped context, and collects it again and again where it has
# less.
_MEMORY = "4g"
# Neither grows, so no run is stopped for that.
_JVM = f"{submitting.SHORT_JVM} -Xms{_MEMORY} -XX:MetaspaceSize=512m"
_FIRST = datetime(2026, 10, 1, 6, tzinfo=timezone.utc)
_FACTS = "asked"
console = Console(stderr=True, highlight=False)


def measure(days: int, scale: float, folder: Path = FOLDER) -> dict[str, Any]:
    """Runs some more days, and takes a look after each.

    Args:
        days: How many more.
        scale: Scale factor of TPC-DS.
        folder: Where the days are kept.

    Returns:
        ``runs``, the milliseconds of tasks and of cores of each run of each job; ``trials``,
        what `aqepilot autopilot status` says.
    """
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--driver-memory {_MEMORY} pyspark-shell")
    folder = folder.absolute()
    for name in ("logs", "state", "events"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    file, rules = folder / "autopilot.toml", folder / "control.json"
    if not rules.exists():
        control.lift(str(rules))
    file.write_text(_definition(folder, rules), encoding="utf-8")
    done = folder / "days.json"
    dates: list[str] = json.loads(done.read_text()) if done.exists() else []
    for number in range(len(dates), len(dates) + days):
        date = _FIRST + timedelta(days=number)
        begun = time.time()
        _run(folder, date, file, scale)
        words = ("--log", str(folder / "logs"), "--to", str(folder / "collected"))
        _aqepilot("collect", *words, "--master", "local[2]")
        _command("run", "--file", str(file), "--look", f"{date:%Y-%m-%d}", "--master", "local[2]")
        dates.append(f"{date:%Y-%m-%d}")
        done.write_text(json.dumps(dates), encoding="utf-8")
        console.print(f"day {number + 1}: {time.time() - begun:.0f} s")
    trials = json.loads(_command("status", "--file", str(file), "--json"))
    return {"days": len(dates), "runs": _runs(folder / "collected"), "trials": trials}


def _definition(folder: Path, rules: Path) -> str:
    keys = {
        "state": str(folder / "state"),
        "logs": [str(folder / "collected")],
        "jobs": ["daily.*"],
        "deliver": "live",
        "control": str(rules),
        "metric": "core_ms",
        "ramp": [SHARE],
        "experiments": EXPERIMENTS,
    }
    return "\n".join(["[autopilot]", *(f"{k} = {json.dumps(v)}" for k, v in keys.items()), ""])


def _applications(file: Path) -> list[dict[str, Any]]:
    texts = list(tpcds.queries().values())
    applications = []
    for number in range(JOBS - len(TROUBLED)):
        applications.append(_application(f"{number:02}", texts[number :: JOBS * 5], file))
    for name, size in TROUBLED.items():
        shape = SHAPES[name]
        query, *_ = shape.queries.values()
        made = _application(name, [*query.texts] * TIMES.get(name, 1), file)
        slots = str(min(shape.slots, SLOTS))
        made["conf"] |= {"spark.master": f"local[{slots}]", **shape.conf, **shape.start}
        made["conf"]["spark.default.parallelism"] = slots
        applications.append(made | {"shape": name, "size": size})
    return applications


def _application(name: str, queries: Sequence[str], file: Path) -> dict[str, Any]:
    job = f"daily.{name}"
    live = shown.settings(Definition.from_file(file), job)
    # A policy in shadow mode that answers nothing has facts recorded.
    asked = {f"spark.aqepilot.policy.{_FACTS}.{p}": "null" for p in catalog.point_names()}
    policies = [_FACTS, *filter(None, [live.pop("spark.aqepilot.policies", "")])]
    conf = asked | {
        f"spark.aqepilot.policy.{_FACTS}.mode": "shadow",
        "spark.aqepilot.policies": ",".join(policies),
        "spark.aqepilot.job": job,
        "spark.sql.shuffle.partitions": PARTITIONS.get(name, FEW_PARTITIONS),
        **live,
    }
    return {"name": job, "queries": queries, "shape": "", "size": 1.0, "conf": conf}


def _run(folder: Path, date: datetime, file: Path, scale: float) -> None:
    events, day_file = folder / "events", folder / "day.json"
    for left in events.iterdir():
        left.unlink()
    # A table's folder of the day before is in the way of a catalog that does not know the table.
    shutil.rmtree(folder / "warehouse", ignore_errors=True)
    applications = _applications(file)
    for one in applications:
        one["conf"]["spark.aqepilot.run"] = f"scheduled__{date:%Y-%m-%d}"
        one["conf"]["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    day_file.write_text(json.dumps({"applications": applications}), encoding="utf-8")
    begun = int(time.time() * 1000)
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    done = submitting.submit(
        folder / "job",
        JOB.read_text("utf-8"),
        conf=conf,
        job_words=[str(tpcds.files(scale)), str(folder / "tables"), str(day_file)],
        memory=_MEMORY,
        quick=False,
        env=turns.environment() | {"SPARK_SUBMIT_OPTS": _JVM},
        timeout_s=3600,
    )
    if done.returncode:
        raise SystemExit(f"the day of {date:%Y-%m-%d} failed:\n{done.stderr[-3000:]}")
    move(events, folder / "logs", begun, date)


def _command(*words: str) -> str:
    return _aqepilot("autopilot", *words)


def _aqepilot(*words: str) -> str:
    run = CliRunner().invoke(main, words)
    if run.exit_code:
        raise SystemExit(f"aqepilot {' '.join(words)}:\n{run.output[-3000:]}\n{run.exception}")
    return run.stdout


def _runs(logs: Path) -> list[dict[str, Any]]:
    with local_session("local[2]", "bench") as spark:
        rows = (
            read_log(spark, logs)
            .queries.where("job IS NOT NULL")
            .groupBy("job", "run")
            .agg(expr("sum(task_ms) AS task_ms"), expr("sum(executor_core_ms) AS core_ms"))
            .orderBy("job", "run")
            .collect()
        )
    return [row.asDict() for row in rows]


HEAD = (
    *("jobs", "task time, s, first days", "last days", "change"),
    *("cores' time, s, first days", "last days", "change"),
)


def table(figures: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the rows of a table with `HEAD`.

    A job's figure is its median day; those of several jobs are the sums of these.
    """
    runs = figures["runs"]
    days = sorted({row["run"] for row in runs})
    by_job = defaultdict[str, list[dict[str, Any]]](list)
    for row in runs:
        by_job[row["job"]].append(row)
    tried = {trial["job"] for trial in figures["trials"]}
    groups = {job: [job] for job in sorted(tried)}
    groups["all that have no trial"] = [job for job in by_job if job not in tried]
    groups["all"] = list(by_job)
    lines = []
    for name, jobs in groups.items():
        line = [name]
        for metric in ("task_ms", "core_ms"):
            first, last = (
                sum(
                    statistics.median(r[metric] for r in by_job[job] if r["run"] in compared)
                    for job in jobs
                )
                for compared in (days[:COMPARED], days[-COMPARED:])
            )
            line += [f"{first / 1000:.1f}", f"{last / 1000:.1f}", f"{last / first - 1:+.0%}"]
        lines.append(tuple(line))
    return lines
