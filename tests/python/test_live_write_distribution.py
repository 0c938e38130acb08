"""A decided write shuffles its rows once more and changes none; all others are plain Spark's."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

import aqepilot
import little
import policies
import tiers
from aqepilot import recipes
from conftest import Submit
from rows import assert_same_rows

POINT = "write_distribution"
TASKS = 12
SETTINGS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
TABLE = f"SELECT id AS n, id % 5 AS p, id % 7 AS k, id / 8D AS d FROM range(0, 3000, 1, {TASKS})"
EVENLY = "named_struct('rebalance', true, 'columns', array())"
Write = Callable[[DataFrame, str], Any]


@pytest.fixture
def table(spark: SparkSession) -> SparkSession:
    """The view `t` of twelve tasks."""
    little.settings(spark, SETTINGS)
    spark.conf.set("spark.sql.ui.explainMode", "formatted")  # `nodes` reads the whole plan there
    spark.sql(TABLE).createOrReplaceTempView("t")
    return spark


def use(spark: SparkSession, text: str = "true", mode: str = "enforce") -> None:
    spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", text)
    spark.conf.set("spark.aqepilot.policy.test.mode", mode)
    spark.conf.set("spark.aqepilot.policies", "test")


def plain(spark: SparkSession) -> None:
    spark.conf.unset("spark.aqepilot.policies")


def asked(spark: SparkSession) -> list[Row]:
    return [d for d in policies.decisions(spark) if d.point == POINT]


def facts(spark: SparkSession) -> dict[str, Any]:
    return json.loads(asked(spark)[-1].facts)


def told(spark: SparkSession) -> str:
    """The plans of the newest execution that wrote something, as far as Spark has told them."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    found = spark._jsparkSession.sharedState().statusStore().executionsList()
    texts = [found.apply(i).physicalPlanDescription() for i in range(found.size())]
    return [text for text in texts if "Execute Insert" in text][-1]


def ran(spark: SparkSession) -> str:
    """The same, with the final plan. 4.3 does not tell it where a write is not planned."""
    give_up = time.monotonic() + 20
    while "isFinalPlan=false" in (text := told(spark)):
        assert time.monotonic() < give_up, text
        time.sleep(0.05)
    return text


def nodes(spark: SparkSession) -> list[str]:
    """The operators of its final plan, from the root."""
    text = ran(spark)
    final = (text.partition("== Final Plan ==")[2] or text).partition("== Initial Plan ==")[0]
    tree = final.partition("\n\n")[0]
    found = re.findall(r"^[ :+-]*(?:\* )?([A-Z]\w+(?: Insert\w+)?)", tree, re.MULTILINE)
    return [name for name in found if name not in ("WholeStageCodegen", "InputAdapter")]


def rebalances(spark: SparkSession) -> bool:
    return "REBALANCE" in told(spark)


def files(folder: Path | str) -> list[str]:
    return [str(f.relative_to(folder)) for f in Path(folder).rglob("*.parquet")]


def written(spark: SparkSession, folder: Path) -> dict[str, list[Row]]:
    """The rows of each directory."""
    found = {}
    for part in {f.parent for f in folder.rglob("*.parquet")}:
        found[str(part.relative_to(folder))] = spark.read.parquet(str(part)).collect()
    return found


def assert_same(spark: SparkSession, one: Path, other: Path) -> None:
    here, there = written(spark, one), written(spark, other)
    assert here.keys() == there.keys()
    for part, rows in here.items():
        assert_same_rows(rows, there[part])


def by_day(df: DataFrame, folder: Path | str) -> None:
    df.write.partitionBy("p").parquet(str(folder))


def test_a_partitioned_write_has_a_file_for_each_partition(
    table: SparkSession, tmp_path: Path
) -> None:
    by_day(table.table("t"), tmp_path / "plain")
    assert len(files(tmp_path / "plain")) == 5 * TASKS
    use(table)
    by_day(table.table("t"), tmp_path / "decided")
    assert len(files(tmp_path / "decided")) == 5
    assert_same(table, tmp_path / "decided", tmp_path / "plain")
    # Spark sorts above the rebalance for its writer.
    order = nodes(table)
    assert order.index("WriteFiles") < order.index("Sort") < order.index("AQEShuffleRead")
    (one,) = asked(table)
    assert (one.answer, one.applied, one.fate) == ('{"rebalance":true}', True, "adopted")
    assert (one.spark_strategy, one.final_strategy) == ("no rebalance", "rebalance by p")


