"""Which policies are asked: set and removed at run time, `when`, modes, and their order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import little
import policies
import tiers
from plans import Executed
from rows import assert_same_rows
from waiting import until

pytestmark = [tiers.EIGHTH, tiers.ON_ONE]

Run = Callable[[DataFrame], Executed]
RIGHT, MERGE = "ShuffledHashJoin BuildRight", "SortMergeJoin"
JOIN = "SELECT x.k, x.v, d.w FROM some x JOIN dense d ON x.k = d.k"
SMALL = "SELECT s.k, d.w FROM sparse s JOIN dense d ON s.k = d.k"


@pytest.fixture
def session(little_tables: SparkSession) -> Iterator[SparkSession]:
    """Sort-merge joins unless a policy says otherwise; `some` is a tenth of `big`."""
    little.settings(little_tables, little.SORT_MERGE)
    little_tables.conf.set("spark.sql.shuffle.partitions", "4")
    little_tables.sql("SELECT * FROM big WHERE k < 1000").createOrReplaceTempView("some")
    yield little_tables
    little_tables.sparkContext.setJobDescription(None)


def test_policies_come_and_go_between_queries(
    session: SparkSession, executed: Run, plain: Any
) -> None:
    with plain(session):
        before = executed(session.sql(JOIN))
    seen = []
    for text in (None, policies.HASH_RIGHT, "NULL", policies.HASH_LEFT, None):
        if text:
            policies.use(session, text)
        else:
            session.conf.unset("spark.aqepilot.policies")
        after = executed(session.sql(JOIN))
        assert_same_rows(after.rows, before.rows)
        seen += after.strategies
    assert seen == [MERGE, RIGHT, MERGE, "ShuffledHashJoin BuildLeft", MERGE]


def test_a_policy_removed_while_its_query_runs(
    session: SparkSession, executed: Run, plain: Any, tmp_path: Path
) -> None:
    """A task of the last stage before the join waits until the policy is gone."""
    with plain(session):
        before = executed(session.sql(JOIN))
    gate = tmp_path / "gone"

    def wait(w: int) -> int:
        while not gate.exists():
            time.sleep(0.05)
        return w

    session.udf.register("wait", wait, "long")
    policies.use(session, "CASE WHEN NOT other.is_finished THEN 'SHUFFLE_MERGE' END")
    session.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "1MB")
    slow = session.sql("SELECT x.k, x.v, d.w FROM some x JOIN "
                       "(SELECT k, w FROM dense WHERE wait(w) >= 0) d ON x.k = d.k")  # fmt: skip
    ran: list[Executed] = []
    query = threading.Thread(target=lambda: ran.append(executed(slow)))
    query.start()
    try:
        until(lambda: policies.decisions(session), 60)
        assert policies.reasons(session) == {"APPLIED"}
    finally:
        session.conf.unset("spark.aqepilot.policies")
        gate.touch()
        query.join()
    assert_same_rows(ran[0].rows, before.rows)
    # Spark's own choice by size, as if the policy had never been there.
    assert ran[0].strategies == ["BroadcastHashJoin BuildRight"]


@pytest.mark.parametrize(
    ("when", "asked"),
    [
        ("query.description = 'nightly load'", True),
        ("query.description = 'something else'", False),
        ("query.app_name = 'aqepilot-tests'", True),
        ("query.app_name LIKE 'sales%'", False),
        ("query.description", None),
    ],
)
def test_when(session: SparkSession, executed: Run, when: str, asked: bool | None) -> None:
    policies.use(session, policies.HASH_RIGHT, when=when)
    session.sparkContext.setJobDescription("nightly load")
    after = executed(session.sql(JOIN))
    assert after.strategies == [RIGHT if asked else MERGE]
    expected = {True: {"APPLIED", "NULL_ANSWER"}, False: {"NULL_ANSWER"}, None: set()}[asked]
    assert policies.reasons(session) == expected


@pytest.mark.parametrize("of_all", [None, "off", "shadow", "enforce"])
@pytest.mark.parametrize("of_one", [None, "off", "shadow", "enforce"])
def test_modes(
    session: SparkSession,
    executed: Run,
    plain_small: Executed,
    of_all: str | None,
    of_one: str | None,
) -> None:
    """The mode of all is the most that one policy may do."""
    policies.use(session, policies.HASH_RIGHT)
    if of_one:
        session.conf.set("spark.aqepilot.policy.test.mode", of_one)
    if of_all:
        session.conf.set("spark.aqepilot.mode", of_all)
    after = executed(session.sql(SMALL))
    assert_same_rows(after.rows, plain_small.rows)
    words = {of_all, of_one}
    made = policies.decisions(session)
    right = [d for d in made if d.side == "right"]
    if "off" in words:
        assert after.plan == plain_small.plan, made
        assert right == []
    elif "shadow" in words:
        assert after.plan == plain_small.plan, made
        assert right
        for d in right:
            assert (d.mode, d.reason, d.applied, d.fate) == ("shadow", "SHADOW", False, None)
            assert (d.answer, d.spark_strategy) == ("SHUFFLE_HASH", MERGE)
    else:
        assert after.strategies == [RIGHT], made
        assert {(d.mode, d.reason) for d in right} == {("enforce", "APPLIED")}


@pytest.fixture
def plain_small(session: SparkSession, executed: Run, plain: Any) -> Executed:
    with plain(session):
        return executed(session.sql(SMALL))


@pytest.mark.parametrize(
    ("order", "strategy", "reasons"),
    [
        ("nothing,right,left", RIGHT, {"right": "APPLIED"}),
        ("left,right", "ShuffledHashJoin BuildLeft", {"left": "APPLIED"}),
        ("watching,nothing,right", RIGHT, {"watching": "SHADOW", "right": "APPLIED"}),
        ("right,watching", RIGHT, {"right": "APPLIED"}),
        ("nothing,watching", MERGE, {"watching": "SHADOW"}),
        ("off,right", RIGHT, {"right": "APPLIED"}),
        ("missing,right", RIGHT, {"right": "APPLIED"}),
    ],
)
def test_null_asks_the_next_policy(
    session: SparkSession, executed: Run, order: str, strategy: str, reasons: dict[str, str]
) -> None:
    texts = {
        "nothing": "NULL",
        "right": "if(side.is_left, NULL, 'SHUFFLE_HASH')",
        "left": "if(side.is_left, NULL, 'NO_BROADCAST_HASH')",
        "watching": "if(side.is_left, NULL, 'SHUFFLE_MERGE')",
        "off": "'SHUFFLE_MERGE'",
    }
    if order == "left,right":
        texts["left"] = policies.HASH_LEFT
        texts["right"] = "if(side.is_left, 'SHUFFLE_MERGE', NULL)"
    for name, text in texts.items():
        policies.use(session, text, name)
    session.conf.set("spark.aqepilot.policy.watching.mode", "shadow")
    session.conf.set("spark.aqepilot.policy.off.mode", "off")
    session.conf.set("spark.aqepilot.policies", order)
    after = executed(session.sql(SMALL))
    assert after.strategies == [strategy]
    made = [d for d in policies.decisions(session) if d.policy]
    assert {d.policy: d.reason for d in made} == reasons
