"""What is compared, and how it is made of the queries of a unit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aqepilot.analysis.experiment.runs import Runs
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MIB = 1 << 20
# By name: what it is, how it is made of the queries of a run, and what less of it counts as: a
# ratio to nothing says nothing.
METRICS = {
    "task_ms": ("time of tasks", "sum(task_ms)", 1),
    "wall_ms": ("time of queries, one after the other", "sum(wall_ms)", 1),
    "cpu_ms": ("processor time of tasks", "sum(cpu_ms)", 1),
    "core_ms": ("time of cores that executors had, busy or not", "sum(executor_core_ms)", 1),
    "shuffle_bytes": ("bytes shuffled", "sum(shuffle_write_bytes)", _MIB),
    "spill_bytes": ("bytes spilled to disk", "sum(disk_spill_bytes)", _MIB),
}
MOST_RUNS = 1_000_000
# Of one array, and tasks that make them: neither all runs in one array nor all arrays of one task
# fit into the memory that a driver has by default, and AQE would merge the tasks.
_AT_ONCE, _TASKS = 10_000, 32
_OUT_OF_MEMORY = (
    "OutOfMemory|UNABLE_TO_ACQUIRE_MEMORY|[Bb]eyond (the )?(physical|virtual) memory limits|"
    "[Ee]xceeding (physical )?memory limits|OOMKilled|[Ee]xit (code|status):? ?137"
)
_KINDS = {
    "job": object,
    "experiment": object,
    "treated": np.bool_,
    "counted": np.bool_,
    "exposed": np.bool_,
    "failed": np.bool_,
    "out_of_memory": np.bool_,
    "backfill": np.bool_,
    "is_over": np.bool_,
}


_TEXTS = ("job", "experiment")


def sums() -> list[Column]:
    """What is made of the queries of a unit, for `agg`."""
    from pyspark.sql.functions import expr

    return [
        expr("count(*)").alias("queries"),
        expr("coalesce(sum(input_bytes), 0)").alias("input_bytes"),
        # One that failed before was caught by the job.
        expr("NOT coalesce(max_by(succeeded, ended), false)").alias("has_failed"),
        expr(f"coalesce(bool_or(error RLIKE '{_OUT_OF_MEMORY}'), false)").alias("out_of_memory"),
        expr("max(ended)").alias("last_ended"),
        *(expr(text).alias(name) for name, (_, text, _) in METRICS.items()),
    ]


def floored(metric: str) -> Column:
    """The metric of a unit; NaN where it had no query, or, of cores, where that is not known."""
    from pyspark.sql.functions import expr

    _, _, least = METRICS[metric]
    unknown = "queries IS NULL" + (f" OR {metric} IS NULL" if metric == "core_ms" else "")
    value = f"cast(greatest(coalesce({metric}, 0), {least}) AS double)"
    return expr(f"CASE WHEN {unknown} THEN double('NaN') ELSE {value} END").alias(metric)


def collected(frame: DataFrame) -> dict[str, Any]:
    """Returns a frame's columns as arrays: a million rows one by one take minutes.

    Raises:
        AqePilotError: There are more than `MOST_RUNS`.
    """
    from pyspark.sql import functions

    def known(name: str) -> Column:
        """A null would be left out, and the columns no longer be of the same rows."""
        if name in _TEXTS:
            return functions.coalesce(functions.col(name), functions.lit(""))
        if name in _KINDS:
            return functions.coalesce(functions.col(name), functions.lit(False))
        number = functions.col(name).cast("double")
        return functions.coalesce(number, functions.lit(float("nan")))

    lists = [functions.collect_list(known(name)).alias(name) for name in frame.columns]
    some = functions.expr(f"monotonically_increasing_id() DIV {_AT_ONCE}")
    parts: dict[str, list[Any]] = {
        name: [np.array([], dtype=_KINDS.get(name, np.float64))] for name in frame.columns
    }
    names: dict[str, str] = {}
    n = 0
    parted = frame.withColumn("some", some).repartition(_TASKS, "some")
    for row in parted.groupBy("some").agg(*lists).toLocalIterator(prefetchPartitions=True):
        n += len(row["job"])
        if n > MOST_RUNS:
            message = f"the logs have more than {MOST_RUNS:,} runs: give fewer of them."
            raise AqePilotError(Problem("RUNS_TOO_MANY", message))
        for name, values_by_part in parts.items():
            values = [names.setdefault(v, v) for v in row[name]] if name in _TEXTS else row[name]
            values_by_part.append(np.array(values, dtype=_KINDS.get(name, np.float64)))
    return {name: np.concatenate(values_by_part) for name, values_by_part in parts.items()}


def runs(*parts: dict[str, Any]) -> Runs:
    """Puts arrays by column together, in the order in which runs ended."""
    names = ("ended", "job", "treated", "counted", "share", "exposed", "failed", "input_bytes")
    flags = ("out_of_memory", "backfill")
    columns = {
        name: np.concatenate([part[name] for part in parts]) for name in (*names, *flags, *METRICS)
    }
    order = np.argsort(columns["ended"], kind="stable")
    fields = {name: columns[name][order] for name in (*names, *flags)}
    return Runs(**fields, metrics={name: columns[name][order] for name in METRICS})
