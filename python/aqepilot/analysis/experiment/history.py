"""Runs of jobs out of event logs: what an experiment compares, and what is known from before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from aqepilot.analysis.experiment.experiment import Experiment, described
from aqepilot.analysis.experiment.metrics import METRICS, collected, floored, runs, sums
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.errors import AqePilotError, Problem
from aqepilot.eventlog.frames import Frames

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


F = TypeVar("F", bound=Frames)
# Airflow's name of a run that is made up for: it reads another day's data, at another time.
_IS_BACKFILL = "coalesce(run LIKE 'backfill__%', false)"


@contextmanager
def cached(log: F) -> Iterator[F]:
    """Keeps what experiments need of a log in the cache meanwhile; yields the log that reads it."""
    sources = ("task_ms", "wall_ms", "cpu_ms", "executor_core_ms", "shuffle_write_bytes")
    frames = {
        "applications": log.applications.select("log", "app_name", "app_id", "ended"),
        "queries": log.queries.select(
            *("log", "job", "run", "fingerprint", "experiment", "unit", "started", "ended"),
            *("succeeded", "error", "input_bytes", "disk_spill_bytes", *sources),
        ),
        "experiments": log.experiments,
    }
    persisted = {name: frame.persist() for name, frame in frames.items()}
    try:
        yield log.replace(**persisted)
    finally:
        for frame in persisted.values():
            frame.unpersist()


def runs_of(log: Frames) -> Runs:
    """Returns one run for each run of a job in the logs, none of an experiment.

    What the job and its run are is what aqepilot recorded, else the application's name and id. A
    run that was tried again is one run with all that its attempts took. It has failed where the log
    of its last application has no end, or the last query in it failed.

    Args:
        log: The log.

    Raises:
        AqePilotError: There is no run with a query, or there are more than a million.
    """
    columns = collected(_past(log))
    if not len(columns["job"]):
        raise AqePilotError(Problem("RUNS_MISSING", "the logs have no run with a query."))
    return runs(columns)


def runs_in(
    log: Frames,
    name: str | None = None,
    *,
    arm: str | None = None,
    abandoned_after_hours: float = 24.0,
) -> tuple[Experiment, Runs]:
    """Returns the units of an experiment, and what is in the logs of their jobs from before.

    A unit that was assigned and has no outcome counts as failed, for its arm: its application broke
    off. One whose application may still run is left out. Runs that Airflow calls backfills are
    told apart.

    Args:
        log: The log.
        name: The experiment; null for the only one.
        arm: The arm to compare with the control; null for the second.
        abandoned_after_hours: An application without an end that began less than so long ago may
            still run.

    Raises:
        AqePilotError: There is no such experiment or arm, or several; or there are too many units.
    """
    experiment = described(log, name, arm)
    drawn = _drawn(log, experiment)
    units = collected(_units(log, drawn, experiment.unit_kind, abandoned_after_hours))
    is_over = units.pop("is_over")
    parts = [{key: values[is_over] for key, values in units.items()}]
    if experiment.unit_kind != "session":
        past = _past(_without(log, experiment.name), by_query=experiment.unit_kind == "query_run")
        parts.append(collected(past))
    return experiment._replace(running=int((~is_over).sum())), runs(*parts)


def units_of(log: Frames, prefix: str, abandoned_after_hours: float = 24.0) -> tuple[Runs, Any]:
    """Returns the units of all experiments with such a name, and runs of no experiment.

    Units are runs of jobs; of each experiment the first two arms are compared.

    Args:
        log: The log.
        prefix: What the experiments' names begin with.
        abandoned_after_hours: As for `runs_in`.

    Returns:
        The runs, and of each the experiment's name: empty for none.

    Raises:
        AqePilotError: There are more than a million.
    """
    from pyspark.sql import functions

    own = functions.col("experiment").startswith(prefix)
    drawn = _drawn_of_many(log, own)
    units = collected(_units(log, drawn, "job_run", abandoned_after_hours, with_name=True))
    is_over = units.pop("is_over")
    parts = [{key: values[is_over] for key, values in units.items()}]
    with_units = log.experiments.where(own).select("log").distinct()
    plain = log.replace(queries=log.queries.join(with_units, "log", "left_anti"))
    past = collected(_past(plain))
    past["experiment"] = np.full(len(past["job"]), "", dtype=object)
    parts.append(past)
    ended = np.concatenate([part["ended"] for part in parts])
    names = np.concatenate([part.pop("experiment") for part in parts])
    return runs(*parts), names[np.argsort(ended, kind="stable")]


def queries_in(log: Frames, experiment: Experiment) -> Runs:
    """Returns the queries of the units of an experiment, by job and fingerprint.

    All queries of a unit with one fingerprint are one, and have the unit's arm.

    Args:
        log: As for `runs_in`.
        experiment: The first value that `runs_in` returned.

    Raises:
        AqePilotError: There are more than a million.
    """
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    queries = (
        log.queries.where(functions.col("experiment") == experiment.name)
        .where("fingerprint IS NOT NULL")
        .groupBy("unit", "fingerprint")
        .agg(*sums())
    )
    rows = (
        _drawn(log, experiment)
        .drop("experiment")
        .join(queries, "unit")
        .where(f"NOT {_IS_BACKFILL}")
        .select(
            expr("concat(job, '|', fingerprint)").alias("job"),
            expr("unix_millis(coalesce(last_ended, last_told)) / 86400000D").alias("ended"),
            functions.col("has_failed").alias("failed"),
            functions.lit(False).alias("backfill"),
            functions.lit(True).alias("counted"),
            *("treated", "share", "exposed", "input_bytes", "out_of_memory"),
            *(floored(metric) for metric in METRICS),
        )
    )
    return runs(collected(rows), collected(_past(_without(log, experiment.name), by_query=True)))


def _drawn(log: Frames, experiment: Experiment) -> DataFrame:
    """The units of two arms, with the treatment's probability: null where it was no arm yet."""
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    # Names of arms are words joined by +, which need no quoting.
    weight = "cast(str_to_map(first_arms, ',', ':')['{}'] AS double)"
    control, treatment = weight.format(experiment.control), weight.format(experiment.treatment)
    return (
        _assigned(log, functions.col("experiment") == experiment.name)
        .where(functions.col("arm").isin(experiment.control, experiment.treatment))
        .withColumn("share", expr(f"try_divide({treatment}, {treatment} + {control})"))
        .withColumn("treated", functions.col("arm") == experiment.treatment)
    )


