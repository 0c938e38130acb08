"""What an autopilot tries, for people and programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aqepilot.analysis.intervals import Interval, interval, percent
from aqepilot.autopilot import learned
from aqepilot.autopilot.state import Event, State, Trial

if TYPE_CHECKING:
    from aqepilot.analysis.prices import Prices
    from aqepilot.autopilot.definition import Definition

HEAD = ("Trial", "Job", "Tries", "State", "Share", "Effect", "Days left", "Saved", "Why")
LEARNED_HEAD = ("Shape", "Recipe", "Tries", "Kept", "Median effect")
_HOUR = 3_600_000


def effect(trial: Trial) -> str:
    """Returns the effect with its interval.

    An ended trial has that of its last phase, a promoted one the hold-out's.
    """
    figures = trial.figures
    if figures.effect is None:
        return "not known yet" if trial.effect is None else f"{percent(trial.effect)} when promoted"
    lower = -math.inf if figures.lower is None else figures.lower
    upper = math.inf if figures.upper is None else figures.upper
    runs = figures.control + figures.treatment
    return interval(Interval(runs, figures.effect, lower, upper))


def hours(ms: float) -> str:
    """Returns a time as hours.

    >>> hours(5_400_000)
    '1.5 h'
    """
    return f"{ms / _HOUR:,.1f} h"


def saved_ms(trial: Trial) -> float:
    """Returns what a trial saved in all its phases, negative for what it cost."""
    return trial.saved_ms - trial.harm_ms + trial.figures.saved_ms


def state_word(trial: Trial) -> str:
    """Returns where a trial is, with what a person did to it."""
    marks = [
        mark for mark, holds in (("held", trial.is_held), ("pinned", trial.is_pinned)) if holds
    ]
    word = "taken back" if trial.is_over and trial.number is not None else trial.phase
    return ", ".join([word, *marks])


def days_left(trial: Trial, definition: Definition | None, day: float) -> float | None:
    """Returns until when an experiment has a result at the latest; null for no such end.

    Args:
        trial: The trial.
        definition: It has the most days; null where it is not at hand.
        day: The day of the newest look, since the epoch.
    """
    if trial.phase != "experiment" or definition is None:
        return None
    return max(0.0, definition.most_days - (day - trial.since))


def data(
    state: State,
    definition: Definition | None = None,
    prices: Prices | None = None,
) -> list[dict[str, Any]]:
    """Returns a row for each trial: those that go on first, then the newest that ended.

    Args:
        state: The state.
        definition: For the days that are left; null for none.
        prices: For money; null for none.
    """
    trials = sorted(state.trials.values(), key=lambda trial: (trial.is_over, -trial.since))
    rows = []
    for trial in trials:
        saved = saved_ms(trial)
        rows.append(
            {
                "trial": trial.id,
                "job": trial.job,
                "recipe": trial.candidate.recipe,
                "shape": trial.candidate.shape,
                "state": state_word(trial),
                "share": trial.share,
                "effect": trial.figures.effect,
                "lower": trial.figures.lower,
                "upper": trial.figures.upper,
                "days_left": days_left(trial, definition, state.day),
                "saved_ms": saved,
                "saved": prices.cost(saved) if prices else None,
                "currency": prices.currency if prices else None,
                "reason": trial.reason,
                "detail": trial.detail,
                "effect_text": effect(trial),
            }
        )
    return rows


def rows(listed: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Returns lines of a table with `HEAD`."""
    return [
        (
            row["trial"],
            row["job"],
            row["recipe"],
            row["state"],
            f"{row['share']:g} %",
            row["effect_text"],
            "" if row["days_left"] is None else f"{row['days_left']:.0f}",
            hours(row["saved_ms"])
            + ("" if row["saved"] is None else f" ({row['saved']:,.2f} {row['currency']})"),
            row["reason"] + (f": {row['detail']}" if row["detail"] else ""),
        )
        for row in listed
    ]


def learned_rows(state: State) -> list[tuple[str, ...]]:
    """Returns lines of a table with `LEARNED_HEAD`."""
    return [
        (
            row.shape,
            row.recipe,
            str(row.tries),
            str(row.kept),
            "" if row.effect is None else percent(row.effect),
        )
        for row in learned.table(state.trials.values())
    ]


def logged(events: Sequence[Event]) -> list[tuple[str, ...]]:
    """Returns lines of events: when, the look, the trial, the step, why, and who."""
    return [
        (
            f"{event.at:%Y-%m-%d %H:%M}",
            event.look,
            event.trial,
            event.step,
            event.reason + (f": {event.detail}" if event.detail else ""),
            event.by,
        )
        for event in events
    ]
