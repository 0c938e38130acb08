"""Sets of policies at all decision points, each of which changes every plan that it may."""

from __future__ import annotations

from spark_suites.ways import ADVERSARIAL

from aqepilot import Policy, recipes

_HASH = "pmod(hash(join.type, join.condition, left.tables, right.tables), 2)"
_SIDE = f"IF({_HASH} = 0, 'LEFT', 'RIGHT')"
_ALL_IN_TWO = "IF({0}.can_split, transform({0}.bytes_by_partition_id, b -> 2), NULL)"
# The job's own functions, in `turns.py`: other answers each time that they are asked.
TURNS = (
    *("join_reorder", "join_selection", "shuffle_partitions", "dynamic_join_selection"),
    *("skew_join", "partition_coalescing", "cost_evaluation", "write_distribution"),
)
SETS: dict[str, dict[str, str]] = {
    "broadcast": {
        "join_selection": f"named_struct('strategy', 'BROADCAST', 'build_side', {_SIDE})",
        "dynamic_join_selection": "'BROADCAST'",
        "partition_coalescing": "named_struct('local_read', true, 'min_partitions', 1)",
        "shuffle_partitions": "3",
    },
    "shuffle hash": {
        "join_selection": f"named_struct('strategy', 'SHUFFLE_HASH', 'build_side', {_SIDE})",
        "dynamic_join_selection": "'SHUFFLE_HASH'",
        "partition_coalescing": "named_struct('keep', true)",
        "write_distribution": "true",
        "shuffle_partitions": "7",
    },
    "splits": {
        "join_selection": "'SHUFFLE_MERGE'",
        "dynamic_join_selection": "'SHUFFLE_MERGE'",
        "skew_join": f"""named_struct('left_splits', {_ALL_IN_TWO.format("left")},
            'right_splits', {_ALL_IN_TWO.format("right")}, 'force', true)""",
        "partition_coalescing": "named_struct('local_read', false, 'target_bytes', 1024L)",
    },
    "adversarial": Policy.from_file(ADVERSARIAL).texts(),
    "compact files": recipes.get("compact_files").texts(),
    "spread evenly": {
        "write_distribution": """named_struct('rebalance', true, 'columns', array(),
            'target_bytes', 2048L)"""
    },
    "by key": {"write_distribution": "named_struct('rebalance', true, 'columns', array('k'))"},
    "by turns": {point: f"python:turns:{point}" for point in TURNS},
}
