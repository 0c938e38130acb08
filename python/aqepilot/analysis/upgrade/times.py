"""How task times of two sets of runs compare, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scipy import stats  # type: ignore[import-untyped,unused-ignore]

# Runs of less are noise of the clock.
_LEAST_MS = 1.0


class Difference(NamedTuple):
    """The task times after, over those before.

    Attributes:
        ratio: Of the geometric means; null without runs on both sides.
        lower: Where the ratio may be, 95 % of the time; null below two runs on a side.
        upper: Its upper end; null likewise.
        p: Probability of so large a difference if there were none, of all queries together (Holm);
            null likewise.
    """

    ratio: float | None
    lower: float | None
    upper: float | None
    p: float | None

    def is_worse(self, margin: float) -> bool:
        """Whether it is surely slower, and by more than this share."""
        return self.p is not None and self.p < 0.05 and (self.ratio or 0) > 1 + margin

    def is_better(self, margin: float) -> bool:
        """Whether it is surely faster, and by more than this share."""
        return self.p is not None and self.p < 0.05 and (self.ratio or 9) < 1 / (1 + margin)


def difference(before: Sequence[float], after: Sequence[float]) -> Difference:
    """Compares two sets of runs by Welch's t-test of the logarithms of their times.

    Args:
        before: Milliseconds.
        after: Milliseconds.

    >>> slower = difference([100, 110, 95, 105], [205, 200, 210, 190])
    >>> round(slower.ratio, 1), slower.p < 0.001
    (2.0, True)
    >>> difference([100], [200]).p is None
    True
    """
    logs = [[math.log(max(_LEAST_MS, ms)) for ms in side] for side in (before, after)]
    if not all(logs):
        return Difference(None, None, None, None)
    shift = sum(logs[1]) / len(logs[1]) - sum(logs[0]) / len(logs[0])
    if min(map(len, logs)) < 2:
        return Difference(math.exp(shift), None, None, None)
    if len(set(logs[0])) == len(set(logs[1])) == 1:
        # Without any noise nothing is known of it.
        return Difference(math.exp(shift), None, None, 1.0 if shift == 0 else None)
    test = stats.ttest_ind(logs[1], logs[0], equal_var=False)
    within = test.confidence_interval(0.95)
    return Difference(
        *(math.exp(shift), math.exp(float(within.low)), math.exp(float(within.high))),
        float(test.pvalue),
    )


def together(differences: Iterable[Difference]) -> list[Difference]:
    """Returns them with the p that holds for all of them together, as Holm has it.

    Of so many queries that are as they were, one looks worse by chance: with this p, all of them
    are right in 95 of 100 comparisons.

    >>> [one.p for one in together([Difference(1.5, 1.4, 1.6, 0.01), Difference(1, 0.9, 1.1, 0.5)])]
    [0.02, 0.5]
    """
    listed = list(differences)
    order = sorted((one.p, i) for i, one in enumerate(listed) if one.p is not None)
    running = 0.0
    for rank, (p, i) in enumerate(order):
        running = max(running, min(1.0, p * (len(order) - rank)))
        listed[i] = listed[i]._replace(p=running)
    return listed


def sureness(before: int, before_all: int, after: int, after_all: int) -> float:
    """Returns the probability of so unequal shares of runs if both were alike (Fisher's test).

    Args:
        before: Runs with an outcome.
        before_all: All runs.
        after: The same of the other side.
        after_all: All its runs.

    >>> round(sureness(5, 5, 0, 5), 4)
    0.0079
    """
    table = [[before, before_all - before], [after, after_all - after]]
    return float(stats.fisher_exact(table)[1])
