"""Policies at all five decision points at once, and what they do to the plans of three queries.

Two sets whose effects differ at each point, over the tables of `skewed`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import plans
import reads
import skewed

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

# `d` turns out to be small enough for a broadcast when its shuffle has run.
SETTINGS = skewed.SETTINGS | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "20KB"}
SPLIT = "SELECT r.n % 40 AS n, sum(hash(l.k, l.v, r.w)) FROM l JOIN r ON l.k = r.k GROUP BY 1"
JOINED = "SELECT count(*), sum(hash(r.n, r.w, d.x)) FROM r JOIN d ON r.k = d.k"
COMPARED = "SELECT count(*), sum(hash(l.v, d.x)) FROM l JOIN d ON l.k = d.k"
QUERIES = {
    "skew_join": SPLIT,
    "shuffle_partitions": SPLIT,
    "partition_coalescing": SPLIT,
    "dynamic_join_selection": JOINED,
    "cost_evaluation": COMPARED,
}
POINTS = tuple(QUERIES)
_SPLITS = "transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, {}, null))"
_AGGREGATED = "shuffles.num_shuffles = 1 AND shuffles.feeds = array('AGGREGATE')"
_FEW_ROWS = "shuffle.row_count < 450"
_OF_R = "(array_contains(side.tables, 'r') OR array_contains(other.tables, 'r'))"
SETS = {
    "one": {
        "skew_join": skewed.struct(left_splits=_SPLITS.format(3)),
        "shuffle_partitions": f"CASE WHEN {_AGGREGATED} THEN 6 END",
        "partition_coalescing": f"CASE WHEN {_FEW_ROWS} THEN named_struct('min_partitions', 1) END",
        "dynamic_join_selection": f"CASE WHEN {_OF_R} AND NOT side.is_left THEN 'SHUFFLE_HASH' END",
        "cost_evaluation": "spark.cost + plan.broadcast_hash_joins * 100",
    },
    "two": {
        "skew_join": skewed.struct(left_splits=_SPLITS.format(2)),
        "shuffle_partitions": f"CASE WHEN {_AGGREGATED} THEN 5 END",
        "partition_coalescing": f"CASE WHEN {_FEW_ROWS} THEN named_struct('keep', true) END",
        "dynamic_join_selection": f"CASE WHEN {_OF_R} THEN 'SHUFFLE_MERGE' END",
        "cost_evaluation": "spark.cost",
    },
}
_NUMBER = re.compile(r"Exchange hashpartitioning\(.*, (\d+)\), ENSURE_REQUIREMENTS")


class Ran(NamedTuple):
    """A query that has run: its rows, and what each point does in its plan."""

    rows: list[Row]
    effects: dict[str, Any]


def run(spark: SparkSession, sql: str) -> Ran:
    """Runs one of the queries."""
    df = spark.sql(sql)
    rows = df.collect()
    strategies = plans.strategies(df)
    if sql == SPLIT:
        return Ran(
            rows,
            {
                "skew_join": plans.reads(df)[0].splits()[0],
                "shuffle_partitions": int(_NUMBER.findall(plans.canonical_plan(df))[0]),
                "partition_coalescing": reads.of(df)[0].kind,
            },
        )
    return Ran(rows, {point: strategies for point, query in QUERIES.items() if query == sql})


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


EFFECTS: dict[str | None, dict[str, Any]] = {
    None: {
        "skew_join": {},
        "shuffle_partitions": 8,
        "partition_coalescing": "plain",
        "dynamic_join_selection": ["BroadcastHashJoin BuildRight"],
        "cost_evaluation": ["BroadcastHashJoin BuildRight"],
    },
    "one": {
        "skew_join": {5: 3},
        "shuffle_partitions": 6,
        "partition_coalescing": "coalesced",
        "dynamic_join_selection": ["ShuffledHashJoin BuildRight"],
        "cost_evaluation": ["SortMergeJoin"],
    },
    "two": {
        "skew_join": {5: 2},
        "shuffle_partitions": 5,
        "partition_coalescing": "plain",
        "dynamic_join_selection": ["SortMergeJoin"],
        "cost_evaluation": ["BroadcastHashJoin BuildRight"],
    },
}
