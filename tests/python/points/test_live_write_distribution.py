"""A decided write shuffles its rows once more and changes none."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import aqepilot
import policies
import tiers
from aqepilot import recipes
from distributed_writes import (
    POINT,
    TASKS,
    asked,
    assert_same,
    by_day,
    facts,
    files,
    insert_into_made,
    joined,
    nodes,
    ran,
    rebalances,
    use,
)

pytestmark = tiers.ON_ONE


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


@tiers.EIGHTH
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


def test_the_facts_of_a_write(table: SparkSession, tmp_path: Path) -> None:
    use(table, "null")
    path = str(tmp_path / "made")
    insert_into_made(table.table("t"), path, "PARTITION (k = 3, p) SELECT n, d, p FROM t", "k, p")
    written = facts(table)
    assert written["write"] == {
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
    assert [written["input"][name] for name in shown] == [TASKS, None, [], None, "STATISTICS"]
    table.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    table.sql("INSERT OVERWRITE made SELECT count(*), avg(d), k, p AS q FROM t GROUP BY k, p")
    written = facts(table)
    assert written["write"]["mode"] == "OVERWRITE"
    assert written["write"]["overwrites_dynamically"]
    shown = ("num_tasks", "last_shuffle", "shuffled_by")
    assert [written["input"][name] for name in shown] == [None, "AGGREGATE", ["k", "p"]]


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


def test_what_is_decided_elsewhere_in_the_query_stays(table: SparkSession, tmp_path: Path) -> None:
    """A join's strategy beneath the write, with a policy for both."""
    use(table)
    table.conf.set("spark.aqepilot.policy.test.join_selection", "'SHUFFLE_HASH'")
    by_day(joined(table.table("t")), tmp_path / "decided")
    assert "ShuffledHashJoin" in nodes(table)
    assert rebalances(table)
    assert {(d.point, d.fate) for d in policies.decisions(table) if d.applied} == {
        (POINT, "adopted"),
        ("join_selection", "adopted"),
    }
