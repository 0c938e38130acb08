"""Rows of a log in which each kind of finding is planted."""

from __future__ import annotations

from typing import Any

import made_logs

MB = 1 << 20


def fingerprint(kind: str) -> str:
    return f"{kind}'s".encode().hex()


def query(number: int, kind: str, **more: Any) -> dict[str, Any]:
    base = {"execution_id": number, "fingerprint": fingerprint(kind), "description": kind}
    base |= {"slot_ms": 100_000, "task_ms": 90_000, "join_nodes": []}
    # Of sixteen cores.
    return base | {"wall_ms": 10_000, "executor_core_ms": 160_000} | more


def stage(number: int, **more: Any) -> dict[str, Any]:
    base = {"execution_id": number, "stage_id": number, "num_tasks": 200, "slot_ms": 100_000}
    base |= {"shuffle_read_bytes": 100 * MB, "input_bytes": 0, "shuffle_write_bytes": 0}
    base |= {"output_bytes": 0, "disk_spill_bytes": 0, "waiting_ms": 0, "spilled_slot_ms": 0}
    base |= {"tiny_tasks": 0, "tiny_start_ms": 0, "max_task_ms": 100, "median_task_ms": 90}
    base |= {"operators": [], "rdd_partitions": 200, "has_shuffled": True, "writing_tasks": 0}
    base |= {"shuffle_read_records": 1_000_000, "max_task_records": 6000}
    return base | more


def decision(number: int, kind: str, point: str, **more: Any) -> dict[str, Any]:
    return {
        "execution_id": number, "fingerprint": fingerprint(kind), "point": point,
        "reason": "NULL_ANSWER", **more,
    }  # fmt: skip


NESTED, CODE = "BroadcastNestedLoopJoin", "WholeStageCodegen (2)"
TOO_LARGE = (
    "Job aborted due to stage failure: Total size of serialized results of 2 tasks (30.0 MiB) is "
    "bigger than spark.driver.maxResultSize (24.0 MiB)"
)


SIDE = {"can_split": True, "num_mappers": 8, "num_partitions": 200, "median_bytes": 2 * MB}


CLUSTER = {"default_parallelism": 16}


FLIPS = [
    query(10 + n, "flipping", joins=[join], task_ms=ms, slot_ms=ms)
    for n, (join, ms) in enumerate(
        [("SortMergeJoin", 9000), ("SortMergeJoin", 9100), ("SortMergeJoin", 9200)]
        + [("ShuffledHashJoin BuildRight", 3000 + n) for n in range(3)]
    )
]


QUERIES = [
    query(1, "hot_key", joins=["SortMergeJoin"]),
    query(2, "tiny_tasks"),
    query(3, "spilling", joins=["SortMergeJoin"]),
    query(4, "expanding"),
    query(5, "wrong_broadcast", joins=["BroadcastHashJoin BuildRight"]),
    query(6, "tiny_blocks", slot_ms=35_000),
    query(7, "failed_broadcast", slot_ms=30_000, succeeded=False, error=TOO_LARGE),
    query(8, "range_join", slot_ms=25_000, joins=["BroadcastHashJoin BuildRight"]),
    query(50, "coalesce", slot_ms=24_000),
    query(51, "one_group", slot_ms=23_000),
    query(52, "not_in", slot_ms=22_000, join_nodes=[(NESTED, CODE, "LeftAnti", True, "a = b")]),
    query(
        53,
        "no_keys",
        slot_ms=21_000,
        join_nodes=[(NESTED, CODE, "Inner", False, "((a = b) OR (c = d))")],
    ),
    query(54, "small_files", slot_ms=20_000),
    *FLIPS,
]


# Three runs each of what only several runs show.
RECURRING = {
    "skewed_runs": query(
        70, "skewed_runs", slot_ms=19_000, joins=["SortMergeJoin"], executor_core_ms=20_000
    ),
    "small_side": query(73, "small_side", slot_ms=18_000, joins=["BroadcastHashJoin BuildRight"]),
    "many_partitions": query(76, "many_partitions", slot_ms=17_000),
}


def shuffle(number: int, **more: Any) -> dict[str, Any]:
    base = {"execution_id": number, "kind": "SHUFFLE", "same": "aa" * 8, "shuffle_bytes": 80 * MB}
    base |= {"bytes": 400 * MB, "partitions": 20, "task_ms": 18_000, "read_rows": 1_000_000}
    base |= {"max_partition_bytes": 4 * MB, "median_partition_bytes": 4 * MB}
    return base | {"row_count": 1_000_000, "read_bytes": 100 * MB} | more


def sub_plans(runs: int = 3, **small: Any) -> list[dict[str, Any]]:
    hot = {"max_partition_bytes": 64 * MB, "median_partition_bytes": MB}
    small = {"same": "bb" * 8, "bytes": 5 * MB, "shuffle_bytes": MB, "row_count": 9} | small
    tiny = {"partitions": 2000, "shuffle_bytes": MB, "task_ms": 17_000}
    return [
        row
        for n in range(runs)
        for row in (
            shuffle(70 + n, **hot),
            shuffle(70 + n, same="bb" * 8, shuffle_bytes=20 * MB, bytes=100 * MB),
            shuffle(73 + n),
            shuffle(73 + n, **({"task_ms": 5, "read_bytes": MB, "read_rows": 9} | small)),
            shuffle(76 + n, **tiny),
        )
    ]


ALL_SLOW = {"max_task_ms": 40_000, "median_task_ms": 40_000}