def test_null_and_shadow_leave_sparks_plan(table: SparkSession, tmp_path: Path) -> None:
    by_day(table.table("t"), tmp_path / "plain")
    before = nodes(table)
    for number, (text, mode) in enumerate(
        [("null", "enforce"), ("true", "shadow"), ("true", "off"), ("false", "enforce")]
    ):
        use(table, text, mode)
        by_day(table.table("t"), tmp_path / str(number))
        assert nodes(table) == before
        assert sorted(files(tmp_path / str(number)))[0].startswith("p=0")
        assert len(files(tmp_path / str(number))) == 5 * TASKS
    found = [(d.reason, d.fate) for d in asked(table)]
    assert found == [("NULL_ANSWER", None), ("SHADOW", None), ("APPLIED", "no_change")]


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
    "static and dynamic partitions": lambda df, path: _insert(
        df, path, "PARTITION (k = 3, p) SELECT n, d, p FROM t", "k, p"
    ),
    "a static partition": lambda df, path: _insert(
        df, path, "PARTITION (k = 3) SELECT n, d, p FROM t", "k"
    ),
}


def _insert(df: DataFrame, path: str, what: str, by: str) -> None:
    spark = df.sparkSession
    spark.sql(
        "CREATE TABLE made (n BIGINT, d DOUBLE, p BIGINT, k BIGINT) USING parquet"
        f" PARTITIONED BY ({by}) LOCATION '{path}'"
    )
    spark.sql(f"INSERT INTO made {what}")


@tiers.QUARTER
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


def cached(df: DataFrame) -> DataFrame:
    return df.persist(StorageLevel.MEMORY_ONLY)


def _joined(df: DataFrame) -> DataFrame:
    return df.join(df.sparkSession.range(7).withColumnRenamed("id", "k"), "k")


LEFT: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "repartition": (lambda df: df.repartition(3), "USER_REPARTITION"),
    "repartition by": (lambda df: df.repartition("k"), "USER_REPARTITION"),
    "repartition by range": (lambda df: df.repartitionByRange(3, "n"), "USER_REPARTITION"),
    "coalesce": (lambda df: df.coalesce(2), "USER_REPARTITION"),
    "rebalance": (lambda df: df.hint("rebalance"), "USER_REPARTITION"),
    "repartition under a filter": (
        lambda df: df.repartition(3).where("n > 9").withColumn("m", sf.col("n") + 1),
        "USER_REPARTITION",
    ),
    "repartition under an aggregate": (
        lambda df: df.repartition(5, "k", "p").groupBy("k", "p").count(),
        "USER_REPARTITION",
    ),
    "repartition under a join": (
        lambda df: _joined(df.repartition(5, "k")),
        "USER_REPARTITION",
    ),
    "repartition in a union": (
        lambda df: df.union(df.repartition(2)),
        "USER_REPARTITION",
    ),
    "repartition that is cached": (lambda df: cached(df.repartition(3)), "USER_REPARTITION"),
    "sort": (lambda df: df.orderBy("n"), "USER_SORT"),
    "sort within partitions": (lambda df: df.sortWithinPartitions("p", "n"), "USER_SORT"),
    "sort under a filter": (lambda df: df.orderBy("n").where("n % 2 = 0"), "USER_SORT"),
    "sort that is cached": (lambda df: cached(df.orderBy("n")), "USER_SORT"),
    "sort that is a checkpoint": (
        lambda df: df.orderBy("n").localCheckpoint(),
        "USER_REPARTITION",
    ),
    "an RDD's rows": (
        lambda df: df.sparkSession.createDataFrame(df.rdd, df.schema).where("k > 0"),
        "USER_REPARTITION",
    ),
    "limit": (lambda df: df.limit(100), "LIMITED_ROWS"),
    "limit of a sort": (lambda df: df.orderBy("n").limit(100), "USER_SORT"),
    "offset": (lambda df: df.offset(10), "LIMITED_ROWS"),
    "limit below an aggregate": (
        lambda df: df.limit(100).groupBy("k", "p").count(),
        "LIMITED_ROWS",
    ),
    "limit in a subquery": (
        lambda df: df.where("k IN (SELECT k FROM t LIMIT 5)"),
        "LIMITED_ROWS",
    ),
    "sample": (lambda df: df.sample(0.5, 7), "LIMITED_ROWS"),
    "rand": (lambda df: df.withColumn("r", sf.rand(7)), "NOT_DETERMINISTIC"),
    "monotonically_increasing_id": (
        lambda df: df.withColumn("r", sf.monotonically_increasing_id()),
        "NOT_DETERMINISTIC",
    ),
}


