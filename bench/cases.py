"""What is measured of each recipe: queries, their tables and settings, and what stands beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyspark

import parity
import tpcds
import tpch
from aqepilot import recipes

SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
# Shuffles below 1 MB are one task to Spark, others one for each core at least.
EXPANDING = {
    "explode of few bytes": """
        SELECT max(hash(c, x))
        FROM (SELECT DISTINCT o_custkey AS c FROM orders WHERE o_custkey < 75000)
        LATERAL VIEW explode(sequence(1, 10000)) AS x""",
    "join on a range of few bytes": """
        SELECT count(*), sum(c)
        FROM (SELECT DISTINCT o_custkey AS c FROM orders WHERE o_custkey < 75000)
        JOIN (SELECT id AS low FROM range(10000)) ON c % 1000 >= low AND c % 997 < low + 100""",
    "Python on few bytes": """
        SELECT sum(letters_in_python(repeat(c, 500)))
        FROM (SELECT DISTINCT o_custkey AS c FROM orders WHERE o_custkey < 75000)""",
    "loses: an aggregation in each task": """
        WITH of AS (SELECT o_custkey AS c, collect_list(o_orderkey) AS keys FROM orders GROUP BY 1)
        SELECT hash(a, b) % 100000, count(*), max(c) FROM of
        LATERAL VIEW explode(keys) AS a LATERAL VIEW explode(keys) AS b GROUP BY 1""",
    "loses: a little explode": """
        SELECT count(*), sum(x) FROM (
          SELECT DISTINCT l_suppkey AS s, l_partkey AS p FROM lineitem)
        LATERAL VIEW explode(array(s, p)) AS x""",
    "loses: Python on few rows": """
        SELECT sum(letters_in_python(name)) FROM (
          SELECT DISTINCT concat_ws(' ', l_shipmode, l_returnflag) AS name FROM lineitem)""",
}
LARGE_BROADCASTS = {"spark.sql.autoBroadcastJoinThreshold": "64MB"}
SMALL_BROADCASTS = {"10 MB": {"spark.sql.autoBroadcastJoinThreshold": "10MB"}}


class Case(NamedTuple):
    """One measurement.

    Attributes:
        recipes: The recipes, together one variant.
        tables: The folder with the tables at a scale factor.
        queries: By name.
        conf: Settings of all variants.
        beside: Settings of further variants.
    """

    recipes: Sequence[str]
    tables: Callable[[float], Path]
    queries: Callable[[], Mapping[str, str]]
    conf: Mapping[str, str] = {}
    beside: Mapping[str, Mapping[str, str]] = {}


def named(queries: Mapping[int, str]) -> dict[str, str]:
    """Returns queries that have numbers by name."""
    return {str(number): text for number, text in queries.items()}


def _tpcds() -> dict[str, str]:
    return named(tpcds.queries())


# Of TPC-DS at scale factor 1, those whose time is mostly Spark's own around the tasks.
_SHORT = (1, 20, 45, 52, 55, 63, 91, 92)


def _short() -> dict[str, str]:
    return named({number: tpcds.queries()[number] for number in _SHORT})


def asked(mode: str) -> dict[str, str]:
    """Settings by which the points of `balanced` are asked, and nothing comes of it.

    Args:
        mode: ``shadow``, or ``null`` for texts that say nothing.
    """
    texts = recipes.get("balanced", pyspark.__version__).texts()
    if mode == "null":
        texts = dict.fromkeys(texts, "NULL")
    policy = {f"spark.aqepilot.policy.asked.{point}": text for point, text in texts.items()}
    shadow = {"spark.aqepilot.policy.asked.mode": "shadow"} if mode == "shadow" else {}
    return {"spark.aqepilot.policies": "asked"} | policy | shadow


def _tpch() -> dict[str, str]:
    return named(tpch.queries())


CASES = {
    "right_sized_shuffles": Case(
        ["right_sized_shuffles"],
        tpcds.files,
        _tpcds,
        beside={"8 partitions": {"spark.sql.shuffle.partitions": "8"}},
    ),
    "expanding_stages": Case(["expanding_stages"], tpch.files, lambda: EXPANDING),
    "most_selective_first": Case(["most_selective_first"], tpcds.files, _tpcds),
    "no_broadcast_of_guesses": Case(
        ["no_broadcast_of_guesses"], tpcds.files, _tpcds, LARGE_BROADCASTS, SMALL_BROADCASTS
    ),
    "no_broadcast_of_range_joins": Case(
        ["no_broadcast_of_range_joins"], tpcds.files, _tpcds, LARGE_BROADCASTS, SMALL_BROADCASTS
    ),
    "balanced": Case(
        ["balanced"],
        tpcds.files,
        _tpcds,
        beside={"8 partitions": {"spark.sql.shuffle.partitions": "8"}},
    ),
    "balanced_short": Case(
        ["balanced"],
        tpcds.files,
        _short,
        conf={"spark.sql.shuffle.partitions": "8"},
        beside={"null": asked("null"), "in shadow": asked("shadow")},
    ),
    "balanced_tpch": Case(
        ["balanced"],
        tpch.files,
        _tpch,
        beside={"8 partitions": {"spark.sql.shuffle.partitions": "8"}},
    ),
    "all_points": Case(parity.SPARKS_OWN, tpcds.files, _tpcds),
}
