"""Runs of jobs out of event logs: what an experiment compares, and what is known from before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.experiment.analysis import Runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.log import Log

_MIB = 1 << 20
# By name: what it is, how it is made of the queries of a run, and what less of it counts as: a
# ratio to nothing says nothing.
METRICS = {
    "task_ms": ("time of tasks", "sum(task_ms)", 1),
    "wall_ms": ("time of queries, one after the other", "sum(wall_ms)", 1),
    "cpu_ms": ("processor time of tasks", "sum(cpu_ms)", 1),
    "shuffle_bytes": ("bytes shuffled", "sum(shuffle_write_bytes)", _MIB),
    "spill_bytes": ("bytes spilled to disk", "sum(disk_spill_bytes)", _MIB),
}
MOST_RUNS = 1_000_000
# Airflow's name of a run that is made up for: it reads another day's data, at another time.
_BACKFILL = "backfill__%"


class Experiment(NamedTuple):
    """What is compared.

    Attributes:
        name: The experiment's.
        unit_kind: ``job_run``, ``query_run`` or ``session``.
        control: The control's name.
        treatment: The name of the arm that is compared with it.
        arms: All arms, the control first.
        metric: What decides.
        stopped: Why the treatment was stopped somewhere, with how often.
    """

    name: str
    unit_kind: str
    control: str
    treatment: str
    arms: tuple[str, ...]
    metric: str
    stopped: dict[str, int]


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
    rows = _collected(_past(log))
    if not rows:
        raise AqePilotError(Problem("RUNS_MISSING", "the logs have no run with a query."))
    return _runs(rows)


def runs_in(
    log: Log,
    name: str | None = None,
    *,
    arm: str | None = None,
    abandoned_after_hours: float = 24.0,
) -> tuple[Experiment, Runs]:
    """Returns the units of an experiment, and what is in the logs of their jobs from before.

    A unit that was assigned and has no outcome counts as failed, for its arm: its application broke
    off. One whose application may still run is left out. Runs that Airflow calls backfills are
    left out, too.

    Args:
        log: As `aqepilot.log.read_log` gives it.
        name: The experiment; null for the only one.
        arm: The arm to compare with the control; null for the second.
        abandoned_after_hours: An application without an end that began less than so long ago may
            still run.

    Raises:
        AqePilotError: There is no such experiment or arm, or several; or there are too many units.
    """
    of = _described(log, name, arm)
    rows = _collected(_units(log, of, abandoned_after_hours))
    if of.unit_kind == "session":
        past = []
    else:
        by = of.unit_kind == "query_run"
        past = _collected(_past(_without(log, of.name), by_query=by), MOST_RUNS - len(rows))
    return of, _runs(sorted([*rows, *past], key=lambda row: float(row["ended"])))


def _described(log: Log, name: str | None, arm: str | None) -> Experiment:
    from pyspark.sql import functions

    is_stop = functions.col("what") == "stopped"
    found = (
        log.experiments.groupBy(
            "experiment",
            "unit_kind",
            "arms",
            "metric",
            functions.when(is_stop, functions.col("arm")).alias("stopped"),
            functions.when(is_stop, functions.col("detail")).alias("detail"),
        )
        .agg(functions.max("time").alias("last"), functions.count("*").alias("n"))
        .orderBy("last")
        .collect()
    )
    names = sorted({row["experiment"] for row in found})
    if not names:
        message = (
            "the logs have no unit of an experiment: was spark.aqepilot.experiment.name submitted, "
            "and was there an EXPERIMENT_INVALID in the drivers' logs?"
        )
        raise AqePilotError(Problem("EXPERIMENT_MISSING", message))
    if (name not in names) if name else len(names) > 1:
        what = f"there is no experiment {name!r} in the logs" if name else "there are several"
        message = f"{what}: name one of {', '.join(names)}."
        near = nearest(name, names) if name else []
        raise AqePilotError(Problem("EXPERIMENT_UNKNOWN", message, suggestions=tuple(near)))
    own = [row for row in found if row["experiment"] == (name or names[0])]
    # Weights may have changed meanwhile: the newest arms say which there are.
    arms = tuple(part.rpartition(":")[0] for part in own[-1]["arms"].split(","))
    treatment = arm or arms[1]
    if treatment not in arms[1:]:
        message = f"{treatment!r} is no arm beside the control: name one of {', '.join(arms[1:])}."
        raise AqePilotError(
            Problem("ARM_UNKNOWN", message, suggestions=tuple(nearest(treatment, arms[1:])))
        )
    kinds = sorted({row["unit_kind"] for row in own})
    if len(kinds) > 1:
        message = (
            f"experiment {own[0]['experiment']} was run with several kinds of units: "
            f"{', '.join(kinds)}. Give the logs of one, or another name to each."
        )
        raise AqePilotError(Problem("EXPERIMENT_MIXED", message))
    stopped: dict[str, int] = {}
    for row in own:
        if row["stopped"] == treatment:
            stopped[row["detail"]] = stopped.get(row["detail"], 0) + row["n"]
    return Experiment(
        own[0]["experiment"], kinds[0], arms[0], treatment, arms, own[-1]["metric"], stopped
    )


def _units(log: Log, of: Experiment, abandoned_after_hours: float) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    told = log.experiments.where(functions.col("experiment") == of.name)
    weight = "cast(str_to_map(first_arms, ',', ':')[{}] AS double)"
    control, treatment = (
        weight.format("'" + arm.replace("'", "''") + "'") for arm in (of.control, of.treatment)
    )
    units = (
        told.groupBy("unit")
        .agg(
            expr("min_by(arm, time)").alias("arm"),
            expr("min_by(arms, time)").alias("first_arms"),
            expr("max_by(log, time)").alias("log"),
            expr("max_by(job, time)").alias("job"),
            expr("max_by(run, time)").alias("run"),
            functions.max("time").alias("last_told"),
            expr("bool_or(what = 'exposed')").alias("exposed"),
        )
        .where(functions.col("arm").isin(of.control, of.treatment))
        .withColumn("share", expr(f"{treatment} / ({treatment} + {control})"))
    )
    queries = (
        log.queries.where(functions.col("experiment") == of.name)
        .groupBy("unit")
        .agg(
            expr("coalesce(sum(input_bytes), 0)").alias("input_bytes"),
            functions.max("ended").alias("last_ended"),
            # One that failed before was caught by the job.
            expr("NOT coalesce(max_by(succeeded, ended), false)").alias("has_failed"),
            *(expr(text).alias(name) for name, (_, text, _) in METRICS.items()),
        )
    )
    ends = log.applications.select("log", functions.col("ended").alias("app_ended"))
    job = "job"
    if of.unit_kind == "query_run":
        job = "concat(job, '|', substring_index(unit, '|', -1))"
        # The application's end says nothing of a query that has ended.
        failed = "coalesce(has_failed, app_ended IS NULL)"
    elif of.unit_kind == "session":
        failed = "coalesce(has_failed, app_ended IS NULL)"
    else:
        failed = "app_ended IS NULL OR coalesce(has_failed, false)"
    is_over = (
        "app_ended IS NOT NULL OR last_told < current_timestamp() - "
        f"make_dt_interval(0, 0, 0, {abandoned_after_hours * 3600:f})"
    )
    if of.unit_kind != "job_run":
        is_over += " OR last_ended IS NOT NULL"
    return (
        units.join(ends, "log", "left")
        .join(queries, "unit", "left")
        .where(is_over)
        .where(f"NOT run LIKE '{_BACKFILL}'")
        .select(
            expr(job).alias("job"),
            expr(
                "unix_millis(coalesce("
                + (
                    "app_ended, last_ended"
                    if of.unit_kind == "job_run"
                    else "last_ended, app_ended"
                )
                + ", last_told)) / 86400000D"
            ).alias("ended"),
            (functions.col("arm") == of.treatment).alias("treated"),
            functions.lit(True).alias("counted"),
            "share",
            "exposed",
            expr(failed).alias("failed"),
            expr("cast(coalesce(input_bytes, 0) AS double)").alias("input_bytes"),
            *(_floored(name) for name in METRICS),
        )
    )


def _without(log: Log, experiment: str) -> Log:
    """The logs without what is of an experiment."""
    from pyspark.sql import functions

    units = log.experiments.where(functions.col("experiment") == experiment)
    queries = log.queries.join(units.select("log").distinct(), "log", "left_anti")
    return log._replace(queries=queries)


def _past(log: Log, *, by_query: bool = False) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    queries = log.queries
    keys = ["log"]
    if by_query:
        keys.append("fingerprint")
        queries = queries.where("fingerprint IS NOT NULL")
    summed = queries.groupBy(*keys).agg(
        functions.max("job").alias("job"),
        functions.max("run").alias("run"),
        expr("coalesce(sum(input_bytes), 0)").alias("input_bytes"),
        # One that failed before was caught by the job.
        expr("NOT coalesce(max_by(succeeded, ended), false)").alias("has_failed"),
        functions.max("ended").alias("last_ended"),
        *(expr(text).alias(name) for name, (_, text, _) in METRICS.items()),
    )
    known = log.applications.select("log", "app_name", "app_id", "ended")
    job = "coalesce(job, app_name, '')"
    if by_query:
        job = f"concat({job}, '|', fingerprint)"
    applications = summed.join(known, "log").select(
        expr(job).alias("job"),
        expr("coalesce(run, app_id, log)").alias("run"),
        expr("coalesce(ended, last_ended)").alias("at"),
        expr("has_failed" if by_query else "ended IS NULL OR has_failed").alias("failed"),
        "input_bytes",
        *METRICS,
    )
    return (
        applications.where(f"at IS NOT NULL AND NOT run LIKE '{_BACKFILL}'")
        .groupBy("job", "run")
        .agg(
            expr("max(unix_millis(at)) / 86400000D").alias("ended"),
            expr("max_by(failed, at)").alias("failed"),
            *(expr(f"cast(sum({name}) AS double)").alias(name) for name in _SUMMED),
        )
        .select(
            "job",
            "ended",
            functions.lit(False).alias("treated"),
            functions.lit(False).alias("counted"),
            functions.lit(0.5).alias("share"),
            functions.lit(False).alias("exposed"),
            "failed",
            "input_bytes",
            *(_floored(name) for name in METRICS),
        )
    )


_SUMMED = ("input_bytes", *METRICS)


def _floored(metric: str) -> Any:
    from pyspark.sql import functions

    _, _, least = METRICS[metric]
    return functions.expr(f"cast(greatest(coalesce({metric}, 0), {least}) AS double)").alias(metric)


def _collected(frame: DataFrame, most: int = MOST_RUNS) -> list[Any]:
    found: list[Any] = frame.orderBy("ended").limit(most + 1).collect()
    if len(found) > most:
        message = f"the logs have more than {MOST_RUNS:,} runs: give fewer of them."
        raise AqePilotError(Problem("RUNS_TOO_MANY", message))
    return found


def _runs(rows: list[Any]) -> Runs:
    columns = dict(zip(rows[0].__fields__, zip(*rows, strict=True), strict=True))

    def column(name: str, kind: Any) -> Any:
        return np.array(columns[name], dtype=kind)

    return Runs(
        ended=column("ended", np.float64),
        job=column("job", np.str_),
        treated=column("treated", np.bool_),
        counted=column("counted", np.bool_),
        share=column("share", np.float64),
        exposed=column("exposed", np.bool_),
        failed=column("failed", np.bool_),
        input_bytes=column("input_bytes", np.float64),
        metrics={name: column(name, np.float64) for name in METRICS},
    )
