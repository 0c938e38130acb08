"""The shapes of `bench.shapes`, small: each recipe decides what it is for, and rows stay the same.

Their counter-shapes, as small, are left to Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from bench.shapes import SHAPES
from bench.shapes.shape import prepare, register
from pyspark.sql import SparkSession

import aqepilot
import plans
import reads
import tiers
from aqepilot import recipes
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

# What is measured to be small stays shuffled, so that plans tell what was decided.
SHUFFLED = {
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "200",
    # A map task for each file.
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
}


class Small:
    """A shape's tables at a small size, and no waiting."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, size: float) -> None:
        self.spark, self.shape = spark, SHAPES[name]
        prepare(self.shape, spark, str(folder), size)
        register(self.shape, spark, str(folder), pace=0)
        for key, value in SHUFFLED.items():
            spark.conf.set(key, value)

    def decided(self, query: str, of_recipes: Sequence[str] | None = None) -> set[tuple[str, str]]:
        """Runs a query plain and with the recipes; which of them decided what became what."""
        (text,) = {**self.shape.queries, **self.shape.counters}[query].texts
        before = self.spark.sql(text).collect()
        of_recipes = of_recipes or self.shape.recipes
        for recipe in of_recipes:
            for point, answer in recipes.get(recipe, self.spark.version).texts().items():
                self.spark.conf.set(f"spark.aqepilot.policy.{recipe}.{point}", answer)
        self.spark.conf.set("spark.aqepilot.policies", ",".join(of_recipes))
        self.frame = self.spark.sql(text)
        assert_same_rows(self.frame.collect(), before)
        sql = "SELECT DISTINCT policy, fate FROM aqepilot_decisions() WHERE applied"
        return {(row.policy, row.fate) for row in self.spark.sql(sql).collect()}

    def joins(self) -> list[str]:
        return [join.strategy.split()[0] for join in plans.joins(self.frame)]


@tiers.EIGHTH
@pytest.mark.parametrize("query", SHAPES["hot_key"].queries)
def test_a_hot_key_is_split(spark: SparkSession, tmp_path: Path, query: str) -> None:
    small = Small(spark, tmp_path, "hot_key", 0.3)
    assert small.decided(query) == {("hot_keys", "adopted")}
    ((_, parts),) = plans.reads(small.frame)[0].splits()[0].items()
    assert parts == 4  # twice as many as slots


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("name", "query", "size"),
    [("explode", "500 rows of each", 0.04), ("python_rows", "a look-up for each row", 0.1)],
)
def test_rows_that_multiply_or_wait_have_a_task_for_each_slot(
    spark: SparkSession, tmp_path: Path, name: str, query: str, size: float
) -> None:
    small = Small(spark, tmp_path, name, size)
    assert small.decided(query) == {("expanding_stages", "adopted")}
    assert reads.listed(small.frame)[-1].tasks == 2


def test_a_range_join_is_merged(spark: SparkSession, tmp_path: Path) -> None:
    small = Small(spark, tmp_path, "wrong_broadcast", 0.4)
    assert small.decided("a range beside an equality") == {
        ("no_broadcast_of_range_joins", "adopted")
    }
    assert small.joins() == ["SortMergeJoin"]


def test_what_an_explode_made_is_not_broadcast(spark: SparkSession, tmp_path: Path) -> None:
    small = Small(spark, tmp_path, "wrong_broadcast", 0.01)
    query = "50 times larger than estimated"
    assert small.decided(query) == {("no_broadcast_of_guesses", "adopted")}
    assert small.joins() == ["SortMergeJoin"]


def test_short_queries_have_partitions_for_their_bytes(spark: SparkSession, tmp_path: Path) -> None:
    small = Small(spark, tmp_path, "tiny_tasks", 0.01)
    assert small.decided("a million groups") == {("right_sized_shuffles", "adopted")}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("query", "days"), [("2000 small tasks", 10), ("a skewed day", 4), ("without partitions", 0)]
)
def test_a_write_has_a_file_for_each_partition(
    spark: SparkSession, tmp_path: Path, query: str, days: int
) -> None:
    small = Small(spark, tmp_path, "small_files", 0.01)
    query_text = {**small.shape.queries, **small.shape.counters}[query]
    file_counts = []
    for recipe in (None, "compact_files"):
        if recipe:
            aqepilot.use(spark, recipes.get(recipe))
        rows = [spark.sql(text).collect() for text in query_text.texts][-1]
        files = {
            row.f
            for row in spark.sql(f"SELECT input_file_name() f FROM {query_text.writes}").collect()
        }
        file_counts.append((rows, len(files)))
    spark.sql(f"DROP TABLE {query_text.writes}")
    (before, many), (after, few) = file_counts
    assert_same_rows(after, before)
    assert few == (days or many)
    assert many >= 4 * days


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("name", "query", "size"),
    [
        ("hot_key", "even keys without the wait", 0.3),
        ("python_rows", "few rows", 0.1),
        ("few_groups", "one group", 1),
        ("wrong_broadcast", "unique keys and few rows", 0.01),
        ("wrong_broadcast", "a small table", 0.01),
    ],
)
def test_what_looks_alike_is_left_to_spark(
    spark: SparkSession, tmp_path: Path, name: str, query: str, size: float
) -> None:
    assert Small(spark, tmp_path, name, size).decided(query) == set()


@tiers.EIGHTH
@pytest.mark.parametrize("recipe", ["expanding_stages", "balanced"])
def test_few_groups_have_a_task_each_up_to_the_slots(
    spark: SparkSession, tmp_path: Path, recipe: str
) -> None:
    """104 rows of each are far less than Python for each row has a task for."""
    small = Small(spark, tmp_path, "few_groups", 1)
    assert small.decided("a model for each group", [recipe]) == {(recipe, "adopted")}
    assert reads.listed(small.frame)[0].tasks == 2
    # 200 as Spark has it: fewer would put more groups into one task.
    assert {d.point for d in aqepilot.decisions(spark) if d.applied} == {"partition_coalescing"}


@tiers.EIGHTH
@pytest.mark.parametrize("query", SHAPES["native_rows"].queries)
def test_dear_rows_in_the_jvm_have_a_task_for_each_slot(
    spark: SparkSession, tmp_path: Path, query: str
) -> None:
    small = Small(spark, tmp_path, "native_rows", 0.04)
    assert small.decided(query) == {("expanding_stages", "adopted")}
    assert reads.listed(small.frame)[-1].tasks == 2
