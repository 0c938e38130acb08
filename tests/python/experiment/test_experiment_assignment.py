"""Arms of an experiment: who gets which, and what is refused."""

from __future__ import annotations

import hashlib
import json

import pytest
from scipy import stats

import places
from aqepilot.errors import AqePilotError
from aqepilot.experiment.assignment import BUCKETS, arm_of, bucket, parse_arms

CASES = json.loads(places.CASES.joinpath("assignment.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES["cases"], ids=lambda case: f"{case['arms']} {case['unit']}")
def test_a_unit_has_the_number_and_the_arm_that_the_driver_gives_it(case: dict[str, str]) -> None:
    number = bucket(case["salt"], case["experiment"], case["unit"])
    assert number == case["bucket"]
    assert arm_of(parse_arms(case["arms"]), number).name == case["arm"]


def test_a_million_units_have_the_numbers_that_the_driver_gives_them() -> None:
    cases, digest = CASES["million"], hashlib.sha256()
    for i in range(1_000_000):
        unit = f"job{i % 200}|run{i}"
        digest.update(bucket(cases["salt"], cases["experiment"], unit).to_bytes(2, "big"))
    assert digest.hexdigest() == cases["sha256"]


def arms(text: str) -> dict[str, set[int]]:
    """The numbers of each arm."""
    parsed = parse_arms(text)
    tags: dict[str, set[int]] = {arm.name: set() for arm in parsed}
    for number in range(BUCKETS):
        tags[arm_of(parsed, number).name].add(number)
    assert {name: len(numbers) for name, numbers in tags.items()} == dict(parsed)
    return tags


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("spark:90,a:10", "spark:80,a:20"),
        ("spark:80,a:10,b:10", "spark:60,a:30,b:10"),
        ("spark:80,a:10,b:10", "spark:60,a:10,b:30"),
        ("spark:50,a:25,b:25", "spark:0,a:75,b:25"),
        ("spark:33.34,a:33.33,b:33.33", "spark:99,a:0.5,b:0.5"),
    ],
)
def test_a_change_of_weights_moves_only_those_it_must(before: str, after: str) -> None:
    there, here = arms(before), arms(after)
    for name in there:
        kept = there[name] & here[name]
        assert len(kept) == min(len(there[name]), len(here[name])), name


def test_units_are_as_many_as_the_weights_say() -> None:
    parsed = parse_arms("spark:70,a:20,b:10")
    names = [arm_of(parsed, bucket("s", "e", f"job|{i}")).name for i in range(20_000)]
    counts = [names.count(arm.name) for arm in parsed]
    assert stats.chisquare(counts, [arm.weight * 2 for arm in parsed]).pvalue > 0.001


def test_salt_and_name_draw_anew() -> None:
    def numbers(salt: str, name: str) -> list[int]:
        return [bucket(salt, name, str(i)) for i in range(1000)]

    drawn = [numbers("", "a"), numbers("x", "a"), numbers("", "b")]
    for here in drawn:
        for there in drawn:
            same = sum(x == y for x, y in zip(here, there, strict=True))
            assert same == 1000 if here is there else same < 10


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spark:90,a:20", "the weights are 110 percent together, not 100"),
        ("spark:90,a:9.99", "the weights are 99.99 percent together, not 100"),
        ("spark:100", "an experiment has two or three arms, not 1"),
        ("spark:40,a:20,b:20,c:20", "an experiment has two or three arms, not 4"),
        ("a:50,a:50", "arm a is there twice"),
        ("spark:50,spark+a:50", "spark is an arm of its own"),
        ("spark:50,A:50", "'A:50' is no arm"),
        ("spark:50,a", "'a' is no arm"),
        ("spark:50,a:-50", "'a:-50' is no arm"),
        ("spark:50,a:49.999", "'a:49.999' is no arm"),
        ("", "'' is no arm"),
    ],
)
def test_wrong_arms_are_refused(text: str, says: str) -> None:
    with pytest.raises(AqePilotError, match=says.replace("+", "[+]")):
        parse_arms(text)


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(AqePilotError) as caught:
        parse_arms("a,b,c:10,c:10")
    assert len(caught.value.problems) == 3
