"""An experiment from end to end: recurring jobs of TPC-DS queries over simulated days.

Real are the queries, the drivers that draw arms and ask policies, the event logs, the command that
analyses them after each day, and the control file by which it takes a policy from the job that it
harms. Simulated are the days: what a day's applications have logged is moved to that day, as a
whole, and a day takes as long as its applications do.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

import submitting
import tpcds
from aqepilot import control, read_log
from aqepilot.analysis.intervals import percent
from aqepilot.submit.check import local_session

JOB = Path(__file__).parent / "jobs" / "fleet.py"
PAST_DAYS = 4
POLICY = "sized"
# The platform cut all shuffles into as many parts, and nobody joins them again.
BASE = {
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}
# Not those in an id of an application.
_MILLIS = re.compile(r"(?<![\w.-])\d{13}(?![\w.-])")
_HOUR = 3_600_000
console = Console(stderr=True, highlight=False)


def experiment(bad: str) -> dict[str, str]:
    """Returns its settings: a policy that joins small parts, and cuts one job's into many more."""
    policy = f"spark.aqepilot.policy.{POLICY}"
    return {
        "spark.aqepilot.experiment.name": "sized",
        "spark.aqepilot.experiment.arms": f"spark:50,{POLICY}:50",
        f"{policy}.partition_coalescing": f"CASE WHEN query.job <> '{bad}' THEN "
        "named_struct('target_bytes', aqepilot_bytes('16MB'), 'min_partitions', 1) END",
        f"{policy}.shuffle_partitions": f"CASE WHEN query.job = '{bad}' THEN 640 END",
    }


def measure(jobs: int, days: int, scale: float, only: Sequence[str] = ()) -> dict[str, Any]:
    """Runs the jobs on each day, and analyses what is there after each day of the experiment.

    Args:
        jobs: How many; the queries are dealt out to them.
        days: Of the experiment, after a few without it.
        scale: Scale factor of the data.
        only: Numbers of the queries; empty for all 99.

    Returns:
        ``by_day``, what the command has said after each day; ``rules``, the control file's at the
        end; ``applied``, how many decisions took effect in each job's runs ``before`` and ``after``
        the day on which the first rule was written.
    """
    texts = {str(number): sql for number, sql in tpcds.queries().items()}
    chosen = [texts[number] for number in only or texts]
    dealt = {f"daily.{i:02}": chosen[i::jobs] for i in range(jobs)}
    bad = f"daily.{min(7, jobs - 1):02}"
    with tempfile.TemporaryDirectory(prefix="aqepilot-fleet-") as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        rules = folder / "control.json"
        control.lift(str(rules))
        today = datetime.now(timezone.utc).replace(hour=6, minute=0, second=0, microsecond=0)
        by_day = []
        for day in range(PAST_DAYS + days):
            date = today - timedelta(days=PAST_DAYS + days - day)
            conf = {} if day < PAST_DAYS else experiment(bad)
            begun = time.time()
            _run(folder, date, dealt, conf | {"spark.aqepilot.control": rules.as_uri()}, scale)
            took = time.time() - begun
            if day < PAST_DAYS:
                console.print(f"day {day - PAST_DAYS}: {took:.0f} s")
                continue
            analysed = _analysed(folder / "logs", rules)
            by_day.append(_row(day - PAST_DAYS + 1, analysed))
            console.print(f"day {by_day[-1]['day']}: {took:.0f} s, {by_day[-1]}")
        first = next((row["day"] for row in by_day if row["rolled_back"]), days)
        return {
            "jobs": jobs,
            "days": days,
            "scale": scale,
            "bad": bad,
            "by_day": by_day,
            "says": analysed["says"],
            "rules": [rule.selectors for rule in control.read(str(rules)).rules],
            "applied": _applied(folder / "logs", today - timedelta(days=days - first)),
        }


def _run(
    folder: Path,
    date: datetime,
    dealt: dict[str, list[str]],
    conf: dict[str, str],
    scale: float,
) -> None:
    """Runs the applications of a day, and moves their logs to it."""
    events, day_file = folder / "events", folder / "day.json"
    events.mkdir(exist_ok=True)
    run = f"scheduled__{date:%Y-%m-%d}"
    applications = [
        {
            "name": job,
            "queries": queries,
            "conf": {**conf, "spark.aqepilot.job": job, "spark.aqepilot.run": run},
        }
        for job, queries in dealt.items()
    ]
    day = {"seed": date.toordinal(), "applications": applications}
    day_file.write_text(json.dumps(day), encoding="utf-8")
    begun = int(time.time() * 1000)
    done = submitting.submit(
        folder / "job",
        JOB.read_text("utf-8"),
        conf=BASE | {"spark.eventLog.dir": events.as_uri()},
        job_words=[str(tpcds.files(scale)), str(day_file)],
        memory="3g",
        quick=False,
        timeout_s=6 * 3600,
    )
    if done.returncode:
        raise SystemExit(f"the day of {date:%Y-%m-%d} failed:\n{done.stderr[-3000:]}")
    move(events, folder / "logs", begun, date)


def move(events: Path, logs: Path, begun: int, date: datetime) -> None:
    """Moves the logs of applications to the day that they are to be of.

    Args:
        events: Where they are.
        logs: Where they go.
        begun: When the first one began, in milliseconds since the epoch.
        date: When that is to have been.
    """
    ended = int(time.time() * 1000)
    by = int(date.timestamp() * 1000) - begun

    def moved(match: re.Match[str]) -> str:
        millis = int(match[0])
        return str(millis + by) if begun - _HOUR < millis < ended + _HOUR else match[0]

    for log in events.iterdir():
        # Spark writes a checksum of the file beside it.
        if not log.name.startswith("."):
            text = _MILLIS.sub(moved, log.read_text("utf-8"))
            (logs / log.name).write_text(text, encoding="utf-8")
        log.unlink()


def _analysed(logs: Path, rules: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "aqepilot", "experiment", "analyse", "--json"]
    words = ["--master", "local[2]", "--log", str(logs), "--roll-back", str(rules)]
    run = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    if not run.stdout.startswith("{"):
        raise SystemExit(f"the analysis failed:\n{run.stderr[-3000:]}")
    analysed: dict[str, Any] = json.loads(run.stdout)
    return analysed


def _row(day: int, analysed: dict[str, Any]) -> dict[str, Any]:
    effect = analysed["exposed"][analysed["metric"]]
    ends = (effect["mean"], effect["lower"], effect["upper"])
    mean, lower, upper = ("?" if end is None else percent(end) for end in ends)
    return {
        "day": day,
        "runs": sum(analysed["runs"].values()),
        "verdict": analysed["verdict"],
        "effect": f"{mean} ({lower} to {upper})",
        "harmed": list(analysed["harmed"]),
        "rolled_back": [end.get("job", "all") for end in analysed["rolled_back"]],
    }


def _applied(logs: Path, rolled_back: datetime) -> dict[str, dict[str, int]]:
    with local_session("local[2]", "bench") as spark:
        log = read_log(spark, logs)
        jobs = log.applications.select("log", "app_name")
        when = "CASE WHEN time < timestamp '{}' THEN 'before' ELSE 'after' END AS at"
        rows = (
            log.decisions.where("applied")
            .join(jobs, "log")
            .selectExpr("app_name", when.format(rolled_back.isoformat()))
            .groupBy("app_name", "at")
            .count()
            .collect()
        )
    applied: dict[str, dict[str, int]] = {}
    for row in sorted(rows):
        applied.setdefault(row["app_name"], {"before": 0, "after": 0})[row["at"]] = row["count"]
    return applied
