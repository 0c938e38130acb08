"""What logs show to be worth a policy, or a change of the job.

Few and right beats many: a finding is there only where the log has the cause, not where a figure
is merely large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot.analysis.costs import KEY
from aqepilot.analysis.findings import jobs, joins
from aqepilot.analysis.findings import stages as of_stages
from aqepilot.eventlog.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.eventlog.frames import Frames

KINDS = {
    "hot_key": "a join whose keys are uneven",
    "tiny_tasks": "thousands of tiny tasks",
    "spilling": "sorts that spill",
    "tiny_blocks": "shuffles of thousands of tiny blocks",
    "expanding": "few bytes that are much work",
    "wrong_broadcast": "a broadcast larger than estimated",
    "small_files": "a write of many small files",
    "failed_broadcast": "a broadcast that ended the query",
    "range_join": "a broadcast beside a range",
    "flipping": "a join whose strategy flips",
    "coalesce": "all work before a coalesce in few tasks",
    "one_group": "a window or group that has most rows",
    "not_in": "a NOT IN that compares all pairs of rows",
    "no_keys": "a join without keys that compares all pairs of rows",
}
_OFTEN = ("expanding", "range_join", "coalesce", "one_group", "not_in", "no_keys")
_MOST = 50
_QUERY = ["log", "execution_id"]
_SIDE = (
    "max_bytes: bigint, median_bytes: bigint, can_split: boolean, num_mappers: bigint, "
    "size_in_bytes: bigint, tables: array<string>, estimate_from: string, join_count: int"
)
_MEASURED = (
    "is_left: boolean, is_finished: boolean, is_broadcast: boolean, is_plain_stage: boolean, "
    "size_in_bytes: bigint"
)
# Of skew_join and join_selection, of partition_coalescing, and of dynamic_join_selection.
_FACTS = (
    f"`left` struct<{_SIDE}>, `right` struct<{_SIDE}>, "
    "`join` struct<type: string, is_replan: boolean, can_merge: boolean, has_condition: boolean>, "
    "spark struct<strategy: string, build_side: string, reason: string, num_partitions: int>, "
    "stage struct<has_generate: boolean, has_python_udf: boolean, has_exploding_join: boolean, "
    "has_grouped_udf: boolean, has_jvm_udf: boolean, has_loop: boolean, is_write: boolean>, "
    "`write` struct<dynamic_columns: array<string>>, cluster struct<default_parallelism: int>, "
    "shuffle struct<num_partitions: bigint, num_mappers: bigint, shuffle_bytes: bigint, "
    "max_bytes: bigint, non_empty_ratio: double, row_count: bigint>, "
    f"side struct<{_MEASURED}>, other struct<{_MEASURED}>"
)


# What executors had on average while a query ran.
_CORES = "CAST(round(executor_core_ms / nullif(wall_ms, 0)) AS int)"


_LONG = f"max_task_ms >= {of_stages.SLOW_MS}"
# What some stage has of a log with such a finding, and where it needs facts, their point.
_NEEDED = {
    "hot_key": f"shuffle_read_bytes > 0 AND {_LONG}",
    "tiny_tasks": "tiny_tasks > 0",
    "spilling": "disk_spill_bytes > 0",
    "tiny_blocks": "shuffle_write_bytes > 0 AND tiny_tasks = tasks",
    "small_files": "writing_tasks > 0",
    "expanding": f"shuffle_read_bytes > 0 AND {_LONG}",
    "range_join": _LONG,
    "coalesce": f"{_LONG} AND {jobs.COALESCES}",
    "one_group": f"{_LONG} AND {jobs.GROUPS}",
    "not_in": f"{_LONG} AND {jobs.NOT_IN}",
    "no_keys": f"{_LONG} AND {jobs.NO_KEYS}",
}
_POINTS = {
    "tiny_blocks": "partition_coalescing",
    "small_files": "write_distribution",
    "wrong_broadcast": "dynamic_join_selection",
    "failed_broadcast": "join_selection",
    "range_join": "join_selection",
}


class Found(NamedTuple):
    """What was found of one fingerprint, or of what stands for it.

    Attributes:
        kind: A key of `KINDS`.
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