@tiers.QUARTER
@pytest.mark.parametrize("query", LEFT)
def test_what_the_author_said_and_what_may_differ_is_left_to_spark(
    table: SparkSession, tmp_path: Path, query: str
) -> None:
    change, reason = LEFT[query]
    # The aggregate of a limit gives other rows in each run, so the plan tells, and how many files.
    by_day(change(table.table("t")), tmp_path / "plain")
    before = nodes(table)
    table.catalog.clearCache()
    use(table)
    by_day(change(table.table("t")), tmp_path / "decided")
    assert nodes(table) == before
    assert len(files(tmp_path / "decided")) == len(files(tmp_path / "plain"))
    assert [(d.reason, d.fate) for d in asked(table)] == [(reason, None)]


def test_buckets_are_left_to_spark(table: SparkSession) -> None:
    use(table)
    table.table("t").write.bucketBy(4, "k").format("parquet").saveAsTable("made")
    assert [d.reason for d in asked(table)] == ["BUCKETED_TABLE"]
    assert not rebalances(table)
    assert facts(table)["write"]["bucket_columns"] == ["k"]
    table.sql("INSERT INTO made SELECT * FROM t")
    assert [d.reason for d in asked(table)] == ["BUCKETED_TABLE"] * 2
    assert table.table("made").count() == 6000


def test_nothing_is_shuffled_without_aqe(table: SparkSession, tmp_path: Path) -> None:
    table.conf.set("spark.sql.adaptive.enabled", "false")
    use(table)
    by_day(table.table("t"), tmp_path / "decided")
    assert [d.reason for d in asked(table)] == ["ADAPTIVE_OFF"]
    assert len(files(tmp_path / "decided")) == 5 * TASKS


def test_a_stream_is_left_to_spark(table: SparkSession, tmp_path: Path) -> None:
    table.table("t").repartition(1).write.parquet(str(tmp_path / "source"))
    use(table)
    stream = table.readStream.schema("n BIGINT, p BIGINT").parquet(str(tmp_path / "source"))

    def write(df: DataFrame, _number: int) -> None:
        by_day(df, tmp_path / "batch")

    query = stream.writeStream.foreachBatch(write).trigger(availableNow=True)
    query.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
    sink = stream.writeStream.format("parquet").trigger(availableNow=True)
    sink = sink.option("checkpointLocation", str(tmp_path / "d")).option("path", f"{tmp_path}/s")
    sink.start().awaitTermination()
    found = table.sql("SELECT reason FROM aqepilot_decisions() WHERE point = 'write_distribution'")
    assert {d.reason for d in found.collect()} <= {"STREAMING_WRITE"}
    assert table.read.parquet(f"{tmp_path}/s").count() == 3000
    assert len(files(tmp_path / "batch")) == 5


def test_by_columns_of_the_answer(table: SparkSession, tmp_path: Path) -> None:
    use(table, "named_struct('rebalance', true, 'columns', array('K'))")
    table.table("t").write.parquet(str(tmp_path / "decided"))
    (one,) = asked(table)
    assert (one.fate, one.final_strategy) == ("adopted", "rebalance by k")
    assert "hashpartitioning(k" in ran(table)
    use(table, "named_struct('rebalance', true, 'columns', array('nothing'))")
    table.table("t").write.parquet(str(tmp_path / "refused"))
    assert asked(table)[-1].reason == "UNSUITABLE_COLUMN"
    assert "nothing is not written" in asked(table)[-1].detail
    assert not rebalances(table)


def test_the_size_of_the_answer(table: SparkSession, tmp_path: Path) -> None:
    """One partition's rows, from twelve map tasks, in parts of the size; or all in one file."""
    wide = table.table("t").selectExpr("n", "0L + n % 2 AS p", "sha2(string(n), 512) AS s")
    texts = [f"named_struct('rebalance', true, 'target_bytes', {n}L)" for n in (20480, 10**9)]
    for number, text in enumerate(texts):
        use(table, text)
        by_day(wide, tmp_path / str(number))
    assert len(files(tmp_path / "0")) > 6
    assert len(files(tmp_path / "1")) == 2
    assert [d.fate for d in asked(table)] == ["adopted"] * 2
    assert_same(table, tmp_path / "0", tmp_path / "1")


