"""Are these the same rows? Multisets, floats with a tolerance."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

SHOWN = 5


def assert_same_rows(
    actual: Iterable[Any],
    expected: Iterable[Any],
    *,
    rel_tol: float = 1e-9,
    numbers_alike: bool = False,
    ordered: bool = False,
) -> None:
    """Fails, naming the rows that differ, unless both are the same multiset of rows.

    Floats may differ by ``rel_tol``; all else must be equal, decimals and nulls included.
    ``numbers_alike`` compares every number as a float: for an oracle whose types are not Spark's.
    ``ordered`` compares row by row, as for a sorted result.

    >>> assert_same_rows([(1, None), (2, 0.1 + 0.2)], [(2, 0.3), (1, None)])
    >>> assert_same_rows([(1,), (1,)], [(1,)])
    Traceback (most recent call last):
    AssertionError: rows differ: 2 here, 1 expected
      only here (1): (1,)
    """
    left = [_plain(row, numbers_alike) for row in actual]
    right = [_plain(row, numbers_alike) for row in expected]
    here: list[Any]
    there: list[Any]
    if ordered and len(left) == len(right):
        pairs = [(a, b) for a, b in zip(left, right, strict=True) if not _close(a, b, rel_tol)]
        here, there = [a for a, _ in pairs], [b for _, b in pairs]
    else:
        here, there = _unmatched(left, right, rel_tol)
    if not here and not there:
        return
    lines = [f"rows differ: {len(left)} here, {len(right)} expected"]
    for title, rest in (("only here", here), ("only expected", there)):
        if rest:
            shown = "\n    ".join(repr(row) for row in rest[:SHOWN])
            lines.append(f"  {title} ({len(rest)}): {shown}")
    raise AssertionError("\n".join(lines))


def _plain(value: Any, numbers_alike: bool) -> Any:
    """Rows and arrays as tuples, maps as sorted pairs: comparable and hashable."""
    if isinstance(value, bool | str | date | None):
        return value
    if isinstance(value, int | Decimal):
        return float(value) if numbers_alike else value
    if isinstance(value, Mapping):
        pairs = [(_plain(k, numbers_alike), _plain(v, numbers_alike)) for k, v in value.items()]
        return tuple(sorted(pairs, key=repr))
    if isinstance(value, bytearray | bytes):
        return bytes(value)
    if isinstance(value, Sequence | set):
        return tuple(_plain(item, numbers_alike) for item in value)
    return value


def _unmatched(left: list[Any], right: list[Any], rel_tol: float) -> tuple[list[Any], list[Any]]:
    left_counts, right_counts = Counter(map(_key, left)), Counter(map(_key, right))
    if left_counts == right_counts and all(not _floats(row) for row in left):
        return [], []
    groups: dict[Any, tuple[list[Any], list[Any]]] = defaultdict(lambda: ([], []))
    for side, rows in enumerate((left, right)):
        for row in rows:
            groups[_key(row)][side].append(row)
    here: list[Any] = []
    there: list[Any] = []
    for ours, theirs in groups.values():
        rest_ours, rest_theirs = _pair_off(ours, theirs, rel_tol)
        here += rest_ours
        there += rest_theirs
    return here, there


def _pair_off(ours: list[Any], theirs: list[Any], rel_tol: float) -> tuple[list[Any], list[Any]]:
    """Pairs rows that agree in all but their floats."""
    ours, theirs = sorted(ours, key=_floats), sorted(theirs, key=_floats)
    if len(ours) == len(theirs) and all(
        _close(a, b, rel_tol) for a, b in zip(ours, theirs, strict=True)
    ):
        return [], []
    rest = list(theirs)
    unpaired = []
    for row in ours:
        match = next((i for i, other in enumerate(rest) if _close(row, other, rel_tol)), None)
        if match is None:
            unpaired.append(row)
        else:
            rest.pop(match)
    return unpaired, rest


def _key(value: Any) -> Any:
    """The value without its floats; types kept apart, so that 1 is not True and not 1.0."""
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    if isinstance(value, float):
        return float
    return (type(value), value)


def _floats(value: Any) -> tuple[tuple[bool, float], ...]:
    """The floats of a row in their order; NaN sorts last."""
    if isinstance(value, tuple):
        return tuple(number for item in value for number in _floats(item))
    if isinstance(value, float):
        return ((math.isnan(value), 0.0 if math.isnan(value) else value),)
    return ()


def _close(a: Any, b: Any, rel_tol: float) -> bool:
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_close(x, y, rel_tol) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        both_nan = math.isnan(a) and math.isnan(b)
        return both_nan or math.isclose(a, b, rel_tol=rel_tol, abs_tol=rel_tol)
    return bool(_key(a) == _key(b))
