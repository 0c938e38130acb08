"""Each field of a decision on finished shuffles, in the executed plan, on many shapes of query.

A field means what Spark's setting of the same value means, so plain Spark under that setting is the
oracle: for plans, for what each task reads, and for rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import policies
import reads
import tiers
from aqepilot import recipes
from reads import Ran

pytestmark = tiers.ON_ONE

SETTINGS = {
    "spark.sql.shuffle.partitions": "24",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "600KB",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "16KB",
}
BY_SIZE = {"spark.sql.adaptive.autoBroadcastJoinThreshold": "500KB"}
SKEW = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "100KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "100KB",
}
AGGREGATED = "SELECT k, count(*) AS n, max(v) AS v FROM big GROUP BY k"
SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "aggregate": (AGGREGATED, {}),
    "join": (little.BIG_DENSE, {}),
    "hash join": (little.BIG_DENSE.replace("SELECT", "SELECT /*+ SHUFFLE_HASH(d) */"), {}),
    "left join": (
        little.BIG_DENSE.replace("JOIN dense d ON", "LEFT JOIN dense d ON d.w > 9 AND"),
        {},
    ),
    "full join": (
        little.BIG_DENSE.replace("b.k = d.k", "b.k = d.k + 5000").replace("JOIN", "FULL JOIN"),
        {},
    ),
    "broadcast by size": (little.BIG_DENSE, BY_SIZE),
    "skewed join": (little.SKEWED_DENSE, SKEW),
    "aggregate of a join": (f"SELECT w % 10, count(*) FROM ({little.BIG_DENSE}) GROUP BY 1", {}),
    "window": ("SELECT k, count(*) OVER (PARTITION BY k) AS n, v FROM big", {}),
    "explode": (f"SELECT k, explode(array(n, k)) FROM ({AGGREGATED})", {}),
    "semi join": ("SELECT k FROM big WHERE k IN (SELECT k FROM dense WHERE w > 900)", {}),
    "subquery": (f"SELECT * FROM big WHERE k > (SELECT avg(n) FROM ({AGGREGATED}))", {}),
    "repartition": ("SELECT /*+ REPARTITION(k) */ * FROM big", {}),
    "repartition(n)": ("SELECT /*+ REPARTITION(7, k) */ * FROM big", {}),
    "rebalance": ("SELECT /*+ REBALANCE */ * FROM skewed", SKEW),
    "rebalance(k)": ("SELECT /*+ REBALANCE(k) */ * FROM skewed", SKEW),
}
# Several groups in a stage: Spark shares its minimum number among them, a decision has its own.
APART = {
    "union": (f"{AGGREGATED} UNION ALL SELECT count(*), w, 'w' FROM dense GROUP BY w", {}),
    # From 4.3 on one group: the union keeps the partitioning by k.
    "union by key": (f"{AGGREGATED} UNION ALL SELECT k, sum(w), 'w' FROM dense GROUP BY k", {}),
    "cross join": (f"SELECT a.n, s.w FROM ({AGGREGATED}) a JOIN sparse s ON a.k < s.w", {}),
}
ADVISORY = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
COALESCE = "spark.sql.adaptive.coalescePartitions."
LOCAL = "spark.sql.adaptive.localShuffleReader.enabled"
# decision, the settings that mean the same, shapes that it changes among others
FIELDS: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "target": (
        "'target_bytes', 60000",
        {ADVISORY: "60000"},
        {"join", "aggregate", "repartition", "rebalance", "rebalance(k)"},
    ),
    "larger target": (
        "'target_bytes', 50000000, 'min_partitions', 1",
        {ADVISORY: "50000000", f"{COALESCE}minPartitionNum": "1"},
        {"join", "window", "rebalance(k)"},
    ),
    "minimum size": (
        "'min_partition_bytes', 2000000",
        {f"{COALESCE}minPartitionSize": "2000000"},
        {"join", "aggregate"},
    ),
    "minimum number": (
        "'min_partitions', 9",
        {f"{COALESCE}minPartitionNum": "9"},
        {"aggregate", "join", "window"},
    ),
    "keep": ("'keep', true", {f"{COALESCE}enabled": "false"}, {"join", "aggregate", "skewed join"}),
    "no local read": ("'local_read', false", {LOCAL: "false"}, {"broadcast by size"}),
    "all": (
        "'target_bytes', 90000, 'min_partition_bytes', 2000, 'min_partitions', 5, "
        "'local_read', false, 'keep', false",
        {
            ADVISORY: "90000",
            f"{COALESCE}minPartitionSize": "2000",
            f"{COALESCE}minPartitionNum": "5",
            LOCAL: "false",
        },
        {"join", "aggregate", "broadcast by size"},
    ),
}
IN_ALL_SHAPES = ("target", "keep")
SOME = ("aggregate", "join", "broadcast by size", "window", "rebalance(k)", "repartition(n)")


@contextmanager
def under(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    before = {key: spark.conf.get(key, None) for key in settings}
    little.settings(spark, settings)
    yield
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def ran(spark: SparkSession, shape: tuple[str, dict[str, str]], more: dict[str, str]) -> Ran:
    sql, settings = shape
    with under(spark, SETTINGS | settings | more):
        return reads.run(spark.sql(sql))


@pytest.fixture
def little_tables(little_tables: SparkSession) -> SparkSession:
    """Three rows in eight."""
    for table in ("big", "skewed"):
        little_tables.table(table).where("v < '6'").createOrReplaceTempView(table)
    return little_tables


@pytest.fixture(scope="module")
def plain_runs() -> dict[tuple[str, str], Ran]:
    return {}


def plain_run(
    spark: SparkSession,
    runs: dict[tuple[str, str], Ran],
    plain: Any,
    name: str,
    more: dict[str, str],
) -> Ran:
    """Plain Spark's execution of a shape, run once for each set of settings."""
    key = (name, str(more))
    if key not in runs:
        with plain(spark):
            runs[key] = ran(spark, (SHAPES | APART)[name], more)
    return runs[key]


