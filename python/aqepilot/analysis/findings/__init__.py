"""What logs show to be worth a policy, or a change of the job.

Few and right beats many: a finding is there only where the log has the cause, not where a figure
is merely large.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from aqepilot.analysis.costs import KEY
from aqepilot.analysis.findings.broadcasts import FailedBroadcast, RangeJoin, WrongBroadcast
from aqepilot.analysis.findings.finding import Finding, Runs, Sources
from aqepilot.analysis.findings.jobs import Coalesce, NoKeys, NotIn, OneGroup
from aqepilot.analysis.findings.joins import Flipping, HotKey
from aqepilot.analysis.findings.recurring import ManyPartitions, SkewedRuns, SmallSide
from aqepilot.analysis.findings.sizes import SmallFiles, TinyBlocks, TinyTasks
from aqepilot.analysis.findings.tasks import Expanding, Spilling
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames

FINDINGS: tuple[type[Finding], ...] = (
    HotKey,
    TinyTasks,
    Spilling,
    TinyBlocks,
    Expanding,
    WrongBroadcast,
    SmallFiles,
    FailedBroadcast,
    RangeJoin,
    Flipping,
    SkewedRuns,
    SmallSide,
    ManyPartitions,
    Coalesce,
    OneGroup,
    NotIn,
    NoKeys,
)
AT_ONCE = 4
KINDS = {finding.kind: finding.title for finding in FINDINGS}
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


def find(log: Frames) -> Iterator[Finding]:
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
    queries = named.withColumns(
        {
            "runs_of_key": expr("count(*) OVER (PARTITION BY key)"),
            "application_ms": expr("coalesce(sum(slot_ms) OVER (PARTITION BY log), 0)"),
        }
    ).persist()
    stages = (
        log.stages.where("waiting_ms IS NOT NULL AND execution_id IS NOT NULL")
        .drop("task_slot_ms")
        .join(queries.select("log", "execution_id", "key", "cores", "join_nodes"), _QUERY)
        .persist()
    )
    sub_plans = log.sub_plans.drop("fingerprint", "job", "run").join(
        queries.select("log", "execution_id", "key", "cores", "joins"), _QUERY
    )
    sources = Sources(queries, stages, facts.persist(), sub_plans.persist())
    try:
        # Of a small log, most of the time is Spark's planning, which has one thread for each query.
        with ThreadPoolExecutor(AT_ONCE, "aqepilot-findings") as pool:
            for each in pool.map(partial(_worst, sources=sources), _likely(sources)):
                yield from each
    finally:
        for frame in sources:
            frame.unpersist()


def _likely(sources: Sources) -> list[type[Finding]]:
    """Kinds of which a log may have one: the others need no query of their own."""
    points = {row.point for row in sources.decisions.select("point").distinct().collect()}
    has_sub_plans = bool(sources.sub_plans.take(1))
    has_stage = sources.stages.agg(
        *(
            expr(f"coalesce(bool_or({finding.needed_stage or 'true'}), false) AS {finding.kind}")
            for finding in FINDINGS
        )
    ).collect()[0]
    return [
        finding
        for finding in FINDINGS
        if (not finding.needed_stage or has_stage[finding.kind])
        and finding.needed_point in {"", *points}
        and (has_sub_plans or not finding.needs_history)
    ]


def _worst(finding: type[Finding], sources: Sources) -> list[Finding]:
    """Puts a kind's rows, one per query, together by key; evidence is that of the worst query."""
    figures = [f"max({name}) AS {name}" for name in ("fingerprint", "description", "app_name")]
    figures += ["count(*) AS queries", "max(runs_of_key) AS runs", "sum(stake_ms) AS stake_ms"]
    figures += ["max_by(evidence, stake_ms) AS evidence"]
    figures += ["collect_set(struct(log, application_ms)) AS applications"]
    named = sources.queries.drop(
        "joins", "join_nodes", "cores", "task_ms", "slot_ms", "succeeded", "error"
    )
    rows = (
        finding.rows(sources)
        .join(named, _QUERY)
        .groupBy("key")
        .agg(*map(expr, figures))
        .where("stake_ms > 0" + (" AND 2 * queries >= runs" if finding.is_of_most_runs else ""))
        .orderBy("stake_ms", "key", ascending=[False, True])
        .limit(_MOST)
        .collect()
    )
    return [
        finding(
            runs=Runs(
                *(row.key, row.fingerprint, row.description, row.app_name, row.queries),
                *(int(row.stake_ms), sum(one.application_ms for one in row.applications)),
            ),
            **row.evidence.asDict(),
        )
        for row in rows
    ]
