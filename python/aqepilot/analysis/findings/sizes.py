"""Tasks, blocks and files that are tiny: their start or their opening costs more than the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.findings.finding import Finding, Sources, SuggestedPolicy
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TINY = 1000
_TINY_SHARE = 0.1
_BLOCKS = 5_000
_BLOCK_BYTES = 16 << 10
# A block has its file, its streams and their buffers, some tenths of a millisecond of a core. In a
# task that takes longer than that for each, they are a small part.
_BLOCK_MS = 2
# Up to so many partitions each has a file: spark.shuffle.sort.bypassMergeThreshold.
_MOST_FILES = 200
# A file that is read counts for so much beside its bytes: spark.sql.files.openCostInBytes.
_FILE_BYTES = 4 << 20
_FILE_TARGET = 128 << 20
_FILES = 32
_FILES_BY_TARGET = 4


@dataclass(frozen=True, kw_only=True)
class TinyTasks(Finding):
    """A query whose thousands of tasks after shuffles take longer to start than to run.

    A cached relation keeps the partitions of the shuffle that it was read from.
    """

    kind = "tiny_tasks"
    title = "thousands of tiny tasks"
    needed_stage = "tiny_tasks > 0"

    of_all_runs: int
    tiny_tasks: int
    tasks: int
    shuffle_read_bytes: int
    is_cached: bool

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        cached = "has_shuffled AND array_contains(operators, 'InMemoryTableScan')"
        started = (
            sources.stages.where(f"shuffle_read_bytes > 0 OR ({cached})")
            .groupBy("log", "execution_id", "key")
            .agg(
                expr("sum(tiny_start_ms) AS stake_ms"),
                expr("sum(tiny_tasks) AS tiny_tasks"),
                expr("sum(num_tasks) AS tasks"),
                expr("sum(slot_ms) AS slot_ms"),
                expr("sum(shuffle_read_bytes) AS shuffle_read_bytes"),
                expr(f"coalesce(bool_or({cached}), false) AS is_cached"),
            )
        )
        return (
            started.withColumn("of_all_runs", expr("sum(tiny_tasks) OVER (PARTITION BY key)"))
            .where(f"of_all_runs >= {_TINY} AND stake_ms >= {_TINY_SHARE} * slot_ms")
            .selectExpr(
                *("log", "execution_id", "stake_ms"),
                "struct(of_all_runs, tiny_tasks, tasks, shuffle_read_bytes, is_cached) AS evidence",
            )
        )

    def sentence(self) -> str:
        where, cached = "after shuffles", ""
        if self.is_cached:
            where = "after shuffles or of what is cached from them"
            cached = (
                " What is cached keeps the partitions of its shuffle, and each query has a task "
                "for each."
            )
        return (
            f"{texts.number(self.tiny_tasks)} of {texts.number(self.tasks)} tasks {where} "
            f"ran for less than 200 ms; together they read {texts.size(self.shuffle_read_bytes)} "
            f"of shuffles.{cached} All runs had {texts.number(self.of_all_runs)} such tasks. What "
            "is at stake is their start alone."
        )

    def policy(self) -> SuggestedPolicy | None:
        return self.policy_file(*self.recipe("right_sized_shuffles"), self.is_cached)


@dataclass(frozen=True, kw_only=True)
class TinyBlocks(Finding):
    """A query of short tasks whose shuffles had thousands of tiny blocks, most of them merged.

    Each was written, registered and fetched by itself.
    """

    kind = "tiny_blocks"
    title = "shuffles of thousands of tiny blocks"
    needed_stage = f"shuffle_write_bytes > 0 AND task_ms < {_BLOCK_MS * _MOST_FILES} * tasks"
    needed_point = "partition_coalescing"

    of_application: int
    partitions: int
    tasks: int
    bytes: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        merged = (
            sources.decisions.where("point = 'partition_coalescing'")
            .selectExpr(
                *("log", "execution_id", "f.spark.num_partitions AS tasks"),
                "f.shuffle.num_partitions AS partitions",
                "f.shuffle.num_partitions * f.shuffle.num_mappers AS blocks",
                "f.shuffle.shuffle_bytes AS bytes",
            )
            .where(f"bytes < {_BLOCK_BYTES} * blocks AND partitions >= 8 * tasks")
            .groupBy("log", "execution_id")
            .agg(
                expr("sum(blocks) AS blocks"),
                expr("max_by(struct(partitions, tasks, bytes), blocks) AS shuffle"),
            )
        )
        bound = f"{_BLOCK_MS} * least(shuffle.partitions, {_MOST_FILES})"
        short = (
            sources.stages.where(TinyBlocks.needed_stage)
            .join(merged, ["log", "execution_id"])
            .where(f"task_ms < {bound} * tasks")
            .groupBy("log", "execution_id", "blocks", "shuffle")
            .agg(expr("sum(slot_ms) AS stake_ms"))
        )
        return (
            short.withColumn("of_application", expr("sum(blocks) OVER (PARTITION BY log)"))
            .where(f"of_application >= {_BLOCKS}")
            .selectExpr(
                *("log", "execution_id", "stake_ms"),
                "struct(of_application, shuffle.*) AS evidence",
            )
        )

    def sentence(self) -> str:
        return (
            f"A shuffle of {texts.size(self.bytes)} was written in {self.partitions} partitions "
            f"and read by {texts.plural(self.tasks, 'task')}. Such shuffles of the application had "
            f"{texts.number(self.of_application)} blocks of less than "
            f"{texts.size(_BLOCK_BYTES)} on average. What is at stake is the tasks that wrote them."
        )

    def policy(self) -> SuggestedPolicy | None:
        return self.policy_file(*self.recipe("right_sized_shuffles"))


@dataclass(frozen=True, kw_only=True)
class SmallFiles(Finding):
    """A write into partitions whose tasks each write files that cost more to open than to read."""

    kind = "small_files"
    title = "a write of many small files"
    needed_stage = "writing_tasks > 0"
    needed_point = "write_distribution"

    subject: str
    tables: str
    writing_tasks: int
    output_bytes: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        partitioned = (
            sources.decisions.where("point = 'write_distribution' AND NOT applied")
            .where("size(f.`write`.dynamic_columns) > 0")
            .groupBy("log", "execution_id")
            .agg(expr("max(subject) AS subject"), expr("max(tables) AS tables"))
        )
        needed = f"greatest(1, ceil(output_bytes / {_FILE_TARGET}))"
        return (
            sources.stages.where(
                f"writing_tasks >= greatest({_FILES}, {_FILES_BY_TARGET} * {needed}) "
                f"AND output_bytes < {_FILE_BYTES} * writing_tasks"
            )
            .join(partitioned, ["log", "execution_id"])
            .groupBy("log", "execution_id")
            .agg(
                expr("sum(slot_ms) AS stake_ms"),
                expr(
                    "max_by(struct(subject, tables, writing_tasks, output_bytes), writing_tasks) "
                    "AS evidence"
                ),
            )
        )

    def sentence(self) -> str:
        mean = int(self.output_bytes // self.writing_tasks)
        return (
            f"{self.subject} ({self.tables}): {texts.number(self.writing_tasks)} tasks wrote "
            f"{texts.size(self.output_bytes)}, each a file or more of {texts.size(mean)} on "
            "average. Spark counts the opening of a file like 4 MiB that it reads. What is at "
            "stake is the tasks that wrote them; each query that reads them pays, too."
        )

    def policy(self) -> SuggestedPolicy | None:
        return self.policy_file(*self.recipe("compact_files"))
