"""Every decision, on every join type that admits it, on either side, in the executed plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession

import little
import tiers
from plans import Executed
from policies import decisions
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

WORDS = ("BROADCAST", "SHUFFLE_HASH", "PREFER_SHUFFLE_HASH", "SHUFFLE_MERGE", "NO_BROADCAST_HASH")
SIDES = ("left", "right")


class JoinKind(NamedTuple):
    """A join type: its SQL, and which sides may be broadcast or hashed (JoinSelectionHelper)."""

    name: str
    sql: str
    broadcast: tuple[str, ...]
    hash: tuple[str, ...]


BOTH = ("left", "right")
KINDS = (
    JoinKind("INNER", "SELECT b.k, b.v, d.w FROM big b JOIN dense d ON b.k = d.k", BOTH, BOTH),
    JoinKind(
        "LEFT OUTER",
        "SELECT b.k, b.v, d.w FROM big b LEFT JOIN dense d ON b.k = d.k AND d.w % 4 = 0",
        ("right",),
        BOTH,
    ),
    JoinKind(
        "RIGHT OUTER",
        "SELECT b.k, b.v, d.w FROM big b RIGHT JOIN dense d ON b.k = d.k AND b.v > 'c'",
        ("left",),
        BOTH,
    ),
    JoinKind(
        "FULL OUTER",
        "SELECT b.k, b.v, d.k AS k2, d.w FROM big b FULL JOIN dense d ON b.k = d.k + 5000",
        (),
        BOTH,
    ),
    JoinKind(
        "LEFT SEMI",
        "SELECT b.k, b.v FROM big b LEFT SEMI JOIN dense d ON b.k = d.k + 5000",
        ("right",),
        ("right",),
    ),
    JoinKind(
        "LEFT ANTI",
        "SELECT b.k, b.v FROM big b LEFT ANTI JOIN dense d ON b.k = d.k + 5000",
        ("right",),
        ("right",),
    ),
    JoinKind(
        "EXISTENCE",
        "SELECT b.k, b.v FROM big b WHERE b.v < '1' OR b.k IN (SELECT k FROM dense WHERE w > 9000)",
        ("right",),
        ("right",),
    ),
)


def checksum(sql: str) -> str:
    """One row that stands for the query's multiset of rows."""
    return f"SELECT count(*), sum(CAST(xxhash64(*) AS DECIMAL(38, 0))) FROM ({sql})"


CASES = [
    pytest.param(kind, word, side, id=f"{kind.name}-{word}-{side}".replace(" ", "_"))
    for kind in KINDS
    for word in WORDS
    for side in SIDES
]
Run = Callable[[DataFrame], Executed]


BIG_DENSE = checksum(little.BIG_DENSE)
BIG_SPARSE = checksum(little.BIG_SPARSE)


def enforce(spark: SparkSession, text: str, name: str = "test") -> None:
    spark.conf.set("spark.aqepilot.policies", name)
    spark.conf.set(f"spark.aqepilot.policy.{name}.dynamic_join_selection", text)


def on_side(word: str, side: str) -> str:
    return f"CASE WHEN side.is_left = {str(side == 'left').lower()} THEN '{word}' END"


def is_admitted(kind: JoinKind, word: str, side: str) -> bool:
    if word in ("BROADCAST", "NO_BROADCAST_HASH"):
        return side in kind.broadcast
    if word in ("SHUFFLE_HASH", "PREFER_SHUFFLE_HASH"):
        return side in kind.hash
    return True


def expected(word: str, side: str) -> str:
    build = "BuildLeft" if side == "left" else "BuildRight"
    if word == "BROADCAST":
        return f"BroadcastHashJoin {build}"
    if word in ("SHUFFLE_HASH", "PREFER_SHUFFLE_HASH"):
        return f"ShuffledHashJoin {build}"
    return "SortMergeJoin"


@pytest.fixture(scope="module")
def plain_runs() -> dict[tuple[str, str], Executed]:
    return {}


@pytest.fixture
def plain_run(
    plain: Any, executed: Run, plain_runs: dict[tuple[str, str], Executed]
) -> Callable[[SparkSession, str, str], Executed]:
    """Plain Spark's execution of a query, run once for each set of settings."""

    def run(spark: SparkSession, sql: str, settings: str) -> Executed:
        if (sql, settings) not in plain_runs:
            with plain(spark):
                plain_runs[sql, settings] = executed(spark.sql(sql))
        return plain_runs[sql, settings]

    return run


