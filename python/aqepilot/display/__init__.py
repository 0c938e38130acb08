"""How values show themselves: as tables in a terminal, and as HTML in a notebook.

What is shown is a `Table`, a `Lines` or a `Picture`. A notebook gets them through `html`, which
escapes all that is in them; a terminal gets tables through `text`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import Any, ClassVar, SupportsIndex, TypeVar, overload

from aqepilot import texts
from aqepilot.display.bars import Bars, Part
from aqepilot.errors import AqePilotError

T = TypeVar("T")
_LONG = 120
_SUMMARY = 60
_MOST_FOLDED = 6000
# What a person reads, and what a notebook keeps in its file.
_MOST_ROWS = 100
_MOST_LINES = 40
_WIDTH = 120
# No shorter word is broken, where the terminal is wide enough.
_WORD = 8


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: What stands above it.
        is_number: Whether it has numbers, which stand to the right.
        in_terminal: Whether a terminal shows it, too; a notebook has more room.
    """

    name: str
    is_number: bool = False
    in_terminal: bool = True


@dataclass(frozen=True)
class Folded:
    """A long text of which a notebook shows a summary until a person unfolds it."""

    kind: ClassVar[str] = "folded"
    summary: str
    text: str

    def __post_init__(self) -> None:
        more = len(self.text) - _MOST_FOLDED
        if more > 0:
            bounded = f"{self.text[:_MOST_FOLDED]}… ({more:,} more characters)"
            object.__setattr__(self, "text", bounded)


@dataclass(frozen=True)
class Share:
    """A part of a whole, as a bar beside its text."""

    kind: ClassVar[str] = "share"
    part: float
    whole: float
    text: str


Cell = str | Folded | Share


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        caption: What it is.
        columns: Its columns.
        rows: A cell for each column; null shows nothing.
        parts: A bar above it that says how its rows are parted; empty for none.
        names: What the categories of `parts` are called, in their order.
        note: A sentence below it; empty for none.
    """

    kind: ClassVar[str] = "table"
    caption: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | None]]
    parts: Sequence[Part] = ()
    names: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Lines:
    """Sentences: a heading, and a line for each further one."""

    kind: ClassVar[str] = "lines"
    heading: str
    lines: Sequence[str] = ()


@dataclass(frozen=True)
class Picture:
    """Bars with a title, which says in words what they show."""

    kind: ClassVar[str] = "picture"
    title: str
    bars: Bars
    most: str
    median: str


Shown = Table | Lines | Picture


def folded(text: str | None, most: int = _LONG) -> Cell | None:
    """Returns a text, folded where it is long or has several lines.

    Args:
        text: Null for none.
        most: How many characters are not long.

    >>> folded("short"), folded("a" * 200).summary
    ('short', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…')
    """
    if text is None or (len(text) <= most and "\n" not in text.strip()):
        return text
    line = " ".join(text[: 4 * _SUMMARY].split())
    summary = line if len(line) <= _SUMMARY else f"{line[:_SUMMARY]}…"
    return Folded(summary, text)


def indented(value: Any) -> str:
    """Returns a value as JSON over several lines; of a long array of numbers, its begin.

    >>> print(indented({"a": list(range(100)), "b": None}))
    {
     "a": "100 numbers: 0, 1, 2, 3, 4, 5, 6, 7, …",
     "b": null
    }
    """

    def short(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: short(item) for key, item in part.items()}
        if not isinstance(part, list):
            return part
        if len(part) > 20 and all(isinstance(item, (int, float)) for item in part):
            return f"{len(part):,} numbers: {', '.join(map(str, part[:8]))}, …"
        return [short(item) for item in part]

    return json.dumps(short(value), indent=1, ensure_ascii=False)


def html(*shown: Shown) -> str | None:
    """Returns HTML for a notebook; null where there is no jinja2, so that it shows the text."""
    from aqepilot.display.templating import environment

    try:
        template = environment().get_template("notebook.html.jinja")
    except AqePilotError:
        return None
    return str(template.render(parts=shown))


def text(table: Table) -> str | None:
    """Returns a table as a terminal shows it; null where there is no rich."""
    try:
        from rich.console import Console
        from rich.table import Table as Drawn
        from rich.text import Text
    except ImportError:
        return None
    drawn = Drawn(box=None, pad_edge=False)
    columns = []
    for i, column in enumerate(table.columns):
        if column.in_terminal:
            cells = [_plain(row[i]) for row in table.rows]
            columns.append(cells)
            words = (word for cell in (column.name, *cells) for word in cell.split())
            drawn.add_column(
                Text(column.name),
                justify="right" if column.is_number else "left",
                overflow="fold",
                min_width=min(_WORD, max(map(len, words), default=1)),
            )
    for line in zip(*columns, strict=True):
        drawn.add_row(*map(Text, line))
    out = io.StringIO()
    width = get_terminal_size((_WIDTH, 24)).columns
    console = Console(file=out, width=width, color_system=None, force_jupyter=False)
    console.print(Text(texts.visible(table.caption)), soft_wrap=True)
    console.print(drawn)
    if table.note:
        console.print(Text(texts.visible(table.note)), soft_wrap=True)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def _plain(cell: Cell | None) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Folded):
        return texts.visible(" ".join(cell.summary.split()))
    return texts.visible(cell if isinstance(cell, str) else cell.text)


class Listed(list[T]):
    """A list that shows its rows as a table: in a terminal, in a notebook, or printed."""

    __slots__ = ()

    def _table(self, most: int) -> Table:
        """Returns the table of at most so many rows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """The table; for no rows, and where rich is missing, what a list is."""
        return (text(self._table(_MOST_LINES)) if self else None) or super().__repr__()

    def _repr_html_(self) -> str | None:
        return html(self._table(_MOST_ROWS))

    @overload
    def __getitem__(self, index: SupportsIndex) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Listed[T]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> T | Listed[T]:
        """A part of it shows itself likewise."""
        if isinstance(index, slice):
            return type(self)(super().__getitem__(index))
        return super().__getitem__(index)


def fields(caption: str, values: Iterable[tuple[str, Cell | None]]) -> Table:
    """Returns a table of names and values, of those that are there."""
    rows = [(name, value) for name, value in values if value is not None]
    return Table(caption, (Column("Field"), Column("Value")), rows)
