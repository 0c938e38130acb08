"""Findings about joins: each kind by a query of its own, with its thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.analysis.findings.stages import UNEVEN, slow
from aqepilot.eventlog.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A stage's cores wait for skew only where that is a good part of their time.
_WAITING = 0.2
_SKEW = 4
# A split makes parts of one map task's block or more: of less, there is nothing to split.
_SKEW_BYTES = 64 << 10
# Above that it takes its time by its bytes; below, where its tasks take long for what they read.
_LARGE_BYTES = 4 << 20
_FEW = 2
_WRONG = 4
_WRONG_BYTES = 16 << 20
# As the recipe no_broadcast_of_range_joins has it.
_RANGE_BYTES = 1 << 20
_RANGE_OTHER = 16
_FLIPS = 3
_WAY = "array_join(transform(joins, j -> split_part(j, ' ', 1)), ', ')"
# As Spark says that a side was too large for the driver.
_TOO_LARGE = (
    "bigger than (?:local )?spark.driver.maxResultSize|Cannot broadcast the table|"
    "Not enough memory to build and broadcast"
)


def hot_keys(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Joins of which a side that may be split is uneven, in queries that waited for one task.

    The cores of a stage waited, or Spark merged what is uneven into fewer tasks than there were
    cores, as it has few bytes.
    """
    skewed = " OR ".join(
        f"(f.`{side}`.can_split AND f.`{side}`.num_mappers > 1 AND f.`{side}`.max_bytes > "
        f"greatest({_SKEW_BYTES}, {_SKEW} * f.`{side}`.median_bytes))"
        for side in ("left", "right")
    )
    worst = "CASE WHEN coalesce(f.`left`.max_bytes, 0) >= coalesce(f.`right`.max_bytes, 0) THEN "
    uneven = (
        decisions.where("point = 'skew_join' AND NOT applied")
        .where(skewed)
        .selectExpr(
            *("log", "execution_id", "subject", "tables"),
            f"{worst} f.`left` ELSE f.`right` END AS s",
        )
        .groupBy("log", "execution_id")
        .agg(_expr("max_by(struct(subject, tables, s), s.max_bytes) AS worst"))
    )
    waited = f"waiting_ms > {_WAITING} * slot_ms AND max_task_ms > {UNEVEN} * median_task_ms"
    alone = f"is_slow AND {_FEW} * num_tasks <= cores"
    long = slow(stages, "true").where("shuffle_read_bytes > 0")
    found = (
        long.where(f"({waited}) OR ({alone})")
        .join(uneven, ["log", "execution_id"])
        .where(f"is_slow OR worst.s.max_bytes > {_LARGE_BYTES}")
        .groupBy("log", "execution_id", "worst")
        .agg(
            _expr("sum(greatest(waiting_ms, IF(num_tasks * 2 <= cores, slot_ms, 0))) AS stake_ms"),
            _expr("max_by(struct(stage_id, max_task_ms, median_task_ms), max_task_ms) AS stage"),
        )
        .selectExpr(
            *("log", "execution_id", "stake_ms"),
            "struct(worst.subject, worst.tables, worst.s.max_bytes, worst.s.median_bytes, "
            "CAST(NULL AS bigint) AS records, stage.*) AS evidence",
        )
    )
    return found.unionByName(_hot_tasks(decisions, long.where(waited)))


def _hot_tasks(decisions: DataFrame, waited: DataFrame) -> DataFrame:
    """The same of queries in which skew_join was not asked, by what tasks read."""
    asked = decisions.where("point = 'skew_join'").select("log", "execution_id").distinct()
    # Rows of a full outer join's sides cannot be read twice.
    may_split = (
        "exists(join_nodes, j -> j.operator IN ('SortMergeJoin', 'ShuffledHashJoin') "
        "AND j.type <> 'FullOuter' AND array_contains(operators, j.scope))"
    )
    return (
        waited.join(asked, ["log", "execution_id"], "left_anti")
        .where(f"num_tasks > 2 AND max_task_records * num_tasks > {_SKEW} * shuffle_read_records")
        .where(may_split)
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(waiting_ms) AS stake_ms"),
            _expr(
                "max_by(struct(CAST(NULL AS string) AS subject, CAST(NULL AS string) AS tables, "
                "CAST(NULL AS bigint) AS max_bytes, CAST(NULL AS bigint) AS median_bytes, "
                "max_task_records AS records, stage_id, max_task_ms, median_task_ms), waiting_ms) "
                "AS evidence"
            ),
        )
    )


