"""What logs show to be worth a policy: each kind by a query of its own, with its thresholds.

Few and right beats many: a finding is there only where the log has the cause, not where a figure
is merely large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot.log.costs import KEY
from aqepilot.log.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.log import Log

_MOST = 50
# A stage's cores wait for skew only where that is a good part of their time.
_WAITING = 0.2
_SKEW = 4
_SKEW_BYTES = 4 << 20
_TINY = 1000
_TINY_SHARE = 0.1
_SPILLED_SHARE = 0.1
_EXPLODES = 8
_EXPLODES_BYTES = 16 << 20
_WRONG = 4
_WRONG_BYTES = 16 << 20
_FLIPS = 3
_WAY = "array_join(transform(joins, j -> split_part(j, ' ', 1)), ', ')"

_SIDE = (
    "max_bytes: bigint, median_bytes: bigint, can_split: boolean, num_mappers: bigint, "
    "size_in_bytes: bigint, tables: array<string>"
)
_MEASURED = (
    "is_left: boolean, is_finished: boolean, is_broadcast: boolean, is_plain_stage: boolean, "
    "size_in_bytes: bigint"
)
# Of skew_join and join_selection, of partition_coalescing, and of dynamic_join_selection.
_FACTS = (
    f"`left` struct<{_SIDE}>, `right` struct<{_SIDE}>, `join` struct<is_replan: boolean>, "
    "spark struct<strategy: string, build_side: string, reason: string>, "
    "stage struct<has_generate: boolean, has_exploding_join: boolean>, "
    f"side struct<{_MEASURED}>, other struct<{_MEASURED}>"
)


class Found(NamedTuple):
    """What was found of one fingerprint, or of what stands for it.

    Attributes:
        kind: A key of `suggestions.KINDS`.
        key: As in `costs`.
        fingerprint: Null of queries without a decision.
        description: Of one of the queries; null when there is none.
        app_name: Of one of the applications.
        queries: How many it is about.
        stake_ms: The slot time that it is about, milliseconds: the most that could be had.
        evidence: The figures, by what they are called in the finding's sentence.
    """

    kind: str
    key: str
    fingerprint: str | None
    description: str | None
    app_name: str | None
    queries: int
    stake_ms: int
    evidence: dict[str, Any]


def found(log: Log) -> Iterator[Found]:
    """Yields what is worth a policy, each kind's most expensive first."""
    of = log.queries.join(log.applications.select("log", "app_name"), "log", "left").selectExpr(
        *("log", "execution_id", "fingerprint", "left(description, 300) AS description"),
        *("app_name", "joins", "task_ms", "slot_ms", "succeeded", f"{KEY} AS key"),
    )
    known = log.stages.where("waiting_ms IS NOT NULL AND execution_id IS NOT NULL")
    facts = log.decisions.where("execution_id IS NOT NULL").selectExpr(
        *("log", "execution_id", "point", "join_id", "subject", "tables", "applied"),
        f"from_json(facts, '{_FACTS}') AS f",
    )
    # Each kind would read the logs again.
    kept = (of.persist(), known.drop("task_slot_ms").persist(), facts.persist())
    queries, stages, decisions = kept
    try:
        for kind, rows in {
            "hot_key": _hot_keys(decisions, stages),
            "tiny_tasks": _tiny_tasks(stages),
            "spilling": _spilling(stages, queries),
            "exploding": _exploding(decisions, stages),
            "wrong_broadcast": _wrong_broadcasts(decisions, queries),
            "flipping": _flipping(queries),
        }.items():
            yield from _rows(kind, rows, queries)
    finally:
        for frame in kept:
            frame.unpersist()


def _rows(kind: str, frame: DataFrame, queries: DataFrame) -> list[Found]:
    """Puts a kind's rows, one per query, together by key; evidence is that of the worst query."""
    figures = [f"max({name}) AS {name}" for name in ("fingerprint", "description", "app_name")]
    figures += ["count(*) AS queries", "sum(stake_ms) AS stake_ms"]
    figures += ["max_by(evidence, stake_ms) AS evidence"]
    named = queries.drop("joins", "task_ms", "slot_ms", "succeeded")
    rows = (
        frame.join(named, ["log", "execution_id"])
        .groupBy("key")
        .agg(*map(_expr, figures))
        .where("stake_ms > 0")
        .orderBy("stake_ms", "key", ascending=[False, True])
        .limit(_MOST)
        .collect()
    )
    return [
        Found(
            kind,
            *(row.key, row.fingerprint, row.description, row.app_name, row.queries),
            int(row.stake_ms),
            row.evidence.asDict(),
        )
        for row in rows
    ]


