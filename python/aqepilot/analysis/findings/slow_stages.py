"""Stages whose tasks take long for what they read, and how many rows one task has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# What a task of a Python worker of its own takes to start, some twenty times.
SLOW_MS = 2000
_SLOW_MS_PER_MB = 1000
UNEVEN = 3
HAS_SLOW_TASK = f"max_task_ms >= {SLOW_MS}"


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
        stages.where(HAS_SLOW_TASK)
        .withColumn("read_bytes", expr(read))
        .withColumn("is_slow", expr(is_slow))
        .where(only)
    )


def most_in_one(decisions: DataFrame) -> DataFrame:
    """Numbers of tasks that Spark merged shuffles to of which one partition has most bytes."""
    return (
        decisions.where("point = 'partition_coalescing'")
        .where("2 * f.shuffle.max_bytes > f.shuffle.shuffle_bytes AND f.shuffle.num_partitions > 1")
        .selectExpr("log", "execution_id", "f.spark.num_partitions AS num_tasks")
        .distinct()
    )


def stage_sentence(stage_id: int, read_bytes: int, num_tasks: int, max_task_ms: int) -> str:
    """Returns what a stage read, in how many tasks, and how long the longest took; no full stop."""
    return (
        f"Stage {stage_id} read {texts.size(read_bytes)} in "
        f"{texts.plural(num_tasks, 'task')}, the longest of {texts.duration(max_task_ms)}"
    )