VALUES = {
    "constant": ("n, 7L AS p", "rebalance"),
    "null and empty": ("n, if(p = 1, null, if(p = 2, '', 'x' || p)) AS p", "rebalance by p"),
    "decimals": ("n, CAST(p AS DECIMAL(9, 2)) AS p", "rebalance by p"),
    "dates": ("n, date_add(DATE '2024-01-01', int(p)) AS p", "rebalance by p"),
}


@tiers.QUARTER
@pytest.mark.parametrize("values", VALUES)
def test_each_row_is_in_its_directory(table: SparkSession, tmp_path: Path, values: str) -> None:
    columns, strategy = VALUES[values]
    df = table.sql(f"SELECT {columns} FROM t")
    by_day(df, tmp_path / "plain")
    use(table)
    by_day(df, tmp_path / "decided")
    (one,) = asked(table)
    assert one.fate == "adopted"
    assert one.final_strategy == strategy
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


AMBIGUOUS = {
    "zeros": "if(spark_partition_id() < 6, 0D, -0D)",
    "an hour that is there twice": "timestamp_seconds(1729989000 + if(n < 1500, 0, 3600))",
    "bytes": "if(n < 1500, x'ff', x'fe')",
}


@tiers.QUARTER
@pytest.mark.parametrize("values", AMBIGUOUS)
def test_values_that_fail_in_one_task_do_not_meet(
    table: SparkSession, tmp_path: Path, values: str
) -> None:
    """Spark's writer opens a file twice where it sorts two values alike, or names them alike."""
    table.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    source = table.sql(f"SELECT n, {AMBIGUOUS[values]} AS p FROM t")
    source.write.parquet(str(tmp_path / "source"))
    little.settings(
        table,
        {"spark.sql.files.maxPartitionBytes": "1MB", "spark.sql.files.openCostInBytes": "1MB"},
    )
    df = table.read.parquet(str(tmp_path / "source"))
    by_day(df, tmp_path / "plain")
    with pytest.raises(Exception, match=r"(?s)already exists|Task failed"):
        by_day(df.hint("rebalance"), tmp_path / "by the author")
    use(table, EVENLY)
    by_day(df, tmp_path / "decided")
    assert asked(table)[-1].reason == "AMBIGUOUS_PARTITION"
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


@pytest.mark.skipif(tiers.MINOR == "3.5", reason="collations came with 4.0")
def test_collated_strings(table: SparkSession, tmp_path: Path) -> None:
    df = table.sql("SELECT p, (if(n % 2 = 0, 'a', 'A') || k) COLLATE UTF8_LCASE AS s FROM t")
    df.write.parquet(str(tmp_path / "plain"))
    use(table, "named_struct('rebalance', true, 'columns', array('s'))")
    df.write.parquet(str(tmp_path / "decided"))
    assert [d.fate for d in asked(table)] == ["adopted"]
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


def test_writers_at_once(table: SparkSession, tmp_path: Path) -> None:
    """Spark then sorts nothing before it writes."""
    table.conf.set("spark.sql.maxConcurrentOutputFileWriters", "10")
    by_day(table.table("t"), tmp_path / "plain")
    use(table)
    by_day(table.table("t"), tmp_path / "decided")
    assert "Sort" not in nodes(table)
    assert [d.fate for d in asked(table)] == ["adopted"]
    assert len(files(tmp_path / "decided")) == 5
    assert_same(table, tmp_path / "decided", tmp_path / "plain")


