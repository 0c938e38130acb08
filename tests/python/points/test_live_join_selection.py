"""Every strategy and build side, on every join: in the executed plan, or a reason why not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from pyspark.sql import SparkSession

import little
import plans
import policies
import tiers
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

POINT = "join_selection"
BOTH = ("LEFT", "RIGHT")
BROADCAST_HASH, NESTED_LOOP = "BroadcastHashJoin", "BroadcastNestedLoopJoin"


class Kind(NamedTuple):
    """A join and what it admits.

    Attributes:
        name: For the test.
        sql: The query.
        broadcast: The sides that may be broadcast.
        hash: The sides that a shuffled hash join may build from.
        has_keys: Whether it has equality keys.
        replicate: Whether it may be a Cartesian product.
    """

    name: str
    sql: str
    broadcast: tuple[str, ...]
    hash: tuple[str, ...]
    has_keys: bool = True
    replicate: bool = False

    @property
    def broadcasts(self) -> str:
        hashes = self.has_keys or self.name == "not in"
        return BROADCAST_HASH if hashes else NESTED_LOOP


def _kinds() -> Iterator[Kind]:
    on = {
        "equi": "a.k = b.k",
        "mixed": "a.k = b.k AND a.v < b.w",
        "non-equi": "a.k < b.k AND a.k % 50 = 0",
    }
    joins = {
        "inner": ("SELECT a.k, a.v, b.w FROM a JOIN b ON {}", BOTH, BOTH),
        "left": ("SELECT a.k, a.v, b.w FROM a LEFT JOIN b ON {}", ("RIGHT",), BOTH),
        "right": ("SELECT a.k, a.v, b.w FROM a RIGHT JOIN b ON {}", ("LEFT",), BOTH),
        "full": ("SELECT a.k, a.v, b.w FROM a FULL JOIN b ON {}", (), BOTH),
        "semi": ("SELECT a.k, a.v FROM a LEFT SEMI JOIN b ON {}", ("RIGHT",), ("RIGHT",)),
        "anti": ("SELECT a.k, a.v FROM a LEFT ANTI JOIN b ON {}", ("RIGHT",), ("RIGHT",)),
        "existence": (
            "SELECT a.k, a.v FROM a WHERE a.k = 7 OR EXISTS (SELECT 1 FROM b WHERE {})",
            ("RIGHT",),
            ("RIGHT",),
        ),
    }
    for name, (sql, broadcast, hashes) in joins.items():
        for condition, text in on.items():
            has_keys = condition != "non-equi"
            yield Kind(
                f"{name}, {condition}",
                sql.format(text),
                broadcast if has_keys else BOTH,
                hashes if has_keys else (),
                has_keys,
                replicate=name == "inner",
            )
    yield Kind("cross", "SELECT a.k, b.w FROM a CROSS JOIN b", BOTH, (), False, True)
    yield Kind(
        "not in", "SELECT k, v FROM a WHERE k NOT IN (SELECT k FROM b)", ("RIGHT",), (), False
    )


ANSWERS = [
    *((strategy, side) for strategy in ("BROADCAST", "SHUFFLE_HASH") for side in (None, *BOTH)),
    ("SHUFFLE_MERGE", None),
    ("SHUFFLE_REPLICATE_NL", None),
]


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    """The views a and b; no join is a broadcast by its size."""
    little.ranges(spark)
    return spark


def expected(kind: Kind, strategy: str, side: str | None) -> str | None:
    """What the executed plan is to say; null where the join does not admit the answer."""
    build = f"Build{side.title()}" if side else ""
    admits = {"BROADCAST": kind.broadcast, "SHUFFLE_HASH": kind.hash}
    if strategy in admits:
        if not admits[strategy] or (side and side not in admits[strategy]):
            return None
        node = kind.broadcasts if strategy == "BROADCAST" else "ShuffledHashJoin"
        return f"{node} {build}".strip()
    if strategy == "SHUFFLE_MERGE":
        return "SortMergeJoin" if kind.has_keys else None
    return "CartesianProduct" if kind.replicate else None


@pytest.mark.skipif(tiers.MINOR == "3.5", reason="4.3 is the first to convert planned joins")
def test_a_merge_join_that_spark_would_convert_stays_and_sorts_its_sides(
    tables: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    little.settings(
        tables,
        {
            "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled": "true",
            "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "1MB",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": "1KB",
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
        },
    )
    sql = "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k * 7 % 41"
    with plain(tables):
        without = executed(tables.sql(sql))
    assert without.strategies[0].startswith("ShuffledHashJoin")
    tables.conf.set("spark.aqepilot.policies", "test")
    tables.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'SHUFFLE_MERGE'")
    ran = executed(tables.sql(sql))
    assert ran.strategies == ["SortMergeJoin"]
    assert_same_rows(ran.rows, without.rows)
    assert {d.reason for d in policies.decisions(tables)} == {"APPLIED"}


@tiers.EIGHTH
@pytest.mark.parametrize("kind", list(_kinds()), ids=lambda kind: kind.name)
def test_every_answer_is_executed_or_has_a_reason(
    tables: SparkSession, kind: Kind, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    with plain(tables):
        without = executed(tables.sql(kind.sql))
    for strategy, side in ANSWERS:
        spark = tables
        fields = {"strategy": strategy, "build_side": side}
        pairs = ", ".join(f"'{k}', '{v}'" for k, v in fields.items() if v)
        text = f"named_struct({pairs})" if side else f"'{strategy}'"
        spark.conf.set("spark.aqepilot.policies", "test")
        spark.conf.set(f"spark.aqepilot.policy.test.{POINT}", text)
        before = len(policies.decisions(spark))
        ran = executed(spark.sql(kind.sql))
        assert_same_rows(ran.rows, without.rows)
        made = policies.decisions(spark)[before:]
        assert made, (kind, text)
        wanted = expected(kind, strategy, side)
        if wanted:
            assert ran.strategies[0].startswith(wanted), (kind, text)
            assert {d.reason for d in made} == {"APPLIED"}, (kind, text, made)
            same = ran.strategies == without.strategies
            assert made[-1].fate == ("no_change" if same else "adopted"), (kind, text, made)
            decision = json.loads(made[-1].answer)
            assert decision["strategy"] == strategy
        else:
            assert {d.reason for d in made} == {"NOT_ADMITTED"}, (kind, text, made)
            assert ran.strategies == without.strategies, (kind, text)


def test_the_smaller_side_is_built_from_where_none_is_named(tables: SparkSession) -> None:
    tables.conf.set("spark.aqepilot.policies", "test")
    tables.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'BROADCAST'")
    df = tables.sql("SELECT a.k FROM a JOIN b ON a.k = b.k")
    df.collect()
    assert plans.strategies(df) == ["BroadcastHashJoin BuildRight"]
    df = tables.sql("SELECT a.k FROM b JOIN a ON a.k = b.k")
    df.collect()
    assert plans.strategies(df) == ["BroadcastHashJoin BuildLeft"]


def test_a_users_hint_wins(tables: SparkSession) -> None:
    tables.conf.set("spark.aqepilot.policies", "test")
    tables.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'BROADCAST'")
    df = tables.sql("SELECT /*+ SHUFFLE_MERGE(b) */ a.k FROM a JOIN b ON a.k = b.k")
    df.collect()
    assert plans.strategies(df) == ["SortMergeJoin"]
    assert policies.reasons(tables) == {"USER_HINT"}


def test_a_run_time_policy_wins_over_one_of_planning(tables: SparkSession) -> None:
    policies.use(tables, "'SHUFFLE_HASH'", **{POINT: "'SHUFFLE_MERGE'"})
    df = tables.sql("SELECT a.k FROM a JOIN b ON a.k = b.k")
    df.collect()
    assert plans.strategies(df)[0].startswith("ShuffledHashJoin")
    last = [d for d in policies.decisions(tables) if d.point == POINT][-1]
    assert (last.applied, last.reason) == (False, "RUN_TIME_DECISION")


def test_a_sort_merge_join_is_not_converted(
    tables: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    """Before 4.3 Spark prefers a shuffled hash join by a hint, from 4.3 on it converts the plan."""
    little.settings(tables, little.PREFERS_SHUFFLED_HASH)
    sql = "SELECT a.k, b.w FROM a JOIN b ON a.k = b.k ORDER BY 1, 2"
    with plain(tables):
        assert executed(tables.sql(sql)).strategies[0].startswith("ShuffledHashJoin")
    tables.conf.set("spark.aqepilot.policies", "test")
    tables.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'SHUFFLE_MERGE'")
    assert executed(tables.sql(sql)).strategies == ["SortMergeJoin"]


def test_decisions_of_an_explained_query_belong_to_its_run(tables: SparkSession) -> None:
    tables.conf.set("spark.aqepilot.policies", "test")
    tables.conf.set(f"spark.aqepilot.policy.test.{POINT}", "'BROADCAST'")
    df = tables.sql("SELECT a.k FROM a JOIN b ON a.k = b.k")
    df.explain()
    (made,) = policies.decisions(tables)
    assert made.execution_id is None
    df.collect()
    (made,) = policies.decisions(tables)
    assert (made.execution_id is not None, made.fate) == (True, "adopted")
    assert made.fingerprint
