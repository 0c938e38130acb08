"""A little log, and whether collected tables hold what logs do."""

from __future__ import annotations

from collections.abc import Iterator

import event_logs
from aqepilot import Log

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
FRAMES = ("decisions", "queries", "stages", "policies", "experiments", "sub_plans")


def lines(app: str, queries: int = 2) -> list[str]:
    """A little log."""
    began = 1_763_800_000_000
    parsed = [
        event_logs.event("SparkListenerLogStart", **{"Spark Version": "4.3.0"}),
        event_logs.event(
            "SparkListenerApplicationStart",
            **{"App Name": "n", "App ID": app, "Timestamp": began, "User": "u"},
        ),
        event_logs.event(
            "SparkListenerExecutorAdded",
            **{"Timestamp": began, "Executor ID": "1", "Executor Info": {"Total Cores": 2}},
        ),
    ]
    for n in range(queries):
        at = began + n * 86_400_000
        parsed += [
            event_logs.event(f"{SQL}ExecutionStart", executionId=n, description="q", time=at),
            event_logs.event(f"{SQL}ExecutionEnd", executionId=n, time=at + 5, errorMessage=""),
            event_logs.event(
                "io.aqepilot.log.AqePilotDecision",
                **{"schemaVersion": 1, "time": at, "decisionId": n, "sessionId": "s"},
                **{"executionId": n, "point": "skew_join", "factsId": f"f{n}", "facts": "{}"},
                **{"mode": "enforce", "applied": False, "reason": "NULL_ANSWER"},
                **{"askedMicros": 1.0, "subject": "join 1"},
            ),
            event_logs.event(
                "io.aqepilot.log.AqePilotQueryClosed",
                **{"schemaVersion": 2, "time": at + 5, "executionId": n, "fingerprint": "f" * 64},
                **{"fates": [], "droppedEvents": 0, "job": "j"},
                subPlans=[{"kind": "PLAN", "same": "0" * 16, "shape": "1" * 16, "rows": n}],
            ),
        ]
    return parsed


def differences(tables: Log, logs: Log) -> list[str]:
    """Says of which frames tables have other rows, or other types, than logs."""
    return list(_differences(tables, logs))


def _differences(tables: Log, logs: Log) -> Iterator[str]:
    for name in ("applications", *FRAMES):
        of_logs = getattr(logs, name)
        of_tables = getattr(tables, name).select(*of_logs.columns)
        if of_tables.schema.simpleString() != of_logs.schema.simpleString():
            yield f"{name}: {of_tables.schema.simpleString()}"
        there, wanted = (sorted(map(str, rows.collect())) for rows in (of_tables, of_logs))
        if there != wanted:
            yield f"{name}: {there} instead of {wanted}"
