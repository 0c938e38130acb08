"""What is planted is found, with a policy that binds; what is fine is left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import made_logs
import tiers
from aqepilot import Log
from aqepilot.analysis.findings import KINDS
from aqepilot.analysis.suggestions import Suggestion, sentences
from aqepilot.policies import Policy
from conftest import CommandLine, reads_logs
from planted_logs import (
    ALL_SLOW,
    CODE,
    MB,
    QUERIES,
    RECURRING,
    STAGES,
    decisions,
    fingerprint,
    query,
    shuffle,
    stage,
    sub_plans,
)

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]


QUERIES += [
    one | {"execution_id": one["execution_id"] + n} for one in RECURRING.values() for n in range(3)
]


WITHOUT_POLICY = {"coalesce", "one_group", "not_in", "no_keys"}


@pytest.fixture(scope="module")
def log(_spark_context: SparkSession) -> Log:
    session = _spark_context.newSession()
    reads_logs(session)
    return made_logs.log(
        session, queries=QUERIES, stages=STAGES, decisions=decisions(), sub_plans=sub_plans()
    )


@pytest.fixture(scope="module")
def suggested(log: Log) -> list[Suggestion]:
    return log.suggest(top=100)


def test_what_is_planted_is_found_with_most_at_stake_first(
    spark: SparkSession, suggested: list[Suggestion]
) -> None:
    assert {one.kind: one.description for one in suggested} == {kind: kind for kind in KINDS}
    stakes = {one.kind: one.stake_ms for one in suggested}
    assert stakes == {
        "wrong_broadcast": 90_000, "hot_key": 70_000, "tiny_tasks": 60_000, "spilling": 50_000,
        "expanding": 40_000, "flipping": 3 * 9100 - 3 * 3001, "tiny_blocks": 35_000,
        "failed_broadcast": 30_000, "range_join": 25_000, "coalesce": 24_000, "one_group": 23_000,
        "not_in": 22_000, "no_keys": 21_000, "small_files": 20_000,
        # The hot partition has four fifths of the bytes: 14.4 s of one of two cores.
        "skewed_runs": 3 * (2 * 14_400 - 18_000), "small_side": 3 * 18_000,
        "many_partitions": 3 * 17_000,
    }  # fmt: skip
    assert [one.stake_ms for one in suggested] == sorted(stakes.values(), reverse=True)
    assert {one.kind: one.queries for one in suggested}["flipping"] == 3
    assert {one.kind for one in suggested if one.policy is None} == WITHOUT_POLICY
    assert {one.kind for one in suggested if one.change} == WITHOUT_POLICY
    for one in (one for one in suggested if one.policy):
        policy = Policy.from_toml(one.policy)
        assert (policy.mode, list(policy.points)) == ("shadow", [one.point])
        assert fingerprint(one.kind) in (policy.when or "")
        for key, text in policy.texts().items():
            checked = spark.sql("SELECT * FROM aqepilot_check(:p, :t)", {"p": key, "t": text})
            assert checked.collect() == []


def test_evidence_is_that_of_the_log(suggested: list[Suggestion]) -> None:
    texts = {one.kind: " ".join(sentences(one)) for one in suggested}
    assert "the largest partition has 300.0 MiB, the median 2.0 MiB" in texts["hot_key"]
    assert "5,000 of 5,200 tasks after shuffles" in texts["tiny_tasks"]
    assert "900.0 MiB went to disk" in texts["spilling"]
    assert "read 1.0 MiB in 1 task, the longest of 40" in texts["expanding"]
    assert "where 16 could have run at once" in texts["expanding"]
    assert "in 200 partitions and read by 1 task" in texts["tiny_blocks"]
    assert "had 20,000 blocks" in texts["tiny_blocks"]
    assert "a guess of 1.0 MiB, and the query failed: Job aborted" in texts["failed_broadcast"]
    assert "Spark broadcast prices of 5.0 MiB" in texts["range_join"]
    assert "its estimate of 9.0 MiB, and it had 900.0 MiB" in texts["wrong_broadcast"]
    assert "3 runs with SortMergeJoin had 9.1 s" in texts["flipping"]
    assert "on 16 cores. A coalesce merges 200 partitions into these" in texts["coalesce"]
    assert "No policy helps that. Write repartition(1) instead" in texts["coalesce"]
    assert "One window has most of its 1,000,000 rows" in texts["one_group"]
    assert "PARTITION BY more columns" in texts["one_group"]
    assert "Write NOT EXISTS" in texts["not_in"]
    assert "compares each pair of rows: ((a = b) OR (c = d))" in texts["no_keys"]
    assert "a UNION of them" in texts["no_keys"]
    assert "100 tasks wrote 2.0 MiB" in texts["small_files"]
    assert (
        "uneven in 3 of 3 runs. In the worst, its largest partition had 64.0 MiB"
        in (texts["skewed_runs"])
    )
    assert "at most 5.0 MiB, 9 rows, in 3 of 3 runs" in texts["small_side"]
    assert "1.0 MiB in 2,000, which took 17.0 s" in texts["many_partitions"]
    policies = {
        one.kind: Policy.from_toml(one.policy).points[one.point] for one in suggested if one.policy
    }
    assert policies["flipping"] == "'SHUFFLE_HASH'"
    assert policies["spilling"] == "greatest(shuffles.num_partitions, 3125)"
    assert "it\\'s, b" in policies["wrong_broadcast"]


def test_policies_are_replayed_where_the_log_has_facts(suggested: list[Suggestion]) -> None:
    replayed = {one.kind: (one.asked, one.changed) for one in suggested}
    assert replayed["hot_key"] == (1, 1)
    assert replayed["tiny_tasks"] == (None, None)
    texts = {one.kind: " ".join(sentences(one)) for one in suggested}
    assert "it would have answered otherwise 1 of 1 times" in texts["hot_key"]
    assert "no facts of shuffle_partitions" in texts["tiny_tasks"]


PLAIN = {"fingerprint": None}


def test_logs_without_decisions_have_findings_too(spark: SparkSession) -> None:
    """Of stages that Spark merged, of hot keys, and of what is cached, by Spark's events alone."""
    merges = {"operators": ["AQEShuffleRead", CODE], "shuffle_read_bytes": MB, **ALL_SLOW}
    join = [("SortMergeJoin", CODE, "LeftOuter", False, None)]
    full = [("SortMergeJoin", CODE, "FullOuter", False, None)]
    hot = {"max_task_records": 600_000, "max_task_ms": 80_000, "waiting_ms": 60_000}
    hot |= {"operators": [CODE]}
    tiny = {"shuffle_read_bytes": 0, "tiny_tasks": 2000, "tiny_start_ms": 60_000}
    queries = [
        query(1, "expanding", **PLAIN), query(2, "writes", **PLAIN), query(3, "all slots", **PLAIN),
        query(4, "hot_key", join_nodes=join, **PLAIN), query(5, "full", join_nodes=full, **PLAIN),
        query(6, "tiny_tasks", **PLAIN), query(7, "scans", **PLAIN),
    ]  # fmt: skip
    stages = [
        stage(1, num_tasks=1, **merges),
        stage(2, num_tasks=1, output_bytes=MB, **merges),
        stage(3, num_tasks=16, **merges),
        stage(4, **hot),
        stage(5, **hot),
        stage(6, operators=["Exchange", "InMemoryTableScan"], **tiny),
        stage(7, operators=["Exchange", "InMemoryTableScan"], has_shuffled=False, **tiny),
    ]
    suggested = made_logs.log(spark, queries=queries, stages=stages, decisions=[]).suggest()
    assert {(one.kind, one.description) for one in suggested} == {
        ("expanding", "expanding"), ("hot_key", "hot_key"), ("tiny_tasks", "tiny_tasks"),
    }  # fmt: skip
    assert all("query.app_name = 'n'" in (one.policy or "") for one in suggested)


