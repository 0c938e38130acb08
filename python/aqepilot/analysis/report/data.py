"""What a report shows, aggregated by Spark: only the most expensive few come to the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aqepilot.analysis import costs, suggestions
from aqepilot.analysis.costs import KEY
from aqepilot.analysis.report import experiments, outcomes, skew
from aqepilot.analysis.report.values import (
    Cost,
    Costs,
    Data,
    Fingerprint,
    Fingerprints,
    Heading,
    Joins,
    Run,
    Withheld,
)
from aqepilot.eventlog.frames import Frames
from aqepilot.history import decided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RUNS = 40
_COSTS = 20
_SUGGESTIONS = 10
_STRATEGIES = 1000
_WITHHELD = 20
_TIME = "'yyyy-MM-dd HH:mm'"
# Shortest first; the first one of which there are at most so many.
_UNITS_MS = {
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
    "month": 2_629_746_000,
}
_MOST_UNITS = 62
_SUMS = ("task_ms", "slot_ms")


def gather(spark: SparkSession, log: Frames, top: int) -> Data:
    """Aggregates logs for a report.

    Args:
        spark: The session of the DataFrames.
        log: The log.
        top: So many fingerprints are shown, those with most task time.
    """
    # Each action would read the logs again.
    kept = [
        log.applications.persist(),
        _queries(log.queries).persist(),
        log.stages.drop("task_slot_ms").persist(),
        outcomes.narrowed(log.decisions).persist(),
    ]
    applications, queries, stages, decisions = kept
    narrow = log.replace(applications=applications, queries=queries, stages=stages)
    try:
        heading = _heading(spark, applications, queries, stages, decisions)
        fingerprints = _fingerprints(queries, top)
        keys = spark.createDataFrame([(f.key,) for f in fingerprints.top], "key string")
        return Data(
            heading,
            fingerprints,
            _runs(queries, keys),
            outcomes.answers(decisions),
            outcomes.outcomes(decisions, keys),
            outcomes.bad_policies(log.policies),
            skew.shuffles(decisions, queries),
            skew.stages(stages, queries, applications),
            _joins(queries, decisions),
            _costs(narrow),
            suggestions.suggest(narrow, _SUGGESTIONS),
            experiments.newest_tried(log),
            _withheld(log.decisions),
        )
    finally:
        for frame in kept:
            frame.unpersist()


def _queries(queries: DataFrame) -> DataFrame:
    short = "left(description, 300)"
    return queries.selectExpr(
        *("log", "execution_id", f"{short} AS description", "fingerprint", "started", "ended"),
        *("succeeded", "left(error, 300) AS error", "wall_ms", "task_ms", "slot_ms"),
        *("shuffle_read_bytes", "disk_spill_bytes", "joins", "join_nodes", "decisions"),
        "executor_core_ms",
        f"{KEY} AS key",
    )


def _heading(
    spark: SparkSession,
    applications: DataFrame,
    queries: DataFrame,
    stages: DataFrame,
    decisions: DataFrame,
) -> Heading:
    # An application that broke off had its executors until the last that its log tells of.
    moments = queries.selectExpr("log", "greatest(started, ended) AS at").unionAll(
        stages.selectExpr("log", "greatest(submitted, completed) AS at")
    )
    last = moments.groupBy("log").agg({"at": "max"}).toDF("log", "last")
    executors = "filter(executors, e -> e.cores IS NOT NULL)"
    until = "coalesce(e.removed, ended, last)"
    lasted = f"greatest(0L, unix_millis({until}) - unix_millis(e.added))"
    core_ms = f"aggregate({executors}, 0L, (sum, e) -> sum + e.cores * coalesce({lasted}, 0L))"
    logs = _one(
        applications.join(last, "log", "left"),
        "count(*) AS applications",
        "coalesce(sum(lines), 0) AS lines",
        "coalesce(sum(unreadable_lines), 0) AS unreadable_lines",
        "count(problem) AS unreadable_logs",
        "left(min(problem), 300) AS problem",
        "concat_ws(', ', sort_array(collect_set(spark_version))) AS spark_versions",
        f"sum(CASE WHEN size(executors) > 0 THEN {core_ms} END) AS core_ms",
        f"date_format(max(greatest(last, ended)), {_TIME}) AS last",
    )
    of_queries = _one(
        queries,
        "count(*) AS queries",
        "count_if(NOT succeeded) AS failed_queries",
        "count_if(succeeded IS NULL) AS unfinished_queries",
        "coalesce(sum(slot_ms), 0) AS query_slot_ms",
    )
    of_stages = _one(stages, "coalesce(sum(task_ms), 0) AS task_ms")
    firsts = queries.select("started").unionAll(stages.select("submitted"))
    first = _one(firsts, f"date_format(min(started), {_TIME}) AS first")
    asked = _one(decisions, "count(*) AS decisions", "count_if(applied) AS applied")
    zone = spark.conf.get("spark.sql.session.timeZone") or ""
    figures = logs | of_queries | of_stages | first | asked | {"time_zone": zone}
    return Heading(**figures | {"spark_versions": figures["spark_versions"] or None})


def _fingerprints(queries: DataFrame, top: int) -> Fingerprints:
    from pyspark.sql import functions

    grouped = queries.groupBy("key").agg(
        *map(
            functions.expr,
            (
                "max(fingerprint) AS fingerprint",
                "max(description) AS description",
                "count(*) AS runs",
                "count_if(NOT succeeded) AS failed",
                "percentile_approx(wall_ms, 0.5) AS wall_ms",
                *(f"sum({name}) AS {name}" for name in _SUMS),
                "sum(shuffle_read_bytes) AS shuffle_bytes",
                "sum(disk_spill_bytes) AS spill_bytes",
                "sum(decisions) AS decisions",
            ),
        )
    )
    rows = grouped.orderBy(functions.desc("task_ms"), "key").limit(top).collect()
    total = _one(queries, "count(DISTINCT key) AS number", "coalesce(sum(task_ms), 0) AS task_ms")
    return Fingerprints([Fingerprint(*row) for row in rows], **total)


def _runs(queries: DataFrame, keys: DataFrame) -> list[Run]:
    from pyspark.sql import functions

    newest = "row_number() OVER (PARTITION BY key ORDER BY started DESC, log, execution_id DESC)"
    rows = (
        queries.join(functions.broadcast(keys), "key", "left_semi")
        .where("started IS NOT NULL")
        .withColumn("newest", functions.expr(newest))
        .where(f"newest <= {_RUNS}")
        .orderBy("key", functions.desc("newest"))
        .selectExpr("key", f"date_format(started, {_TIME})", "wall_ms", "succeeded", "error")
    )
    return [Run(*row) for row in rows.collect()]


def _joins(queries: DataFrame, decisions: DataFrame) -> Joins:
    from pyspark.sql import functions

    joins = queries.where("started IS NOT NULL").selectExpr("started", "explode(joins) AS planned")
    span = "unix_millis(max(started)) - unix_millis(min(started)) AS ms"
    ms = _one(joins, span)["ms"] or 0
    unit = next((u for u, unit_ms in _UNITS_MS.items() if ms / unit_ms < _MOST_UNITS), "month")
    shown = "'yyyy-MM-dd HH:mm'" if unit in ("minute", "hour") else "'yyyy-MM-dd'"
    rows = (
        joins.groupBy(
            functions.expr(f"date_trunc('{unit}', started)").alias("at"),
            functions.expr("split_part(planned, ' ', 1)").alias("strategy"),
        )
        .count()
        .orderBy(functions.desc("at"), "strategy")
        .limit(_STRATEGIES)
        .selectExpr("unix_millis(at)", f"date_format(at, {shown})", "strategy", "count")
    )
    counts = sorted((at, text, strategy, n) for at, text, strategy, n in rows.collect())
    return Joins(unit, _UNITS_MS[unit], counts, outcomes.join_changes(decisions))


def _costs(log: Frames) -> Costs:
    fingerprints = costs.costs(log).fingerprints
    rows = fingerprints.limit(_COSTS).select(*Cost._fields).collect()
    sums = [f"coalesce(sum({name}), 0)" for name in Cost._fields[3:]]
    whole = Cost("", None, None, *fingerprints.selectExpr(*sums).collect()[0])
    return Costs([Cost(*row) for row in rows], whole)


def _withheld(decisions: DataFrame) -> list[Withheld]:
    from pyspark.sql import functions

    rows = (
        decided.withheld(decisions)
        .orderBy(functions.desc("decisions"), "signature")
        .limit(_WITHHELD)
        .selectExpr("signature", "left(reason, 300)", "decisions", f"date_format(last, {_TIME})")
    )
    return [Withheld(*row) for row in rows.collect()]


def _one(frame: DataFrame, *figures: str) -> dict[str, Any]:
    return frame.selectExpr(*figures).collect()[0].asDict()
