"""Joins: a hot key, and a strategy that flips between runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.findings.finding import Finding, Sources, SuggestedPolicy
from aqepilot.analysis.findings.slow_stages import HAS_SLOW_TASK, UNEVEN, slow
from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# A stage's cores wait for skew only where that is a good part of their time.
_WAITING = 0.2
_SKEW = 4
# A split makes parts of one map task's block or more: of less, there is nothing to split.
_SKEW_BYTES = 64 << 10
# Above that it takes its time by its bytes; below, where its tasks take long for what they read.
_LARGE_BYTES = 4 << 20
_FEW = 2
# Below that the recipe hot_keys leaves a partition whole.
_HOT_BYTES = 1 << 20
_FLIPS = 3
_WAY = "array_join(transform(joins, j -> split_part(j, ' ', 1)), ', ')"
_WORDS = {
    "SortMergeJoin": "SHUFFLE_MERGE",
    "ShuffledHashJoin": "SHUFFLE_HASH",
    "BroadcastHashJoin": "BROADCAST",
}


@dataclass(frozen=True, kw_only=True)
class HotKey(Finding):
    """A join of which a side that may be split is uneven, in a query that waited for one task.

    The cores of a stage waited, or Spark merged what is uneven into fewer tasks than there were
    cores, as it has few bytes. Without facts of skew_join, `records` says what the task read. Where
    there were `few_tasks`, fewer than cores, a split alone leaves the other cores waiting.
    """

    kind = "hot_key"
    title = "a join whose keys are uneven"
    needed_stage = f"shuffle_read_bytes > 0 AND {HAS_SLOW_TASK}"

    subject: str | None
    tables: str | None
    max_bytes: int | None
    median_bytes: int | None
    records: int | None
    stage_id: int
    max_task_ms: int
    median_task_ms: int
    few_tasks: bool

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        skewed = " OR ".join(
            f"(f.`{side}`.can_split AND f.`{side}`.num_mappers > 1 AND f.`{side}`.max_bytes > "
            f"greatest({_SKEW_BYTES}, {_SKEW} * f.`{side}`.median_bytes))"
            for side in ("left", "right")
        )
        worst = (
            "CASE WHEN coalesce(f.`left`.max_bytes, 0) >= coalesce(f.`right`.max_bytes, 0) THEN "
        )
        uneven = (
            sources.decisions.where("point = 'skew_join' AND NOT applied")
            .where(skewed)
            .selectExpr(
                *("log", "execution_id", "subject", "tables"),
                f"{worst} f.`left` ELSE f.`right` END AS s",
            )
            .groupBy("log", "execution_id")
            .agg(expr("max_by(struct(subject, tables, s), s.max_bytes) AS worst"))
        )
        waited = f"waiting_ms > {_WAITING} * slot_ms AND max_task_ms > {UNEVEN} * median_task_ms"
        alone = f"is_slow AND {_FEW} * num_tasks <= cores"
        stake = "greatest(waiting_ms, IF(num_tasks * 2 <= cores, slot_ms, 0))"
        long = slow(sources.stages, "true").where("shuffle_read_bytes > 0")
        by_facts = (
            long.where(f"({waited}) OR ({alone})")
            .join(uneven, ["log", "execution_id"])
            .where(f"is_slow OR worst.s.max_bytes > {_LARGE_BYTES}")
            .groupBy("log", "execution_id", "worst")
            .agg(
                expr(f"sum({stake}) AS stake_ms"),
                expr(
                    "max_by(struct(stage_id, max_task_ms, median_task_ms, "
                    "is_slow AND num_tasks < cores AS few_tasks), max_task_ms) AS stage"
                ),
            )
            .selectExpr(
                *("log", "execution_id", "stake_ms"),
                "struct(worst.subject, worst.tables, worst.s.max_bytes, worst.s.median_bytes, "
                "CAST(NULL AS bigint) AS records, stage.*) AS evidence",
            )
        )
        return by_facts.unionByName(_hot_tasks(sources.decisions, long.where(waited)))

    def sentence(self) -> str:
        if self.subject is None:
            read = (
                f"A task of a join's stage read {texts.number(self.records)} rows, many times the "
                "mean."
            )
        else:
            median = texts.size(self.median_bytes) if (self.median_bytes or 0) > 1 else "nothing"
            read = (
                f"{self.subject} ({self.tables}): the largest partition has "
                f"{texts.size(self.max_bytes)}, the median {median}."
            )
        took = f"In stage {self.stage_id} the longest task took {texts.duration(self.max_task_ms)}"
        if self.median_task_ms < self.max_task_ms:
            took += f", the median {texts.duration(self.median_task_ms)}"
        return f"{read} {took}, and the other cores waited."

    def policy(self) -> SuggestedPolicy | None:
        point, text = self.recipe("hot_keys")
        size = self.max_bytes or _HOT_BYTES
        if size < _HOT_BYTES:
            # As its tasks take so long for what they read, smaller parts are worth their start.
            text = text.replace("'1MB'", f"'{_kb(size // 2)}'")
            text = text.replace("'256KB'", f"'{_kb(size // 16)}'")
        also = dict([self.recipe("expanding_stages")]) if self.few_tasks else {}
        return self.policy_file(point, text, also=also)


def _kb(size: int) -> str:
    return f"{max(1, size >> 10)}KB"


def _hot_tasks(decisions: DataFrame, waited: DataFrame) -> DataFrame:
    """The same of queries in which skew_join was not asked, by what tasks read."""
    asked = decisions.where("point = 'skew_join'").select("log", "execution_id").distinct()
    # Rows of a full outer join's sides cannot be read twice.
    may_split = (
        "exists(join_nodes, j -> j.operator IN ('SortMergeJoin', 'ShuffledHashJoin') "
        "AND j.type <> 'FullOuter' AND array_contains(operators, j.scope))"
    )
    return (
        waited.join(asked, ["log", "execution_id"], "left_anti")
        .where(f"num_tasks > 2 AND max_task_records * num_tasks > {_SKEW} * shuffle_read_records")
        .where(may_split)
        .groupBy("log", "execution_id")
        .agg(
            expr("sum(waiting_ms) AS stake_ms"),
            expr(
                "max_by(struct(CAST(NULL AS string) AS subject, CAST(NULL AS string) AS tables, "
                "CAST(NULL AS bigint) AS max_bytes, CAST(NULL AS bigint) AS median_bytes, "
                "max_task_records AS records, stage_id, max_task_ms, median_task_ms, "
                "false AS few_tasks), waiting_ms) "
                "AS evidence"
            ),
        )
    )


@dataclass(frozen=True, kw_only=True)
class Flipping(Finding):
    """Runs of a query by joins that take longer than the joins of other runs.

    Each way has several runs, and the fastest run of the slower way is slower than the median of
    the other: else it may be chance.
    """

    kind = "flipping"
    title = "a join whose strategy flips"

    way: str
    way_runs: int
    median_ms: int
    best_way: str
    best_runs: int
    best_median_ms: int

    @staticmethod
    def rows(sources: Sources) -> DataFrame:
        ways = (
            sources.queries.where("fingerprint IS NOT NULL AND succeeded AND size(joins) > 0")
            .withColumn("way", expr(_WAY))
            .groupBy("key", "way")
            .agg(
                expr("count(*) AS way_runs"),
                expr("percentile_approx(task_ms, 0.5) AS median_ms"),
                expr("min(task_ms) AS least_ms"),
            )
            .where(f"way_runs >= {_FLIPS}")
        )
        best = ways.groupBy("key").agg(
            expr("min_by(struct(way, way_runs, median_ms), median_ms) AS best")
        )
        slower = (
            ways.join(best, "key")
            .where("way != best.way AND least_ms > best.median_ms")
            .selectExpr("key", "way", "way_runs", "median_ms", "best")
        )
        return (
            sources.queries.withColumn("way", expr(_WAY))
            .where("succeeded")
            .join(slower, ["key", "way"])
            .selectExpr(
                *("log", "execution_id", "greatest(0L, task_ms - best.median_ms) AS stake_ms"),
                "struct(way, way_runs, median_ms, best.way AS best_way, "
                "best.way_runs AS best_runs, best.median_ms AS best_median_ms) AS evidence",
            )
        )

    def sentence(self) -> str:
        return (
            f"{texts.plural(self.way_runs, 'run')} with {self.way} had "
            f"{texts.duration(self.median_ms)} of task time at the median, and "
            f"{texts.plural(self.best_runs, 'run')} with {self.best_way} "
            f"{texts.duration(self.best_median_ms)}. No run of the former was below that."
        )

    def policy(self) -> SuggestedPolicy | None:
        best = set(self.best_way.split(", "))
        word = _WORDS.get(next(iter(best))) if len(best) == 1 else None
        return self.policy_file("join_selection", f"'{word}'") if word else None
