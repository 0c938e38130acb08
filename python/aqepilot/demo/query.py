"""The last query with a join in an event log: executed joins, time, decisions.

The lines of one small log are read here: a Spark that reads them by `aqepilot.read_log` would take
longer to start than the demo's own job.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from aqepilot.decision import Decision
from aqepilot.eventlog.events import OURS, SQL


class Query(NamedTuple):
    """A query as it was executed.

    Attributes:
        joins: The strategies of its final plan, root first.
        seconds: From its start to its end.
        decisions: What was decided in it.
        task_s: What each task of the stage with the longest one took, in seconds, longest first.
        cpu_s: The CPU time of all tasks of the application, in seconds.
    """

    joins: tuple[str, ...]
    seconds: float
    decisions: tuple[Decision, ...]
    task_s: tuple[float, ...]
    cpu_s: float


def read(folder: Path) -> Query:
    """Reads the one event log in `folder`: a file, neither compressed nor rolled.

    Raises:
        ValueError: The log has no finished query with a join.
    """
    events = list(_events(next(path for path in folder.iterdir() if path.is_file())))
    started, ended, plans = _executions(events)
    joins = {execution: tuple(_joins(plan)) for execution, plan in plans.items()}
    finished = [e for e, names in joins.items() if names and e in ended]
    if not finished:
        raise ValueError(f"no finished query with a join in the event log in {folder}")
    last = finished[-1]
    tasks = [event for event in events if event["Event"] == "SparkListenerTaskEnd"]
    stages: dict[int, list[float]] = defaultdict(list)
    for task in tasks:
        info = task["Task Info"]
        stages[task["Stage ID"]].append((info["Finish Time"] - info["Launch Time"]) / 1000)
    return Query(
        joins[last],
        (ended[last] - started[last]) / 1000,
        tuple(d for d in decisions(events) if d.execution_id == last),
        tuple(sorted(max(stages.values(), key=max), reverse=True)),
        # Spark gives no metrics for a task that was killed before it ran.
        sum(task.get("Task Metrics", {}).get("Executor CPU Time", 0) for task in tasks) / 1e9,
    )


def decisions(events: list[dict[str, Any]]) -> Iterator[Decision]:
    """Yields the decisions among the events of a log, their fates from the closing events."""
    fates = {
        fate["decisionId"]: fate
        for event in events
        if event["Event"] == f"{OURS}QueryClosed"
        for fate in event["fates"]
    }
    for event in events:
        if event["Event"] == f"{OURS}Decision":
            yield _decision(event, fates.get(event["decisionId"], {}))


def _events(log: Path) -> Iterator[dict[str, Any]]:
    with log.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _executions(
    events: list[dict[str, Any]],
) -> tuple[dict[int, int], dict[int, int], dict[int, Any]]:
    """Start and end in epoch milliseconds and the last plan, by execution id."""
    started: dict[int, int] = {}
    ended: dict[int, int] = {}
    plans: dict[int, Any] = {}
    for event in events:
        name = event["Event"].removeprefix(SQL)
        if name == "ExecutionStart":
            started[event["executionId"]] = event["time"]
        elif name == "ExecutionEnd":
            ended[event["executionId"]] = event["time"]
        if name in ("ExecutionStart", "AdaptiveExecutionUpdate"):
            plans[event["executionId"]] = event["sparkPlanInfo"]
    return started, ended, plans


def _joins(plan: dict[str, Any]) -> Iterator[str]:
    name = re.match(r"\w+Join", plan["nodeName"])
    if name:
        side = re.search(r"\bBuild(?:Left|Right)\b", plan["simpleString"])
        yield f"{name[0]} {side[0]}" if side else name[0]
    for child in plan["children"]:
        yield from _joins(child)


def _decision(event: dict[str, Any], fate: dict[str, Any]) -> Decision:
    """Fields of the event have the names of columns, in camel case, but for these three."""
    camel = {name: re.sub("_(.)", lambda m: m[1].upper(), name) for name in Decision._fields}
    values: dict[str, Any] = {name: (event | fate).get(key) for name, key in camel.items()}
    values |= {
        "time": datetime.fromtimestamp(event["time"] / 1000, timezone.utc),
        "facts_json": event.get("facts"),
        "asked_us": event["askedMicros"],
    }
    return Decision(**values)
