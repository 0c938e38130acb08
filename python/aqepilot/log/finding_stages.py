"""Findings about stages: each kind by a query of its own, with its thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.log.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TINY = 1000
_TINY_SHARE = 0.1
_BLOCKS = 5_000
_BLOCK_BYTES = 1 << 10
_SPILLED_SHARE = 0.1
_SLOW_MS = 2000
_SLOW_MS_PER_MB = 1000
_UNEVEN = 3


def slow(stages: DataFrame) -> DataFrame:
    """Stages whose longest task ran for seconds, and longer than a second for each MB that it read.

    By what it read on average: a task that has most of the rows is another finding.
    """
    read = "(input_bytes + shuffle_read_bytes)"
    return stages.withColumn("read_bytes", _expr(read)).where(
        f"max_task_ms >= {_SLOW_MS} AND "
        f"max_task_ms > {_SLOW_MS_PER_MB} * (read_bytes / greatest(num_tasks, 1)) / {1 << 20}"
    )


def with_key(found: DataFrame, queries: DataFrame) -> DataFrame:
    """Adds what the runs of one query have in common."""
    return found.join(queries.select("log", "execution_id", "key"), ["log", "execution_id"])


def often(found: DataFrame, queries: DataFrame) -> DataFrame:
    """Rows of queries of which half of the runs have one: not what a cold start took once."""
    runs = queries.groupBy("key").agg(_expr("count(*) AS runs"))
    return (
        with_key(found, queries)
        .withColumn("found", _expr("count(*) OVER (PARTITION BY key)"))
        .join(runs, "key")
        .where("2 * found >= runs")
        .drop("key", "found", "runs")
    )


def tiny_tasks(stages: DataFrame, queries: DataFrame) -> DataFrame:
    """Queries whose thousands of tasks after shuffles take longer to start than to run."""
    started = (
        stages.where("shuffle_read_bytes > 0")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(tiny_start_ms) AS stake_ms"),
            _expr("sum(tiny_tasks) AS tiny_tasks"),
            _expr("sum(num_tasks) AS tasks"),
            _expr("sum(slot_ms) AS slot_ms"),
            _expr("sum(shuffle_read_bytes) AS shuffle_read_bytes"),
        )
    )
    return (
        with_key(started, queries)
        .withColumn("of_all_runs", _expr("sum(tiny_tasks) OVER (PARTITION BY key)"))
        .where(f"of_all_runs >= {_TINY} AND stake_ms >= {_TINY_SHARE} * slot_ms")
        .selectExpr(
            *("log", "execution_id", "stake_ms"),
            "struct(of_all_runs, tiny_tasks, tasks, shuffle_read_bytes) AS evidence",
        )
    )


def tiny_blocks(decisions: DataFrame, stages: DataFrame, queries: DataFrame) -> DataFrame:
    """Queries of short tasks whose shuffles had thousands of tiny blocks, most of them merged.

    Each was written, registered and fetched by itself.
    """
    merged = (
        decisions.where("point = 'partition_coalescing'")
        .selectExpr(
            *("log", "execution_id", "f.spark.num_partitions AS tasks"),
            "f.shuffle.num_partitions AS partitions",
            "f.shuffle.num_partitions * f.shuffle.num_mappers AS blocks",
            "f.shuffle.shuffle_bytes AS bytes",
        )
        .where(f"bytes < {_BLOCK_BYTES} * blocks AND partitions >= 8 * tasks")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(blocks) AS blocks"),
            _expr("max_by(struct(partitions, tasks, bytes), blocks) AS shuffle"),
        )
    )
    short = (
        stages.where("shuffle_write_bytes > 0 AND tiny_tasks = tasks")
        .groupBy("log", "execution_id")
        .agg(_expr("sum(slot_ms) AS stake_ms"))
    )
    return (
        with_key(merged.join(short, ["log", "execution_id"]), queries)
        .withColumn("of_all_runs", _expr("sum(blocks) OVER (PARTITION BY key)"))
        .where(f"of_all_runs >= {_BLOCKS}")
        .selectExpr(
            *("log", "execution_id", "stake_ms"), "struct(of_all_runs, shuffle.*) AS evidence"
        )
    )


def spilling(stages: DataFrame, queries: DataFrame) -> DataFrame:
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


def expanding(decisions: DataFrame, stages: DataFrame, queries: DataFrame) -> DataFrame:
    """Stages with much work for each byte, in fewer tasks than there were slots.

    Rows become many there, or each is handed to Python: so the facts of partition_coalescing say.
    A stage that waits for one task has another finding: more tasks do not shorten that one.
    """
    wanted = "least(f.cluster.default_parallelism, coalesce(f.shuffle.row_count, 0) div 1000)"
    few = (
        decisions.where("point = 'partition_coalescing' AND NOT applied AND NOT f.stage.is_write")
        .where("f.stage.has_generate OR f.stage.has_python_udf OR f.stage.has_exploding_join")
        .where(f"f.spark.num_partitions < {wanted}")
        .groupBy("log", "execution_id")
        .agg(
            _expr(f"max({wanted}) AS places"),
            _expr("bool_or(f.stage.has_python_udf) AS has_python"),
        )
    )
    found = (
        slow(stages)
        .where("shuffle_read_bytes > 0")
        .join(few, ["log", "execution_id"])
        .where(f"num_tasks < places AND max_task_ms <= {_UNEVEN} * median_task_ms")
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(slot_ms) AS stake_ms"),
            _expr(
                "max_by(struct(stage_id, num_tasks, read_bytes, max_task_ms, places, has_python), "
                "slot_ms) AS evidence"
            ),
        )
    )
    return often(found, queries)
