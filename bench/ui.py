"""How long the pages of Spark's UI take to open, and a history server to list its applications."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import history_servers
import policies
import submitting
from bench.figures import Table

JOB = Path(__file__).parent / "jobs" / "ui.py"
_JOINS = 8
_JOINS_OF_SMALL = 1
SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.shuffle.partitions": "2",
    # Compiling these queries would take most of the time.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    **policies.conf("'SHUFFLE_HASH'", shuffle_partitions="2", join_selection="'SHUFFLE_MERGE'"),
}
LIVE, FIRST, AGAIN = "live", "history server, first", "history server, again"
Times = dict[str, dict[str, list[float]]]


def measure(decisions: int, applications: int, rounds: int) -> dict[str, Any]:
    """Returns seconds to open pages of a log, and to list many logs.

    Args:
        decisions: Of the log that is opened, at least; 0 opens none.
        applications: That a history server lists: copies of a small log; 0 lists none.
        rounds: How often; each first page in a history server is of a log that it has not read.
    """
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="aqepilot-ui-") as name:
        folder = Path(name)
        if decisions:
            live, log = _ran(folder / "large", decisions, _JOINS, rounds)
            _copied(log, live["id"], folder / "copies", rounds)
            of_pages = {key: live[key] for key in ("decisions", "decisions_of_the_query", "bytes")}
            of_pages["log_megabytes"] = log.stat().st_size / 1e6
            of_pages["with the jar"] = {LIVE: live["seconds"]} | _opened(
                folder, live, rounds, jar=submitting.spark_jar()
            )
            of_pages["without"] = _opened(folder, live, rounds, jar=None)
            figures["pages"] = of_pages
        if applications:
            small, log = _ran(folder / "small", 1, _JOINS_OF_SMALL, 0)
            _copied(log, small["id"], folder / "many", applications)
            figures["applications"] = applications
            figures["log_kilobytes"] = log.stat().st_size / 1e3
            figures["listed_s"] = _listed(folder / "many", folder / "log", rounds)
    return figures


def _ran(folder: Path, decisions: int, joins: int, rounds: int) -> tuple[dict[str, Any], Path]:
    """What the job printed, and its event log."""
    events = folder / "events"
    events.mkdir(parents=True)
    run = submitting.submit(
        folder / "job",
        JOB.read_text("utf-8"),
        conf=SETTINGS | {"spark.eventLog.dir": events.as_uri()},
        job_words=[str(decisions), str(joins), str(rounds)],
        memory="2g",
        quick=False,
        timeout_s=1800,
    )
    if run.returncode:
        raise RuntimeError(run.stderr[-4000:])
    (log,) = (file for file in events.iterdir() if not file.name.startswith("."))
    return json.loads(run.stdout.splitlines()[-1]), log


def _copied(log: Path, app_id: str, folder: Path, number: int) -> None:
    """Writes the log as those of so many applications: `app_id` and a number."""
    folder.mkdir()
    text = log.read_text("utf-8")
    for i in range(number):
        (folder / f"{app_id}{i}").write_text(text.replace(app_id, f"{app_id}{i}"), "utf-8")


def _opened(folder: Path, live: dict[str, Any], rounds: int, *, jar: Path | None) -> Times:
    """Seconds of each page, of the first one of each application apart."""
    pages = {name: path for name, path in live["pages"].items() if jar or "/SQL/" in path}
    # The page that a reader begins with.
    begin = "the tab" if jar else next(iter(pages))
    first: list[float] = []
    again: dict[str, list[float]] = {name: [] for name in pages}
    log = folder / "log"
    with history_servers.running(folder / "copies", log, jar=jar, quick=False) as server:
        for i in range(rounds):
            app_id = f"{live['id']}{i}"
            first.append(_seconds(server, app_id, pages[begin]))
            for name, path in pages.items():
                again[name].append(_seconds(server, app_id, path))
    return {FIRST: {begin: first}, AGAIN: again}


def _seconds(server: history_servers.History, app_id: str, path: str) -> float:
    began = time.monotonic()
    page = server.get(app_id, path)
    took = time.monotonic() - began
    if len(page) <= len("404"):
        raise RuntimeError(f"{path} of {app_id}: {page}")
    return took


def _listed(logs: Path, log: Path, rounds: int) -> dict[str, list[float]]:
    """Seconds from a server's start until it lists all, with the jar and without in turn."""
    seconds: dict[str, list[float]] = {"with the jar": [], "without": []}
    for i in range(rounds):
        for name in sorted(seconds, reverse=bool(i % 2)):
            jar = submitting.spark_jar() if name == "with the jar" else None
            with history_servers.running(logs, log, jar=jar, quick=False) as server:
                seconds[name].append(server.listed_s)
    return seconds


HEAD = ("page", "median, s", "longest, s", "opened")


def tables(figures: dict[str, Any]) -> list[Table]:
    """Returns the figures as titles, heads and rows."""
    made = []
    if "pages" in figures:
        of_pages = figures["pages"]
        title = (
            f"Pages of a log of {of_pages['decisions']:,} decisions, "
            f"{of_pages['decisions_of_the_query']:,} of them of the query, "
            f"{of_pages['log_megabytes']:.0f} MB"
        )
        rows = [
            _row(f"{where}: {page}{'' if jar == 'with the jar' else ', without the jar'}", seconds)
            for jar in ("with the jar", "without")
            for where, pages in of_pages[jar].items()
            for page, seconds in pages.items()
        ]
        made.append((title, HEAD, rows))
    if "listed_s" in figures:
        title = (
            f"From the start of a history server until it lists {figures['applications']:,} logs "
            f"of {figures['log_kilobytes']:.0f} kB"
        )
        listed = [_row(name, seconds) for name, seconds in figures["listed_s"].items()]
        made.append((title, HEAD, listed))
    return made


def _row(name: str, seconds: list[float]) -> tuple[str, ...]:
    return (
        name,
        f"{statistics.median(seconds):.2f}",
        f"{max(seconds):.2f}",
        str(len(seconds)),
    )
