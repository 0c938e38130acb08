"""Sentences that a person understands, for each thing that can become of a decision."""

import json

import pytest

from aqepilot import Status
from aqepilot.analysis.explanation import Explanation, describe, no_decisions
from aqepilot.decision import Decision

FACTS = json.dumps({"join": {"type": "INNER"}, "query": {"description": "sales\n  report"}})


def decision(**fields):
    common = {
        "decision_id": 1,
        "execution_id": 7,
        "point": "dynamic_join_selection",
        "subject": "join 3, left side",
        "join_id": 3,
        "side": "left",
        "tables": "lineitem ⋈ orders",
        "facts_id": "f",
        "facts_json": FACTS,
        "policy": "sales",
        "mode": "enforce",
        "answer": "SHUFFLE_HASH",
        "spark_strategy": "SortMergeJoin",
        "applied": True,
        "reason": "APPLIED",
        "final_strategy": "ShuffledHashJoin BuildLeft",
    }
    return Decision(**(dict.fromkeys(Decision._fields) | common | fields))


def test_what_was_decided_alike_several_times_is_told_once():
    alike = [decision(fate="adopted", decision_id=number) for number in range(3)]
    lines = describe([*alike, decision(fate="adopted", answer="SHUFFLE_MERGE")]).splitlines()
    assert lines[0] == "Query 7 (sales report): 4 decisions, 4 applied."
    assert [line.endswith("(3 times.)") for line in lines[1:]] == [True, False]


def test_an_adopted_decision_is_told_whole():
    assert describe([decision(fate="adopted")]).splitlines() == [
        "Query 7 (sales report): 1 decision, 1 applied.",
        "  Join 3, left side, lineitem ⋈ orders (INNER), dynamic_join_selection: policy `sales` "
        "said SHUFFLE_HASH; Spark would have planned SortMergeJoin. Adopted: the query ran "
        "ShuffledHashJoin BuildLeft.",
    ]


def test_history_that_was_not_used_is_told_once_with_its_reason():
    without = {"signature": "aa", "held": "a run by it failed: not used for 1 day of runs"}
    facts = json.dumps({"left": {"history": without}, "relations": [{"history": without}]})
    text = describe([decision(facts_json=facts)])
    reason = "History was not used: a run by it failed: not used for 1 day of runs."
    assert text.count(reason) == 1
    assert "History" not in describe([decision()])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"fate": "refused_by_cost", "final_strategy": "SortMergeJoin"}, "Refused on cost"),
        ({"fate": "no_change"}, "No change: the query ran ShuffledHashJoin BuildLeft"),
        ({"fate": "superseded"}, "Superseded"),
        ({"fate": "gone", "final_strategy": None}, "Gone: it is not in the final plan"),
        ({"fate": None}, "still runs or has failed"),
        ({"applied": False, "reason": "SHADOW"}, "Recorded only"),
        (
            {"applied": False, "reason": "NULL_ANSWER", "answer": None, "policy": None},
            "no policy had an answer; Spark would have planned SortMergeJoin. Left to Spark.",
        ),
        (
            {"applied": False, "reason": "GUARD_BROADCAST_BYTES", "detail": "9 GB > 8 GB."},
            "Not applied: GUARD_BROADCAST_BYTES, the side is larger than the guard lets a policy "
            "broadcast (9 GB > 8 GB). The query ran",
        ),
        ({"applied": False, "reason": "OF_THE_FUTURE"}, "Not applied: OF_THE_FUTURE."),
        (
            {"fate": "adopted", "detail": "partition 5 has 6 of 39 parts"},
            "ran ShuffledHashJoin BuildLeft. Note: partition 5 has 6 of 39 parts.",
        ),
        (
            {"facts_json": json.dumps({"left": {"bytes_are_exact": False}})},
            "spark.shuffle.minNumPartitionsToHighlyCompress mends it.",
        ),
        ({"spark_answer": "PREFER_SHUFFLE_HASH"}, "(its own rule said PREFER_SHUFFLE_HASH)"),
    ],
)
def test_each_outcome_has_its_sentence(fields, words):
    assert words in describe([decision(**fields)])


def test_only_the_last_query_is_told_and_shared_facts_are_found():
    lines = describe(
        [
            decision(execution_id=6, tables="old"),
            decision(),
            decision(side="right", facts_json=None, applied=False, reason="SHADOW"),
        ]
    )
    assert "old" not in lines
    assert lines.startswith("Query 7 (sales report): 2 decisions, 1 applied.")
    assert lines.count("(INNER)") == 2


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "No policy is set"),
        ([Status("policy", "p.x", "off", "{}")], "p.x is off"),
        ([Status("policy", "p.x", "enforce", "{}")], "p.x would be asked"),
        ([Status("problem", "MODE_INVALID", None, "mode 'on' is bad")], "mode 'on' is bad"),
    ],
)
def test_no_decisions_says_why_that_may_be(rows, words):
    assert words in no_decisions(rows)


def test_a_notebook_shows_lines_not_quotes():
    assert repr(Explanation("a\nb")) == "a\nb"
