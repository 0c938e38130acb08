"""Which shuffles and stages are uneven: partitions by the record, tasks by Spark's own events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from aqepilot.analysis.report.values import Shuffle, UnevenStage
from aqepilot.decision import unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_WORST = 12
# Below that, the largest partition is no longer called skewed.
_FACTOR = 2


def shuffles(decisions: DataFrame, queries: DataFrame) -> list[Shuffle]:
    """The shuffles with the largest partition furthest above the median, one of each query.

    Args:
        decisions: The result of `outcomes.narrowed`.
        queries: With their descriptions.
    """
    from pyspark.sql import functions

    each = decisions.where("size(shuffles) > 0").selectExpr(
        *("log", "execution_id", "fingerprint", "point", "policy", "applied", "spark_strategy"),
        *("final_strategy", "fate", "explode(shuffles) AS s"),
    )
    each = each.withColumn("tables", functions.expr("array_join(s.tables, ', ')"))
    # The same query's same shuffle, of many runs: its worst.
    key = "coalesce(fingerprint, concat(log, ' ', execution_id))"
    excess = "s.max_bytes - s.median_bytes"
    worst = (
        each.where(f"s.max_bytes > {_FACTOR} * s.median_bytes AND s.num_partitions > 1")
        .groupBy(functions.expr(key).alias("of"), "tables")
        .agg(
            functions.expr(
                f"max_by(struct(log, execution_id, fingerprint, s), struct({excess}, log)) AS w"
            )
        )
        .selectExpr("w.*", "tables")
        .orderBy(functions.expr(excess).desc(), "log", "execution_id", "tables")
        .limit(_WORST)
        .collect()
    )
    if not worst:
        return []
    at = functions.broadcast(
        queries.sparkSession.createDataFrame(
            [(w.log, w.execution_id, w.tables) for w in worst],
            "log string, execution_id bigint, tables string",
        )
    )
    descriptions = _descriptions(queries, [(w.log, w.execution_id) for w in worst])
    became = (
        each.join(at, ["log", "execution_id", "tables"], "left_semi")
        .where("applied OR policy IS NULL")
        .select(
            *("log", "execution_id", "tables", "point", "policy"),
            *("spark_strategy", "final_strategy", "fate"),
        )
        .distinct()
        .orderBy("point", "policy", "spark_strategy", "final_strategy")
        .limit(_WORST * 50)
        .collect()
    )
    outcomes: dict[tuple[str, int | None, str], list[str]] = {}
    for row in became:
        text = outcome(*row[3:])
        own = outcomes.setdefault((row.log, row.execution_id, row.tables), [])
        if text and text not in own:
            own.append(text)
    return [
        Shuffle(
            w.log,
            w.execution_id,
            w.fingerprint,
            descriptions.get((w.log, w.execution_id)),
            w.tables,
            sizes(w.s.bytes_by_partition_id),
            w.s.num_partitions,
            w.s.max_bytes,
            w.s.median_bytes,
            bool(w.s.bytes_are_exact),
            outcomes.get((w.log, w.execution_id, w.tables), [])[:6],
        )
        for w in worst
    ]


def outcome(
    point: str, policy: str | None, spark: str | None, ran: str | None, fate: str | None
) -> str | None:
    """Returns what a point made of a shuffle; null when the record does not say.

    >>> outcome("partition_coalescing", "small", "2 tasks", "1 task", "adopted")
    'partition_coalescing: Spark alone: 2 tasks; with small: 1 task (adopted).'
    """
    became = (fate or "not known").replace("_", " ")
    if policy is None:
        return f"{point}: left to Spark: {spark}." if spark else None
    if ran is None:
        return f"{point}: {policy} answered ({became})." if fate else None
    return f"{point}: Spark alone: {spark}; with {policy}: {ran} ({became})."


def sizes(text: str) -> list[int]:
    """Returns the sizes of partitions, also of packed facts; empty when they cannot be read.

    >>> sizes("[1,2]")
    [1, 2]
    """
    try:
        values = unpack(json.loads(text))
    except (ValueError, TypeError, KeyError):
        return []
    return [int(size) for size in values] if isinstance(values, list) else []


def stages(stages: DataFrame, queries: DataFrame, applications: DataFrame) -> list[UnevenStage]:
    """The stages whose longest task took longest beyond the median, milliseconds."""
    from pyspark.sql import functions

    wanted = "num_tasks >= 3 AND max_task_ms > 2 * median_task_ms"
    worst = (
        stages.where(wanted)
        # Not the times of each task, which are most of a row.
        .select(
            *("log", "execution_id", "stage_id", "stage_attempt_id", "name", "tasks"),
            *("max_task_ms", "median_task_ms"),
        )
        .join(functions.broadcast(applications.select("log", "app_name")), "log", "left")
        .orderBy(functions.expr("max_task_ms - median_task_ms").desc(), "log", "stage_id")
        .limit(_WORST)
        .collect()
    )
    descriptions = _descriptions(queries, [(w.log, w.execution_id) for w in worst])
    return [
        UnevenStage(
            w.app_name,
            w.execution_id,
            descriptions.get((w.log, w.execution_id)),
            w.stage_id,
            w.stage_attempt_id,
            w.name and w.name[:200],
            w.tasks,
            w.max_task_ms,
            w.median_task_ms,
        )
        for w in worst
    ]


def _descriptions(
    queries: DataFrame, keys: list[tuple[str, int | None]]
) -> dict[tuple[str, int | None], str | None]:
    """Descriptions of a few queries, by log and id."""
    from pyspark.sql import functions

    if not keys:
        return {}
    few = queries.sparkSession.createDataFrame(keys, "log string, execution_id bigint")
    rows = queries.join(functions.broadcast(few), ["log", "execution_id"], "left_semi").select(
        "log", "execution_id", "description"
    )
    return {(log, execution): description for log, execution, description in rows.collect()}