def test_shapes_of_all_kinds_are_read(
    little_tables: SparkSession, plain_runs: dict[tuple[str, str], Ran], plain: Any
) -> None:
    """Else the tests below would compare nothing."""
    kinds = {
        read.kind
        for name in SHAPES | APART
        for read in plain_run(little_tables, plain_runs, plain, name, {}).reads
    }
    assert kinds >= {"coalesced", "local", "coalesced and skewed", "plain"}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("field", "session"),
    [
        *((field, "coalescing on") for field in FIELDS),
        ("target", "off"),
        ("minimum number", "off"),
    ],
)
def test_a_field_does_what_its_setting_does(
    little_tables: SparkSession,
    plain_runs: dict[tuple[str, str], Ran],
    plain: Any,
    field: str,
    session: str,
) -> None:
    spark = little_tables
    text, same, changes = FIELDS[field]
    off = {f"{COALESCE}enabled": "false"} if session == "off" else {}
    on = {f"{COALESCE}enabled": "true"} if off else {}
    names = set(SOME) if off or field not in IN_ALL_SHAPES else {*SHAPES, *APART}
    if ADVISORY in same:
        # The setting also rules the splits of a skewed join, and not what a cross join reads.
        names -= {"skewed join", "cross join"}
    reads.decide(spark, f"named_struct({text})")
    changed = set()
    for name in sorted(names):
        alone = plain_run(spark, plain_runs, plain, name, off)
        expected = plain_run(spark, plain_runs, plain, name, off | on | same)
        actual = ran(spark, (SHAPES | APART)[name], off)
        assert actual.digest == alone.digest, name
        assert actual.how == expected.how, name
        if actual.how != alone.how:
            changed.add(name)
    assert changed >= (changes & names if not off else {"aggregate"})
    assert "repartition(n)" not in changed


def test_a_skewed_joins_splits_stay(
    little_tables: SparkSession, plain_runs: dict[tuple[str, str], Ran], plain: Any
) -> None:
    spark = little_tables
    before = plain_run(spark, plain_runs, plain, "skewed join", {})
    reads.decide(spark, "named_struct('target_bytes', 30000)")
    after = ran(spark, SHAPES["skewed join"], {})
    assert after.digest == before.digest
    assert [read.kind for read in after.reads] == [read.kind for read in before.reads]
    assert after.tasks[0] == after.tasks[1] > before.tasks[0]
    for one, other in zip(after.reads, before.reads, strict=True):
        assert [s for s in one.specs if "Partial" in s] == [
            s for s in other.specs if "Partial" in s
        ]


@tiers.EIGHTH
@pytest.mark.parametrize("answer", ["'target_bytes', 30000", "'keep', true"])
def test_a_skewed_join_with_empty_partitions_is_read_anew(
    little_tables: SparkSession, plain: Any, answer: str
) -> None:
    """Spark's rule leaves such partitions out, and fails on a read that lacks some."""
    spark = little_tables
    shape = (f"{little.SKEWED_DENSE} WHERE s.k IN (0, 5)", SKEW)
    with plain(spark):
        before = ran(spark, shape, {})
    assert "Partition" in before.reads[0].specs[0]
    assert not before.reads[0].specs[0].startswith("CoalescedPartitionSpec(0,")
    reads.decide(spark, f"named_struct({answer})")
    after = ran(spark, shape, {})
    assert after.digest == before.digest
    assert policies.reasons(spark) == {"APPLIED"}
    splits = [[s for s in read.specs if "Partial" in s] for read in before.reads]
    assert splits == [[s for s in read.specs if "Partial" in s] for read in after.reads]


