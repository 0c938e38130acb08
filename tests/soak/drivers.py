"""``make soak ARGS="--by drivers"``: many drivers at once that all read one control file.

Each has a policy of its own in force and runs a small query about once a second. Two processes
switch policies, points and jobs off and on meanwhile, and a third writes half a file in place,
takes the file away, and lets it hang. Fails where a query went by a copy of the file that was too
old, waited for the file or failed, where a write is lost, and where a driver has not the last
state at the end.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyspark
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

import submitting
from aqepilot import control
from soak import checks, writers

REFRESH_S = 1
# A thread that reads the file has to get a core, too: fifty drivers share two or so.
SLACK_S = 5
WITHIN_S = REFRESH_S + SLACK_S
EVERY_S = 1.0
WRITERS = ("ann", "bob")
# The log in the file has the newest thousand writes, and all are looked for there.
MOST_SECONDS = 300
AT_ONCE = 4
LEFT_MB, DRIVER_MB = 2000, 450
HEAP = "256m"
JVM = (
    f"{submitting.SHORT_JVM} -XX:ActiveProcessorCount=1"
    " -XX:MinHeapFreeRatio=15 -XX:MaxHeapFreeRatio=30"
)
CONF = {
    "spark.driver.extraJavaOptions": JVM,
    "spark.sql.shuffle.partitions": "4",
    # That this machine is busy is no fault of a policy's.
    "spark.aqepilot.ask.deadline": "30s",
    "spark.network.timeout": "600s",
    "spark.executor.heartbeatInterval": "60s",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.log.level": "WARN",
    # By default Spark takes 300 MiB for itself, and refuses a heap of less than 450.
    "spark.testing.reservedMemory": str(64 << 20),
}
# By how much a quantile of queries' times may be larger than that of drivers without a file: times,
# and seconds. Queries that waited for a file that hangs for 5 s would take 2.5 s more.
MOST_SLOWER = {0.5: (1.25, 0.5), 0.95: (2.0, 0.3)}


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("--by drivers")
    group.add_argument("--drivers", type=int, default=50)
    group.add_argument("--seconds", type=int, default=180, help=f"at most {MOST_SECONDS}")
    group.add_argument("--planted", metavar="TIME", help="drivers refresh so, to see it fail: 1h")


class Fleet:
    """Drivers that run.

    Attributes:
        folder: Where all is written down.
        drivers: How many have the file; each tenth more has none, to compare.
    """

    def __init__(self, folder: Path, drivers: int, refresh: str, started: ExitStack) -> None:
        self.folder = folder
        self.drivers = drivers
        self.all = drivers + max(2, drivers // 10)
        self._refresh = refresh
        self._started = started
        self._processes: list[subprocess.Popen[bytes]] = []

    def conf(self, driver: int) -> dict[str, str]:
        policy = f"spark.aqepilot.policy.{writers.policy_of(driver)}"
        file = {
            "spark.aqepilot.control": str(self.folder / "control.json"),
            "spark.aqepilot.control.refresh": self._refresh,
        }
        return {
            **CONF,
            "spark.app.name": writers.policy_of(driver),
            "spark.aqepilot.job": writers.job_of(driver),
            "spark.aqepilot.policies": writers.policy_of(driver),
            f"{policy}.shuffle_partitions": str(checks.ENFORCED_PARTITIONS),
            f"{policy}.partition_coalescing": "named_struct('keep', true)",
            **(file if driver < self.drivers else {}),
        }

    def about(self, driver: int) -> dict[str, str]:
        """What rules can select it by."""
        return {
            "policy": writers.policy_of(driver),
            "job": writers.job_of(driver),
            "spark": pyspark.__version__,
        }

    def start(self, drivers: Sequence[int]) -> None:
        """Starts some and waits until they are ready."""
        free = _free_mb()
        if free < LEFT_MB + DRIVER_MB * len(drivers):
            raise SystemExit(
                f"{free} MB are free, with swap space, too little for another {len(drivers)} "
                f"drivers; there are {len(self._processes)}: use --drivers"
            )
        for driver in drivers:
            own = self.folder / f"driver-{driver}"
            command, environment = submitting.prepared(
                own,
                Path(__file__).with_name("driver_job.py").read_text("utf-8"),
                conf=self.conf(driver),
                job_words=[str(self.folder), str(own / "queries.jsonl"), str(EVERY_S)],
                master="local[1]",
                memory=HEAP,
            )
            with (own / "stdout").open("wb") as out, (own / "stderr").open("wb") as log:
                process = subprocess.Popen(
                    command, cwd=own, env=environment, stdout=out, stderr=log
                )
            self._started.callback(process.wait)
            self._started.callback(process.kill)
            self._processes.append(process)
        end = time.monotonic() + 600
        for driver in drivers:
            own = self.folder / f"driver-{driver}"
            while "ready" not in (own / "stdout").read_text():
                if self._processes[driver].poll() is not None or time.monotonic() > end:
                    raise SystemExit((own / "stderr").read_text(errors="replace")[-3000:])
                time.sleep(0.2)

    def ended(self) -> list[int]:
        """Waits for all, and returns their exit codes."""
        return [process.wait(600) for process in self._processes]

    def lines(self, driver: int) -> list[dict[str, Any]]:
        return _lines(self.folder / f"driver-{driver}" / "queries.jsonl")

    def told_outages(self, driver: int) -> int:
        log = (self.folder / f"driver-{driver}" / "stderr").read_text(errors="replace")
        return log.count("CONTROL_UNREACHABLE")

    def writers(self, kinds: Sequence[str]) -> list[subprocess.Popen[bytes]]:
        """Starts the processes that write the file."""
        starts = []
        for kind in kinds:
            more = REFRESH_S if kind == "vandal" else self.drivers
            path, out = self.folder / "control.json", self.folder / f"{kind}.jsonl"
            words = [sys.executable, "-m", "soak.writers", kind, str(path), str(out), str(more)]
            starts.append(subprocess.Popen(words))
            self._started.callback(starts[-1].wait)
            self._started.callback(starts[-1].kill)
        return starts


def _free_mb() -> int:
    """Returns what is free, swap space too: drivers touch a part of their memory once a second."""
    sizes = re.findall(r"(?:MemAvailable|SwapFree):\s+(\d+)", Path("/proc/meminfo").read_text())
    return sum(map(int, sizes)) // 1024


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def main(console: Console, drivers: int, seconds: int, planted: str | None) -> int:
    if not 30 <= seconds <= MOST_SECONDS:
        raise SystemExit(f"--seconds {seconds}: from 30 to {MOST_SECONDS}")
    folder = Path(f"target/soak/drivers-{pyspark.__version__}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with ExitStack() as started, Progress(console=console) as progress:
        fleet = Fleet(folder, drivers, planted or f"{REFRESH_S}s", started)
        began = time.time()
        control.lift(str(folder / "control.json"), reason="made")
        made = {"reason": "made", "began": began, "ended": time.time(), "refused": None}
        task = progress.add_task("Drivers started", total=fleet.all)
        for first in range(0, fleet.all, AT_ONCE):
            some = range(first, min(first + AT_ONCE, fleet.all))
            fleet.start(some)
            progress.advance(task, len(some))
        least_mb = _free_mb()
        (folder / "go").touch()
        time.sleep(WITHIN_S)
        wrote = fleet.writers([*WRITERS, "vandal"])
        task = progress.add_task("Seconds", total=seconds)
        for _ in range(seconds):
            time.sleep(1)
            least_mb = min(least_mb, _free_mb())
            progress.advance(task)
        (folder / "end").touch()
        wrong = [f"{p.args} ended with {code}" for p in wrote if (code := p.wait(180))]
        time.sleep(WITHIN_S)
        (folder / "stop").touch()
        codes = fleet.ended()
    wrong += [f"driver {d} ended with {code}" for d, code in enumerate(codes) if code]
    console.print(f"Memory that was left: {least_mb} MB")
    return printed(console, fleet, made, wrong)


def printed(console: Console, fleet: Fleet, made: Mapping[str, Any], wrong: list[str]) -> int:
    """Prints what the records say, and what is wrong."""
    writes = [made, *(w for who in WRITERS for w in _lines(fleet.folder / f"{who}.jsonl"))]
    outages = _outages(_lines(fleet.folder / "vandal.jsonl"))
    log = _log(fleet.folder / "control.json")
    wrong += checks.lost(writes, log)
    if wrong:
        return _ended(console, wrong)
    versions = checks.versions(writes, log)
    asked: list[checks.Asked] = []
    seconds: dict[str, list[float]] = {}
    for driver in range(fleet.all):
        lines = fleet.lines(driver)
        of_driver, queries, failed = checks.of_driver(driver, lines, writers.POINTS)
        wrong += failed
        for query in queries:
            during = "no file"
            if driver < fleet.drivers:
                at = query["began"]
                during = next((o.kind for o in outages if o.began < at < o.ended), "whole")
            seconds.setdefault(during, []).append(query["ended"] - query["began"])
        if driver < fleet.drivers:
            asked += of_driver
            wrong += _last_state(fleet, driver, lines[-1]["status"], versions[-1], len(log))
            if not fleet.told_outages(driver):
                wrong.append(f"driver {driver} has told of no outage of {len(outages)}")
    about = {driver: fleet.about(driver) for driver in range(fleet.drivers)}
    judged = checks.judged(asked, about, versions, WITHIN_S, outages)
    wrong += judged.wrong + _waited(seconds)
    console.print(_times(seconds))
    console.print(_modes(judged, fleet))
    refused = sum(bool(w["refused"]) for w in writes)
    console.print(
        f"{len(writes) - refused} writes, of which the log has {len(log)}; {refused} took back a "
        f"rule that another writer had taken back. {len(outages)} outages. The oldest copy that a "
        f"query went by, without an outage, was too old by {max(judged.oldest_s, default=0):.1f} s,"
        f" of 99 in 100 queries by no more than {_quantile(judged.oldest_s, 0.99):.1f} s."
    )
    return _ended(console, wrong)


def _outages(lines: Sequence[Mapping[str, Any]]) -> list[checks.Outage]:
    return [
        checks.Outage(began["kind"], began["began"], ended["ended"])
        for began, ended in zip(lines[::2], lines[1::2], strict=True)
    ]


def _log(path: Path) -> list[dict[str, Any]]:
    words = ["-m", "aqepilot", "control", "log", "--file", str(path), "--json"]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)
    lines: list[dict[str, Any]] = json.loads(done.stdout)
    return lines


def _last_state(
    fleet: Fleet,
    driver: int,
    status: Sequence[Mapping[str, Any]],
    last: checks.Version,
    number: int,
) -> list[str]:
    """Says where a driver's status is not the file's last version."""
    states = {row["name"]: row["value"] for row in status}
    own = fleet.about(driver)
    expected = {"version": str(number)} | {
        f"{own['policy']}.{point}": checks.mode(last.rules, {**own, "point": point})
        for point in writers.POINTS
    }
    return [
        f"driver {driver} has {states.get(name)} as {name} at the end, and the file {value}"
        for name, value in expected.items()
        if states.get(name) != value
    ]


def _waited(seconds: Mapping[str, Sequence[float]]) -> list[str]:
    """Says when queries took longer than those of drivers without a file."""
    wrong = []
    for during, took in seconds.items():
        for share, (times, more_s) in MOST_SLOWER.items():
            most = _quantile(seconds["no file"], share) * times + more_s
            if _quantile(took, share) > most:
                wrong.append(
                    f"{during}: {100 * share:.0f} in 100 queries took {_quantile(took, share):.2f}"
                    f" s, and {most:.2f} s is the most by those of drivers without a file"
                )
    return wrong


def _quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share, method="higher")) if values else 0.0


def _times(seconds: Mapping[str, Sequence[float]]) -> Table:
    table = Table(title="How long queries took, ms", title_justify="left")
    for head in ("The file", "Queries", "Median", "95 in 100", "Most"):
        table.add_column(head, justify="left" if head == "The file" else "right")
    for during, took in sorted(seconds.items(), key=lambda pair: -len(pair[1])):
        times = (_quantile(took, share) for share in (0.5, 0.95, 1))
        table.add_row(during, str(len(took)), *(f"{1000 * t:.0f}" for t in times))
    return table


def _modes(judged: checks.Judged, fleet: Fleet) -> Table:
    table = Table(
        title=f"What {fleet.drivers} drivers went by, Spark {pyspark.__version__}: a file that was "
        f"no older than {WITHIN_S} s",
        title_justify="left",
    )
    for head in ("Mode", "It alone was possible", "A write came about then"):
        table.add_column(head, justify="left" if head == "Mode" else "right")
    for name in checks.RANKS:
        table.add_row(name, *(str(judged.counts[name, more]) for more in (False, True)))
    return table


def _ended(console: Console, wrong: Sequence[str]) -> int:
    for what in wrong[:20]:
        console.print(f"[red]Wrong:[/] {escape(what)}")
    if len(wrong) > 20:
        console.print(f"and {len(wrong) - 20} more")
    console.print("Every promise was kept." if not wrong else f"{len(wrong)} broken.")
    return int(bool(wrong))