STAGES = [
    stage(1, waiting_ms=70_000, max_task_ms=80_000),
    stage(2, tiny_tasks=5000, tiny_start_ms=60_000, num_tasks=5200),
    stage(3, spilled_slot_ms=50_000, disk_spill_bytes=900 * MB, shuffle_read_bytes=50_000 * MB),
    stage(4, slot_ms=40_000, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
    stage(5),
    stage(6, slot_ms=35_000, shuffle_write_bytes=MB, num_tasks=100, tasks=100, task_ms=34_000),
    stage(
        8, slot_ms=25_000, num_tasks=2, shuffle_read_bytes=0, input_bytes=2 * MB, max_task_ms=20_000
    ),
    stage(50, slot_ms=24_000, num_tasks=1, max_task_ms=24_000, operators=["Coalesce", CODE]),
    stage(
        51,
        slot_ms=23_000,
        waiting_ms=1000,
        max_task_ms=9000,
        max_task_records=700_000,
        operators=["AQEShuffleRead", "Window"],
    ),
    stage(
        52,
        slot_ms=22_000,
        num_tasks=2,
        shuffle_read_bytes=0,
        input_bytes=MB,
        max_task_ms=11_000,
        operators=["Exchange", CODE],
    ),
    stage(
        53,
        slot_ms=21_000,
        num_tasks=2,
        shuffle_read_bytes=0,
        input_bytes=MB,
        max_task_ms=11_000,
        operators=["Exchange", CODE],
    ),
    stage(
        54,
        slot_ms=20_000,
        num_tasks=100,
        shuffle_read_bytes=0,
        input_bytes=MB,
        writing_tasks=100,
        output_bytes=2 * MB,
        operators=["WriteFiles"],
    ),
]


# Recipes leave alone what a session has switched off.
NOTHING_OFF = {
    "coalesce_partitions_enabled": True,
    "skew_join_enabled": True,
    "optimize_skews_in_rebalance_partitions_enabled": True,
}


def facts(kind: str, **groups: Any) -> str:
    """Facts of a query of the kind."""
    return made_logs.facts(query={"fingerprint": fingerprint(kind)}, conf=NOTHING_OFF, **groups)


def decisions(**planted: Any) -> list[dict[str, Any]]:
    sizes = {"skewed": 300 * MB, "generates": True, "measured": 900 * MB, "blocks": MB}
    sizes |= {"from": "GUESS", "has_range": True, "type": "INNER", "other": 40 * MB} | planted
    skewed = facts(
        "hot_key",
        cluster=CLUSTER, left={**SIDE, "max_bytes": sizes["skewed"]},
        right={**SIDE, "max_bytes": 3 * MB},
    )  # fmt: skip
    makes_rows = facts(
        "expanding",
        stage={"has_generate": sizes["generates"], "is_write": False}, cluster=CLUSTER,
        shuffle={"row_count": 100_000, "shuffle_bytes": MB, "max_bytes": 9000,
                 "num_partitions": 200, "non_empty_ratio": 1.0},
        spark={"num_partitions": 1},
    )  # fmt: skip
    merged = facts(
        "tiny_blocks",
        shuffle={"num_partitions": 200, "num_mappers": 100, "shuffle_bytes": sizes["blocks"]},
        spark={"num_partitions": 1},
    )
    by_size = {"strategy": "BROADCAST", "build_side": "RIGHT", "reason": "SIZE"}
    guessed = facts(
        "failed_broadcast",
        join={"is_replan": False, "can_merge": True}, spark=by_size,
        right={"size_in_bytes": MB, "tables": ["g"], "estimate_from": sizes["from"],
               "join_count": 0},
    )  # fmt: skip
    beside_range = facts(
        "range_join",
        join={"is_replan": False, "can_merge": True, "has_condition": sizes["has_range"],
              "type": sizes["type"]},
        spark=by_size, left={"size_in_bytes": sizes["other"]},
        right={"size_in_bytes": 5 * MB, "tables": ["prices"]},
    )  # fmt: skip
    planned = facts(
        "wrong_broadcast",
        join={"is_replan": False, "can_merge": True}, left={"size_in_bytes": 5, "tables": ["a"]},
        right={"size_in_bytes": 9 * MB, "tables": ["it's", "b"], "estimate_from": "FILES"},
        spark={"strategy": "BROADCAST", "build_side": "RIGHT", "reason": "SIZE"},
    )  # fmt: skip
    ran = facts(
        "wrong_broadcast",
        side={"is_left": True, "is_finished": True, "is_plain_stage": True, "size_in_bytes": 5},
        other={"is_left": False, "is_broadcast": True, "size_in_bytes": sizes["measured"]},
    )
    written = facts(
        "small_files",
        write={"dynamic_columns": ["day"], "constant_columns": []},
        input={"num_tasks": 100, "shuffled_by": []},
    )
    return [
        decision(54, "small_files", "write_distribution", facts=written, subject="write 1"),
        decision(1, "hot_key", "skew_join", facts=skewed),
        decision(4, "expanding", "partition_coalescing", facts=makes_rows),
        decision(6, "tiny_blocks", "partition_coalescing", facts=merged),
        decision(7, "failed_broadcast", "join_selection", facts=guessed),
        decision(8, "range_join", "join_selection", facts=beside_range),
        decision(5, "wrong_broadcast", "join_selection", facts=planned),
        decision(5, "wrong_broadcast", "dynamic_join_selection", facts=ran),
    ]
