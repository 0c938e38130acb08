"""What is planted is found, with a policy that binds; what is fine is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import made_logs
import tiers
from aqepilot.log import Log
from aqepilot.log.suggestions import KINDS, Suggestion, sentences, suggest
from aqepilot.policies import Policy
from conftest import CommandLine, reads_logs

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

MB = 1 << 20


def fingerprint(kind: str) -> str:
    return f"{kind}'s".encode().hex()


def query(number: int, kind: str, **more: Any) -> dict[str, Any]:
    base = {"execution_id": number, "fingerprint": fingerprint(kind), "description": kind}
    return base | {"slot_ms": 100_000, "task_ms": 90_000} | more


def stage(number: int, **more: Any) -> dict[str, Any]:
    base = {"execution_id": number, "stage_id": number, "num_tasks": 200, "slot_ms": 100_000}
    base |= {"shuffle_read_bytes": 100 * MB, "input_bytes": 0, "shuffle_write_bytes": 0}
    base |= {"output_bytes": 0, "disk_spill_bytes": 0, "waiting_ms": 0, "spilled_slot_ms": 0}
    base |= {"tiny_tasks": 0, "tiny_start_ms": 0, "max_task_ms": 100, "median_task_ms": 90}
    return base | more


def decision(number: int, kind: str, point: str, **more: Any) -> dict[str, Any]:
    return {
        "execution_id": number, "fingerprint": fingerprint(kind), "point": point,
        "reason": "NULL_ANSWER", **more,
    }  # fmt: skip


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
    *FLIPS,
]
ALL_SLOW = {"max_task_ms": 40_000, "median_task_ms": 40_000}
STAGES = [
    stage(1, waiting_ms=70_000, max_task_ms=80_000),
    stage(2, tiny_tasks=5000, tiny_start_ms=60_000, num_tasks=5200),
    stage(3, spilled_slot_ms=50_000, disk_spill_bytes=900 * MB, shuffle_read_bytes=50_000 * MB),
    stage(4, slot_ms=40_000, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
    stage(5),
    stage(6, slot_ms=35_000, shuffle_write_bytes=MB, num_tasks=8, tasks=8, tiny_tasks=8),
    stage(
        8, slot_ms=25_000, num_tasks=2, shuffle_read_bytes=0, input_bytes=2 * MB, max_task_ms=20_000
    ),
]


def decisions(**planted: Any) -> list[dict[str, Any]]:
    of = {"skewed": 300 * MB, "generates": True, "measured": 900 * MB, "blocks": MB}
    of |= {"from": "GUESS", "has_range": True, "type": "INNER", "other": 40 * MB} | planted
    skewed = made_logs.facts(
        query={"fingerprint": fingerprint("hot_key")},
        cluster=CLUSTER, left={**SIDE, "max_bytes": of["skewed"]},
        right={**SIDE, "max_bytes": 3 * MB},
    )  # fmt: skip
    makes_rows = made_logs.facts(
        stage={"has_generate": of["generates"], "is_write": False}, cluster=CLUSTER,
        shuffle={"row_count": 100_000}, spark={"num_partitions": 1},
    )  # fmt: skip
    merged = made_logs.facts(
        shuffle={"num_partitions": 200, "num_mappers": 100, "shuffle_bytes": of["blocks"]},
        spark={"num_partitions": 1},
    )
    by_size = {"strategy": "BROADCAST", "build_side": "RIGHT", "reason": "SIZE"}
    guessed = made_logs.facts(
        join={"is_replan": False}, spark=by_size,
        right={"size_in_bytes": MB, "tables": ["g"], "estimate_from": of["from"], "join_count": 0},
    )  # fmt: skip
    beside_range = made_logs.facts(
        join={"is_replan": False, "can_merge": True, "has_condition": of["has_range"],
              "type": of["type"]},
        spark=by_size, left={"size_in_bytes": of["other"]},
        right={"size_in_bytes": 5 * MB, "tables": ["prices"]},
    )  # fmt: skip
    planned = made_logs.facts(
        join={"is_replan": False}, left={"size_in_bytes": 5, "tables": ["a"]},
        right={"size_in_bytes": 9 * MB, "tables": ["it's", "b"]},
        spark={"strategy": "BROADCAST", "build_side": "RIGHT", "reason": "SIZE"},
    )  # fmt: skip
    ran = made_logs.facts(
        side={"is_left": True, "is_finished": True, "is_plain_stage": True, "size_in_bytes": 5},
        other={"is_left": False, "is_broadcast": True, "size_in_bytes": of["measured"]},
    )
    return [
        decision(1, "hot_key", "skew_join", facts=skewed),
        decision(4, "expanding", "partition_coalescing", facts=makes_rows),
        decision(6, "tiny_blocks", "partition_coalescing", facts=merged),
        decision(7, "failed_broadcast", "join_selection", facts=guessed),
        decision(8, "range_join", "join_selection", facts=beside_range),
        decision(5, "wrong_broadcast", "join_selection", facts=planned),
        decision(5, "wrong_broadcast", "dynamic_join_selection", facts=ran),
    ]


@pytest.fixture(scope="module")
def log(_spark_context: SparkSession) -> Log:
    session = _spark_context.newSession()
    reads_logs(session)
    return made_logs.log(session, queries=QUERIES, stages=STAGES, decisions=decisions())


@pytest.fixture(scope="module")
def found(log: Log) -> list[Suggestion]:
    return suggest(log)


def test_what_is_planted_is_found_with_most_at_stake_first(
    spark: SparkSession, found: list[Suggestion]
) -> None:
    assert {one.kind: one.description for one in found} == {kind: kind for kind in KINDS}
    stakes = {one.kind: one.stake_ms for one in found}
    assert stakes == {
        "wrong_broadcast": 90_000, "hot_key": 70_000, "tiny_tasks": 60_000, "spilling": 50_000,
        "expanding": 40_000, "flipping": 3 * 9100 - 3 * 3001, "tiny_blocks": 35_000,
        "failed_broadcast": 30_000, "range_join": 25_000,
    }  # fmt: skip
    assert [one.stake_ms for one in found] == sorted(stakes.values(), reverse=True)
    assert {one.kind: one.queries for one in found}["flipping"] == 3
    for one in found:
        policy = Policy.from_toml(one.policy)
        assert (policy.mode, list(policy.points)) == ("shadow", [one.point])
        assert fingerprint(one.kind) in (policy.when or "")
        for key, text in policy.texts().items():
            checked = spark.sql("SELECT * FROM aqepilot_check(:p, :t)", {"p": key, "t": text})
            assert checked.collect() == []


def test_evidence_is_that_of_the_log(found: list[Suggestion]) -> None:
    said = {one.kind: " ".join(sentences(one)) for one in found}
    assert "the largest partition has 300.0 MiB, the median 2.0 MiB" in said["hot_key"]
    assert "5,000 of 5,200 tasks after shuffles" in said["tiny_tasks"]
    assert "900.0 MiB went to disk" in said["spilling"]
    assert "read 1.0 MiB in 1 task, the longest of 40" in said["expanding"]
    assert "where 16 could have run at once" in said["expanding"]
    assert "in 200 partitions and read by 1 task" in said["tiny_blocks"]
    assert "had 20,000 blocks" in said["tiny_blocks"]
    assert "a guess of 1.0 MiB, and the query failed: Job aborted" in said["failed_broadcast"]
    assert "Spark broadcast prices of 5.0 MiB" in said["range_join"]
    assert "its estimate of 9.0 MiB, and it had 900.0 MiB" in said["wrong_broadcast"]
    assert "3 runs with SortMergeJoin had 9.1 s" in said["flipping"]
    policies = {one.kind: Policy.from_toml(one.policy).points[one.point] for one in found}
    assert policies["flipping"] == "'SHUFFLE_HASH'"
    assert policies["spilling"] == "greatest(shuffles.num_partitions, 3125)"
    assert "it\\'s, b" in policies["wrong_broadcast"]


def test_policies_are_replayed_where_the_log_has_facts(found: list[Suggestion]) -> None:
    replayed = {one.kind: (one.asked, one.changed) for one in found}
    assert replayed["hot_key"] == (1, 1)
    assert replayed["tiny_tasks"] == (None, None)
    said = {one.kind: " ".join(sentences(one)) for one in found}
    assert "it would have answered otherwise 1 of 1 times" in said["hot_key"]
    assert "no facts of shuffle_partitions" in said["tiny_tasks"]


def test_what_is_fine_is_left_alone(spark: SparkSession) -> None:
    """Large figures alone are no finding: each kind needs its cause, and enough at stake."""
    stages = [
        # Its cores waited, and no join of it is uneven.
        stage(1, waiting_ms=70_000),
        stage(2, tiny_tasks=500, tiny_start_ms=60_000),
        # Spilled, before any join that sorts.
        stage(4, spilled_slot_ms=50_000, disk_spill_bytes=100 * MB),
        # Much work for each byte, and no slot was free, or nothing says why.
        stage(4, num_tasks=16, shuffle_read_bytes=MB, **ALL_SLOW),
        stage(5, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
        # It waits for one of its tasks, which more tasks would not shorten.
        stage(4, num_tasks=3, shuffle_read_bytes=MB, max_task_ms=40_000, median_task_ms=9_000),
        # Tiny tasks that write blocks of a good size.
        stage(6, slot_ms=35_000, shuffle_write_bytes=MB, num_tasks=8, tasks=8, tiny_tasks=8),
        # The first of three runs took long, as it began Python's workers.
        stage(30, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
        # A condition beside the keys, and the tasks are as fast as others.
        stage(8, num_tasks=2, shuffle_read_bytes=0, input_bytes=200 * MB, max_task_ms=20_000),
    ]
    chance = [
        query(20 + n, "flipping", joins=["SortMergeJoin" if n % 2 else "ShuffledHashJoin"],
              task_ms=3000 + 100 * n)
        for n in range(8)
    ]  # fmt: skip
    cold = [query(30 + n, "expanding") for n in range(3)]
    fine = decisions(skewed=3 * MB, measured=10 * MB, blocks=100 * MB, **{"from": "STAGE"})
    fine += [{**one, "execution_id": 30} for one in fine if one["execution_id"] == 4]
    queries = [*QUERIES[:8], *chance, *cold]
    log = made_logs.log(spark, queries=queries, stages=stages, decisions=fine)
    assert suggest(log) == []


def test_a_broadcast_that_the_recipe_leaves_alone_is_no_finding(spark: SparkSession) -> None:
    """Rows multiply in no `IN`, and a side that is much larger costs more to sort."""
    planted = {
        "found": {},
        "no condition": {"has_range": False},
        "IN": {"type": "LEFT SEMI"},
        "much larger": {"other": 90 * MB},
    }
    queries, stages, made = [], [], []
    for number, (kind, of) in enumerate(planted.items()):
        alike = {"execution_id": number, "fingerprint": fingerprint(kind)}
        queries.append(QUERIES[7] | alike | {"description": kind})
        stages.append(STAGES[-1] | {"execution_id": number, "stage_id": number})
        made += [one | alike for one in decisions(**of) if one["execution_id"] == 8]
    log = made_logs.log(spark, queries=queries, stages=stages, decisions=made)
    assert [(one.kind, one.description) for one in suggest(log)] == [("range_join", "found")]


def test_the_command(
    log: Log, tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aqepilot.log.read_log", lambda *_: log)
    shown = command_line("suggest", "--log", "x", "--top", "2", "--write", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("1. A broadcast larger than estimated: ")
    assert "2. A join whose keys are uneven: " in shown.stdout
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == 2
    assert all(Policy.from_file(tmp_path / name).mode == "shadow" for name in files)
    as_json = command_line("suggest", "--log", "x", "--top", "1", "--json")
    assert json.loads(as_json.stdout)[0]["kind"] == "wrong_broadcast"