def _drawn_of_many(log: Frames, own: Column) -> DataFrame:
    """The same of the first two arms of each of many experiments."""
    from pyspark.sql.functions import expr

    arms = "transform(split(first_arms, ','), a -> split(trim(a), ':'))"
    # A broken line may have anything for arms.
    names, weights = ([f"get(get(arms_listed, {i}), {j})" for i in (0, 1)] for j in (0, 1))
    control, treatment = (f"try_cast({weight} AS double)" for weight in weights)
    return (
        _assigned(log, own)
        .withColumn("arms_listed", expr(arms))
        .where(f"arm IN ({', '.join(names)})")
        .withColumn("share", expr(f"try_divide({treatment}, {treatment} + {control})"))
        .withColumn("treated", expr(f"arm = {names[1]}"))
    )


def _assigned(log: Frames, own: Column) -> DataFrame:
    """Each unit of some experiments, with its arm."""
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    return (
        log.experiments.where(own)
        .groupBy("experiment", "unit")
        .agg(
            # A guard rail's event names the arm that it stopped.
            expr("min_by(arm, time) FILTER (WHERE what <> 'stopped')").alias("arm"),
            expr("min_by(arms, time)").alias("first_arms"),
            expr("max_by(log, time)").alias("log"),
            expr("max_by(job, time)").alias("job"),
            expr("max_by(run, time)").alias("run"),
            functions.max("time").alias("last_told"),
            expr("bool_or(what = 'exposed')").alias("exposed"),
        )
    )


