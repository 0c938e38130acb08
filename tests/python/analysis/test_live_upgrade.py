"""Logs become pins, say how pins fared, and are compared with each other."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

import made_logs
import tiers
from aqepilot import AqePilotError, Log, Policy
from aqepilot.analysis.upgrade import pins as restoring
from aqepilot.analysis.upgrade import shown
from aqepilot.analysis.upgrade.page import write

pytestmark = [tiers.ON_ONE, tiers.READS_LOGS]

DYNAMIC_JOIN_SELECTION = "org.apache.spark.sql.execution.adaptive.DynamicJoinSelection"
PRINT = "f1" * 32


def side(signature: str, tables: str) -> dict[str, Any]:
    return {"signature": signature, "tables": [tables], "shuffle_bytes": None}


def join(execution: int, strategy: str, **columns: Any) -> dict[str, Any]:
    """A join of a and b at its planning."""
    word = {"SortMergeJoin": "SHUFFLE_MERGE", "BroadcastHashJoin BuildRight": "BROADCAST"}[strategy]
    facts = made_logs.facts(
        join={"type": "INNER", "is_replan": False},
        left=side("aa", "a"),
        right=side("bb", "b"),
        conf={"adaptive_optimizer_excluded_rules": [DYNAMIC_JOIN_SELECTION]},
    )
    return {
        **{"execution_id": execution, "point": "join_selection", "fingerprint": PRINT},
        **{"facts": facts, "spark_strategy": strategy, "reason": "NULL_ANSWER"},
        "spark_answer": json.dumps({"strategy": word, "build_side": "RIGHT"}),
        **columns,
    }


def shuffle(execution: int, number: int) -> dict[str, Any]:
    facts = made_logs.facts(shuffles={"signatures": ["cc"], "num_partitions": number})
    return {
        **{"execution_id": execution, "point": "shuffle_partitions", "fingerprint": PRINT},
        **{"facts": facts, "spark_answer": str(number), "reason": "NULL_ANSWER"},
        **{"join_id": None, "spark_strategy": f"{number} partitions"},
    }


def runs(
    spark: SparkSession, version: str, strategy: str, number: int, *ms: int, **columns: Any
) -> Log:
    """A log of so many runs of one query, and of one of a query that never changes."""
    ids = [{"execution_id": i, "root_execution_id": i} for i in (*range(1, len(ms) + 1), 100)]
    own = {"fingerprint": PRINT, "joins": [strategy]}
    queries = [one | own | {"task_ms": n} for one, n in zip(ids, ms, strict=False)]
    still = ids[-1] | {"fingerprint": None, "description": "still", "joins": ["A"]}
    decisions = [join(i, strategy, **columns) for i in range(1, len(ms) + 1)]
    decisions += [shuffle(i, number) for i in range(1, len(ms) + 1)]
    return made_logs.log(
        spark,
        applications=[{"spark_version": version}],
        queries=[*queries, still | {"decisions": 0}],
        decisions=decisions,
    )


@pytest.fixture
def before(spark: SparkSession) -> Log:
    return runs(spark, "3.5.9", "SortMergeJoin", 8, 1000, 1030, 990, 1010)


@pytest.fixture
def after(spark: SparkSession) -> Log:
    return runs(spark, "4.3.0", "BroadcastHashJoin BuildRight", 16, 3000, 3030, 2990, 3010)


def test_a_change_between_two_sparks_is_named_with_its_price(before: Log, after: Log) -> None:
    result = before.upgrade(after)
    assert (result.before, result.after) == (("3.5.9",), ("4.3.0",))
    (one,) = result.changed
    assert [shown.sentence(change) for change in one.changes] == [
        "join strategy at a ⋈ b: SortMergeJoin (in 4 of 4 runs), now BroadcastHashJoin that builds "
        "from b (in 4 of 4)",
        "shuffle partitions at a ⋈ b: 8 partitions (in 4 of 4 runs), now 16 partitions (in 4 of 4)",
    ]
    assert (one.verdict, round(one.times.ratio or 0)) == ("worse", 3)
    assert result.failed(["worse", "changed", "harms"]) == ["worse", "changed", "harms"]
    assert result.harms[0].name == DYNAMIC_JOIN_SELECTION
    assert "worse" in str(result.tables()[0].rows[0])


def test_what_got_worse_has_pins_that_restore_it(before: Log, after: Log) -> None:
    (pinned,) = restoring(before, before.upgrade(after))
    assert pinned.policy
    policy = Policy.from_toml(pinned.policy)
    assert "'SHUFFLE_MERGE'" in policy.points["join_selection"]
    assert policy.points["shuffle_partitions"].endswith("THEN 8\nEND")
    assert policy.when == f"query.fingerprint = '{PRINT}'"


def test_two_weeks_without_a_change_have_none(before: Log) -> None:
    result = before.upgrade(before)
    assert (result.changed, result.worse, result.better, result.settings) == ((), (), (), ())
    assert result.failed(["worse", "changed", "harms"]) == []


def test_a_page_shows_the_comparison(before: Log, after: Log, tmp_path: Any) -> None:
    page = tmp_path / "upgrade.html"
    assert write(before.upgrade(after), page) == len(page.read_bytes())
    text = page.read_text("utf-8")
    assert "DynamicJoinSelection" in text
    assert "now 16 partitions" in text


def test_logs_without_a_query_in_common_are_refused(spark: SparkSession, before: Log) -> None:
    other = made_logs.log(spark, queries=[{"fingerprint": "x", "description": "other"}])
    with pytest.raises(AqePilotError, match="no query in common"):
        before.upgrade(other)


def test_the_best_run_of_a_query_is_pinned(before: Log) -> None:
    pinned = before.pin("f1f1")
    assert (pinned.execution_id, pinned.runs, pinned.task_ms) == (3, 4, 990)
    assert [pin.identity.point for pin in pinned.pins] == ["shuffle_partitions", "join_selection"]
    assert before.pin(2).execution_id == 2
    with pytest.raises(AqePilotError, match="run it with the recipe watch"):
        before.pin("abc")


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ({"reason": "APPLIED", "applied": True, "fate": "adopted"}, "SPARK_DIFFERS"),
        ({"reason": "APPLIED", "applied": True, "fate": "no_change"}, "SPARK_AGREES"),
        ({"reason": "SHADOW"}, "SPARK_DIFFERS"),
        ({"reason": "GUARD_BROADCAST_BYTES", "detail": "too large"}, "REFUSED"),
        ({"policy": None, "answer": None}, "DOES_NOT_FIT"),
        ({"fingerprint": "0" * 64}, "NOT_MET"),
    ],
)
def test_a_pin_s_state_says_what_spark_would_do_now(
    spark: SparkSession, columns: dict[str, Any], state: str
) -> None:
    answer = {"policy": "pin_f1", "answer": '{"strategy":"BROADCAST"}'}
    decision = join(1, "SortMergeJoin", **(answer | columns))
    query = {"fingerprint": columns.get("fingerprint", PRINT)}
    loaded = {**made_logs.OF_LOG, "policy": "pin_f1", "time": made_logs.AT}
    loaded |= {"when": f"query.fingerprint = '{PRINT}'", "mode": "enforce"}
    frames = {"queries": [query], "decisions": [decision], "policies": [loaded]}
    (one,) = made_logs.log(spark, **frames).pins()
    assert one.state == state
    off = loaded | {"mode": "off", "time": made_logs.AT + timedelta(days=1)}
    for rows in ([off], [loaded | {"point": "skew_join"}, off | {"point": "join_selection"}]):
        (one,) = made_logs.log(spark, **(frames | {"policies": rows})).pins()
        assert one.state == "OFF"
    assert (one.state, one.is_trouble) == ("OFF", True)


@pytest.mark.parametrize(
    ("signature", "state", "counts"),
    [("a1" * 8, "SPARK_AGREES", {}), ("b2" * 8, "FITS_PARTLY", {"shuffle_partitions": 1})],
)
def test_a_pin_says_how_many_of_its_sub_plans_are_not_there(
    spark: SparkSession, signature: str, state: str, counts: dict[str, int]
) -> None:
    facts = made_logs.facts(shuffles={"signatures": [signature], "num_partitions": 8})
    answer = {"policy": "pin_f1", "answer": "8", "reason": "APPLIED", "fate": "no_change"}
    named = f"arrays_overlap(shuffles.signatures, array('{'a1' * 8}'))"
    loaded = {**made_logs.OF_LOG, "policy": "pin_f1", "time": made_logs.AT, "mode": "enforce"}
    loaded |= {"point": "shuffle_partitions", "text": f"CASE WHEN {named} THEN 8 END"}
    frames = {
        "queries": [{"fingerprint": PRINT}],
        "decisions": [shuffle(1, 8) | answer | {"facts": facts}],
        "policies": [loaded | {"when": f"query.fingerprint = '{PRINT}'"}],
    }
    (one,) = made_logs.log(spark, **frames).pins()
    assert (one.state, one.is_trouble) == (state, False)
    assert (one.missing, one.unknown) == (counts, counts)


def test_a_shuffle_in_two_groups_of_a_run_counts_once(spark: SparkSession) -> None:
    """Of two stages of one run; a shuffle that no run after has is a change."""
    groups = [["cc"], ["cc", "dd"]]
    decisions = [
        shuffle(i, 8)
        | {"facts": made_logs.facts(shuffles={"signatures": names, "num_partitions": 8})}
        for i in (1, 2)
        for names in groups
    ]
    queries = [
        {"execution_id": i, "root_execution_id": i, "fingerprint": PRINT, "decisions": 2}
        for i in (1, 2)
    ]
    log = made_logs.log(spark, queries=queries, decisions=decisions)
    after = made_logs.log(spark, queries=queries, decisions=[shuffle(i, 8) for i in (1, 2)])
    assert log.upgrade(log).changed == ()
    (changed,) = log.upgrade(after).changed
    assert [(one.kind, one.subject, one.before_runs) for one in changed.changes] == [
        ("shuffle", "dd", (2, 2))
    ]


def test_a_plan_that_was_not_adopted_is_not_what_ran(spark: SparkSession) -> None:
    """AQE planned a broadcast at last, and kept the sort-merge join, as `joins` says."""

    def ran(*strategies: str, joins: list[str]) -> Log:
        query = {"fingerprint": PRINT, "joins": joins}
        decisions = [join(1, strategy) for strategy in strategies]
        return made_logs.log(spark, queries=[query], decisions=decisions)

    merged, broadcast = "SortMergeJoin", "BroadcastHashJoin BuildRight"
    before = ran(merged, joins=[merged])
    assert before.upgrade(ran(merged, broadcast, joins=[merged])).changed == ()
    (changed,) = before.upgrade(ran(merged, broadcast, joins=[broadcast])).changed
    assert [one.kind for one in changed.changes] == ["strategy"]
    # A side was empty, and the plan that ran has no join.
    assert before.upgrade(ran(broadcast, joins=[])).changed == ()
    # An engine's join has a name of its own.
    (changed,) = before.upgrade(ran(broadcast, joins=["CometHashJoin BuildRight"])).changed
    assert [one.kind for one in changed.changes] == ["strategy"]


def test_another_order_of_joins_is_shown_by_its_tables(spark: SparkSession) -> None:
    def ran(**columns: Any) -> Log:
        chain = {
            **{"point": "join_reorder", "fingerprint": PRINT, "join_id": None},
            **{"facts": made_logs.facts(chain={"signatures": ["aa", "bb", "cc"]})},
            **{"tables": "a ⋈ b ⋈ c", "reason": "NULL_ANSWER"},
        }
        query = {"fingerprint": PRINT}
        return made_logs.log(spark, queries=[query], decisions=[chain | columns])

    after = ran(answer="[2,0,1]", applied=True, reason="APPLIED", policy="p")
    (changed,) = ran().upgrade(after).changed
    (change,) = changed.changes
    assert (change.before, change.after) == ("a ⋈ b ⋈ c", "c ⋈ a ⋈ b")
    assert shown.by_kind(changed.changes) == "order of joins: 1"
