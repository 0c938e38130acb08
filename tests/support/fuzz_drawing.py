"""What drawing a query is made of: relations with their columns, weights, texts that fit them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from fuzz_tables import COLUMNS, Profile

T = TypeVar("T")

# Draws from a strategy.
Draw = Callable[..., T]

# What a join may find at most, so that joins of joins stay small.
MAX_ROWS = 400

HINTS = ["BROADCAST", "MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"]

# What is kept of a relation: mostly little, so that names are hidden and two relations of one
# query can expose nothing in common though they read one table.
NARROW = [
    *[("k",)] * 3,
    *[("k", "n")] * 2,
    *(("k", "j"), ("n",), ("j",), ("k", "d", "x"), ("n", "day"), ("k", "j", "n", "d")),
    ("k", "n", "tags", "info"),
]


class Relation(NamedTuple):
    """What can stand after FROM.

    Attributes:
        sql: A name, or a query in parentheses.
        profile: How many rows a join on a key finds there.
        columns: Those that it has, of `COLUMNS`, in that order; k, j or n is among them.
    """

    sql: str
    profile: Profile
    columns: tuple[str, ...] = COLUMNS

    @property
    def all(self) -> str:
        return ", ".join(self.columns)

    @property
    def statement(self) -> str:
        """The relation as a statement."""
        return self.sql[1:-1] if self.sql.startswith("(") else f"SELECT {self.all} FROM {self.sql}"


Relations = st.SearchStrategy[Relation]


def weighted(weights: dict[st.SearchStrategy[T], int]) -> st.SearchStrategy[T]:
    """Draws from one of the strategies; `st.one_of` counts a repeated one once."""
    chances = [strategy for strategy, weight in weights.items() for _ in range(weight)]
    return st.sampled_from(chances).flatmap(lambda strategy: strategy)


def one_in(draw: Draw[int], n: int) -> bool:
    return draw(st.integers(0, n - 1)) == n - 1


def one_of(draw: Draw[T], values: Sequence[T]) -> T:
    return values[draw(st.integers(0, len(values) - 1))]


def in_order(columns: Iterable[str]) -> tuple[str, ...]:
    """The columns in the order of the tables'."""
    chosen = set(columns)
    return tuple(c for c in COLUMNS if c in chosen)


def fitting(texts: Iterable[str], **sides: Sequence[str]) -> list[str]:
    """Of the texts those that name no column that a side lacks.

    >>> fitting(["a.k = b.k", "a.n > 3", "true"], a=["n"], b=["k", "n"])
    ['a.n > 3', 'true']
    """
    return [text for text in texts if _fits(text, sides)]


def _fits(text: str, sides: dict[str, Sequence[str]]) -> bool:
    return all(c in sides[s] for s, c in _names(text) if s in sides)


_NAMES: dict[str, list[tuple[str, str]]] = {}


def _names(text: str) -> list[tuple[str, str]]:
    if text not in _NAMES:
        _NAMES[text] = re.findall(r"\b([a-z])\.(\w+)", text)
    return _NAMES[text]


def kept(draw: Draw[int], columns: Sequence[str]) -> tuple[str, ...]:
    """Draws which columns are kept: all, or few."""
    narrow = [
        chosen
        for names in NARROW
        if {"k", "j", "n"} & set(chosen := in_order({*names} & {*columns}))
    ]
    if not narrow or draw(st.integers(0, 9)) < 4:
        return in_order(columns)
    return one_of(draw, narrow)