def _units(
    log: Frames,
    drawn: DataFrame,
    unit_kind: str,
    abandoned_after_hours: float,
    *,
    with_name: bool = False,
) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    keys = ["experiment", "unit"]
    queries = log.queries.where("experiment IS NOT NULL").groupBy(*keys).agg(*sums())
    ends = log.applications.select("log", functions.col("ended").alias("app_ended"))
    broken_off = (
        log.queries.where("started IS NOT NULL AND ended IS NULL")
        .select("log", functions.lit(True).alias("broke_off"))
        .distinct()
    )
    job = f"concat(job, CASE WHEN {_IS_BACKFILL} THEN ' (backfill)' ELSE '' END)"
    at = "last_ended, app_ended"
    is_over = (
        "app_ended IS NOT NULL OR last_told < current_timestamp() - "
        f"make_dt_interval(0, 0, 0, {abandoned_after_hours * 3600:f})"
    )
    if unit_kind == "query_run":
        job = f"concat({job}, '|', substring_index(unit, '|', -1))"
        # The application's end says nothing of a query that has ended, and without an end it broke
        # off: it had begun.
        failed = "coalesce(has_failed, true)"
    elif unit_kind == "session":
        failed = "coalesce(has_failed, app_ended IS NULL)"
    else:
        # Who stops an application in the middle of a query ends it well.
        failed = "app_ended IS NULL OR coalesce(broke_off, false) OR coalesce(has_failed, false)"
        at = "app_ended, last_ended"
    if unit_kind != "job_run":
        is_over += " OR last_ended IS NOT NULL"
    return (
        drawn.join(ends, "log", "left")
        .join(broken_off, "log", "left")
        .join(queries, keys, "left")
        .select(
            *(keys[:1] if with_name else ()),
            expr(job).alias("job"),
            expr(f"unix_millis(coalesce({at}, last_told)) / 86400000D").alias("ended"),
            "treated",
            expr(f"NOT {_IS_BACKFILL}").alias("counted"),
            expr(_IS_BACKFILL).alias("backfill"),
            "share",
            "exposed",
            expr(failed).alias("failed"),
            expr("coalesce(out_of_memory, false)").alias("out_of_memory"),
            expr("cast(coalesce(input_bytes, 0) AS double)").alias("input_bytes"),
            expr(f"coalesce({is_over}, false)").alias("is_over"),
            *(floored(name) for name in METRICS),
        )
    )


def _without(log: Frames, name: str) -> Frames:
    """The logs without what is of an experiment."""
    from pyspark.sql import functions

    units = log.experiments.where(functions.col("experiment") == name)
    queries = log.queries.join(units.select("log").distinct(), "log", "left_anti")
    return log.replace(queries=queries)


def _past(log: Frames, *, by_query: bool = False) -> DataFrame:
    from pyspark.sql import functions
    from pyspark.sql.functions import expr

    queries = log.queries
    keys = ["log"]
    if by_query:
        keys.append("fingerprint")
        queries = queries.where("fingerprint IS NOT NULL")
    summed = queries.groupBy(*keys).agg(
        functions.max("job").alias("job"), functions.max("run").alias("run"), *sums()
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
        "queries",
        "input_bytes",
        *METRICS,
    )
    no, half = functions.lit(False), functions.lit(0.5)
    return (
        applications.where(f"at IS NOT NULL AND NOT {_IS_BACKFILL}")
        .groupBy("job", "run")
        .agg(
            expr("max(unix_millis(at)) / 86400000D").alias("ended"),
            expr("max_by(failed, at)").alias("failed"),
            *(expr(f"cast(sum({name}) AS double)").alias(name) for name in _SUMMED),
        )
        .select(
            "job",
            "ended",
            *(no.alias(name) for name in ("treated", "counted", "exposed", "out_of_memory")),
            no.alias("backfill"),
            half.alias("share"),
            "failed",
            "input_bytes",
            *(floored(name) for name in METRICS),
        )
    )


_SUMMED: tuple[Any, ...] = ("queries", "input_bytes", *METRICS)