@tiers.EIGHTH
@pytest.mark.parametrize(("kind", "word", "side"), CASES)
def test_a_decision_is_executed_or_refused_with_its_reason(
    little_tables: SparkSession,
    executed: Run,
    plain_run: Callable[[SparkSession, str, str], Executed],
    kind: JoinKind,
    word: str,
    side: str,
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    before = plain_run(spark, checksum(kind.sql), "sort-merge")
    enforce(spark, on_side(word, side))
    after = executed(spark.sql(checksum(kind.sql)))
    assert_same_rows(after.rows, before.rows)
    of_side = [d for d in decisions(spark) if d.side == side]
    last = of_side[-1]
    assert last.answer == word
    if is_admitted(kind, word, side):
        assert (last.reason, last.applied) == ("APPLIED", True)
        assert after.strategies == [expected(word, side)]
        assert last.fate == ("no_change" if after.strategies == before.strategies else "adopted")
    else:
        assert (last.reason, last.applied, last.fate) == ("NOT_ADMITTED", False, None)
        assert after.plan == before.plan


BROADCASTS = little.SORT_MERGE | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "1MB"}


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("word", "strategy"),
    [
        ("SHUFFLE_MERGE", "SortMergeJoin"),
        ("SHUFFLE_HASH", "ShuffledHashJoin BuildRight"),
        ("NO_BROADCAST_HASH", "SortMergeJoin"),
        ("PREFER_SHUFFLE_HASH", "BroadcastHashJoin BuildRight"),
    ],
)
def test_a_decision_meets_a_broadcast_by_size(
    little_tables: SparkSession, executed: Run, plain: Any, word: str, strategy: str
) -> None:
    """Spark would broadcast `dense` by its measured size."""
    spark = little_tables
    little.settings(spark, BROADCASTS)
    with plain(spark):
        before = executed(spark.sql(BIG_DENSE))
    assert before.strategies == ["BroadcastHashJoin BuildRight"]
    enforce(spark, on_side(word, "right"))
    after = executed(spark.sql(BIG_DENSE))
    assert_same_rows(after.rows, before.rows)
    last = [d for d in decisions(spark) if d.side == "right"][-1]
    assert last.reason == "APPLIED"
    if last.fate == "refused_by_cost":
        assert after.strategies == before.strategies
    else:
        assert after.strategies == [strategy]


def test_no_broadcast_leaves_the_conversion_to_a_shuffled_hash_join(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, little.PREFERS_SHUFFLED_HASH)
    with plain(spark):
        before = executed(spark.sql(BIG_DENSE))
    assert before.strategies == ["ShuffledHashJoin BuildRight"]
    enforce(spark, "'NO_BROADCAST_HASH'")
    after = executed(spark.sql(BIG_DENSE))
    assert_same_rows(after.rows, before.rows)
    if spark.version >= "4.3":
        assert after.strategies == before.strategies


def test_shuffle_merge_is_not_converted_to_a_shuffled_hash_join(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, little.PREFERS_SHUFFLED_HASH)
    with plain(spark):
        before = executed(spark.sql(BIG_DENSE))
    assert before.strategies == ["ShuffledHashJoin BuildRight"]
    enforce(spark, on_side("SHUFFLE_MERGE", "left"))
    after = executed(spark.sql(BIG_DENSE))
    assert_same_rows(after.rows, before.rows)
    assert after.strategies == ["SortMergeJoin"]
    assert [d for d in decisions(spark) if d.side == "left"][-1].fate == "adopted"


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("left", "right", "strategy", "loser", "reason"),
    [
        ("SHUFFLE_HASH", "BROADCAST", "BroadcastHashJoin BuildRight", "left", "OTHER_SIDE_WON"),
        ("SHUFFLE_MERGE", "SHUFFLE_HASH", "SortMergeJoin", "right", "OTHER_SIDE_WON"),
        ("BROADCAST", "SHUFFLE_MERGE", "BroadcastHashJoin BuildLeft", "right", "OTHER_SIDE_WON"),
        (
            "SHUFFLE_HASH",
            "PREFER_SHUFFLE_HASH",
            "ShuffledHashJoin BuildLeft",
            "right",
            "OTHER_SIDE_WON",
        ),
        (
            "SHUFFLE_HASH",
            "SHUFFLE_HASH",
            "ShuffledHashJoin BuildRight",
            "left",
            "OTHER_SIDE_SMALLER",
        ),
    ],
)
def test_conflicting_answers_follow_the_priority_of_sparks_hints(
    little_tables: SparkSession,
    executed: Run,
    left: str,
    right: str,
    strategy: str,
    loser: str,
    reason: str,
) -> None:
    """Both sides have run when the join is decided."""
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    both = "other.is_finished"
    enforce(
        spark,
        f"CASE WHEN {both} AND side.is_left THEN '{left}' WHEN {both} THEN '{right}' END",
    )
    after = executed(spark.sql(BIG_DENSE))
    assert after.strategies == [strategy]
    lost = [d for d in decisions(spark) if d.side == loser][-1]
    assert (lost.reason, lost.applied) == (reason, False)
    won = [d for d in decisions(spark) if d.side != loser][-1]
    assert (won.reason, won.fate) == (
        "APPLIED",
        "no_change" if strategy == "SortMergeJoin" else "adopted",
    )


