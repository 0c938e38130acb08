"""A stage's tasks laid out on another number of slots than it had.

It travels to executors by value, and needs nothing there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Layout(NamedTuple):
    """How long tasks take on some slots.

    Attributes:
        span_ms: From the first launch to the last end, milliseconds.
        waiting_ms: What slots waited for the last tasks, with nothing left to launch; a slot that
            never had a task does not count.
    """

    span_ms: int
    waiting_ms: int


def lay_out(durations: Iterable[int], slots: int) -> Layout:
    """Gives each task, in this order, to the slot that is free first, as Spark's scheduler does.

    Tasks keep their times, which is an estimate: with more of them at once each has less of the
    disks, the network and the memory, and a task's place, which Spark weighs, is not known.

    Args:
        durations: What each task kept a slot for, milliseconds, in the order of their launches.
        slots: How many there are, 1 or more.

    >>> lay_out([10, 10, 10, 40], slots=2)
    Layout(span_ms=50, waiting_ms=30)
    >>> lay_out([10, 10, 10, 40], slots=100)
    Layout(span_ms=40, waiting_ms=90)
    """
    if slots < 1:
        raise ValueError(f"there is no stage on {slots} slots: 1 or more.")
    free: list[int] = []
    for duration in durations:
        if len(free) < slots:
            heapq.heappush(free, duration)
        else:
            heapq.heapreplace(free, free[0] + duration)
    span = max(free, default=0)
    return Layout(span, sum(span - at for at in free))


def laid_out(durations: Sequence[int] | None, own: int | None, slots: int) -> list[int] | None:
    """Returns a stage's span on its own slots, and span and waiting on others; null as it is."""
    if durations is None or not own:
        return None
    return [lay_out(durations, own).span_ms, *lay_out(durations, slots)]
