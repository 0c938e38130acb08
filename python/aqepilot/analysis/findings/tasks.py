"""Tasks after shuffles that are too few: they spill, or do much work for each byte."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.findings.finding import Finding, Sources, SuggestedPolicy
from aqepilot.analysis.findings.slow_stages import (
    HAS_SLOW_TASK,
    UNEVEN,
    most_in_one,
    slow,
    stage_sentence,
)
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ADVISORY = 64 << 20
_SPILLED_SHARE = 0.1
# What a disk takes to write a megabyte and to read it, milliseconds.
_DISK_MS_PER_MB = 20
_A_TASK_FOR_EACH_SLOT = """
CASE WHEN conf.coalesce_partitions_enabled AND NOT stage.is_write
  AND spark.num_partitions < least(cluster.default_parallelism, shuffle.row_count div 100)
THEN named_struct(
  'min_partitions', least(cluster.default_parallelism, int(shuffle.row_count div 100)),
  -- Half of a task's share: Spark adds to a neighbour what is less.
  'min_partition_bytes', greatest(aqepilot_bytes('1KB'),
    shuffle.shuffle_bytes div (2 * cluster.default_parallelism)))
END
"""


@dataclass(frozen=True, kw_only=True)
class Spilling(Finding):
    """Stages after shuffles that spilled much for their time, of a query whose joins sort."""

    kind = "spilling"
    title = "sorts that spill"
    needed_stage = "disk_spill_bytes > 0"

    disk_spill_bytes: int
    stage_id: int
    num_tasks: int
    shuffle_read_bytes: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        sorts = sources.queries.where("exists(joins, j -> startswith(j, 'SortMergeJoin'))")
        worst = "max_by(struct(stage_id, num_tasks, shuffle_read_bytes), disk_spill_bytes)"
        return (
            sources.stages.where("shuffle_read_bytes > 0")
            .join(sorts.select("log", "execution_id"), ["log", "execution_id"], "left_semi")
            .groupBy("log", "execution_id")
            .agg(
                expr("sum(spilled_slot_ms) AS stake_ms"),
                expr("sum(slot_ms) AS slot_ms"),
                expr("sum(disk_spill_bytes) AS disk_spill_bytes"),
                expr(f"{worst} AS s"),
            )
            .where(f"stake_ms >= {_SPILLED_SHARE} * slot_ms")
            .where(
                f"{_DISK_MS_PER_MB} * disk_spill_bytes >= {_SPILLED_SHARE} * slot_ms * {1 << 20}"
            )
            .selectExpr(
                *("log", "execution_id", "stake_ms"), "struct(disk_spill_bytes, s.*) AS evidence"
            )
        )

    @property
    def _bytes_per_task(self) -> int:
        return int(self.shuffle_read_bytes // max(1, self.num_tasks))

    def sentence(self) -> str:
        return (
            f"{texts.size(self.disk_spill_bytes)} went to disk after shuffles, most of it in stage "
            f"{self.stage_id}, whose {texts.plural(self.num_tasks, 'task')} read "
            f"{texts.size(self._bytes_per_task)} each. The query's joins sort."
        )

    def policy(self) -> SuggestedPolicy | None:
        if self._bytes_per_task > _ADVISORY:
            number = -(-self.shuffle_read_bytes // (16 << 20))
            return self.policy_file(
                "shuffle_partitions", f"greatest(shuffles.num_partitions, {number})"
            )
        target = max(1 << 20, self._bytes_per_task // 4)
        return self.policy_file("partition_coalescing", f"named_struct('target_bytes', {target}L)")


@dataclass(frozen=True, kw_only=True)
class Expanding(Finding):
    """Stages with much work for each byte, in fewer tasks than there were slots.

    Spark merged what they read, by its bytes: so the facts of partition_coalescing say or, where it
    was not asked, the operators. A stage that waits for one task has another finding, as has one of
    which most rows are in one partition: more tasks do not shorten that one.
    """

    kind = "expanding"
    title = "few bytes that are much work"
    needed_stage = f"shuffle_read_bytes > 0 AND {HAS_SLOW_TASK}"
    is_of_most_runs = True

    stage_id: int
    num_tasks: int
    read_bytes: int
    max_task_ms: int
    places: int
    has_python: bool
    multiplies: bool
    has_recipe: bool

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        asked = (
            sources.decisions.where("point = 'partition_coalescing'")
            .select("log", "execution_id")
            .distinct()
        )
        even = (
            slow(sources.stages)
            .where(f"shuffle_read_bytes > 0 AND max_task_ms <= {UNEVEN} * median_task_ms")
            .join(most_in_one(sources.decisions), ["log", "execution_id", "num_tasks"], "left_anti")
        )
        with_facts = even.join(_merged(sources.decisions), ["log", "execution_id", "num_tasks"])
        without = (
            even.join(asked, ["log", "execution_id"], "left_anti")
            .where("array_contains(operators, 'AQEShuffleRead')")
            .where("NOT array_contains(operators, 'WriteFiles') AND output_bytes = 0")
            .withColumn("places", expr("least(cores, shuffle_read_records div 100)"))
            .where("num_tasks < places")
            .withColumn("has_python", expr("exists(operators, o -> o RLIKE 'InPandas|Python')"))
            .withColumns({"multiplies": expr("false"), "has_recipe": expr("true")})
        )
        names = (
            *("log", "execution_id", "slot_ms"),
            *("stage_id", "num_tasks", "read_bytes", "max_task_ms"),
            *("places", "has_python", "multiplies", "has_recipe"),
        )
        return (
            with_facts.selectExpr(*names)
            .unionByName(without.selectExpr(*names))
            .groupBy("log", "execution_id")
            .agg(
                expr("sum(slot_ms) AS stake_ms"),
                expr(f"max_by(struct({', '.join(names[3:])}), slot_ms) AS evidence"),
            )
        )

    def sentence(self) -> str:
        why = "each row takes long"
        if self.has_python:
            why = "each row is handed to Python"
        elif self.multiplies:
            why = "rows become many"
        stage = stage_sentence(self.stage_id, self.read_bytes, self.num_tasks, self.max_task_ms)
        return (
            f"{stage}, where {self.places} could have run at once. "
            f"Spark sizes tasks by what they read, and {why} there."
        )

    def policy(self) -> SuggestedPolicy | None:
        if self.has_recipe:
            return self.policy_file(*self.recipe("expanding_stages"))
        return self.policy_file("partition_coalescing", _A_TASK_FOR_EACH_SLOT)


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
    aggregates = {
        "places": "max",
        "has_python": "bool_or",
        "multiplies": "bool_or",
        "has_recipe": "bool_or",
    }
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
        .agg(*(expr(f"{how}({name}) AS {name}") for name, how in aggregates.items()))
    )