@tiers.EIGHTH
@pytest.mark.parametrize("hint", ["SHUFFLE_HASH(d)", "MERGE(d)", "BROADCAST(d)"])
def test_the_users_hint_wins(
    little_tables: SparkSession, executed: Run, plain: Any, hint: str
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    sql = BIG_DENSE.replace("SELECT b", f"SELECT /*+ {hint} */ b")
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, "'SHUFFLE_MERGE'" if hint != "MERGE(d)" else "'SHUFFLE_HASH'")
    after = executed(spark.sql(sql))
    assert after.plan == before.plan
    assert {d.reason for d in decisions(spark)} <= {"USER_HINT"}
    if not hint.startswith("BROADCAST"):
        assert decisions(spark)


def test_guards_keep_sparks_plan(little_tables: SparkSession, executed: Run, plain: Any) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    with plain(spark):
        before = executed(spark.sql(BIG_DENSE))
    spark.conf.set("spark.aqepilot.guard.max_broadcast_bytes", "1k")
    spark.conf.set("spark.aqepilot.guard.max_hash_build_bytes", "1k")
    for word, reason in (
        ("BROADCAST", "GUARD_BROADCAST_BYTES"),
        ("SHUFFLE_HASH", "GUARD_HASH_BUILD_BYTES"),
        ("PREFER_SHUFFLE_HASH", "GUARD_HASH_BUILD_BYTES"),
    ):
        enforce(spark, f"'{word}'")
        after = executed(spark.sql(BIG_DENSE))
        assert after.plan == before.plan
        assert decisions(spark)[-1].reason == reason


def test_a_later_null_restores_sparks_own_rule(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """The first answer comes when one side has run; with both sides known it turns to null."""
    spark = little_tables
    for settings in (little.PREFERS_SHUFFLED_HASH, little.DEMOTES):
        little.settings(spark, settings)
        for sql in (BIG_DENSE, BIG_SPARSE):
            with plain(spark):
                before = executed(spark.sql(sql))
            enforce(spark, "CASE WHEN NOT other.is_finished THEN 'SHUFFLE_MERGE' END")
            after = executed(spark.sql(sql))
            assert_same_rows(after.rows, before.rows)
            assert after.plan == before.plan
            reasons = [d.reason for d in decisions(spark)]
            assert "NULL_ANSWER" in reasons


def test_asked_again_only_when_facts_changed(little_tables: SparkSession, executed: Run) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    enforce(spark, "'SHUFFLE_HASH'")
    sql = f"SELECT x.k, count(*) AS n FROM ({little.BIG_DENSE}) x GROUP BY x.k ORDER BY n, k"
    executed(spark.sql(sql))
    asked = [(d.side, d.facts_id) for d in decisions(spark)]
    assert len(asked) == len(set(asked)) <= 4


def test_an_aggregate_above_the_stage_is_asked_too(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    sql = (
        "SELECT a.k, a.n, d.w FROM (SELECT k, count(*) AS n FROM big GROUP BY k) a "
        "JOIN dense d ON a.k = d.k"
    )
    with plain(spark):
        before = executed(spark.sql(sql))
    enforce(spark, "CASE WHEN NOT side.is_plain_stage THEN 'SHUFFLE_HASH' END")
    after = executed(spark.sql(sql))
    assert_same_rows(after.rows, before.rows)
    assert after.strategies == ["ShuffledHashJoin BuildLeft"]


def test_two_tables_names_and_measured_sizes_are_facts(
    little_tables: SparkSession, executed: Run
) -> None:
    import json

    spark = little_tables
    little.settings(spark, little.SORT_MERGE)
    enforce(spark, "NULL")
    executed(spark.sql(BIG_DENSE))
    last = json.loads(decisions(spark)[-1].facts)
    sides = {tuple(s["tables"]): s for s in (last["side"], last["other"])}
    big = sides[("big",)]
    assert big["row_count"] == little.ROWS
    assert big["num_partitions"] == 16
    assert big["shuffle_bytes"] == sum(big["bytes_by_partition_id"])
    assert big["max_bytes"] == max(big["bytes_by_partition_id"])
    assert big["non_empty_ratio"] == 1.0
    assert big["bytes_are_exact"] is True
    assert last["query"]["app_name"] == "aqepilot-tests"
    assert len(last["query"]["fingerprint"]) == 64
    assert last["join"]["type"] == "INNER"
    assert last["join"]["key_types"] == ["bigint"]
