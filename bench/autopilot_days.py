"""The autopilot over a fleet that really runs: 20 jobs of TPC-DS and of shapes of production.

Real are the queries, the drivers, the event logs, the command and its files: each day's runs are
submitted with the settings that `aqepilot autopilot conf` prints for their job. Simulated are the
days, as in `bench.fleet`. It may be ended and started again: it goes on with the next day.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

import submitting
import tpcds
from aqepilot import catalog, control, read_log
from aqepilot.autopilot import shown
from aqepilot.autopilot.definition import Definition
from aqepilot.eventlog.events import expr
from aqepilot.submit.check import local_session
from bench import turns
from bench.fleet import move
from bench.shapes import SHAPES

JOB = Path(__file__).parent / "jobs" / "autopilot.py"
JOBS, DAYS = 20, 20
FOLDER = Path("target/autopilot-days")
# The jobs with a trouble, the shape of each, and the size of its tables.
TROUBLED = {"hot_key": 0.2, "tiny_tasks": 0.5, "small_files": 0.05}
_FIRST = datetime(2026, 10, 1, 6, tzinfo=timezone.utc)
_FACTS = "asked"
console = Console(stderr=True, highlight=False)


def measure(days: int, scale: float, folder: Path = FOLDER) -> dict[str, Any]:
    """Runs some more days, and takes a look after each.

    Args:
        days: How many more, up to `DAYS` in all.
        scale: Scale factor of TPC-DS.
        folder: Where the days are kept.

    Returns:
        ``by_day``, the milliseconds of tasks and of cores of each day; ``trials``, what
        `aqepilot autopilot status` says.
    """
    folder = folder.absolute()
    for name in ("logs", "state", "events"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    file, rules = folder / "autopilot.toml", folder / "control.json"
    if not rules.exists():
        control.lift(str(rules))
    file.write_text(_definition(folder, rules), encoding="utf-8")
    done = folder / "days.json"
    dates: list[str] = json.loads(done.read_text()) if done.exists() else []
    for number in range(len(dates), min(len(dates) + days, DAYS)):
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
    return {"days": len(dates), "by_day": _by_day(folder / "collected"), "trials": trials}


def _definition(folder: Path, rules: Path) -> str:
    keys = {
        "state": str(folder / "state"),
        "logs": [str(folder / "collected")],
        "jobs": ["daily.*"],
        "deliver": "live",
        "control": str(rules),
        "metric": "core_ms",
        "ramp": [50, 80],
        "experiments": JOBS,
    }
    return "\n".join(["[autopilot]", *(f"{k} = {json.dumps(v)}" for k, v in keys.items()), ""])


def _applications(file: Path) -> list[dict[str, Any]]:
    texts = list(tpcds.queries().values())
    applications = []
    for number in range(JOBS - len(TROUBLED)):
        applications.append(_application(f"daily.{number:02}", texts[number :: JOBS * 3], file))
    for name, size in TROUBLED.items():
        shape = SHAPES[name]
        queries = [text for query in shape.queries.values() for text in query.texts]
        made = _application(f"daily.{name}", queries, file)
        made["conf"] |= {"spark.master": shape.master, **shape.conf, **shape.start}
        made["conf"]["spark.default.parallelism"] = str(shape.slots)
        applications.append(made | {"shape": name, "size": size})
    return applications


def _application(job: str, queries: list[str], file: Path) -> dict[str, Any]:
    live = shown.settings(Definition.from_file(file), job)
    # A policy in shadow mode that answers nothing has facts recorded.
    asked = {f"spark.aqepilot.policy.{_FACTS}.{p}": "null" for p in catalog.point_names()}
    policies = [_FACTS, *filter(None, [live.pop("spark.aqepilot.policies", "")])]
    conf = asked | {
        f"spark.aqepilot.policy.{_FACTS}.mode": "shadow",
        "spark.aqepilot.policies": ",".join(policies),
        "spark.aqepilot.job": job,
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
        "spark.sql.shuffle.partitions": "200",
    }
    done = submitting.submit(
        folder / "job",
        JOB.read_text("utf-8"),
        conf=conf,
        job_words=[str(tpcds.files(scale)), str(folder / "tables"), str(day_file)],
        memory="3g",
        quick=False,
        env=turns.environment(),
        timeout_s=3600,
    )
    if done.returncode:
        raise SystemExit(f"the day of {date:%Y-%m-%d} failed:\n{done.stderr[-3000:]}")
    move(events, folder / "logs", begun, date)


def _command(*words: str) -> str:
    return _aqepilot("autopilot", *words)


def _aqepilot(*words: str) -> str:
    command = [sys.executable, "-m", "aqepilot", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"aqepilot {' '.join(words)}:\n{run.stderr[-3000:]}")
    return run.stdout


def _by_day(logs: Path) -> list[dict[str, Any]]:
    with local_session("local[2]", "bench") as spark:
        rows = (
            read_log(spark, logs)
            .queries.where("job IS NOT NULL")
            .groupBy("run")
            .agg(expr("sum(task_ms) AS task_ms"), expr("sum(executor_core_ms) AS core_ms"))
            .orderBy("run")
            .collect()
        )
    return [row.asDict() for row in rows]


HEAD = ("day", "task time, s", "cores' time, s")


def table(figures: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the rows of a table with `HEAD`."""
    return [
        (str(n), f"{row['task_ms'] / 1000:.0f}", f"{row['core_ms'] / 1000:.0f}")
        for n, row in enumerate(figures["by_day"], 1)
    ]
