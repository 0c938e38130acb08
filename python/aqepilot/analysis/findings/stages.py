"""Findings about stages: each kind by a query of its own, with its thresholds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.eventlog.events import expr as _expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TINY = 1000
# A file that is read counts for so much beside its bytes: spark.sql.files.openCostInBytes.
_FILE_BYTES = 4 << 20
_FILE_TARGET = 128 << 20
_FILES = 32
_FILES_BY_TARGET = 4
_TINY_SHARE = 0.1
_BLOCKS = 5_000
_BLOCK_BYTES = 1 << 10
_SPILLED_SHARE = 0.1
# What a disk takes to write a megabyte and to read it, milliseconds.
_DISK_MS_PER_MB = 20
# What a task of a Python worker of its own takes to start, some twenty times.
SLOW_MS = 2000
_SLOW_MS_PER_MB = 1000
UNEVEN = 3


def slow(stages: DataFrame, only: str = "is_slow") -> DataFrame:
    """Stages whose longest task ran for seconds, and longer than a second for each MB that it read.

    By what it read on average: a task that has most of the rows is another finding.

    Args:
        stages: With their figures.
        only: Which of the stages whose longest task ran for seconds.
    """
    read = "(input_bytes + shuffle_read_bytes)"
    is_slow = f"max_task_ms > {_SLOW_MS_PER_MB} * (read_bytes / greatest(num_tasks, 1)) / {1 << 20}"
    return (
        stages.where(f"max_task_ms >= {SLOW_MS}")
        .withColumn("read_bytes", _expr(read))
        .withColumn("is_slow", _expr(is_slow))
        .where(only)
    )


def tiny_tasks(stages: DataFrame) -> DataFrame:
    """Queries whose thousands of tasks after shuffles take longer to start than to run.

    A cached relation keeps the partitions of the shuffle that it was read from.
    """
    cached = "has_shuffled AND array_contains(operators, 'InMemoryTableScan')"
    started = (
        stages.where(f"shuffle_read_bytes > 0 OR ({cached})")
        .groupBy("log", "execution_id", "key")
        .agg(
            _expr("sum(tiny_start_ms) AS stake_ms"),
            _expr("sum(tiny_tasks) AS tiny_tasks"),
            _expr("sum(num_tasks) AS tasks"),
            _expr("sum(slot_ms) AS slot_ms"),
            _expr("sum(shuffle_read_bytes) AS shuffle_read_bytes"),
            _expr(f"coalesce(bool_or({cached}), false) AS is_cached"),
        )
    )
    return (
        started.withColumn("of_all_runs", _expr("sum(tiny_tasks) OVER (PARTITION BY key)"))
        .where(f"of_all_runs >= {_TINY} AND stake_ms >= {_TINY_SHARE} * slot_ms")
        .selectExpr(
            *("log", "execution_id", "stake_ms"),
            "struct(of_all_runs, tiny_tasks, tasks, shuffle_read_bytes, is_cached) AS evidence",
        )
    )


def tiny_blocks(decisions: DataFrame, stages: DataFrame) -> DataFrame:
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
        .groupBy("log", "execution_id", "key")
        .agg(_expr("sum(slot_ms) AS stake_ms"))
    )
    return (
        merged.join(short, ["log", "execution_id"])
        .withColumn("of_all_runs", _expr("sum(blocks) OVER (PARTITION BY key)"))
        .where(f"of_all_runs >= {_BLOCKS}")
        .selectExpr(
            *("log", "execution_id", "stake_ms"), "struct(of_all_runs, shuffle.*) AS evidence"
        )
    )


def spilling(stages: DataFrame, queries: DataFrame) -> DataFrame:
    """Stages after shuffles that spilled much for their time, of queries whose joins sort."""
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
        .where(f"stake_ms >= {_SPILLED_SHARE} * slot_ms")
        .where(f"{_DISK_MS_PER_MB} * disk_spill_bytes >= {_SPILLED_SHARE} * slot_ms * {1 << 20}")
        .selectExpr(
            *("log", "execution_id", "stake_ms"), "struct(disk_spill_bytes, s.*) AS evidence"
        )
    )


def _merged(decisions: DataFrame) -> DataFrame:
    """Numbers of tasks that Spark merged shuffles to, below what their rows were worth.

    As the recipe expanding_stages counts: a Python worker takes as long to start as a thousand rows
    of little work, and a task of the JVM a tenth of that.
    """
    rows = "coalesce(f.shuffle.row_count, 0)"
    groups = "int(f.shuffle.num_partitions * f.shuffle.non_empty_ratio)"
    in_python = "coalesce(f.stage.has_python_udf, false)"
    grouped = "coalesce(f.stage.has_grouped_udf, false)"
    multiplies = "(f.stage.has_generate OR f.stage.has_exploding_join)"
    in_jvm = "(f.stage.has_jvm_udf OR f.stage.has_loop)"
    worth = (
        f"CASE WHEN {grouped} THEN {groups} "
        f"WHEN ({in_python} OR {multiplies}) AND NOT coalesce({in_jvm}, false) "
        f"THEN {rows} div 1000 ELSE {rows} div 100 END"
    )
    return (
        decisions.where("point = 'partition_coalescing' AND NOT applied AND NOT f.stage.is_write")
        .selectExpr(
            *("log", "execution_id", "f.spark.num_partitions AS num_tasks"),
            f"least(f.cluster.default_parallelism, {worth}) AS places",
            f"{in_python} OR {grouped} AS has_python",
            f"coalesce({multiplies}, false) AS multiplies",
            f"coalesce({in_python} OR {grouped} OR {multiplies} OR {in_jvm}, false) AS has_recipe",
        )
        .where("num_tasks < places")
        .groupBy("log", "execution_id", "num_tasks")
        .agg(
            *(
                _expr(f"{how}({name}) AS {name}")
                for how, name in (
                    ("max", "places"),
                    ("bool_or", "has_python"),
                    ("bool_or", "multiplies"),
                    ("bool_or", "has_recipe"),
                )
            )
        )
    )


def expanding(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Stages with much work for each byte, in fewer tasks than there were slots.

    Spark merged what they read, by its bytes: so the facts of partition_coalescing say or, where it
    was not asked, the operators. A stage that waits for one task has another finding, as has one of
    which most rows are in one partition: more tasks do not shorten that one.
    """
    asked = (
        decisions.where("point = 'partition_coalescing'").select("log", "execution_id").distinct()
    )
    even = (
        slow(stages)
        .where(f"shuffle_read_bytes > 0 AND max_task_ms <= {UNEVEN} * median_task_ms")
        .join(most_in_one(decisions), ["log", "execution_id", "num_tasks"], "left_anti")
    )
    with_facts = even.join(_merged(decisions), ["log", "execution_id", "num_tasks"])
    without = (
        even.join(asked, ["log", "execution_id"], "left_anti")
        .where("array_contains(operators, 'AQEShuffleRead')")
        .where("NOT array_contains(operators, 'WriteFiles') AND output_bytes = 0")
        .withColumn("places", _expr("least(cores, shuffle_read_records div 100)"))
        .where("num_tasks < places")
        .withColumn("has_python", _expr("exists(operators, o -> o RLIKE 'InPandas|Python')"))
        .withColumns({"multiplies": _expr("false"), "has_recipe": _expr("true")})
    )
    names = (
        *("log", "execution_id", "slot_ms", "stage_id", "num_tasks", "read_bytes", "max_task_ms"),
        *("places", "has_python", "multiplies", "has_recipe"),
    )
    return (
        with_facts.selectExpr(*names)
        .unionByName(without.selectExpr(*names))
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(slot_ms) AS stake_ms"),
            _expr(f"max_by(struct({', '.join(names[3:])}), slot_ms) AS evidence"),
        )
    )


