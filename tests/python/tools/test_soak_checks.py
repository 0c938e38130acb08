"""What `make soak ARGS="--by drivers"` finds in records that are wrong. No driver runs here."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from places import TESTS

sys.path.append(str(TESTS))

from soak import checks

ABOUT = {0: {"policy": "driver_00", "job": "job_0", "spark": "4.3.0"}}
POINT = "shuffle_partitions"
WITHIN_S = 5.0


def write(reason: str, at: float, action: str, **selectors: str) -> dict[str, Any]:
    times = {"began": at, "ended": at + 0.1, "refused": None}
    return {"reason": reason, "action": action, "selectors": selectors, **times}


def logged(writes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [w | {"version": number} for number, w in enumerate(writes, 1)]


# All is on, from 100 on off for the driver's job, from 150 on again.
WRITES = [
    write("made", 0, "on"),
    write("ann 1", 100, "off", job="job_0"),
    write("bob 1", 110, "off", policy="another"),
    write("ann 2", 150, "on", job="job_0"),
]
FILE = checks.versions(WRITES, logged(WRITES))


def judged(mode: str, began: float, outages: tuple[checks.Outage, ...] = ()) -> checks.Judged:
    asked = checks.Asked(0, 7, POINT, mode, began, began + 0.2)
    return checks.judged([asked], ABOUT, FILE, WITHIN_S, outages)


@pytest.mark.parametrize(
    ("mode", "began", "is_wrong"),
    [
        ("enforce", 99, False),
        ("off", 99, True),
        ("enforce", 103, False),
        ("off", 103, False),
        ("enforce", 105.5, True),
        ("off", 105.5, False),
        ("shadow", 120, True),
        ("enforce", 149.9, False),
        ("off", 154, False),
        ("off", 155.5, True),
        ("enforce", 155.5, False),
    ],
)
def test_a_query_by_a_copy_that_is_too_old_is_found(
    mode: str, began: float, is_wrong: bool
) -> None:
    assert bool(judged(mode, began).wrong) == is_wrong


@pytest.mark.parametrize(("began", "is_wrong"), [(106, False), (112.9, False), (113.5, True)])
def test_a_file_that_cannot_be_read_is_read_later(began: float, is_wrong: bool) -> None:
    """From 102 to 108 there is no whole file: what was written at 100 is known by 113."""
    outage = checks.Outage("gone", 102, 108)
    assert bool(judged("enforce", began, (outage,)).wrong) == is_wrong


def test_it_is_told_by_how_much_the_copy_is_too_old() -> None:
    (late,) = judged("enforce", 103).oldest_s
    assert late == pytest.approx(2.9)
    assert judged("off", 103).oldest_s == [0]


def test_a_write_that_is_not_in_the_log_is_found() -> None:
    assert checks.lost(WRITES, logged(WRITES)) == []
    assert "'bob 1' is not in the log" in checks.lost(WRITES, logged([*WRITES[:2], WRITES[3]]))[0]
    twice = checks.lost(WRITES, logged([*WRITES, WRITES[1]]))
    assert twice == ["the log has 'ann 1' more often than it was written"]
    anew = [w | {"version": n} for n, w in enumerate(WRITES, 3)]
    assert "versions" in checks.lost(WRITES, anew)[0]


def test_a_write_may_take_back_what_is_taken_back_and_is_refused_by_nothing_else() -> None:
    refused = write("ann 3", 160, "on") | {"refused": ["CONTROL_RULE_UNKNOWN"]}
    assert checks.lost([*WRITES, refused], logged(WRITES)) == []
    refused["refused"] = ["CONTROL_INVALID"]
    assert checks.lost([*WRITES, refused], logged(WRITES)) == [
        "a writer was refused with CONTROL_INVALID"
    ]


def lines(partitions: int, error: str | None = None, **decision: Any) -> list[dict[str, Any]]:
    query = {"query": 7, "began": 1.0, "ended": 2.0, "error": error, "partitions": partitions}
    made = {"execution_id": 3, "point": POINT, "mode": "enforce", "applied": True} | decision
    return [query, {"decisions": [{"reason": "APPLIED", "query": "7"} | made] * bool(decision)}]


@pytest.mark.parametrize(
    ("written", "modes", "wrong"),
    [
        (lines(2, mode="enforce"), ["enforce"], ""),
        (lines(4, mode="shadow", applied=False), ["shadow"], ""),
        (lines(4), ["off"], ""),
        (lines(2), ["off"], "recorded as not applied, and the plan has a shuffle of 2"),
        (lines(4, mode="enforce"), ["enforce"], "recorded as applied, and the plan has"),
        (lines(4, applied=False, reason="EVALUATION_DEADLINE"), ["enforce"], "EVALUATION_DEADLINE"),
        (lines(4, error="Py4JError: out of memory"), [], "failed: Py4JError: out of memory"),
    ],
)
def test_what_a_driver_wrote_is_read(
    written: list[dict[str, Any]], modes: list[str], wrong: str
) -> None:
    asked, queries, problems = checks.of_driver(0, written, [POINT])
    assert [one.mode for one in asked] == modes
    assert len(queries) == 1
    assert [wrong in problem for problem in problems] == [True] * bool(wrong)
