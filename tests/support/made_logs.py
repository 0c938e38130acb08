"""Logs of rows that a test writes down itself, and no event log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import SparkSession

from aqepilot import Log
from aqepilot.eventlog.frames import columns

AT = datetime(2026, 11, 1, tzinfo=timezone.utc)
OF_LOG = {"log": "file:///logs/app-1", "app_id": "app-1"}
DECISION = {
    **OF_LOG, "time": AT, "session_id": "s", "execution_id": 1, "fingerprint": "f1",
    "point": "dynamic_join_selection", "join_id": 1, "side": "left", "tables": "a ⋈ b",
    "mode": "enforce", "applied": False, "asked_us": 1.0, "subject": "join 1, left side",
}  # fmt: skip
QUERY = {
    **OF_LOG, "execution_id": 1, "root_execution_id": 1, "description": "a query",
    "fingerprint": "f1", "started": AT, "ended": AT, "succeeded": True, "task_ms": 1000,
    "slot_ms": 1100, "joins": [], "decisions": 1,
}  # fmt: skip
STAGE = {**OF_LOG, "stage_id": 1, "stage_attempt_id": 0, "execution_id": 1, "name": "a stage"}
SUB_PLAN = {
    **OF_LOG, "time": AT, "execution_id": 1, "fingerprint": "f1", "job": "daily.sales",
    "kind": "PLAN", "same": "0" * 15 + "1", "shape": "0" * 15 + "2",
}  # fmt: skip
APPLICATION = {**OF_LOG, "app_name": "n", "spark_version": "4.3.0", "lines": 9,
               "unreadable_lines": 0, "executors": []}  # fmt: skip


def facts(**groups: Mapping[str, Any]) -> str:
    """Facts as JSON, group by group."""
    return json.dumps(groups, separators=(",", ":"))


def log(spark: SparkSession, **frames: Iterable[Mapping[str, Any]]) -> Log:
    """Makes a log of the rows of its frames; what a row does not say is as above, or null."""
    base = {
        "applications": APPLICATION, "decisions": DECISION, "queries": QUERY, "stages": STAGE,
        "sub_plans": SUB_PLAN,
    }  # fmt: skip
    frames_of_log = {"applications": [{}], **frames}

    def frame(name: str) -> Any:
        names = [column.name for column in columns.FRAMES[name]]
        rows = []
        for number, own in enumerate(frames_of_log.get(name, []), 1):
            row = {"decision_id": number, "facts_id": f"f{number}"} | base.get(name, {}) | own
            assert set(own) <= set(names), set(own) - set(names)
            rows.append(tuple(row.get(column) for column in names))
        return spark.createDataFrame(rows, columns.ddl(columns.FRAMES[name]))

    return Log(**{name: frame(name) for name in columns.FRAMES})