def test_sums_of_doubles_distribute_nothing(table: SparkSession, tmp_path: Path) -> None:
    """Their last bits hang on the order of rows, which is another when a map task runs again.

    A mean of integers adds doubles.
    """
    df = table.sql(
        "SELECT k, p, count(*) AS c, sum(d) AS s, max(d) AS m,"
        " collect_list(n) AS l, first(n) AS f, sum(n) AS i, avg(n) AS a FROM t GROUP BY k, p"
    )
    use(table)
    for name, written in {"evenly": df, "mean": df.drop("s", "l", "f")}.items():
        written.write.parquet(str(tmp_path / name))
        assert asked(table)[-1].reason == "NOT_DETERMINISTIC"
    assert facts(table)["input"]["distributing_columns"] == ["k", "p", "c", "m", "i"]
    by_day(df, tmp_path / "decided")
    assert asked(table)[-1].reason == "APPLIED"
    df.drop("s", "l", "f", "a").write.parquet(str(tmp_path / "others"))
    assert asked(table)[-1].reason == "APPLIED"
    table.conf.set("spark.sql.execution.sortBeforeRepartition", "false")
    df.drop("s", "l", "f", "a").write.parquet(str(tmp_path / "unsorted"))
    assert asked(table)[-1].reason == "NOT_DETERMINISTIC"


def test_the_facts_of_a_write(table: SparkSession, tmp_path: Path) -> None:
    use(table, "null")
    path = str(tmp_path / "made")
    _insert(table.table("t"), path, "PARTITION (k = 3, p) SELECT n, d, p FROM t", "k, p")
    found = facts(table)
    assert found["write"] == {
        "command": "InsertIntoHadoopFsRelationCommand",
        "format": "parquet",
        "table": "default.made",
        "mode": "APPEND",
        "columns": ["n", "d", "k", "p"],
        "partition_columns": ["k", "p"],
        "dynamic_columns": ["p"],
        "constant_columns": [],
        "ambiguous_columns": [],
        "transforms": [],
        "static_partitions": ["k=3"],
        "overwrites_dynamically": False,
        "bucket_columns": [],
        "num_buckets": None,
        "required_distribution": None,
        "required_ordering": [],
        "max_concurrent_writers": 0,
        "fans_out": False,
        "is_adaptive": True,
        "is_streaming": False,
    }
    shown = ("num_tasks", "last_shuffle", "shuffled_by", "user_distribution", "estimate_from")
    assert [found["input"][name] for name in shown] == [TASKS, None, [], None, "STATISTICS"]
    table.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    table.sql("INSERT OVERWRITE made SELECT count(*), avg(d), k, p AS q FROM t GROUP BY k, p")
    found = facts(table)
    assert found["write"]["mode"] == "OVERWRITE"
    assert found["write"]["overwrites_dynamically"]
    shown = ("num_tasks", "last_shuffle", "shuffled_by")
    assert [found["input"][name] for name in shown] == [None, "AGGREGATE", ["k", "p"]]


def test_a_recipe_compacts_what_would_be_small(table: SparkSession, tmp_path: Path) -> None:
    recipe = recipes.get("compact_files")
    aqepilot.use(table, recipe)
    by_day(table.table("t"), tmp_path / "many")
    assert len(files(tmp_path / "many")) == 5
    # Rows of a day are in one task already.
    by_day(table.sql("SELECT p, count(*) AS c FROM t GROUP BY p"), tmp_path / "grouped")
    table.table("t").write.parquet(str(tmp_path / "flat"))
    assert len(files(tmp_path / "flat")) == TASKS
    assert [d.reason for d in asked(table)] == ["APPLIED", "NULL_ANSWER", "NULL_ANSWER"]


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
    done = spark_submit(HIVE, conf={"spark.sql.shuffle.partitions": "4"}, timeout_s=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-3000:]
    (before, after), said = json.loads(lines[0].removeprefix("FOUND "))
    assert (before[0], after[0]) == (18, 3)
    assert before[1] == after[1]
    assert [(reason, fate) for reason, fate, _ in said] == [("APPLIED", "adopted")] * 2
    write = json.loads(said[0][2])["write"]
    assert write["command"] == "InsertIntoHiveTable"
    assert (write["mode"], write["table"]) == ("OVERWRITE", "default.h")
    assert write["partition_columns"] == write["dynamic_columns"] == ["p"]


def test_what_is_decided_elsewhere_in_the_query_stays(table: SparkSession, tmp_path: Path) -> None:
    """A join's strategy beneath the write, with a policy for both."""
    use(table)
    table.conf.set("spark.aqepilot.policy.test.join_selection", "'SHUFFLE_HASH'")
    by_day(_joined(table.table("t")), tmp_path / "decided")
    assert "ShuffledHashJoin" in nodes(table)
    assert rebalances(table)
    assert {(d.point, d.fate) for d in policies.decisions(table) if d.applied} == {
        (POINT, "adopted"),
        ("join_selection", "adopted"),
    }
