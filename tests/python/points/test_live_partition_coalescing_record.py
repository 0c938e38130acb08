"""What is asked about finished shuffles, by whom, and what the record says of it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import little
import places
import reads
import tiers
from aqepilot import recipes
from reads import POINT

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

SETTINGS = {
    "spark.sql.shuffle.partitions": "12",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "64KB",
}
AGGREGATED = "SELECT k, count(*) AS n FROM big GROUP BY k"
KEEP = "named_struct('keep', true)"


@pytest.fixture
def spark(little_tables: SparkSession) -> SparkSession:
    little.settings(little_tables, SETTINGS)
    return little_tables


def test_the_record_has_spark_answer_and_fate(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(AGGREGATED))
    reads.decide(spark, "named_struct('min_partition_bytes', 1000, 'min_partitions', 6)")
    after = reads.run(spark.sql(AGGREGATED))
    assert after.digest == before.digest
    (decision,) = reads.decisions(spark)
    assert (decision.applied, decision.reason, decision.fate) == (True, "APPLIED", "adopted")
    assert json.loads(decision.answer) == {"min_partition_bytes": 1000, "min_partitions": 6}
    assert json.loads(decision.spark_answer) == {
        "target_bytes": 64 << 20,
        "min_partition_bytes": 64 << 10,
        "min_partitions": 2,
        "local_read": True,
        "keep": False,
    }
    assert before.tasks != after.tasks
    assert decision.spark_strategy.startswith(f"{before.tasks[0]} task")
    assert decision.final_strategy == f"{after.tasks[0]} tasks, coalesced from 12"
    assert decision.subject.startswith("query stage 0 (shuffle ")
    assert decision.tables == "big"


def test_local_reads_and_kept_partitions_have_words(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB")
    reads.decide(
        spark,
        "CASE WHEN shuffle.tables = array('big') "
        "THEN named_struct('local_read', false, 'keep', true) END",
    )
    after = reads.run(spark.sql(little.BIG_DENSE))
    decision = next(d for d in reads.decisions(spark) if d.policy)
    assert decision.spark_strategy.startswith("local read, ")
    assert (decision.final_strategy, decision.fate) == ("12 tasks", "adopted")
    assert ("big",) in [read.tables for read in after.reads if read.kind == "plain"]


def test_facts_are_what_was_measured(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(little.BIG_DENSE))
    reads.decide(spark, "NULL")
    reads.run(spark.sql(little.BIG_DENSE))
    (decision,) = reads.decisions(spark)
    facts = json.loads(decision.facts)
    shuffle, stage = facts["shuffle"], facts["stage"]
    assert stage["shuffles"] == [0, 1]
    assert stage["num_shuffles"] == 2
    assert shuffle["tables"] == ["big", "dense"]
    assert shuffle["num_partitions"] == len(shuffle["bytes_by_partition_id"]) == 12
    assert shuffle["row_count"] == little.ROWS + 10_000
    assert shuffle["num_mappers"] >= 2
    assert (
        shuffle["shuffle_bytes"] == sum(shuffle["bytes_by_partition_id"]) == stage["shuffle_bytes"]
    )
    assert shuffle["max_bytes"] == max(shuffle["bytes_by_partition_id"])
    assert shuffle["size_in_bytes"] > shuffle["shuffle_bytes"] > 0
    assert shuffle["bytes_are_exact"] is True
    assert facts["spark"] == {"num_partitions": before.tasks[0], "is_local_read": False}
    assert (decision.reason, decision.applied, decision.fate) == ("NULL_ANSWER", False, None)


FLAGS = {
    AGGREGATED: {"has_aggregate"},
    little.BIG_DENSE: {"has_join", "has_sort"},
    "SELECT k, count(*) OVER (PARTITION BY k) FROM big": {"has_window", "has_sort"},
    f"SELECT explode(array(n, k)) FROM ({AGGREGATED})": {"has_generate", "has_aggregate"},
    f"SELECT n, w FROM ({AGGREGATED}) a JOIN sparse s ON a.k < s.w": {
        "has_exploding_join",
        "has_join",
        "has_aggregate",
    },
    "SELECT /*+ REBALANCE(k) */ * FROM big": {"is_rebalance"},
}


@pytest.mark.parametrize("sql", FLAGS)
def test_what_the_stage_does_is_known(spark: SparkSession, sql: str) -> None:
    reads.decide(spark, "NULL")
    spark.sql(sql).collect()
    last = [json.loads(d.facts)["stage"] for d in reads.decisions(spark)][-1]
    assert {name for name, value in last.items() if value is True} == FLAGS[sql] | {"is_final"}


def test_a_stage_before_the_last_is_not_final(spark: SparkSession) -> None:
    reads.decide(spark, "NULL")
    spark.sql(f"SELECT n, count(*) FROM ({AGGREGATED}) GROUP BY n").collect()
    assert [json.loads(d.facts)["stage"]["is_final"] for d in reads.decisions(spark)] == [
        False,
        True,
    ]


def test_python_in_the_stage_is_known(spark: SparkSession) -> None:
    def same(batches: Any) -> Any:
        yield from batches

    reads.decide(spark, "NULL")
    frame = spark.sql("SELECT /*+ REPARTITION(k) */ k FROM dense")
    assert frame.mapInPandas(same, "k long").count() == 10000
    stages = [json.loads(d.facts)["stage"] for d in reads.decisions(spark)]
    assert [stage["has_python_udf"] for stage in stages] == [True]


def test_shadow_off_and_no_policy_change_nothing(spark: SparkSession, plain: Any) -> None:
    with plain(spark):
        before = reads.run(spark.sql(little.BIG_DENSE))
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    reads.decide(spark, KEEP, mode="off")
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    assert reads.decisions(spark) == []
    reads.decide(spark, KEEP, mode="shadow")
    assert reads.run(spark.sql(little.BIG_DENSE)).how == before.how
    (decision,) = reads.decisions(spark)
    assert (decision.reason, decision.applied, decision.mode) == ("SHADOW", False, "shadow")
    reads.decide(spark, KEEP, mode="enforce")
    assert reads.run(spark.sql(little.BIG_DENSE)).tasks == [12, 12]


def test_of_two_policies_the_first_answer_holds(spark: SparkSession) -> None:
    reads.decide(
        spark, "named_struct('min_partitions', 5, 'min_partition_bytes', 1000)", name="second"
    )
    reads.decide(spark, f"CASE WHEN stage.has_join THEN {KEEP} END", name="first")
    spark.conf.set("spark.aqepilot.policies", "first,second")
    joined = reads.run(spark.sql(little.BIG_DENSE))
    grouped = reads.run(spark.sql(AGGREGATED))
    assert joined.tasks == [12, 12]
    assert 5 <= grouped.tasks[0] < 12
    assert [d.policy for d in reads.decisions(spark)] == ["first", "second"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("named_struct('target_bytes', 0)", "OUT_OF_RANGE"),
        ("named_struct('target_bytes', 1)", "GUARD_TARGET_BYTES"),
        ("named_struct('min_partitions', 100001)", "GUARD_PARTITIONS"),
        ("named_struct('keep', true, 'min_partitions', 4)", "CONTRADICTION"),
        (
            "named_struct('target_bytes', CAST(double('NaN') * shuffle.max_bytes AS BIGINT))",
            "EVALUATION_FAILED",
        ),
    ],
)
def test_a_refused_answer_leaves_sparks_plan(
    spark: SparkSession, plain: Any, text: str, reason: str
) -> None:
    with plain(spark):
        before = reads.run(spark.sql(AGGREGATED))
    reads.decide(spark, text)
    assert reads.run(spark.sql(AGGREGATED)).how == before.how
    (decision,) = reads.decisions(spark)
    assert (decision.reason, decision.applied, decision.fate) == (reason, False, None)
    assert decision.detail


def test_a_broken_distribution_is_refused_with_a_reason(spark: SparkSession) -> None:
    reads.decide(spark, "named_struct('target_bytes', 100000000, 'min_partitions', 1)")
    frame = spark.sql(little.BIG_DENSE).repartition(12, "k")
    assert reads.run(frame).tasks == [12, 12]
    (decision,) = reads.decisions(spark)
    assert (decision.reason, decision.applied) == ("DISTRIBUTION_BROKEN", False)


def test_no_setting_of_the_user_is_changed(spark: SparkSession) -> None:
    before = {row.key: row.value for row in spark.sql("SET").collect()}
    reads.decide(spark, "named_struct('target_bytes', 100000, 'local_read', false)")
    reads.run(spark.sql(little.BIG_DENSE))
    after = {row.key: row.value for row in spark.sql("SET").collect()}
    assert {k: v for k, v in after.items() if not k.startswith("spark.aqepilot.")} == {
        k: v for k, v in before.items() if not k.startswith("spark.aqepilot.")
    }


def test_the_same_cached_table_is_decided_once(spark: SparkSession) -> None:
    reads.decide(spark, KEEP)
    frame = spark.sql(AGGREGATED).cache()
    assert frame.count() == 10000
    assert frame.count() == 10000
    of_big = [d for d in reads.decisions(spark) if d.tables == "big"]
    assert [d.point for d in of_big].count(POINT) <= 2


EXPLODED = "SELECT explode(array(v, v)) FROM (SELECT /*+ REPARTITION(k) */ * FROM big)"


def test_expanding_stages_has_a_task_for_each_slot(spark: SparkSession, plain: Any) -> None:
    spark.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "64MB")
    with plain(spark):
        before = reads.run(spark.sql(EXPLODED))
    reads.decide(spark, recipes.get("expanding_stages").points[POINT])
    after = reads.run(spark.sql(EXPLODED))
    assert after.digest == before.digest
    assert (before.tasks[0], after.tasks[0]) == (1, 2)


@pytest.mark.parametrize(
    ("sql", "min_size"),
    [
        (little.BIG_DENSE, "64MB"),  # nothing multiplies
        (EXPLODED, "64KB"),  # no slot idles
        ("SELECT explode(array(w)) FROM (SELECT /*+ REPARTITION(k) */ * FROM sparse)", "64MB"),
    ],
)
def test_expanding_stages_leaves_other_stages_to_spark(
    spark: SparkSession, sql: str, min_size: str
) -> None:
    spark.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", min_size)
    reads.decide(spark, recipes.get("expanding_stages").points[POINT])
    reads.run(spark.sql(sql))
    assert [d.reason for d in reads.decisions(spark)] == ["NULL_ANSWER"]


def test_expanding_stages_leaves_what_writes_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Each task of it is a file."""
    spark.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "64MB")
    reads.decide(spark, recipes.get("expanding_stages").points[POINT])
    spark.sql(EXPLODED).write.parquet(str(tmp_path / "written"))
    assert [d.applied for d in reads.decisions(spark)] == [False]


JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import policies, reads
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
sql = "SELECT id % 100 AS k, count(*) FROM range(10000) GROUP BY 1"
for mode in ("off", "enforce"):
    spark.conf.set("spark.aqepilot.mode", mode)
    ran = reads.run(spark.sql(sql))
    print(mode, "rows:", ran.digest[0], "tasks:", ran.tasks)
print("reasons", sorted(policies.reasons(spark)))
"""


@pytest.mark.parametrize("missing", ["RedoneReads", "CoalesceShuffleReads$"])
def test_a_fault_of_ours_leaves_sparks_plan(
    spark_submit: Any, spark_jar: Path, tmp_path: Path, missing: str
) -> None:
    """As on a vendor's Spark that lacks what we need."""
    jar = tmp_path / spark_jar.name
    gone = f"org/apache/spark/sql/aqepilot/points/partition_coalescing/{missing}.class"
    with zipfile.ZipFile(spark_jar) as whole, zipfile.ZipFile(jar, "w") as broken:
        assert gone in whole.namelist()
        for name in whole.namelist():
            if name != gone:
                broken.writestr(name, whole.read(name))
    run = spark_submit(
        JOB,
        ["--jars", str(jar), "--conf", "spark.sql.extensions=io.aqepilot.AqePilotExtension"],
        conf={"spark.aqepilot.policies": "p", f"spark.aqepilot.policy.p.{POINT}": KEEP},
        job_words=[str(places.SUPPORT)],
        extension=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "off rows: 100 tasks: [1]" in run.stdout
    assert "enforce rows: 100 tasks: [1]" in run.stdout
    assert ("reasons ['INTERNAL_ERROR']" in run.stdout) == (missing == "RedoneReads")
    assert "failed and was left to Spark (INTERNAL_ERROR)" in run.stderr