def found(log: Frames) -> Iterator[Found]:
    """Yields what is worth a policy or a change, each kind's most expensive first."""
    named = log.queries.join(log.applications.select("log", "app_name"), "log", "left").selectExpr(
        *("log", "execution_id", "fingerprint", "left(description, 300) AS description"),
        *("app_name", "joins", "join_nodes", "task_ms", "slot_ms", "succeeded", "error"),
        *(f"{KEY} AS key", f"{_CORES} AS cores"),
    )
    facts = log.decisions.where("execution_id IS NOT NULL").selectExpr(
        *("log", "execution_id", "point", "join_id", "subject", "tables", "applied"),
        f"from_json(facts, '{_FACTS}') AS f",
    )
    # Each kind would read the logs again.
    queries = named.withColumn("runs_of_key", _expr("count(*) OVER (PARTITION BY key)")).persist()
    stages = (
        log.stages.where("waiting_ms IS NOT NULL AND execution_id IS NOT NULL")
        .drop("task_slot_ms")
        .join(queries.select("log", "execution_id", "key", "cores", "join_nodes"), _QUERY)
        .persist()
    )
    decisions = facts.persist()
    try:
        likely = _likely(stages, decisions)
        of_kind: dict[str, Callable[[], DataFrame]] = {
            "hot_key": lambda: joins.hot_keys(decisions, stages),
            "tiny_tasks": lambda: of_stages.tiny_tasks(stages),
            "tiny_blocks": lambda: of_stages.tiny_blocks(decisions, stages),
            "small_files": lambda: of_stages.small_files(decisions, stages),
            "spilling": lambda: of_stages.spilling(stages, queries),
            "expanding": lambda: of_stages.expanding(decisions, stages),
            "wrong_broadcast": lambda: joins.wrong_broadcasts(decisions, queries),
            "failed_broadcast": lambda: joins.failed_broadcasts(decisions, queries),
            "range_join": lambda: joins.range_joins(decisions, stages),
            "flipping": lambda: joins.flipping(queries),
            "coalesce": lambda: jobs.coalesced(stages),
            "one_group": lambda: jobs.one_group(decisions, stages),
            "not_in": lambda: jobs.not_in(stages),
            "no_keys": lambda: jobs.no_keys(stages),
        }
        for kind in (kind for kind in KINDS if kind in likely):
            yield from _rows(kind, of_kind[kind](), queries)
    finally:
        for frame in (queries, stages, decisions):
            frame.unpersist()


def _likely(stages: DataFrame, decisions: DataFrame) -> set[str]:
    """Kinds of which a log may have one: the others need no query of their own."""
    points = {row.point for row in decisions.select("point").distinct().collect()}
    figures = (f"coalesce(bool_or({text}), false) AS {kind}" for kind, text in _NEEDED.items())
    (has,) = stages.agg(*map(_expr, figures)).collect()
    return {
        kind
        for kind in KINDS
        if (kind not in _NEEDED or has[kind]) and _POINTS.get(kind, "") in {"", *points}
    }


def _rows(kind: str, frame: DataFrame, queries: DataFrame) -> list[Found]:
    """Puts a kind's rows, one per query, together by key; evidence is that of the worst query.

    Of some kinds half of the runs have to have one: else it may be what a cold start took once.
    """
    figures = [f"max({name}) AS {name}" for name in ("fingerprint", "description", "app_name")]
    figures += ["count(*) AS queries", "max(runs_of_key) AS runs", "sum(stake_ms) AS stake_ms"]
    figures += ["max_by(evidence, stake_ms) AS evidence"]
    named = queries.drop("joins", "join_nodes", "cores", "task_ms", "slot_ms", "succeeded", "error")
    rows = (
        frame.join(named, _QUERY)
        .groupBy("key")
        .agg(*map(_expr, figures))
        .where("stake_ms > 0" + (" AND 2 * queries >= runs" if kind in _OFTEN else ""))
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