OWN = {
    "as they are": {},
    "coalescing off": {f"{COALESCE}enabled": "false"},
    "by size": {f"{COALESCE}parallelismFirst": "false", ADVISORY: "300KB"},
    "number": {f"{COALESCE}minPartitionNum": "11", LOCAL: "false"},
}


@tiers.EIGHTH
@pytest.mark.parametrize("settings", OWN)
def test_sparks_own_rule_as_a_policy_and_null_change_nothing(
    little_tables: SparkSession,
    plain_runs: dict[tuple[str, str], Ran],
    plain: Any,
    settings: str,
) -> None:
    spark = little_tables
    recipe = recipes.get("coalesce_shuffle_partitions").points[reads.POINT]
    texts = [recipe, "NULL"] if settings == "as they are" else [recipe]
    for name, shape in (SHAPES | APART).items():
        expected = plain_run(spark, plain_runs, plain, name, OWN[settings])
        for text in texts:
            reads.decide(spark, text)
            assert ran(spark, shape, OWN[settings]).how == expected.how, (name, text)
    decided = reads.decisions(spark)
    assert {d.reason for d in decided} == {"APPLIED"} | (
        {"NULL_ANSWER"} if len(texts) > 1 else set()
    )
    assert {d.fate for d in decided if d.reason == "APPLIED"} == {"no_change"}
    for d in decided:
        assert d.reason != "APPLIED" or d.final_strategy == d.spark_strategy


def test_groups_of_a_union_are_decided_each_by_itself(
    little_tables: SparkSession, plain: Any
) -> None:
    spark = little_tables
    with plain(spark):
        before = ran(spark, APART["union"], {})
    reads.decide(
        spark,
        "CASE WHEN shuffle.tables = array('dense') "
        "THEN named_struct('min_partitions', 13, 'min_partition_bytes', 1000) END",
    )
    after = ran(spark, APART["union"], {})
    assert after.digest == before.digest
    (big, dense), (big_before, dense_before) = after.reads, before.reads
    assert big == big_before
    assert dense.tables == ("dense",)
    assert dense.tasks >= 13 > dense_before.tasks


@tiers.EIGHTH
@pytest.mark.parametrize("planned", ["true", "false"], ids=["planned", "not planned"])
def test_a_rebalance_writes_files_of_the_target_size(
    little_tables: SparkSession, plain: Any, tmp_path: Any, planned: str
) -> None:
    """`plannedWrite` says whether the write is a node of the stage or a command above the plan."""
    spark = little_tables

    def files(name: str) -> int:
        with under(spark, SETTINGS | {"spark.sql.optimizer.plannedWrite.enabled": planned}):
            spark.sql("SELECT /*+ REBALANCE */ * FROM skewed").write.parquet(str(tmp_path / name))
        return len(list((tmp_path / name).glob("*.parquet")))

    with plain(spark):
        before = files("before")
    reads.decide(
        spark,
        "CASE WHEN stage.is_write AND stage.is_rebalance AND stage.write_format = 'parquet' "
        "THEN named_struct('target_bytes', shuffle.shuffle_bytes, 'min_partitions', 1) END",
    )
    assert before > 1
    assert files("after") == 1
    assert [d.final_strategy for d in reads.decisions(spark)] == ["1 task, coalesced from 24"]


@tiers.EIGHTH
@pytest.mark.parametrize(
    "text", ["'target_bytes', 100000000, 'min_partitions', 1", "'local_read', true"]
)
def test_the_users_number_of_partitions_stays(
    little_tables: SparkSession, plain: Any, text: str
) -> None:
    """Spark removes a repartition that the join's shuffle satisfies, and has to keep its number."""
    spark = little_tables
    reads.decide(spark, f"named_struct({text})")
    for settings in (SETTINGS, SETTINGS | BY_SIZE, SETTINGS | {f"{COALESCE}enabled": "false"}):
        with under(spark, settings):
            joined = spark.sql(little.BIG_DENSE)
            for n in (24, 11):
                kept = joined.repartition(n, "k")
                with plain(spark):
                    before = reads.run(joined.repartition(n, "k"))
                after = reads.run(kept)
                assert after.reads[0] == before.reads[0]
                assert after.digest == before.digest
                assert kept.rdd.getNumPartitions() == n  # of the plan that ran
