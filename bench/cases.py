"""What is measured of each recipe: queries, their tables and settings, and what stands beside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyspark

import parity
import tpcds
import tpch
from aqepilot import jars
from aqepilot.demo import data, sparks

ADAPTIVE = "spark.sql.adaptive."
SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    ADAPTIVE + "autoBroadcastJoinThreshold": "-1",
}

# Long tasks for a few keys, and where splitting only repeats work.
HOT_KEYS = {
    "profit by ship mode": """
        SELECT l_shipmode, count(*),
               sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity)
        FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        GROUP BY l_shipmode""",
    "left join and much work for each row": """
        SELECT max(sha2(concat(l_comment, ps_comment), 512))
        FROM lineitem LEFT JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey""",
    "loses: no hot key": """
        SELECT count(*), max(a.l_comment)
        FROM lineitem a JOIN lineitem b
          ON a.l_orderkey = b.l_orderkey AND a.l_linenumber = b.l_linenumber""",
    "loses: little work for each row": """
        SELECT count(*)
        FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey""",
}
# As on a cluster of 64 cores, which Spark cuts shuffles for.
MANY_CORES = {ADAPTIVE + "coalescePartitions.minPartitionNum": "64"}
SHORT_QUERIES = (1, 4, 5, 10, 12, 13, 16, 18)
HEAVY_ROWS = {
    "loses: much work for each byte": """
        SELECT sum(aggregate(sequence(1, 200), 0L, (sum, i) -> sum + hash(o_custkey, i)))
        FROM (SELECT DISTINCT o_custkey FROM orders)""",
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
# A side turns out to be small while the other side's shuffle waits for a join of its own.
MEASURED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    ADAPTIVE + "autoBroadcastJoinThreshold": "10MB",
}
REPLANS = {
    "window over multiplied rows": """
        SELECT max(n), count(*) FROM (
          SELECT row_number() OVER (PARTITION BY p ORDER BY o_totalprice, x) AS n
          FROM (SELECT ps_partkey AS p, explode(sequence(1, 4)) AS x FROM partsupp)
          JOIN (SELECT l_partkey, o_totalprice FROM lineitem JOIN orders ON l_orderkey = o_orderkey)
            ON p = l_partkey
          WHERE p <= 20000)""",
    "aggregation that keeps all rows": """
        SELECT max(size(of)), count(*) FROM (
          SELECT p, collect_list(o_orderdate) AS of
          FROM (SELECT ps_partkey AS p, explode(sequence(1, 4)) AS x FROM partsupp)
          JOIN (SELECT l_partkey, o_orderdate FROM lineitem JOIN orders ON l_orderkey = o_orderkey)
            ON p = l_partkey
          WHERE p <= 20000
          GROUP BY p)""",
    "loses: few joined rows": """
        SELECT max(n), count(*) FROM (
          SELECT row_number() OVER (PARTITION BY p ORDER BY o_totalprice) AS n
          FROM (SELECT ps_partkey AS p FROM partsupp WHERE ps_availqty < 20)
          JOIN (SELECT l_partkey, o_totalprice FROM lineitem JOIN orders ON l_orderkey = o_orderkey)
            ON p = l_partkey)""",
    "loses: few rows after aggregation": """
        SELECT max(n), count(*) FROM (
          SELECT p, count(*) AS n
          FROM (SELECT ps_partkey AS p FROM partsupp WHERE ps_availqty < 20)
          JOIN (SELECT l_partkey FROM lineitem JOIN orders ON l_orderkey = o_orderkey)
            ON p = l_partkey
          GROUP BY p)""",
}
LARGE_BROADCASTS = {"spark.sql.autoBroadcastJoinThreshold": "64MB"}
SMALL_BROADCASTS = {"10 MB": {"spark.sql.autoBroadcastJoinThreshold": "10MB"}}


class Case(NamedTuple):
    """One measurement.

    Attributes:
        of: The recipes, together one variant.
        tables: The folder with the tables at a scale factor.
        queries: By name.
        conf: Settings of all variants.
        beside: Settings of further variants.
    """

    of: Sequence[str]
    tables: Callable[[float], Path]
    queries: Callable[[], Mapping[str, str]]
    conf: Mapping[str, str] = {}
    beside: Mapping[str, Mapping[str, str]] = {}


def _skewed(scale: float) -> Path:
    folder = Path(tpch.files(scale)).parent
    return data.skewed(folder, scale, sparks.find(jars.minor_of(pyspark.__version__), folder))


def _named(queries: Mapping[int, str]) -> dict[str, str]:
    return {str(number): text for number, text in queries.items()}


def _tpcds() -> dict[str, str]:
    return _named(tpcds.queries())


def _short() -> dict[str, str]:
    return _named({number: tpch.queries()[number] for number in SHORT_QUERIES}) | HEAVY_ROWS


CASES = {
    "right_sized_shuffles": Case(
        ["right_sized_shuffles"],
        tpcds.files,
        _tpcds,
        beside={"8 partitions": {"spark.sql.shuffle.partitions": "8"}},
    ),
    "hot_keys": Case(
        ["hot_keys"],
        _skewed,
        lambda: HOT_KEYS,
        SHUFFLED | {"spark.sql.files.maxPartitionBytes": "16MB"},
        {
            "settings by hand": {
                ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "4MB",
                ADAPTIVE + "skewJoin.skewedPartitionFactor": "2",
                ADAPTIVE + "advisoryPartitionSizeInBytes": "4MB",
            }
        },
    ),
    "small_tasks": Case(["small_tasks"], tpch.files, _short, MANY_CORES),
    "expanding_stages": Case(["expanding_stages"], tpch.files, lambda: EXPANDING),
    "no_regret_broadcast": Case(["no_regret_broadcast"], tpch.files, lambda: REPLANS, MEASURED),
    "most_selective_first": Case(["most_selective_first"], tpcds.files, _tpcds),
    "no_broadcast_of_guesses": Case(
        ["no_broadcast_of_guesses"], tpcds.files, _tpcds, LARGE_BROADCASTS, SMALL_BROADCASTS
    ),
    "no_broadcast_of_range_joins": Case(
        ["no_broadcast_of_range_joins"], tpcds.files, _tpcds, LARGE_BROADCASTS, SMALL_BROADCASTS
    ),
    "all_points": Case(parity.SPARKS_OWN, tpcds.files, _tpcds),
}
