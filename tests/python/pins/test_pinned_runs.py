"""What a run decided, decision by decision, becomes pins; what cannot be pinned is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aqepilot.analysis.pins.chosen import chosen, selection
from aqepilot.decision import Decision
from aqepilot.pins import texts


def decision(number: int, point: str, facts: dict[str, Any], **columns: Any) -> Decision:
    """A decision that was left to Spark, unless columns say otherwise."""
    values: dict[str, Any] = dict.fromkeys(Decision._fields)
    values |= {"decision_id": number, "point": point, "facts_id": str(number), "applied": False}
    values |= {"facts_json": json.dumps(facts), "reason": "NULL_ANSWER", "subject": f"s {number}"}
    return Decision(**values | columns)


def side(signature: str, shuffle_bytes: int | None = None) -> dict[str, Any]:
    return {"signature": signature, "shuffle_bytes": shuffle_bytes}


def planned(
    number: int, spark: str, left: int | None = None, right: int | None = None, join: int = 1
) -> Decision:
    """A join of a and b at a planning, the first one where no side is measured."""
    facts = {
        "join": {"type": "INNER", "is_replan": left is not None or right is not None},
        "left": side("a", left),
        "right": side("b", right),
    }
    answer = json.dumps(selection(spark))
    return decision(
        *(number, "join_selection", facts),
        **{"join_id": join, "spark_answer": answer, "spark_strategy": spark},
    )


MERGE, BROADCAST = "SortMergeJoin", "BroadcastHashJoin BuildRight"


def test_a_join_that_kept_its_strategy_has_one_pin() -> None:
    (pin,) = chosen([planned(1, MERGE), planned(2, MERGE, right=9)]).pins
    assert (pin.identity.signatures, pin.answer, pin.when) == (
        ("a", "b"),
        {"strategy": "SHUFFLE_MERGE"},
        "",
    )


def test_a_join_that_spark_planned_anew_changes_when_as_much_is_measured() -> None:
    rows = [planned(1, MERGE), planned(2, MERGE, left=5), planned(3, BROADCAST, left=5, right=9)]
    late, early = chosen(rows).pins
    assert late.answer == {"strategy": "BROADCAST", "build_side": "RIGHT"}
    assert late.when == (
        "join.is_replan AND left.shuffle_bytes IS NOT NULL AND right.shuffle_bytes IS NOT NULL"
    )
    assert (early.answer, early.when) == ({"strategy": "SHUFFLE_MERGE"}, "")


def test_an_answer_by_an_estimate_that_was_recorded_last_is_not_the_last() -> None:
    """An answer that comes again is not recorded again."""
    rows = [planned(1, MERGE), planned(2, BROADCAST, left=5, right=9), planned(3, MERGE, right=9)]
    late, _ = chosen(rows).pins
    assert late.answer["strategy"] == "BROADCAST"
    assert late.when.endswith("left.shuffle_bytes IS NOT NULL AND right.shuffle_bytes IS NOT NULL")


def test_what_aqe_kept_although_it_planned_otherwise_is_pinned() -> None:
    """A sort-merge join would take a shuffle that the broadcast join had done without."""
    rows = [planned(1, MERGE), planned(2, BROADCAST, right=9), planned(3, MERGE, right=9)]
    assert [pin.answer for pin in chosen(rows, [MERGE]).pins] == [{"strategy": "SHUFFLE_MERGE"}]
    late, _ = chosen(rows, [BROADCAST]).pins
    assert late.answer == {"strategy": "BROADCAST", "build_side": "RIGHT"}
    assert late.when == "join.is_replan AND right.shuffle_bytes IS NOT NULL"


def test_a_side_that_was_broadcast_for_its_size_is_when_it_is_small() -> None:
    """Which of two stages ends first is a race: the other side may be small before."""
    facts = {
        "join": {"type": "INNER", "is_replan": True},
        "left": side("a") | {"broadcasts_by_size": False},
        "right": side("b") | {"broadcasts_by_size": True},
    }
    answer = '{"strategy":"BROADCAST","build_side":"RIGHT"}'
    small = decision(2, "join_selection", facts, join_id=1, spark_answer=answer)
    late, _ = chosen([planned(1, MERGE), small]).pins
    assert late.when == "join.is_replan AND right.broadcasts_by_size"


def test_what_a_policy_decided_is_pinned_as_it_ran() -> None:
    applied = planned(1, MERGE)._replace(
        answer='{"strategy":"BROADCAST"}',
        applied=True,
        reason="APPLIED",
        fate="adopted",
        final_strategy="BroadcastHashJoin BuildLeft",
    )
    (pin,) = chosen([applied]).pins
    assert pin.answer == {"strategy": "BROADCAST", "build_side": "LEFT"}


def test_a_conversion_at_run_time_is_pinned() -> None:
    """Spark 4.3 converts a sort-merge join after it has planned it."""
    facts = {
        "join": {"type": "INNER"},
        "side": {"signature": "b", "is_left": False, "is_finished": True},
        "other": {"signature": "a", "is_left": True, "is_finished": False},
    }
    converted = decision(
        *(2, "dynamic_join_selection", facts),
        **{"join_id": 1, "spark_strategy": "ShuffledHashJoin BuildRight"},
    )
    late, _ = chosen([planned(1, MERGE), converted]).pins
    assert late.answer == {"strategy": "SHUFFLE_HASH", "build_side": "RIGHT"}
    assert late.when == "join.is_replan AND right.shuffle_bytes IS NOT NULL"


def test_two_joins_that_nothing_tells_apart_and_that_differ_are_named() -> None:
    rows = [
        planned(1, MERGE),
        planned(2, MERGE, join=2),
        planned(3, BROADCAST, right=9),
    ]
    result = chosen(rows)
    assert [one.code for one in result.unpinned] == ["AMBIGUOUS"]
    assert [pin.answer for pin in result.pins] == [{"strategy": "SHUFFLE_MERGE"}]


def test_numbers_orders_and_spark_s_values_are_pinned() -> None:
    shuffles = {"shuffles": {"signatures": ["x", "y"]}}
    chain = {"chain": {"signatures": ["r0", "r1", "r2"]}}
    stage = {"shuffle": {"signatures": ["x"]}, "stage": {"requested_partition_bytes": None}}
    values = {"target_bytes": 64, "min_partitions": 2, "keep": False}
    skew = {"left": side("a"), "right": side("b"), "join": {"type": "LEFT OUTER"}}
    result = chosen(
        [
            decision(1, "shuffle_partitions", shuffles, spark_answer="8"),
            decision(2, "join_reorder", chain, spark_answer="[0,1,2]"),
            decision(3, "partition_coalescing", stage, spark_answer=json.dumps(values)),
            decision(4, "skew_join", skew, join_id=3, spark_answer='{"skew_factor":5.0}'),
        ]
    )
    assert {pin.identity.point: pin.answer for pin in result.pins} == {
        "shuffle_partitions": 8,
        "join_reorder": [0, 1, 2],
        "partition_coalescing": values,
        "skew_join": {"skew_factor": 5.0},
    }
    assert set(texts(result.pins)) == {pin.identity.point for pin in result.pins}
    assert result.unpinned == ()


def test_a_size_that_a_source_asks_for_stays_the_source_s() -> None:
    stage = {"shuffle": {"signatures": ["x"]}, "stage": {"requested_partition_bytes": 1}}
    spark = '{"target_bytes":1,"min_partitions":2}'
    (pin,) = chosen([decision(1, "partition_coalescing", stage, spark_answer=spark)]).pins
    assert pin.answer == {"min_partitions": 2}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (decision(1, "cost_evaluation", {"current": {}}), "UNNAMED"),
        (decision(1, "shuffle_partitions", {"shuffles": {}}), "NO_SIGNATURE"),
        (decision(1, "join_selection", {}, reason="UNTRACKED_JOIN"), "UNTRACKED_JOIN"),
        (decision(1, "skew_join", {}, reason="NON_DETERMINISTIC_CTE"), "NOBODY_ASKED"),
    ],
)
def test_what_cannot_be_pinned_is_named_with_its_reason(row: Decision, code: str) -> None:
    result = chosen([row])
    assert ([one.code for one in result.unpinned], result.pins) == ([code], ())
    assert result.unpinned[0].why
