"""Which recipe helps which shape: a table of counts that a person can read."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from typing import NamedTuple

from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.state import Trial


class Learned(NamedTuple):
    """How a recipe did on a shape.

    Attributes:
        shape: The shape.
        recipe: The recipe.
        tries: Experiments that ended or led to a promotion.
        kept: Of these, promotions that still hold.
        effect: The median effect of the kept ones, on the logarithm; null without one.
    """

    shape: str
    recipe: str
    tries: int
    kept: int
    effect: float | None

    @property
    def chance(self) -> float:
        """The chance that the next try is kept: the mean of the Beta posterior of a flat prior."""
        return (self.kept + 1) / (self.tries + 2)


def table(trials: Iterable[Trial]) -> list[Learned]:
    """Returns a row for each shape and recipe that was tried, the best chance first.

    A trial that a person ended, that never had an experiment, or that still is in one, says
    nothing.

    >>> table([])
    []
    """
    tries: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        says_nothing = trial.is_over and trial.reason in _NOT_ITS_FAULT
        if trial.number is not None and trial.phase in ("promoted", "ended") and not says_nothing:
            key = (trial.candidate.shape, trial.candidate.recipe)
            tries.setdefault(key, []).append(trial)
    rows = []
    for (shape, recipe), tried in tries.items():
        kept = [trial for trial in tried if trial.phase == "promoted"]
        effects = [t.effect for t in kept if t.effect is not None]
        middle = statistics.median(effects) if effects else None
        rows.append(Learned(shape, recipe, len(tried), len(kept), middle))
    return sorted(rows, key=lambda row: (-row.chance, -row.tries, row.shape, row.recipe))


_NOT_ITS_FAULT = (
    *("TEAM_POLICY", "JOB_LEFT", "SKIPPED", "UNDONE", "BUDGET_SPENT", "NEVER_EXPOSED"),
    "DRAW_BROKEN",
)


def order(candidates: Iterable[Candidate], rows: Iterable[Learned]) -> list[Candidate]:
    """Returns candidates in the order in which they are worth a try.

    By the stake times the chance that the recipe is kept on that shape; equal ones stay in their
    order, which is that of the suggestions.
    """
    chances = {(row.shape, row.recipe): row.chance for row in rows}

    def worth(candidate: Candidate) -> tuple[float, float]:
        chance = chances.get((candidate.shape, candidate.recipe), 0.5)
        stake = candidate.stake_ms if math.isfinite(candidate.stake_ms) else 0.0
        return -chance * max(stake, 1.0), -chance

    return sorted(candidates, key=worth)