def most_in_one(decisions: DataFrame) -> DataFrame:
    """Numbers of tasks that Spark merged shuffles to of which one partition has most bytes."""
    return (
        decisions.where("point = 'partition_coalescing'")
        .where("2 * f.shuffle.max_bytes > f.shuffle.shuffle_bytes AND f.shuffle.num_partitions > 1")
        .selectExpr("log", "execution_id", "f.spark.num_partitions AS num_tasks")
        .distinct()
    )


def small_files(decisions: DataFrame, stages: DataFrame) -> DataFrame:
    """Writes into partitions whose tasks each write files that cost more to open than to read."""
    partitioned = (
        decisions.where("point = 'write_distribution' AND NOT applied")
        .where("size(f.`write`.dynamic_columns) > 0")
        .groupBy("log", "execution_id")
        .agg(_expr("max(subject) AS subject"), _expr("max(tables) AS tables"))
    )
    needed = f"greatest(1, ceil(output_bytes / {_FILE_TARGET}))"
    return (
        stages.where(
            f"writing_tasks >= greatest({_FILES}, {_FILES_BY_TARGET} * {needed}) "
            f"AND output_bytes < {_FILE_BYTES} * writing_tasks"
        )
        .join(partitioned, ["log", "execution_id"])
        .groupBy("log", "execution_id")
        .agg(
            _expr("sum(slot_ms) AS stake_ms"),
            _expr(
                "max_by(struct(subject, tables, writing_tasks, output_bytes), writing_tasks) "
                "AS evidence"
            ),
        )
    )