def test_a_few_bytes_that_take_long_are_split_by_a_policy_of_their_own(spark: SparkSession) -> None:
    """Spark merges a hot key of a few kilobytes with all else, and the recipe leaves it whole."""
    few = decisions(skewed=300 << 10)[1]
    few["facts"] = few["facts"].replace(str(3 * MB), str(3 << 10)).replace(str(2 * MB), str(2048))
    own = stage(1, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW)
    log = made_logs.log(spark, queries=[QUERIES[0]], stages=[own], decisions=[few])
    (one,) = log.suggest()
    assert (one.kind, one.changed) == ("hot_key", 1)
    assert "aqepilot_bytes('150KB')" in (one.policy or "")
    assert "'left_target_bytes', aqepilot_bytes('18KB')" in (one.policy or "")


def test_a_stage_of_slow_rows_gets_tasks_where_no_recipe_is_for_it(spark: SparkSession) -> None:
    """Nothing is said of functions of one's own in it; its tasks took long for what they read."""
    decided = decisions(generates=False)[2]
    one_partition = decided | {
        "facts": decided["facts"].replace('"max_bytes":9000', '"max_bytes":900000')
    }
    own = stage(4, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW)
    of_log = {"queries": [QUERIES[3]], "stages": [own]}
    (one,) = made_logs.log(spark, **of_log, decisions=[decided]).suggest()
    assert (one.kind, one.changed) == ("expanding", 1)
    assert "'min_partitions', least(cluster.default_parallelism" in (one.policy or "")
    assert made_logs.log(spark, **of_log, decisions=[one_partition]).suggest() == []


