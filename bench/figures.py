"""Medians, spreads and paired ratios."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

# A title, a head and rows.
Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


class Spread(NamedTuple):
    """Of a series: its median, 10th and 90th percentile, and how many values it has."""

    median: float
    p10: float
    p90: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Returns the series' figures.

    >>> spread([1.0, 2.0, 3.0])
    Spread(median=2.0, p10=1.2, p90=2.8, count=3)
    """
    if len(values) < 2:
        return Spread(values[0], values[0], values[0], len(values))
    deciles = statistics.quantiles(values, n=10, method="inclusive")
    return Spread(statistics.median(values), deciles[0], deciles[-1], len(values))


def ratios(numerators: Sequence[float], to: Sequence[float]) -> list[float]:
    """Returns the ratio of each pair, one for each round."""
    return [a / b for a, b in zip(numerators, to, strict=True)]
