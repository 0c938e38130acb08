"""Which signatures are held: history of them is not used, as a run that it decided was slower.

It travels to executors by value, and needs nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import median
from typing import NamedTuple

DAY_MS = 86_400_000
# A run is compared with so many that history did not decide, those nearest in time.
_NEAREST = 5
# Inputs that are alike: by the input of the run over that of the other.
_ALIKE = (0.67, 1.5)
# Less task time than that is the machine's mood.
_LEAST_MS = 100
_MOST_DOUBLINGS = 9


class Name(NamedTuple):
    """A signature in one of its forms.

    Attributes:
        form: `SAME` or `SHAPE`.
        signature: Its 8 bytes as a signed number.
    """

    form: str
    signature: int


class Run(NamedTuple):
    """A run of a query.

    Attributes:
        end_ms: When it ended, milliseconds since 1970.
        task_ms: Run time of its tasks, milliseconds; null where it is not known.
        input_bytes: What it read, as stored; null where it is not known.
        has_failed: Whether it failed.
        decided: What a policy decided on by history, with the decision in force; empty for a run
            that history decided nothing in.
    """

    end_ms: int
    task_ms: int | None
    input_bytes: int | None
    has_failed: bool
    decided: Sequence[Name]


class Hold(NamedTuple):
    """A signature whose history is not used.

    Attributes:
        form: As in `Name`.
        signature: Likewise.
        run_ms: When the run ended that proved slower, milliseconds since 1970.
        until_ms: Until when it is held.
        reason: Why.
    """

    form: str
    signature: int
    run_ms: int
    until_ms: int
    reason: str


def holds(runs: Iterable[Run], slower: float = 1.2) -> list[Hold]:
    """Returns what the runs of one query hold, by those that history decided.

    A run that failed, or took `slower` times the task time of runs on similar input that history
    did not decide, holds each signature that it decided on: for a day of the query's runs, and for
    twice as long each time that it proves slower after that. A run that is not slower ends it. A
    run that nothing is comparable with changes nothing.

    Args:
        runs: All runs of the query that are known, in any order.
        slower: How many times as long is slower, above 1.

    >>> name = Name("SAME", 7)
    >>> plain = [Run(day * DAY_MS, 1000, 10, False, ()) for day in range(3)]
    >>> (hold,) = holds([*plain, Run(3 * DAY_MS, 2000, 10, False, [name])])
    >>> hold.until_ms / DAY_MS, hold.reason
    (4.5, '2.0 times the task time of 3 runs without history: not used for 1 day of runs')
    """
    ordered = sorted(runs, key=lambda run: (run.end_ms, run.task_ms or 0))
    plain = [run for run in ordered if not run.decided and not run.has_failed]
    between_ms = _between_days(ordered)
    times: dict[Name, int] = {}
    latest: dict[Name, Hold] = {}
    for run in ordered:
        complaint = _complaint(run, plain, slower) if run.decided else None
        if complaint is None:
            continue
        for name in {Name(*one) for one in run.decided}:
            before = latest.pop(name, None)
            if not complaint:
                times.pop(name, None)
                continue
            # Runs until the next pack is read do not prove it again.
            if before is None or run.end_ms > before.until_ms:
                times[name] = times.get(name, 0) + 1
            days = 2 ** min(times[name] - 1, _MOST_DOUBLINGS)
            # Half a day more: a run is not on the minute.
            until_ms = run.end_ms + days * between_ms + between_ms // 2
            unit = "day" if days == 1 else "days"
            reason = f"{complaint}: not used for {days} {unit} of runs"
            latest[name] = Hold(*name, run.end_ms, until_ms, reason)
    return [latest[name] for name in sorted(latest)]


def _complaint(run: Run, plain: Sequence[Run], slower: float) -> str | None:
    """Returns what speaks against a run; empty for nothing, null where nobody can say."""
    if run.has_failed:
        return "a run by it failed"
    alike = [other for other in plain if _are_alike(run, other)]
    nearest = sorted(alike, key=lambda other: abs(other.end_ms - run.end_ms))[:_NEAREST]
    usual = [other.task_ms for other in nearest if other.task_ms is not None]
    if run.task_ms is None or not usual:
        return None
    usual_ms = median(usual)
    if run.task_ms <= slower * usual_ms or run.task_ms - usual_ms < _LEAST_MS:
        return ""
    ratio = run.task_ms / max(usual_ms, 1)
    noun = "run" if len(usual) == 1 else "runs"
    return f"{ratio:.1f} times the task time of {len(usual)} {noun} without history"


def _are_alike(run: Run, other: Run) -> bool:
    if other.task_ms is None or run.input_bytes is None or other.input_bytes is None:
        return False
    least, most = _ALIKE
    return least * other.input_bytes <= run.input_bytes <= most * other.input_bytes


def _between_days(ordered: Sequence[Run]) -> int:
    """Returns what lies between the days of a query's runs, milliseconds: a day or more."""
    days = sorted({run.end_ms // DAY_MS for run in ordered})[-10:]
    gaps = [later - earlier for earlier, later in pairwise(days)]
    return int(median(gaps) * DAY_MS) if gaps else DAY_MS


def held_rows(runs: Sequence[Sequence[object]], slower: float) -> list[Hold]:
    """Returns the same of runs as Spark hands them to a function."""
    return holds([Run(*run) for run in runs], slower)  # type: ignore[arg-type]