def test_what_is_fine_is_left_alone(spark: SparkSession) -> None:
    """Large figures alone are no finding: each kind needs its cause, and enough at stake."""
    stages = [
        # Its cores waited, and no join of it is uneven.
        stage(1, waiting_ms=70_000),
        stage(2, tiny_tasks=500, tiny_start_ms=60_000),
        # Spilled little for the time it took.
        stage(3, spilled_slot_ms=50_000, disk_spill_bytes=90 * MB),
        # Spilled, before any join that sorts.
        stage(4, spilled_slot_ms=50_000, disk_spill_bytes=900 * MB),
        # Much work for each byte, and no slot was free, or nothing says why.
        stage(4, num_tasks=16, shuffle_read_bytes=MB, **ALL_SLOW),
        stage(5, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
        # It waits for one of its tasks, which more tasks would not shorten.
        stage(4, num_tasks=3, shuffle_read_bytes=MB, max_task_ms=40_000, median_task_ms=9_000),
        # Short tasks that write blocks of a good size.
        stage(6, slot_ms=35_000, shuffle_write_bytes=MB, num_tasks=100, tasks=100, task_ms=34_000),
        # The first of three runs took long, as it began Python's workers.
        stage(30, num_tasks=1, shuffle_read_bytes=MB, **ALL_SLOW),
        # The write takes the time, which stays in few tasks; few partitions, or few cores.
        stage(50, num_tasks=1, max_task_ms=24_000, operators=["Coalesce"], output_bytes=90 * MB),
        stage(50, num_tasks=1, max_task_ms=24_000, operators=["Coalesce"], rdd_partitions=1),
        stage(50, num_tasks=9, max_task_ms=24_000, operators=["Coalesce"], output_bytes=MB),
        # Its rows are even; it is done at once; a join's, which has a finding of its own.
        stage(51, max_task_ms=9000, operators=["Window"], max_task_records=6000),
        stage(51, max_task_ms=900, operators=["Window"], max_task_records=700_000),
        stage(51, max_task_ms=9000, operators=["SortMergeJoin"], max_task_records=700_000),
        # All pairs, and few of them; the join is of another stage.
        stage(52, num_tasks=2, input_bytes=90 * MB, max_task_ms=11_000, operators=[CODE]),
        stage(
            53,
            shuffle_read_bytes=0,
            input_bytes=MB,
            max_task_ms=11_000,
            num_tasks=16,
            operators=["WholeStageCodegen (3)"],
        ),
        # Few files, large ones, and what is not partitioned.
        stage(54, num_tasks=9, writing_tasks=9, output_bytes=MB),
        stage(54, num_tasks=100, writing_tasks=100, output_bytes=900 * MB),
        stage(55, num_tasks=100, writing_tasks=100, output_bytes=2 * MB),
        # A condition beside the keys, and the tasks are as fast as others.
        stage(8, num_tasks=2, shuffle_read_bytes=0, input_bytes=200 * MB, max_task_ms=20_000),
    ]
    chance = [
        query(20 + n, "flipping", joins=["SortMergeJoin" if n % 2 else "ShuffledHashJoin"],
              task_ms=3000 + 100 * n)
        for n in range(8)
    ]  # fmt: skip
    cold = [query(30 + n, "expanding") for n in range(3)]
    fine = decisions(skewed=3 * MB, measured=10 * MB, blocks=900 * MB, **{"from": "STAGE"})
    fine += [{**one, "execution_id": 30} for one in fine if one["execution_id"] == 4]
    queries = [*QUERIES[:13], query(55, "small_files"), *chance, *cold]
    log = made_logs.log(spark, queries=queries, stages=stages, decisions=fine)
    assert [(one.kind, one.evidence) for one in log.suggest()] == []


@pytest.mark.parametrize(("task_ms", "is_named"), [(39_000, True), (41_000, False)])
def test_tiny_blocks_count_where_their_tasks_take_two_milliseconds_each_at_most(
    spark: SparkSession, task_ms: int, is_named: bool
) -> None:
    """Above that, what a block costs by itself is a small part of its task."""
    (blocks,) = (one for one in decisions() if one["execution_id"] == 6)
    wrote = stage(
        6, shuffle_write_bytes=MB, num_tasks=100, tasks=100, task_ms=task_ms, max_task_ms=4_000
    )
    log = made_logs.log(
        spark, queries=[query(6, "tiny_blocks")], stages=[wrote], decisions=[blocks]
    )
    assert [one.kind for one in log.suggest()] == ["tiny_blocks"] * is_named


def test_tiny_blocks_of_many_queries_of_an_application_count_together(spark: SparkSession) -> None:
    """A dashboard has hundreds of queries, each of which runs once with few blocks."""
    (blocks,) = (one for one in decisions() if one["execution_id"] == 6)
    few = blocks | {"facts": blocks["facts"].replace('"num_mappers":100', '"num_mappers":10')}
    wrote = {"shuffle_write_bytes": MB, "num_tasks": 10, "tasks": 10, "task_ms": 3000}

    def named(number: int) -> int:
        ids = range(100, 100 + number)
        log = made_logs.log(
            spark,
            queries=[query(n, f"query {n}") for n in ids],
            stages=[stage(n, **wrote) for n in ids],
            decisions=[few | {"execution_id": n, "fingerprint": fingerprint(f"query {n}")}
                       for n in ids],
        )  # fmt: skip
        return len(log.suggest())

    assert (named(2), named(3)) == (0, 3)


def test_a_finding_is_worth_a_policy_by_the_time_of_its_application(
    spark: SparkSession,
) -> None:
    """In a fleet of many jobs, each has a small share of the whole."""
    (own,) = (one for one in STAGES if one["execution_id"] == 2)
    large = query(9, "large", slot_ms=90_000_000)
    beside = large | {"log": "file:///logs/app-2", "app_id": "app-2"}
    for other, kinds in ((beside, ["tiny_tasks"]), (large, [])):
        log = made_logs.log(spark, queries=[query(2, "tiny_tasks"), other], stages=[own])
        assert [one.kind for one in log.suggest()] == kinds


def test_a_broadcast_that_the_recipe_leaves_alone_is_no_finding(spark: SparkSession) -> None:
    """Rows multiply in no `IN`, and a side that is much larger costs more to sort."""
    planted = {
        "found": {},
        "no condition": {"has_range": False},
        "IN": {"type": "LEFT SEMI"},
        "much larger": {"other": 90 * MB},
    }
    queries, stages, made = [], [], []
    for number, (kind, recorded) in enumerate(planted.items()):
        alike_key = fingerprint(kind)
        alike = {"execution_id": number, "fingerprint": alike_key}
        queries.append(QUERIES[7] | alike | {"description": kind})
        (own,) = (one for one in STAGES if one["execution_id"] == 8)
        stages.append(own | {"execution_id": number, "stage_id": number})
        made += [
            one | alike | {"facts": one["facts"].replace(fingerprint("range_join"), alike_key)}
            for one in decisions(**recorded)
            if one["execution_id"] == 8
        ]
    log = made_logs.log(spark, queries=queries, stages=stages, decisions=made)
    assert [(one.kind, one.description) for one in log.suggest()] == [("range_join", "found")]


def test_the_command(
    log: Log, tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aqepilot.read_log", lambda *_: log)
    shown = command_line("suggest", "--log", "x", "--top", "2", "--write", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith("1. A broadcast larger than estimated: ")
    assert "2. A join whose keys are uneven: " in shown.stdout
    files = sorted(path.name for path in tmp_path.glob("*.toml"))
    assert len(files) == 2
    assert all(str(tmp_path / name) in shown.stderr for name in files)
    assert all(Policy.from_file(tmp_path / name).mode == "shadow" for name in files)
    every = command_line("suggest", "--log", "x", "--top", "100", "--write", tmp_path / "all")
    assert "All work before a coalesce in few tasks: " in every.stdout
    assert "No policy helps that. Write repartition(1)" in every.stdout
    assert len(list((tmp_path / "all").iterdir())) == len(KINDS) - len(WITHOUT_POLICY)
    as_json = command_line("suggest", "--log", "x", "--top", "1", "--json")
    assert json.loads(as_json.stdout)[0]["kind"] == "wrong_broadcast"


def recurring(spark: SparkSession, rows: list[dict[str, Any]]) -> set[str]:
    """What is found of sub-plans in the runs that they are of."""
    numbers = {row["execution_id"] for row in rows}
    queries = [one for one in QUERIES if one["execution_id"] in numbers]
    log = made_logs.log(spark, queries=queries, sub_plans=rows)
    return {one.kind for one in log.suggest()}


def test_what_only_some_runs_show_is_left_alone(spark: SparkSession) -> None:
    assert recurring(spark, sub_plans(runs=2)) == set()
    mended = [shuffle(n, same="aa" * 8) for n in (72, 78)]
    kept = [row for row in sub_plans() if row["execution_id"] not in (72, 75, 78)]
    assert recurring(spark, kept + mended) == set()


def test_small_shuffles_that_no_broadcast_would_save(spark: SparkSession) -> None:
    """Of a partial aggregate, of a side beside a small one, of a side that is no broadcast."""
    for small in ({"input_rows": 900}, {"bytes": 11 * MB}, {"read_rows": 10}):
        assert "small_side" not in recurring(spark, sub_plans(**small))
