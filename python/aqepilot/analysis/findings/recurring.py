"""Shuffles that are alike on most runs of a query: what one run does not show, several do."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from aqepilot import recipes, texts
from aqepilot.analysis.findings.finding import Finding, Sources, SuggestedPolicy
from aqepilot.analysis.findings.slow_stages import SLOW_MS
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RUNS = 3
_MOST_RUNS = 0.8
_SKEW = 4
_WAITING = 0.2
# As spark.sql.autoBroadcastJoinThreshold has it.
_SMALL_BYTES = 10 << 20
_LARGE_BYTES = 64 << 20
_SMALLER = 16
_ADVISORY = 64 << 20
_PARTITIONS = 100
_TOO_MANY = 8
_TINY_PARTITION_BYTES = 64 << 10
_TINY_PARTITION_MS = 50
# Shuffles of a query that are read together have the figures of the same stages.
_TOGETHER = "PARTITION BY log, execution_id, task_ms, read_bytes, read_rows"
_JOINS = "exists(joins, j -> j RLIKE '^{}')"
_LEARNED = "The policy goes by history, which `aqepilot history build` makes of these logs."
_SHUFFLED_JOIN = _JOINS.format("(SortMergeJoin|ShuffledHashJoin)")


@dataclass(frozen=True, kw_only=True)
class Recurring(Finding):
    """A finding about one shuffle in most runs of a query; its policy goes by history.

    Attributes:
        of_runs: How many runs had the shuffle.
        in_runs: In how many of them it was so.
    """

    needs_history: ClassVar[bool] = True
    # The recipe that helps, and its point that is suggested.
    remedy: ClassVar[tuple[str, str]]

    of_runs: int
    in_runs: int

    @classmethod
    def often(cls, shuffles: DataFrame, condition: str, stake_ms: str) -> DataFrame:
        """Returns the rows of queries with a shuffle of which a condition holds in most runs.

        Args:
            shuffles: Rows of `_shuffles`, and what the fields are.
            condition: In SQL.
            stake_ms: Likewise.
        """
        of_shuffle = "OVER (PARTITION BY key, same)"
        names = ", ".join(field.name for field in fields(cls) if field.name != "runs")
        return (
            shuffles.withColumn("holds", expr(f"coalesce({condition}, false)"))
            .withColumn("stake", expr(stake_ms))
            .withColumn("of_runs", expr(f"CAST(count(*) {of_shuffle} AS int)"))
            .withColumn("in_runs", expr(f"CAST(count_if(holds) {of_shuffle} AS int)"))
            .where(f"holds AND in_runs >= greatest({_RUNS}, {_MOST_RUNS} * of_runs)")
            .groupBy("log", "execution_id")
            .agg(
                expr("CAST(max(stake) AS bigint) AS stake_ms"),
                expr(f"max_by(struct({names}), stake) AS evidence"),
            )
        )

    @property
    def when(self) -> str:
        """In how many runs it was so; no full stop."""
        return f"in {self.in_runs} of {texts.plural(self.of_runs, 'run')}"

    def policy(self) -> SuggestedPolicy | None:
        name, point = self.remedy
        return self.policy_file(point, recipes.get(name).points[point])


def _shuffles(sources: Sources) -> DataFrame:
    """Shuffles of queries, with how many are read together, and the largest of the query."""
    of_query = "OVER (PARTITION BY log, execution_id)"
    return (
        sources.sub_plans.where("kind = 'SHUFFLE' AND shuffle_bytes > 0 AND task_ms IS NOT NULL")
        .withColumn("read_together", expr(f"count(*) OVER ({_TOGETHER})"))
        .withColumn("beside_bytes", expr(f"max(shuffle_bytes) OVER ({_TOGETHER})"))
        .withColumn("largest_bytes", expr(f"max(shuffle_bytes) {of_query}"))
        .withColumn("largest_task_ms", expr(f"max_by(task_ms, shuffle_bytes) {of_query}"))
    )


@dataclass(frozen=True, kw_only=True)
class SkewedRuns(Recurring):
    """A shuffle that a join reads, and whose largest partition the other cores wait for.

    How long its task took is not known: the time of the stage's tasks by its share of the bytes.
    """

    kind = "skewed_runs"
    title = "a join whose keys are uneven on most runs"
    remedy = ("learned_skew", "skew_join")

    max_partition_bytes: int
    median_partition_bytes: int
    longest_ms: int
    task_ms: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        longest = "CAST(task_ms * (max_partition_bytes / shuffle_bytes) AS bigint)"
        waiting = "(longest_ms * coalesce(cores, 2) - task_ms)"
        skewed = (
            f"read_together > 1 AND {_SHUFFLED_JOIN} AND longest_ms >= {SLOW_MS} "
            f"AND max_partition_bytes > {_SKEW} * median_partition_bytes "
            f"AND {waiting} > {_WAITING} * task_ms"
        )
        shuffles = _shuffles(sources).withColumn("longest_ms", expr(longest))
        return SkewedRuns.often(shuffles, skewed, waiting)

    def sentence(self) -> str:
        return (
            f"A shuffle for a join was uneven {self.when}. In the worst, its largest partition had "
            f"{texts.size(self.max_partition_bytes)}, the median "
            f"{texts.size(self.median_partition_bytes)}, and by its bytes about "
            f"{texts.duration(self.longest_ms)} of {texts.duration(self.task_ms)} of task time. "
            f"{_LEARNED}"
        )


@dataclass(frozen=True, kw_only=True)
class SmallSide(Recurring):
    """A side that was small enough to broadcast, and was shuffled beside a large one.

    It was read together with the large one, or broadcast once it had been shuffled.
    """

    kind = "small_side"
    title = "a small side that is shuffled beside a large one"
    remedy = ("learned_joins", "join_selection")

    bytes: int
    row_count: int | None
    largest_bytes: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        joined = f"read_together > 1 AND {_SMALLER} * shuffle_bytes <= beside_bytes"
        broadcast = f"read_together = 1 AND read_rows = row_count AND {_JOINS.format('Broadcast')}"
        small = (
            f"bytes <= {_SMALL_BYTES} AND input_rows IS NULL AND largest_bytes >= {_LARGE_BYTES} "
            f"AND (({joined} AND {_SHUFFLED_JOIN}) OR ({broadcast}))"
        )
        return SmallSide.often(_shuffles(sources), small, "largest_task_ms")

    def sentence(self) -> str:
        return (
            f"A side of a join had at most {texts.size(self.bytes)}, "
            f"{texts.number(self.row_count)} rows, {self.when}. Spark learned that when a shuffle "
            f"of {texts.size(self.largest_bytes)} was written in the same query. What is at stake "
            f"is the stage that read it. {_LEARNED}"
        )


@dataclass(frozen=True, kw_only=True)
class ManyPartitions(Recurring):
    """A shuffle whose partitions have next to nothing, and take next to no time."""

    kind = "many_partitions"
    title = "a shuffle of too many partitions on most runs"
    remedy = ("learned_partitions", "shuffle_partitions")

    partitions: int
    shuffle_bytes: int
    task_ms: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        enough = f"greatest(coalesce(cores, 1), ceil(shuffle_bytes / {_ADVISORY}))"
        many = (
            f"partitions >= greatest({_PARTITIONS}, {_TOO_MANY} * {enough}) "
            f"AND shuffle_bytes < {_TINY_PARTITION_BYTES} * partitions "
            f"AND task_ms < {_TINY_PARTITION_MS} * partitions"
        )
        return ManyPartitions.often(_shuffles(sources), many, "task_ms")

    def sentence(self) -> str:
        return (
            f"A shuffle was written in many more partitions than it has bytes for, {self.when}: "
            f"{texts.size(self.shuffle_bytes)} in {texts.number(self.partitions)}, which "
            f"took {texts.duration(self.task_ms)} of task time to read. {_LEARNED}"
        )
