"""Runs of jobs out of event logs: what an experiment compares, and what is known from before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aqepilot.errors import AqePilotError, Problem
from aqepilot.experiment.analysis import Runs

if TYPE_CHECKING:
    from aqepilot.log import Log

# By name: what it is, and how it is made of the queries of a run.
METRICS = {
    "task_ms": ("time of tasks", "sum(task_ms)"),
    "wall_ms": ("time of queries, one after the other", "sum(wall_ms)"),
    "cpu_ms": ("processor time of tasks", "sum(cpu_ms)"),
    "shuffle_bytes": ("bytes shuffled", "sum(shuffle_write_bytes)"),
    "spill_bytes": ("bytes spilled to disk", "sum(disk_spill_bytes)"),
}
MOST_RUNS = 1_000_000


def runs_of(log: Log) -> Runs:
    """Returns one run for each run of a job in the logs, none of an experiment.

    What the job and its run are is what aqepilot recorded, else the application's name and id. A
    run that was tried again is one run with all that its attempts took. It has failed where the log
    of its last application has no end, or the last query in it failed.

    Args:
        log: As `aqepilot.log.read_log` gives it.

    Raises:
        AqePilotError: There is no run with a query, or there are more than a million.
    """
    from pyspark.sql import functions

    queries = log.queries.groupBy("log").agg(
        functions.max("job").alias("job"),
        functions.max("run").alias("run"),
        functions.expr("coalesce(sum(input_bytes), 0)").alias("input_bytes"),
        # One that failed before was caught by the job.
        functions.expr("NOT coalesce(max_by(succeeded, ended), false)").alias("has_failed"),
        functions.max("ended").alias("last_ended"),
        *(functions.expr(text).alias(name) for name, (_, text) in METRICS.items()),
    )
    known = log.applications.select("log", "app_name", "app_id", "ended")
    applications = queries.join(known, "log").select(
        functions.expr("coalesce(job, app_name, '')").alias("job"),
        functions.expr("coalesce(run, app_id, log)").alias("run"),
        functions.expr("coalesce(ended, last_ended)").alias("at"),
        functions.expr("ended IS NULL OR has_failed").alias("failed"),
        "input_bytes",
        *METRICS,
    )
    found = (
        applications.where("at IS NOT NULL")
        .groupBy("job", "run")
        .agg(
            functions.expr("max(unix_millis(at)) / 86400000D").alias("ended"),
            functions.expr("max_by(failed, at)").alias("failed"),
            *(functions.expr(f"cast(sum({name}) AS double)").alias(name) for name in _SUMMED),
        )
        .orderBy("ended")
        .limit(MOST_RUNS + 1)
        .collect()
    )
    if not found:
        raise AqePilotError(Problem("RUNS_MISSING", "the logs have no run with a query."))
    if len(found) > MOST_RUNS:
        message = f"the logs have more than {MOST_RUNS:,} runs: give fewer of them."
        raise AqePilotError(Problem("RUNS_TOO_MANY", message))
    n = len(found)

    def column(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([row[name] for row in found], dtype=np.float64)

    return Runs(
        ended=column("ended"),
        job=np.array([row["job"] for row in found]),
        treated=np.zeros(n, dtype=bool),
        counted=np.zeros(n, dtype=bool),
        share=np.full(n, 0.5),
        exposed=np.zeros(n, dtype=bool),
        failed=np.array([row["failed"] for row in found], dtype=bool),
        input_bytes=column("input_bytes"),
        metrics={name: column(name) for name in METRICS},
    )


_SUMMED = ("input_bytes", *METRICS)
