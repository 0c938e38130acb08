"""A row for each decision point: a query, two policies, and what each does to the query's plan.

The two policies of all rows together are two sets, whose effects differ at each point. The queries
run over the tables of `skewed`. What has to hold at every point is tried with these rows; a point
without one fails `test_catalog`.
"""

from __future__ import annotations

import re
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import plans
import reads
import skewed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

# `d` turns out to be small enough for a broadcast when its shuffle has run.
SETTINGS = skewed.SETTINGS | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "20KB"}
SPLIT = "SELECT r.n % 40 AS n, sum(hash(l.k, l.v, r.w)) FROM l JOIN r ON l.k = r.k GROUP BY 1"
JOINED = "SELECT count(*), sum(hash(r.n, r.w, d.x)) FROM r JOIN d ON r.k = d.k"
COMPARED = "SELECT count(*), sum(hash(l.v, d.x)) FROM l JOIN d ON l.k = d.k"
OUTER = "SELECT count(*), sum(hash(l.v, d.x)) FROM l LEFT JOIN d ON l.k = d.k"
CHAIN = "SELECT count(*), sum(hash(l.v, r.w, d.x)) FROM l, r, d WHERE l.k = r.k AND r.k = d.k"
# Goes with the process; `run` gives each write a folder of its own there.
_WRITTEN = tempfile.TemporaryDirectory(prefix="aqepilot-written-")
FOLDER = f"{_WRITTEN.name}/all"
WRITTEN = "SELECT n % 3 AS g, k, w FROM r"
WRITE = f"INSERT OVERWRITE DIRECTORY '{FOLDER}' USING parquet {WRITTEN}"
_SPLITS = "transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, {}, null))"
_AGGREGATED = "shuffles.num_shuffles = 1 AND shuffles.feeds = array('AGGREGATE')"
_FEW_ROWS = "shuffle.row_count < 450"
_OF_R = "(array_contains(side.tables, 'r') OR array_contains(other.tables, 'r'))"
_NUMBER = re.compile(r"Exchange hashpartitioning\(.*, (\d+)\), ENSURE_REQUIREMENTS")


class Point(NamedTuple):
    """What tells that a policy of one point has acted.

    Attributes:
        query: Its text.
        one: A policy.
        two: Another.
        effect: Reads from the DataFrame of the query, which has run, what the point decides.
        effects: What that is in plain Spark, with the first policy, and with the second.
    """

    query: str
    one: str
    two: str
    effect: Callable[[DataFrame], Any]
    effects: tuple[Any, Any, Any]


def _splits(df: DataFrame) -> dict[int, int]:
    return plans.reads(df)[0].splits()[0]


def _shuffle_partitions(df: DataFrame) -> int:
    return int(_NUMBER.findall(plans.canonical_plan(df))[0])


def _kind_of_read(df: DataFrame) -> str:
    return reads.listed(df)[0].kind


def _order(df: DataFrame) -> list[str]:
    """The tables in the order in which the joins, bottom up, take them in."""
    tables = [t for join in reversed(plans.joins(df)) for t in (*join.left, *join.right)]
    return list(dict.fromkeys(tables))


def _files(df: DataFrame) -> int:
    """How many files the command has written."""
    text = df._jdf.queryExecution().logical().toString()
    (folder,) = set(re.findall(rf"{re.escape(_WRITTEN.name)}/[\w-]+", text))
    return len(list(Path(folder).glob("*.parquet")))


ROWS = {
    "skew_join": Point(
        SPLIT,
        skewed.struct(left_splits=_SPLITS.format(3)),
        skewed.struct(left_splits=_SPLITS.format(2)),
        _splits,
        ({}, {5: 3}, {5: 2}),
    ),
    "shuffle_partitions": Point(
        SPLIT,
        f"CASE WHEN {_AGGREGATED} THEN 6 END",
        f"CASE WHEN {_AGGREGATED} THEN 5 END",
        _shuffle_partitions,
        (8, 6, 5),
    ),
    "partition_coalescing": Point(
        SPLIT,
        f"CASE WHEN {_FEW_ROWS} THEN named_struct('min_partitions', 1) END",
        f"CASE WHEN {_FEW_ROWS} THEN named_struct('keep', true) END",
        _kind_of_read,
        ("plain", "coalesced", "plain"),
    ),
    "dynamic_join_selection": Point(
        JOINED,
        f"CASE WHEN {_OF_R} AND NOT side.is_left THEN 'SHUFFLE_HASH' END",
        f"CASE WHEN {_OF_R} THEN 'SHUFFLE_MERGE' END",
        plans.strategies,
        (["BroadcastHashJoin BuildRight"], ["ShuffledHashJoin BuildRight"], ["SortMergeJoin"]),
    ),
    "cost_evaluation": Point(
        COMPARED,
        "spark.cost + plan.broadcast_hash_joins * 100",
        "spark.cost",
        plans.strategies,
        (["BroadcastHashJoin BuildRight"], ["SortMergeJoin"], ["BroadcastHashJoin BuildRight"]),
    ),
    "join_selection": Point(
        OUTER,
        "CASE WHEN join.type = 'LEFT OUTER' THEN"
        " named_struct('strategy', 'SHUFFLE_HASH', 'build_side', 'RIGHT') END",
        "CASE WHEN join.type = 'LEFT OUTER' THEN 'SHUFFLE_MERGE' END",
        plans.strategies,
        (["BroadcastHashJoin BuildRight"], ["ShuffledHashJoin BuildRight"], ["SortMergeJoin"]),
    ),
    "join_reorder": Point(
        CHAIN,
        "CASE WHEN chain.num_relations = 3 THEN array(2, 1, 0) END",
        "CASE WHEN chain.num_relations = 3 THEN array(1, 0, 2) END",
        _order,
        (["l", "r", "d"], ["d", "r", "l"], ["r", "l", "d"]),
    ),
    "write_distribution": Point(
        WRITE,
        "CASE WHEN array_contains(write.columns, 'g') THEN named_struct('rebalance', true,"
        " 'columns', array('g')) END",
        "CASE WHEN array_contains(write.columns, 'g') THEN true END",
        _files,
        (6, 2, 8),
    ),
}
POINTS = tuple(ROWS)
# Asked before any job of the query runs.
PLANNING = ("join_selection", "join_reorder", "write_distribution")
QUERIES = {point: row.query for point, row in ROWS.items()}
SETS = {
    "one": {point: row.one for point, row in ROWS.items()},
    "two": {point: row.two for point, row in ROWS.items()},
}
EFFECTS: dict[str | None, dict[str, Any]] = {
    name: {point: row.effects[place] for point, row in ROWS.items()}
    for place, name in enumerate((None, "one", "two"))
}


class Ran(NamedTuple):
    """A query that has run: its rows, and what each point does in its plan."""

    rows: list[Row]
    effects: dict[str, Any]


def run(spark: SparkSession, sql: str) -> Ran:
    """Runs one of the queries."""
    df = spark.sql(sql.replace(FOLDER, f"{_WRITTEN.name}/{uuid.uuid4()}"))
    rows = df.collect()
    return Ran(rows, {point: row.effect(df) for point, row in ROWS.items() if row.query == sql})


def use(spark: SparkSession, texts: dict[str, str]) -> None:
    """Makes it the session's only policy."""
    spark.conf.unset("spark.aqepilot.policies")
    for point in POINTS:
        key = f"spark.aqepilot.policy.test.{point}"
        if point in texts:
            spark.conf.set(key, texts[point])
        else:
            spark.conf.unset(key)
    spark.conf.set("spark.aqepilot.policies", "test")
