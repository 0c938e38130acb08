"""Stages laid out on more slots than they had, beside what they take when they have them.

Each step waits, as one that asks a service does, so that it needs no core and sixteen slots gain on
any machine what they gain on sixteen cores.
"""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

import submitting
from aqepilot import Log, read_log
from aqepilot.submit.check import local_session

SLOTS = (2, 8, 16)
JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
for line in open(sys.argv[1]):
    name, waits = line.strip().split(" = ")
    spark.sparkContext.setJobDescription(name)
    wait = f"java_method('java.lang.Thread', 'sleep', bigint(array({waits})[id]))"
    tasks = waits.count(",") + 1
    steps = spark.range(0, tasks, 1, tasks).selectExpr(wait)
    steps.write.format("noop").mode("overwrite").save()
"""
console = Console(stderr=True, highlight=False)


class Step(NamedTuple):
    """A stage whose tasks wait.

    Attributes:
        name: For a person.
        waits: What each task waits, milliseconds.
    """

    name: str
    waits: list[int]


class Laid(NamedTuple):
    """A step on slots that the log it is estimated from did not have.

    Attributes:
        step: Its name.
        slots: How many.
        own_ms: What it took on the slots of that log.
        estimated_ms: What the layout says.
        real_ms: What it took on so many slots.
    """

    step: str
    slots: int
    own_ms: int
    estimated_ms: int
    real_ms: int

    @property
    def off(self) -> float:
        """By how much the estimate is off: 0.1 is a tenth too long."""
        return self.estimated_ms / self.real_ms - 1


def steps() -> list[Step]:
    draw = random.Random(1)
    mixed = [round(1000 * draw.lognormvariate(-1, 0.8)) for _ in range(80)]
    return [
        Step("64 equal tasks", [500] * 64),
        Step("one of 64 takes ten times as long, launched first", [5000, *[500] * 63]),
        Step("one of 64 takes ten times as long, launched last", [*[500] * 63, 5000]),
        Step("80 tasks of all lengths", mixed),
        Step("17 tasks, one more than slots", [1000] * 17),
        Step("6 tasks, fewer than slots", [2000] * 6),
        Step("400 tasks of 50 ms", [50] * 400),
    ]


def measure() -> list[Laid]:
    """Runs all steps on each number of slots, and lays those of the fewest out on the others."""
    fewest, *more = SLOTS
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as name:
        folder = Path(name)
        for slots in SLOTS:
            console.print(f"{sum(len(step.waits) for step in steps())} tasks at local[{slots}]")
            _run(folder, slots)
        with local_session() as spark:
            logs = {slots: read_log(spark, folder / f"log{slots}") for slots in SLOTS}
            real = {slots: _of_steps(log, "took_ms") for slots, log in logs.items()}
            laid = {slots: _of_steps(logs[fewest], "span_ms", slots) for slots in more}
    return [
        Laid(
            step.name,
            slots,
            *(times[step.name] for times in (real[fewest], laid[slots], real[slots])),
        )
        for step in steps()
        for slots in more
    ]


def _run(folder: Path, slots: int) -> None:
    steps_file = folder / "steps"
    lines = [f"{step.name} = {', '.join(map(str, step.waits))}" for step in steps()]
    steps_file.write_text("\n".join(lines), encoding="utf-8")
    events = folder / f"log{slots}"
    events.mkdir()
    job = submitting.lines(
        folder / f"job{slots}",
        JOB,
        3600,
        conf={
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
        },
        job_words=[str(steps_file)],
        master=f"local[{slots}]",
        extension=False,
        quick=False,
    )
    for line in job:
        console.print(line.rstrip())


def _of_steps(log: Log, figure: str, slots: int = 1) -> dict[str, int]:
    """Returns a figure of each step's first stage, in which its tasks wait."""
    took = log.stages.selectExpr(
        "stage_id", "unix_millis(completed) - unix_millis(submitted) AS took_ms"
    )
    stages = (
        log.costs(slots)
        .stages.join(took, "stage_id")
        .orderBy("stage_id")
        .select("description", figure)
    )
    times: dict[str, int] = {}
    for description, value in stages.collect():
        times.setdefault(description, value)
    return times