def _broadcasts(decisions: DataFrame) -> DataFrame:
    """Sides that Spark broadcast by their estimated size, when the query was planned."""
    return (
        decisions.where("point = 'join_selection' AND NOT applied AND join_id IS NOT NULL")
        .where("NOT f.join.is_replan AND f.spark.strategy = 'BROADCAST'")
        .where("f.spark.reason = 'SIZE'")
        .selectExpr(
            *("log", "execution_id", "join_id", "subject"),
            "f.spark.build_side = 'LEFT' AS is_left",
            "f.join.can_merge AND f.join.has_condition "
            "AND f.join.type IN ('INNER', 'LEFT OUTER', 'RIGHT OUTER') AS has_range",
            "CASE WHEN f.spark.build_side = 'LEFT' THEN f.`left` ELSE f.`right` END AS s",
            "CASE WHEN f.spark.build_side = 'LEFT' THEN f.`right` ELSE f.`left` END AS other",
        )
    )


def wrong_broadcasts(decisions: DataFrame, queries: DataFrame) -> DataFrame:
    """Sides that Spark broadcast by their estimated size, and that were many times larger."""
    planned = _broadcasts(decisions)
    measured = (
        decisions.where("point = 'dynamic_join_selection' AND join_id IS NOT NULL")
        .selectExpr("log", "execution_id", "join_id", "explode(array(f.side, f.other)) AS m")
        .where("m.is_broadcast OR (m.is_finished AND m.is_plain_stage)")
        .groupBy("log", "execution_id", "join_id", _expr("m.is_left").alias("is_left"))
        .agg(_expr("max(m.size_in_bytes) AS measured_bytes"))
    )
    return (
        planned.join(measured, ["log", "execution_id", "join_id", "is_left"])
        .where(f"measured_bytes > greatest({_WRONG_BYTES}, {_WRONG} * s.size_in_bytes)")
        .join(queries.select("log", "execution_id", "task_ms"), ["log", "execution_id"])
        .groupBy("log", "execution_id")
        .agg(
            _expr("max(task_ms) AS stake_ms"),
            _expr(
                "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes AS "
                "estimated_bytes, measured_bytes), measured_bytes) AS evidence"
            ),
        )
    )


def failed_broadcasts(decisions: DataFrame, queries: DataFrame) -> DataFrame:
    """Queries that a broadcast ended, and that broadcast the guessed size of a side."""
    guessed = _broadcasts(decisions).where("s.estimate_from = 'GUESS' AND s.join_count = 0")
    return (
        queries.where(f"error RLIKE '{_TOO_LARGE}'")
        .select("log", "execution_id", "slot_ms", "error")
        .join(guessed, ["log", "execution_id"])
        .groupBy("log", "execution_id")
        .agg(
            _expr("max(slot_ms) AS stake_ms"),
            _expr(
                "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes AS "
                "estimated_bytes, left(error, 200) AS error), s.size_in_bytes) AS evidence"
            ),
        )
    )


def range_joins(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Broadcasts for joins with a range, in queries whose tasks take long for what they read."""
    ranges = (
        _broadcasts(decisions)
        .where(f"has_range AND s.size_in_bytes > {_RANGE_BYTES}")
        .where(f"other.size_in_bytes / {_RANGE_OTHER} <= s.size_in_bytes")
        .groupBy("log", "execution_id")
        .agg(
            _expr(
                "max_by(struct(subject, array_join(s.tables, ', ') AS tables, s.size_in_bytes "
                "AS estimated_bytes), s.size_in_bytes) AS worst"
            )
        )
    )
    return (
        slow(stages)
        .join(ranges, ["log", "execution_id"])
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(slot_ms) AS stake_ms"),
            _expr(
                "max_by(struct(worst.*, stage_id, num_tasks, read_bytes, max_task_ms), slot_ms) AS "
                "evidence"
            ),
        )
    )


def flipping(queries: DataFrame) -> DataFrame:
    """Runs of a query by joins that take longer than those that others of its runs had.

    Each way has several runs, and the fastest run of the slower way is slower than the median of
    the other: else it may be chance.
    """
    ways = (
        queries.where("fingerprint IS NOT NULL AND succeeded AND size(joins) > 0")
        .withColumn("way", _expr(_WAY))
        .groupBy("key", "way")
        .agg(
            _expr("count(*) AS runs"),
            _expr("percentile_approx(task_ms, 0.5) AS median_ms"),
            _expr("min(task_ms) AS least_ms"),
        )
        .where(f"runs >= {_FLIPS}")
    )
    best = ways.groupBy("key").agg(_expr("min_by(struct(way, runs, median_ms), median_ms) AS best"))
    slower = (
        ways.join(best, "key")
        .where("way != best.way AND least_ms > best.median_ms")
        .selectExpr("key", "way", "runs", "median_ms", "best")
    )
    return (
        queries.withColumn("way", _expr(_WAY))
        .where("succeeded")
        .join(slower, ["key", "way"])
        .selectExpr(
            *("log", "execution_id", "greatest(0L, task_ms - best.median_ms) AS stake_ms"),
            "struct(way, runs, median_ms, best.way AS best_way, best.runs AS best_runs, "
            "best.median_ms AS best_median_ms) AS evidence",
        )
    )
