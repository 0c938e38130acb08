"""What logs show to be worth a policy.

Few and right beats many: a finding is there only where the log has the cause, not where a figure
is merely large.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot.log import finding_joins as joins
from aqepilot.log import finding_stages as of_stages
from aqepilot.log.costs import KEY
from aqepilot.log.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.log import Log

_MOST = 50
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
    "is_write: boolean>, cluster struct<default_parallelism: int>, "
    "shuffle struct<num_partitions: bigint, num_mappers: bigint, shuffle_bytes: bigint, "
    "row_count: bigint>, "
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
        *("app_name", "joins", "task_ms", "slot_ms", "succeeded", "error", f"{KEY} AS key"),
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
            "hot_key": joins.hot_keys(decisions, stages),
            "tiny_tasks": of_stages.tiny_tasks(stages, queries),
            "tiny_blocks": of_stages.tiny_blocks(decisions, stages, queries),
            "spilling": of_stages.spilling(stages, queries),
            "expanding": of_stages.expanding(decisions, stages, queries),
            "wrong_broadcast": joins.wrong_broadcasts(decisions, queries),
            "failed_broadcast": joins.failed_broadcasts(decisions, queries),
            "range_join": joins.range_joins(decisions, stages, queries),
            "flipping": joins.flipping(queries),
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
    named = queries.drop("joins", "task_ms", "slot_ms", "succeeded", "error")
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
