"""Whether two runs of a query gave the same rows: in any order, floating-point numbers nearly."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

# Sums of floating-point numbers differ with the order of their rows.
_RELATIVE, _ABSOLUTE = 1e-6, 1e-9


def same_rows(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two results are the same multiset of rows.

    >>> same_rows([(1, 0.1 + 0.2), (2, None)], [(2, None), (1, 0.3)])
    True
    >>> same_rows([(1,), (1,)], [(1,), (2,)])
    False
    """
    if len(one) != len(other):
        return False
    return all(map(_same, sorted(one, key=_order), sorted(other, key=_order)))


def _order(value: Any) -> tuple[str, str]:
    """What is exact first: numbers that are nearly the same must not part equal rows."""
    exact, floats = _parts(value)
    return repr(exact), repr([float(f"{number:.4e}") for number in floats])


def _parts(value: Any) -> tuple[list[Any], list[float]]:
    if isinstance(value, float):
        return [], [value]
    if isinstance(value, dict):
        value = sorted(value.items(), key=repr)
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, bytearray)):
        exact: list[Any] = []
        floats: list[float] = []
        for item in value:
            own_exact, own_floats = _parts(item)
            exact.append(own_exact)
            floats += own_floats
        return exact, floats
    return [value], []


def _same(one: Any, other: Any) -> bool:
    (exact, floats), (other_exact, other_floats) = _parts(one), _parts(other)
    return (
        exact == other_exact
        and len(floats) == len(other_floats)
        and all(map(_close, floats, other_floats))
    )


def _close(one: float, other: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(
        one, other, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE
    )
