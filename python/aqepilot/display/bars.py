"""Where the marks of pictures stand, in units of their own; a template draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_COLUMNS = 120


class Bars(NamedTuple):
    """Bars beside each other, tallest allowed 100.

    Attributes:
        width: Of the whole picture.
        path: All bars, as a path of SVG.
        bad_path: Those that stand for a failure, to be drawn otherwise.
        median: Height of the median; null where there is none.
        columns: How many bars there are.
        per_column: What one bar stands for, so many each.
    """

    width: int
    path: str
    bad_path: str
    median: float | None
    columns: int
    per_column: int


class Part(NamedTuple):
    """A part of a stacked bar: where it begins, how long it is, its category and its meaning."""

    start: float
    length: float
    category: int
    title: str


def sizes(each: Sequence[int], most: int, median: int, width: int = 600) -> Bars:
    """Sorts sizes of partitions, largest first; of many, each bar is the largest of several.

    Args:
        each: The sizes.
        most: The largest.
        median: Their median.
        width: Of the picture.
    """
    ordered = sorted(each, reverse=True)
    per_column = -(-len(ordered) // _COLUMNS) or 1
    tops = ordered[::per_column]
    most = max(1, most)
    path = bars([100 * size / most for size in tops], width)
    return Bars(width, path, "", 100 * median / most, len(tops), per_column)


def bars(heights: Sequence[float], width: int) -> str:
    """Returns bars from a ground line at 100 as one path; no bar is wider than 24."""
    step = min(24.0, width / max(1, len(heights)))
    wide = max(step - 1, step * 0.8)
    return "".join(
        f"M{i * step:.1f} 100v{-max(height, 0.5):.1f}h{wide:.1f}V100z"
        for i, height in enumerate(heights)
        if height > 0
    )


def shares(counts: Sequence[tuple[str, int]]) -> list[Part]:
    """A bar of 100, parted as counts are; categories by their place.

    >>> [(part.start, part.length, part.title) for part in shares([("a", 1), ("b", 0), ("c", 3)])]
    [(0.0, 25.0, 'a: 1'), (25.0, 75.0, 'c: 3')]
    """
    whole = sum(count for _, count in counts) or 1
    parts: list[Part] = []
    start = 0.0
    for category, (name, count) in enumerate(counts):
        if count:
            length = 100 * count / whole
            parts.append(Part(start, length, category, f"{name}: {count:,}"))
            start += length
    return parts
