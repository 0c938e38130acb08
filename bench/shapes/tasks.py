"""What the tasks of each run came to, from Spark's event log."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Tasks(NamedTuple):
    """The tasks of one run.

    Attributes:
        count: How many there were.
        seconds: What they took, all together.
        longest_s: The longest of them.
        over_median: That one by the median of its stage.
        spilled_bytes: What they wrote to disk for want of memory.
        failed: How many failed.
    """

    count: int
    seconds: float
    longest_s: float
    over_median: float
    spilled_bytes: int
    failed: int


def by_group(log: Path) -> dict[str, Tasks]:
    """Returns each job group's tasks from an event log that is neither compressed nor rolled."""
    groups: dict[int, str] = {}
    tasks: dict[str, dict[int, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith('{"Event":"SparkListenerJobStart"'):
                event = json.loads(line)
                group = event["Properties"].get("spark.jobGroup.id")
                groups |= dict.fromkeys(event["Stage IDs"], group or "")
            elif line.startswith('{"Event":"SparkListenerTaskEnd"'):
                event = json.loads(line)
                stage = event["Stage ID"]
                tasks[groups.get(stage, "")][stage].append(event)
    return {group: _tasks(stages.values()) for group, stages in tasks.items()}


def _tasks(stages: Iterable[list[dict[str, Any]]]) -> Tasks:
    stages = list(stages)
    longest = max(stages, key=lambda stage: max(map(_seconds, stage)))
    every = [task for stage in stages for task in stage]
    longest_s = max(map(_seconds, longest))
    return Tasks(
        len(every),
        sum(map(_seconds, every)),
        longest_s,
        longest_s / max(0.001, statistics.median(map(_seconds, longest))),
        sum((task.get("Task Metrics") or {}).get("Disk Bytes Spilled", 0) for task in every),
        sum(task["Task End Reason"]["Reason"] != "Success" for task in every),
    )


def _seconds(task: dict[str, Any]) -> float:
    info = task["Task Info"]
    return float(info["Finish Time"] - info["Launch Time"]) / 1000
