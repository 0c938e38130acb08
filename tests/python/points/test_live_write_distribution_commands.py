"""Each way to write is asked about once, and has plain Spark's rows in each directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import tiers
from conftest import Submit
from distributed_writes import (
    EVENLY,
    TASKS,
    asked,
    assert_same,
    by_day,
    facts,
    files,
    insert_into_made,
    plain,
    rebalances,
    use,
)

pytestmark = tiers.ON_ONE

Write = Callable[[DataFrame, str], Any]


WRITES: dict[str, Write] = {
    "evenly": lambda df, path: df.write.parquet(path),
    "INSERT OVERWRITE DIRECTORY": lambda df, path: df.sparkSession.sql(
        f"INSERT OVERWRITE DIRECTORY '{path}' USING parquet SELECT * FROM t"
    ),
    "CTAS": lambda df, path: df.sparkSession.sql(
        f"CREATE TABLE made USING parquet PARTITIONED BY (p) LOCATION '{path}' AS SELECT * FROM t"
    ),
    "saveAsTable": lambda df, path: (
        df.write.option("path", path).partitionBy("p").format("parquet").saveAsTable("made")
    ),
    "static and dynamic partitions": lambda df, path: insert_into_made(
        df, path, "PARTITION (k = 3, p) SELECT n, d, p FROM t", "k, p"
    ),
    "a static partition": lambda df, path: insert_into_made(
        df, path, "PARTITION (k = 3) SELECT n, d, p FROM t", "k"
    ),
}


@tiers.EIGHTH
@pytest.mark.parametrize("way", WRITES)
@pytest.mark.parametrize("planned", ["true", "false"])
def test_each_way_to_write_is_asked_once(
    table: SparkSession, tmp_path: Path, way: str, planned: str
) -> None:
    """Also where Spark sorts for its writer while it writes, and not when it plans."""
    table.conf.set("spark.sql.optimizer.plannedWrite.enabled", planned)
    WRITES[way](table.table("t"), str(tmp_path / "plain"))
    table.sql("DROP TABLE IF EXISTS made")
    use(table)
    WRITES[way](table.table("t"), str(tmp_path / "decided"))
    (one,) = asked(table)
    assert (one.reason, one.fate) == ("APPLIED", "adopted")
    assert rebalances(table)
    assert len(files(tmp_path / "decided")) < len(files(tmp_path / "plain")) / 2
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


def test_sources_that_do_not_say_what_they_require_are_not_asked_about(
    table: SparkSession,
) -> None:
    use(table)
    for mode in ("append", "overwrite"):
        table.table("t").write.format("noop").mode(mode).save()
    assert asked(table) == []


def test_files_are_written_by_sparks_first_interface_whatever_reads_them(
    table: SparkSession, tmp_path: Path
) -> None:
    """`spark.sql.sources.useV1SourceList` makes tables of the V2 interface of files, to read."""
    table.conf.set("spark.sql.sources.useV1SourceList", "")
    by_day(table.table("t"), tmp_path / "plain")
    use(table)
    by_day(table.table("t"), tmp_path / "decided")
    (one,) = asked(table)
    assert (one.reason, one.fate) == ("APPLIED", "adopted")
    assert facts(table)["write"]["command"] == "InsertIntoHadoopFsRelationCommand"
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


def test_inserts_of_one_query_are_asked_about_each(table: SparkSession, tmp_path: Path) -> None:
    for name in ("a", "b"):
        table.sql(f"CREATE TABLE {name} (n BIGINT) USING parquet LOCATION '{tmp_path / name}'")
    use(table, f"CASE WHEN write.table LIKE '%b' THEN {EVENLY} END")
    table.sql("FROM t INSERT INTO a SELECT n WHERE p < 3 INSERT INTO b SELECT n WHERE p >= 3")
    assert [(d.reason, d.fate) for d in asked(table)] == [
        ("NULL_ANSWER", None),
        ("APPLIED", "adopted"),
    ]
    assert len(files(tmp_path / "a")) == TASKS
    assert len(files(tmp_path / "b")) < TASKS
    assert table.table("a").count() + table.table("b").count() == 3000


def test_explain_tells_the_rebalance(table: SparkSession) -> None:
    table.sql("CREATE TABLE made (n BIGINT, p BIGINT) USING parquet PARTITIONED BY (p)")
    use(table)
    text = table.sql("EXPLAIN INSERT INTO made SELECT n, p FROM t").first()[0]
    assert "REBALANCE_PARTITIONS_BY_COL" in text
    plain(table)
    text = table.sql("EXPLAIN INSERT INTO made SELECT n, p FROM t").first()[0]
    assert "REBALANCE" not in text


HIVE = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.enableHiveSupport().getOrCreate()
spark.conf.set("spark.sql.hive.convertMetastoreParquet", "false")
spark.conf.set("spark.sql.hive.convertInsertingPartitionedTable", "false")
spark.conf.set("spark.sql.hive.convertMetastoreCtas", "false")
spark.conf.set("hive.exec.dynamic.partition.mode", "nonstrict")
spark.range(0, 600, 1, 6).selectExpr("id AS n", "id % 3 AS p").createOrReplaceTempView("t")
found = []
for policy in (None, "true"):
    if policy:
        spark.conf.set("spark.aqepilot.policy.test.write_distribution", policy)
        spark.conf.set("spark.aqepilot.policies", "test")
    spark.sql("DROP TABLE IF EXISTS h")
    spark.sql("CREATE TABLE h (n BIGINT) PARTITIONED BY (p BIGINT) STORED AS parquet")
    spark.sql("INSERT OVERWRITE TABLE h PARTITION (p) SELECT n, p FROM t")
    count = len(spark.table("h").selectExpr("input_file_name()").distinct().collect())
    found.append([count, sorted(map(list, spark.table("h").collect()))])
spark.sql("DROP TABLE IF EXISTS c")
spark.sql("CREATE TABLE c STORED AS parquet AS SELECT * FROM t")
said = [[d.reason, d.fate, d.facts] for d in spark.sql(
    "SELECT * FROM aqepilot_decisions() ORDER BY decision_id").collect()]
print("FOUND", json.dumps([found, said]))
"""


@tiers.on("4.3")
def test_tables_of_hive(spark_submit: Submit) -> None:
    shuffled = {"spark.sql.shuffle.partitions": "4"}
    done = spark_submit(HIVE, conf=shuffled, timeout_s=300, own_jvm=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-3000:]
    (before, after), answers = json.loads(lines[0].removeprefix("FOUND "))
    assert (before[0], after[0]) == (18, 3)
    assert before[1] == after[1]
    assert [(reason, fate) for reason, fate, _ in answers] == [("APPLIED", "adopted")] * 2
    write = json.loads(answers[0][2])["write"]
    assert write["command"] == "InsertIntoHiveTable"
    assert (write["mode"], write["table"]) == ("OVERWRITE", "default.h")
    assert write["partition_columns"] == write["dynamic_columns"] == ["p"]