def _hot_keys(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Joins of which a side that may be split is uneven, in queries whose cores waited."""
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
    waited = (
        stages.where(f"shuffle_read_bytes > 0 AND waiting_ms > {_WAITING} * slot_ms")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(waiting_ms) AS stake_ms"),
            _expr("max_by(struct(stage_id, max_task_ms, median_task_ms), waiting_ms) AS stage"),
        )
    )
    return uneven.join(waited, ["log", "execution_id"]).selectExpr(
        *("log", "execution_id", "stake_ms"),
        "struct(worst.subject, worst.tables, worst.s.max_bytes, worst.s.median_bytes, stage.*) "
        "AS evidence",
    )


def _tiny_tasks(stages: DataFrame) -> DataFrame:
    """Queries with thousands of tasks after shuffles that take longer to start than to run."""
    return (
        stages.where("shuffle_read_bytes > 0")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(tiny_start_ms) AS stake_ms"),
            _expr("sum(tiny_tasks) AS tiny_tasks"),
            _expr("sum(num_tasks) AS tasks"),
            _expr("sum(slot_ms) AS slot_ms"),
            _expr("sum(shuffle_read_bytes) AS shuffle_read_bytes"),
        )
        .where(f"tiny_tasks >= {_TINY} AND stake_ms >= {_TINY_SHARE} * slot_ms")
        .selectExpr(
            *("log", "execution_id", "stake_ms"),
            "struct(tiny_tasks, tasks, shuffle_read_bytes) AS evidence",
        )
    )


def _spilling(stages: DataFrame, queries: DataFrame) -> DataFrame:
    """Stages after shuffles that spilled, of queries whose joins sort."""
    sorts = queries.where("exists(joins, j -> startswith(j, 'SortMergeJoin'))")
    return (
        stages.where("shuffle_read_bytes > 0")
        .join(sorts.select("log", "execution_id"), ["log", "execution_id"], "left_semi")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(spilled_slot_ms) AS stake_ms"),
            _expr("sum(slot_ms) AS slot_ms"),
            _expr("sum(disk_spill_bytes) AS disk_spill_bytes"),
            _expr("max_by(struct(stage_id, num_tasks, shuffle_read_bytes), disk_spill_bytes) AS s"),
        )
        .where(f"stake_ms >= {_SPILLED_SHARE} * slot_ms AND disk_spill_bytes > 0")
        .selectExpr(
            *("log", "execution_id", "stake_ms"), "struct(disk_spill_bytes, s.*) AS evidence"
        )
    )


def _exploding(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Stages after shuffles that put out many times what they read, by a generator or such a join.

    That they have one is in the facts of partition_coalescing.
    """
    generating = (
        decisions.where("point = 'partition_coalescing' AND NOT applied")
        .where("f.stage.has_generate OR f.stage.has_exploding_join")
        .select("log", "execution_id")
        .distinct()
    )
    made = "shuffle_write_bytes + output_bytes + disk_spill_bytes"
    return (
        stages.where(f"shuffle_read_bytes > 0 AND {made} > {_EXPLODES_BYTES}")
        .where(f"{made} > {_EXPLODES} * (shuffle_read_bytes + input_bytes)")
        .join(generating, ["log", "execution_id"], "left_semi")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(slot_ms) AS stake_ms"),
            _expr(
                "max_by(struct(stage_id, num_tasks, shuffle_read_bytes, "
                f"{made} AS made_bytes), slot_ms) AS evidence"
            ),
        )
    )


def _wrong_broadcasts(decisions: DataFrame, queries: DataFrame) -> DataFrame:
    """Sides that Spark broadcast by their estimated size, and that were many times larger."""
    planned = (
        decisions.where("point = 'join_selection' AND NOT applied AND join_id IS NOT NULL")
        .where("NOT f.join.is_replan AND f.spark.strategy = 'BROADCAST'")
        .where("f.spark.reason = 'SIZE'")
        .selectExpr(
            *("log", "execution_id", "join_id", "subject"),
            "f.spark.build_side = 'LEFT' AS is_left",
            "CASE WHEN f.spark.build_side = 'LEFT' THEN f.`left` ELSE f.`right` END AS s",
        )
    )
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


def _flipping(queries: DataFrame) -> DataFrame:
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
