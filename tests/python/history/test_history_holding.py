"""History that proved slower is held, for longer each time, and nothing goes back and forth."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import pytest

from aqepilot.history.holding import DAY_MS, Name, Run, holds

JOIN, SHUFFLE = Name("SAME", 1), Name("SHAPE", -2)
HOUR_MS = DAY_MS // 24


def run(day: float, task_ms: int | None = 1000, *decided: Name, size: int | None = 100) -> Run:
    return Run(int(day * DAY_MS), task_ms, size, has_failed=False, decided=decided)


def failed(day: float, *decided: Name) -> Run:
    return Run(int(day * DAY_MS), None, None, has_failed=True, decided=decided)


def until(runs: list[Run], slower: float = 1.2) -> dict[Name, float]:
    return {Name(*h[:2]): h.until_ms / DAY_MS for h in holds(runs, slower)}


PLAIN = [run(0), run(1), run(2)]


def test_a_run_that_is_slower_holds_all_that_it_decided_on() -> None:
    assert until([*PLAIN, run(3, 1300, JOIN, SHUFFLE)]) == {JOIN: 4.5, SHUFFLE: 4.5}
    (one, other) = holds([*PLAIN, run(3, 1300, JOIN, SHUFFLE)])
    assert one.reason == other.reason
    assert one.reason == (
        "1.3 times the task time of 3 runs without history: not used for 1 day of runs"
    )


@pytest.mark.parametrize(
    "later",
    [
        pytest.param(run(3, 1200, JOIN), id="as slow as is allowed"),
        pytest.param(run(3, 400, JOIN), id="faster"),
        pytest.param(run(3, 5000), id="history decided nothing"),
        pytest.param(run(3, 5000, JOIN, size=151), id="much more to read"),
        pytest.param(run(3, 5000, JOIN, size=66), id="much less to read"),
        pytest.param(run(3, 5000, JOIN, size=None), id="nobody knows what it read"),
        pytest.param(run(3, None, JOIN), id="nobody knows how long it took"),
    ],
)
def test_what_holds_nothing(later: Run) -> None:
    assert until([*PLAIN, later]) == {}


def test_a_little_query_is_not_judged_by_the_machine_s_mood() -> None:
    plain = [run(day, 50) for day in range(3)]
    assert until([*plain, run(3, 149, JOIN)]) == {}
    assert until([*plain, run(3, 150, JOIN)]) == {JOIN: 4.5}


def test_without_a_run_to_compare_with_only_a_failure_holds() -> None:
    assert until([run(0, 9000, JOIN)]) == {}
    (hold,) = holds([failed(0, JOIN)])
    assert hold.reason == "a run by it failed: not used for 1 day of runs"


def test_a_plain_run_that_failed_is_nothing_to_compare_with() -> None:
    assert until([failed(0), run(1, 9000, JOIN)]) == {}


def test_what_is_slower_is_asked() -> None:
    runs = [*PLAIN, run(3, 1500, JOIN)]
    assert until(runs, slower=1.6) == {}
    assert until(runs, slower=1.4) == {JOIN: 4.5}


def test_each_time_that_it_proves_slower_again_doubles() -> None:
    runs = list(PLAIN)
    day, days = 3.0, []
    for _ in range(5):
        runs.append(run(day, 2000, JOIN))
        end = until(runs)[JOIN]
        days.append(end - day - 0.5)
        held = range(int(day) + 1, int(end) + 1)
        runs += map(run, held)
        day = held[-1] + 1.0
    assert days == [1, 2, 4, 8, 16]


def test_a_run_that_is_not_slower_begins_anew() -> None:
    runs = [*PLAIN, run(3, 2000, JOIN), run(5, 2000, JOIN)]
    assert until(runs) == {JOIN: 7.5}
    runs.append(run(8, 900, JOIN))
    assert until(runs) == {}
    runs.append(run(9, 2000, JOIN))
    assert until(runs) == {JOIN: 10.5}


def test_only_what_a_run_decided_on_is_judged_by_it() -> None:
    runs = [*PLAIN, run(3, 2000, JOIN, SHUFFLE), run(5, 900, SHUFFLE)]
    assert until(runs) == {JOIN: 4.5}


def test_runs_before_the_next_pack_is_read_prove_nothing_again() -> None:
    """A query of each hour, and a pack of each night."""
    hourly = [run(3 + hour / 24, 2000, JOIN) for hour in range(24)]
    (hold,) = holds([*PLAIN, *hourly])
    assert hold.until_ms == 3 * DAY_MS + 23 * HOUR_MS + DAY_MS + DAY_MS // 2
    assert "for 1 day of runs" in hold.reason


def test_a_weekly_query_is_held_for_weeks() -> None:
    weekly = [run(7 * week) for week in range(3)]
    assert until([*weekly, run(21, 2000, JOIN)]) == {JOIN: 21 + 7 + 3.5}


def test_a_run_is_compared_with_those_near_in_time() -> None:
    """The machine got slower: what was fast a month ago is no measure."""
    before = [run(day, 1000) for day in range(10)]
    after = [run(day, 2000) for day in range(30, 36)]
    assert until([*before, *after, run(36, 2100, JOIN)]) == {}
    assert until([*before, *after, run(36, 2500, JOIN)]) == {JOIN: 37.5}


def test_a_run_that_was_blamed_for_a_slow_machine_is_cleared() -> None:
    runs = [*PLAIN, run(3, 2000, JOIN)]
    assert until(runs) == {JOIN: 4.5}
    runs += [run(4, 2000), run(4.2, 2000), run(4.4, 2000)]
    assert until(runs) == {}


def test_the_order_in_which_runs_are_read_makes_no_difference() -> None:
    runs = [*PLAIN, run(3, 2000, JOIN), run(5, 2000, SHUFFLE, JOIN), failed(6, SHUFFLE)]
    assert holds(runs) == holds(runs[::-1])


class Day(NamedTuple):
    """A simulated day: what a plain run and a run by history take, and what both read."""

    plain_ms: int
    decided_ms: int
    size: int


def simulated(days: int, of_day: Callable[[int], Day]) -> list[bool]:
    """Runs a query each day, with a new pack each night; returns on which days history decided.

    History decides from the second day on, but where the input is new to it, or it is held.
    """
    runs: list[Run] = []
    decided = []
    for day in range(days):
        plain_ms, decided_ms, size = of_day(day)
        now = day * DAY_MS
        is_held = any(hold.until_ms >= now for hold in holds(runs))
        seen = [one for one in runs[-10:] if 0.5 * size <= (one.input_bytes or 0) <= 2 * size]
        by_history = len(seen) >= 2 and not is_held
        decided.append(by_history)
        names = (JOIN,) if by_history else ()
        runs.append(run(day, decided_ms if by_history else plain_ms, *names, size=size))
    return decided


@pytest.mark.parametrize(
    ("of_day", "first", "most_bad"),
    [
        pytest.param(lambda day: Day(1000, 600, 100), 2, 0, id="it helps"),
        pytest.param(lambda day: Day(1000, 2000, 100), 2, 7, id="it harms"),
        pytest.param(
            lambda day: Day(10 * (100 + 3 * day), 20 * (100 + 3 * day), 100 + 3 * day), 2, 7,
            id="it harms, and inputs grow",
        ),
        pytest.param(
            lambda day: Day(10 * (400 - 3 * day), 20 * (400 - 3 * day), 400 - 3 * day), 2, 7,
            id="it harms, and inputs shrink",
        ),
        pytest.param(
            lambda day: Day(1000, 600 if day < 30 else 2000, 100), 2, 6, id="it harms from a day on"
        ),
        pytest.param(
            lambda day: Day(1000, 600, 100) if day < 30 else Day(9000, 5000, 900), 2, 0,
            id="inputs become nine times as large",
        ),
    ],
)  # fmt: skip
def test_nothing_goes_back_and_forth(
    of_day: Callable[[int], Day], first: int, most_bad: int
) -> None:
    decided = simulated(90, of_day)
    assert decided.index(True) == first
    slower = [of_day(day).decided_ms > 1.2 * of_day(day).plain_ms for day in range(90)]
    bad = [day for day in range(90) if decided[day] and slower[day]]
    assert len(bad) <= most_bad
    gaps = [later - earlier for earlier, later in pairwise(bad)]
    assert gaps == sorted(gaps)
    if not most_bad:
        assert decided.count(False) <= 4
