"""Where the marks of a report's pictures stand, in units of their own; the template draws them.

Colours go by names. Each category has a pattern, too, so that nobody needs the colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aqepilot import texts
from aqepilot.analysis.report.values import Joins, Run, Shuffle
from aqepilot.decision import FATES
from aqepilot.display.bars import Bars, Part, bars, shares, sizes

__all__ = ["CATEGORIES", "FATES", "PALETTE", "Part", "joins", "partitions", "runs", "shares"]

# Text on the grounds has a contrast of 4.5 or more, marks 3 or more, in both schemes: WCAG 2.2 AA.
PALETTE = {
    "light": {
        "ground": "#ffffff", "panel": "#f5f6f8", "text": "#1b1f24", "soft": "#57606a",
        "line": "#d5d9de", "link": "#0b5cad", "bad": "#b42318", "mark": "#2f6fb5",
        "c0": "#2f6fb5", "c1": "#b35900", "c2": "#2e7d4f", "c3": "#8a4fa8", "c4": "#a6334f",
        "c5": "#6b7480", "c6": "#7a6a00",
    },
    "dark": {
        "ground": "#14171b", "panel": "#1d2127", "text": "#e8eaed", "soft": "#a3acb8",
        "line": "#363c45", "link": "#7db8f5", "bad": "#ff8a7a", "mark": "#5b9be0",
        "c0": "#5b9be0", "c1": "#e0924a", "c2": "#5cb585", "c3": "#bd8ad6", "c4": "#e3778f",
        "c5": "#9aa4b2", "c6": "#c9b458",
    },
}  # fmt: skip
CATEGORIES = 7
_MOST_STRATEGIES = 5


class Stack(NamedTuple):
    """A stacked bar: where it stands, how wide it is, and its parts."""

    at: float
    width: float
    label: str
    parts: list[Part]


class Stacks(NamedTuple):
    """Stacked bars over time.

    Attributes:
        names: The categories, by number.
        stacks: The bars, by time.
        most: What the tallest stands for.
    """

    names: list[str]
    stacks: list[Stack]
    most: int


def partitions(shuffle: Shuffle, width: int = 600) -> Bars:
    """Sorts a shuffle's partitions, largest first; of many, each bar is the largest of several.

    Args:
        shuffle: With the sizes of its partitions.
        width: Of the picture.
    """
    return sizes(shuffle.bytes_by_partition_id, shuffle.max_bytes, shuffle.median_bytes, width)


def runs(newest: Sequence[Run], width: int = 600) -> Bars:
    """A bar for each run of a query, as tall as it was long; failed ones apart."""
    most = max((run.wall_ms or 0 for run in newest), default=0) or 1
    heights = [100 * (run.wall_ms or 0) / most for run in newest]
    bad = [run.succeeded is False for run in newest]
    good_path = bars([0 if b else h for h, b in zip(heights, bad, strict=True)], width)
    # Also a query that failed at once is to be seen.
    bad_path = bars([max(h, 4) if b else 0 for h, b in zip(heights, bad, strict=True)], width)
    return Bars(width, good_path, bad_path, None, len(newest), 1)


def joins(counts: Joins, width: int = 900) -> Stacks:
    """Stacks joins by strategy; beyond five strategies, the rest is one.

    Args:
        counts: Joins of the final plans by time.
        width: Of the picture.
    """
    by_name: dict[str, int] = {}
    for _, _, name, count in counts.counts:
        by_name[name] = by_name.get(name, 0) + count
    ordered = sorted(by_name, key=lambda name: (-by_name[name], name))
    names = ordered[:_MOST_STRATEGIES] + (["others"] if len(ordered) > _MOST_STRATEGIES else [])
    table: dict[tuple[int, str], dict[str, int]] = {}
    for at, label, name, count in counts.counts:
        row = table.setdefault((at, label), dict.fromkeys(names, 0))
        row[name if name in row else "others"] += count
    most = max((sum(row.values()) for row in table.values()), default=0)
    times = sorted(at for at, _ in table)
    slots = (times[-1] - times[0]) / counts.unit_ms + 1 if times else 1
    wide = min(60.0, width / slots)
    stacks = []
    for (at, label), row in sorted(table.items()):
        parts: list[Part] = []
        start = 0.0
        for category, name in enumerate(names):
            if row[name]:
                title = f"{label}, {name}: {texts.plural(row[name], 'join')}"
                parts.append(Part(start, 100 * row[name] / most, category, title))
                start += 100 * row[name] / most
        stacks.append(Stack((at - times[0]) / counts.unit_ms * wide, wide * 0.86, label, parts))
    return Stacks(names, stacks, most)
