"""A stage's tasks on other numbers of slots: bounds that hold for any order of tasks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqepilot.analysis.slots import Layout, laid_out, lay_out

TASKS = st.lists(st.integers(0, 10_000), min_size=1, max_size=60)


def test_a_long_last_task_costs_more_on_more_slots() -> None:
    """What a log of a small cluster says of a large one."""
    tasks = [1000] * 99 + [60_000]
    spans = {slots: lay_out(tasks, slots) for slots in (1, 2, 20, 100)}
    assert spans[1] == Layout(159_000, 0)
    assert spans[2] == Layout(109_000, 59_000)
    assert spans[20] == Layout(64_000, 19 * 59_000 + 0)
    assert spans[100] == Layout(60_000, 99 * 59_000)


@given(TASKS, st.integers(1, 80))
def test_no_layout_is_shorter_than_its_work_or_its_longest_task(
    tasks: list[int], slots: int
) -> None:
    layout = lay_out(tasks, slots)
    used = min(slots, len(tasks))
    assert max(max(tasks), sum(tasks) / used) <= layout.span_ms
    # Graham's bound for tasks that are launched as slots get free.
    assert layout.span_ms <= sum(tasks) / used + (1 - 1 / used) * max(tasks) + 1e-6
    assert layout.waiting_ms == used * layout.span_ms - sum(tasks)


def test_what_is_not_known_stays_so() -> None:
    assert laid_out(None, None, 4) is None
    assert laid_out([], 0, 4) is None
    assert laid_out([5, 5], 1, 4) == [10, 5, 0]
    with pytest.raises(ValueError, match="1 or more"):
        lay_out([1], 0)
