"""Answers for single decisions, as a policy that recognises them on other runs."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from aqepilot import AqePilotError, Policy
from aqepilot.pins import Identity, Pin, conflicts, identity_of, policy_text, texts


def join(left: str, right: str, can_swap: bool = True) -> Identity:
    return Identity("join_selection", (left, right), can_swap)


BROADCAST = {"strategy": "BROADCAST", "build_side": "RIGHT"}


@pytest.mark.parametrize(
    ("point", "facts", "signatures"),
    [
        (
            "join_selection",
            {"join": {"type": "INNER"}, "left": {"signature": "a"}, "right": {"signature": "b"}},
            ("a", "b"),
        ),
        (
            "dynamic_join_selection",
            {"join": {"type": "INNER"}, "side": {"signature": "b"}, "other": {"signature": "a"}},
            ("b", "a"),
        ),
        ("join_reorder", {"chain": {"signatures": ["c", "a", "b"]}}, ("c", "a", "b")),
        ("partition_coalescing", {"shuffle": {"signatures": ["b", "a"]}}, ("a", "b")),
        ("write_distribution", {}, ()),
    ],
)
def test_a_decision_is_named_by_what_it_is_about(
    point: str, facts: dict[str, Any], signatures: tuple[str, ...]
) -> None:
    identity = identity_of(point, facts)
    assert identity is not None
    assert identity.signatures == signatures


@pytest.mark.parametrize("point", ["join_selection", "join_reorder", "shuffle_partitions"])
def test_what_a_log_has_no_signature_of_has_no_name(point: str) -> None:
    assert identity_of(point, {"join": {"type": "INNER"}, "left": {"signature": "a"}}) is None


def test_nothing_names_a_comparison_of_two_plans() -> None:
    assert identity_of("cost_evaluation", {"current": {}}) is None


def test_an_inner_join_is_the_same_from_both_sides_and_another_join_is_not() -> None:
    assert join("a", "b").key == join("b", "a").key
    assert join("a", "b", can_swap=False).key != join("b", "a", can_swap=False).key


def test_an_inner_joins_answer_turns_with_its_sides() -> None:
    text = texts([Pin(join("aa", "bb"), BROADCAST)])["join_selection"]
    assert "left.signature = 'aa' AND right.signature = 'bb' THEN" in text
    swapped = text.splitlines()[2]
    assert "left.signature = 'bb' AND right.signature = 'aa'" in swapped
    assert swapped.endswith("named_struct('strategy', 'BROADCAST', 'build_side', 'LEFT')")
    fixed = texts([Pin(join("aa", "bb", can_swap=False), BROADCAST)])["join_selection"]
    assert len(fixed.splitlines()) == 3


def test_a_pin_with_a_condition_comes_before_that_without() -> None:
    early = Pin(join("a", "b"), {"strategy": "SHUFFLE_MERGE"})
    late = Pin(join("a", "b"), BROADCAST, "join.is_replan AND right.shuffle_bytes IS NOT NULL")
    lines = texts([early, late])["join_selection"].splitlines()
    assert ["BROADCAST" in line for line in lines[1:-1]] == [True, True, False, False]
    assert "left.shuffle_bytes IS NOT NULL" in lines[2]


def test_an_order_names_relations_not_positions() -> None:
    pin = Pin(Identity("join_reorder", ("r0", "r1", "r2")), [2, 0, 1])
    text = texts([pin])["join_reorder"]
    assert "array_sort(chain.signatures) = array('r0', 'r1', 'r2')" in text
    assert "transform(array('r2', 'r0', 'r1')," in text


def test_all_fields_that_a_point_answers_have_their_type_in_each_line() -> None:
    pins = [
        Pin(Identity("skew_join", ("a", "b")), {"skew_factor": 3.0}),
        Pin(Identity("skew_join", ("c", "d")), {"left_splits": [2, None]}),
    ]
    first, second = texts(pins)["skew_join"].splitlines()[1:-1]
    assert "'left_splits', CAST(NULL AS ARRAY<INT>)" in first
    assert "'skew_factor', CAST(NULL AS DOUBLE)" in second
    assert "array(2, CAST(NULL AS INT))" in second


def test_two_answers_for_one_decision_are_refused() -> None:
    pins = [Pin(join("a", "b"), BROADCAST), Pin(join("b", "a"), {"strategy": "SHUFFLE_MERGE"})]
    assert len(conflicts(pins)) == 1
    with pytest.raises(AqePilotError, match="two pins of one decision at join_selection"):
        texts(pins)
    numbers = [Pin(Identity("shuffle_partitions", (s, "x")), n) for s, n in (("a", 2), ("b", 3))]
    assert len(conflicts(numbers)) == 1


def test_a_field_that_no_answer_has_is_refused() -> None:
    with pytest.raises(AqePilotError, match="no field nonsense"):
        texts([Pin(Identity("skew_join", ("a", "b")), {"nonsense": 1})])


def test_a_pins_file_is_a_policy_for_its_queries_until_a_day() -> None:
    text = policy_text(
        "pin_x",
        ["f1", "f2"],
        [Pin(Identity("shuffle_partitions", ("it's",)), 7)],
        mode="shadow",
        expires=date(2027, 1, 31),
        comment="a\nb",
    )
    policy = Policy.from_toml(text)
    assert (policy.name, policy.mode, policy.expires) == ("pin_x", "shadow", date(2027, 1, 31))
    assert policy.when == "query.fingerprint IN ('f1', 'f2')"
    assert policy.to_conf()["spark.aqepilot.policy.pin_x.expires"] == "2027-01-31"
    assert text.startswith("# a\n# b\n")
    assert "array('it\\'s')) THEN 7" in policy.points["shuffle_partitions"]


@pytest.mark.parametrize("day", ["soon", 3, "2027-01-31T10:00"])
def test_a_day_that_is_none_is_refused_with_its_place(day: object) -> None:
    shown = f'"{day}"' if isinstance(day, str) else day
    with pytest.raises(AqePilotError, match=r"p\.toml:2:1: expires"):
        Policy.from_toml(f'name = "p"\nexpires = {shown}\njoin_selection = "NULL"', "p.toml")
