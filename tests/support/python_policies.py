"""Functions that decide as texts of SQL do, at every decision point."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scala_objects
from aqepilot import gateway
from aqepilot.submit.conf import TOKEN_KEY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SQL = {
    "join_reorder": "reverse(transform(chain.relations, (relation, i) -> i))",
    "write_distribution": """
        CASE WHEN size(write.columns) > 1 THEN named_struct('rebalance', true,
          'columns', slice(input.distributing_columns, 1, 1), 'target_bytes', 65536L) END""",
    "join_selection": """
        CASE WHEN right.size_in_bytes < 200000 AND right.can_broadcast
          THEN named_struct('strategy', 'BROADCAST', 'build_side', 'RIGHT')
        WHEN join.key_count = 1 AND size(left.tables) = 1 THEN 'SHUFFLE_MERGE' END""",
    "shuffle_partitions": """
        CASE WHEN shuffles.feeds = array('AGGREGATE') THEN 3
        WHEN shuffles.size_in_bytes IS NOT NULL
          THEN CAST(1 + shuffles.size_in_bytes % 7 AS INT) END""",
    "dynamic_join_selection": """
        CASE WHEN aggregate(side.bytes_by_partition_id, 0L, (sum, b) -> sum + b * b) % 3 = 0
          THEN 'SHUFFLE_HASH'
        WHEN side.max_bytes > 2 * side.median_bytes THEN 'SHUFFLE_MERGE' END""",
    "skew_join": """
        CASE WHEN join.type = 'INNER' THEN named_struct(
          'skew_factor', left.median_bytes / 100D,
          'right_threshold_bytes', greatest(1L, right.max_bytes - 10),
          'left_splits', transform(left.bytes_by_partition_id, b -> IF(b > 500, 2, null))) END""",
    "cost_evaluation": "spark.cost + 2.5 * plan.sort_merge_joins + plan.known_bytes % 11",
    "partition_coalescing": """
        named_struct('target_bytes', greatest(1024L, 2 * shuffle.max_bytes),
          'min_partitions', 1 + stage.num_shuffles, 'local_read', NOT stage.has_sort)""",
}
SOURCE = """
def join_reorder(facts):
    return list(reversed(range(facts.chain.num_relations)))


def join_selection(facts):
    if facts.right.size_in_bytes < 200000 and facts.right.can_broadcast:
        return {"strategy": "BROADCAST", "build_side": "RIGHT"}
    if facts.join.key_count == 1 and len(facts.left.tables) == 1:
        return "SHUFFLE_MERGE"


def shuffle_partitions(facts):
    if facts.shuffles.feeds == ("AGGREGATE",):
        return 3
    if facts.shuffles.size_in_bytes is not None:
        return 1 + facts.shuffles.size_in_bytes % 7


def dynamic_join_selection(facts):
    side = facts.side
    if side.bytes_by_partition_id is None:
        return None
    if sum(b * b for b in side.bytes_by_partition_id) % 3 == 0:
        return "SHUFFLE_HASH"
    if side.max_bytes > 2 * side.median_bytes:
        return "SHUFFLE_MERGE"


def skew_join(facts):
    if facts.join.type != "INNER":
        return None
    left, right = facts.left, facts.right
    return {
        "skew_factor": None if left.median_bytes is None else left.median_bytes / 100,
        "right_threshold_bytes": max(1, (right.max_bytes or 0) - 10),
        "left_splits": left.bytes_by_partition_id
        and [2 if b > 500 else None for b in left.bytes_by_partition_id],
    }


def cost_evaluation(facts):
    plan = facts.plan
    return facts.spark.cost + 2.5 * plan.sort_merge_joins + plan.known_bytes % 11


def partition_coalescing(facts):
    return {
        "target_bytes": max(1024, 2 * facts.shuffle.max_bytes),
        "min_partitions": 1 + facts.stage.num_shuffles,
        "local_read": not facts.stage.has_sort,
    }


def write_distribution(facts):
    if len(facts.write.columns) > 1:
        columns = facts.input.distributing_columns[:1]
        return {"rebalance": True, "columns": columns, "target_bytes": 65536}
"""


def text(function: str, module: str = "functions") -> str:
    """Returns a policy's text that names a function."""
    return f"python:{module}:{function}"


def session_functions(spark: SparkSession) -> Any:
    """Returns the driver's object that keeps what sessions' own Python brought."""
    name = "org.apache.spark.sql.aqepilot.policy.python.SessionFunctions"
    return scala_objects.get(spark, name).ofDriver()


def allow(spark: SparkSession, function: str, folder: Path, module: str = "functions") -> str:
    """Lets a session use a function of a module there; returns its text."""
    functions = session_functions(spark)
    session = gateway.session(spark)
    spark.conf.set(TOKEN_KEY, session.token)
    named = text(function, module)
    functions.allow(session.token, spark._jsparkSession, named, str(folder), sys.executable)
    return named
