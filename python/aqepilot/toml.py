"""Where in a TOML file a policy's keys and the characters of its texts stand.

TOML parsers give values, not places; a policy file is flat, so finding the places takes little.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_STRING = re.compile(
    r"\"\"\"(?:\\[\s\S]|(?!\"\"\")[\s\S])*\"{3,5}"
    r"|'''(?:(?!''')[\s\S])*'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_FOLD = re.compile(r"\\[ \t]*\n\s*")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)")


class Place(NamedTuple):
    """A place in a file: line and column, both from 1."""

    line: int
    column: int


class Value(NamedTuple):
    """Where a top-level key of a TOML file stands, and the text of its value.

    Attributes:
        key: Offset of the key in the file.
        value: Offset of the value.
        offsets: For a string, the offset in the file of each of its characters and of its end;
            empty for other values.
    """

    key: int
    value: int
    offsets: tuple[int, ...]


class Places:
    r"""The places in one TOML file.

    >>> places = Places('name = "a"\nwhen = "x > 1"\n')
    >>> places.of("when")
    Place(line=2, column=1)
    >>> places.of("when", char=2)
    Place(line=2, column=11)
    """

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n")
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", self._text))]
        self.values = _values(self._text)

    def at(self, offset: int) -> Place:
        """Returns the place of an offset in the file."""
        line = bisect_right(self._line_starts, offset)
        return Place(line, offset - self._line_starts[line - 1] + 1)

    def of(self, key: str, char: int | None = None) -> Place:
        """Returns the place of a top-level key, or of a character of its string.

        Args:
            key: The key; the file's start when there is none such.
            char: Index of a character of its string, from 0; null for the key itself.
        """
        found = self.values.get(key)
        if found is None:
            return Place(1, 1)
        if char is None or not found.offsets:
            return self.at(found.key)
        return self.at(found.offsets[min(char, len(found.offsets) - 1)])


def _values(text: str) -> dict[str, Value]:
    """Finds the top-level keys before the first table header."""
    found: dict[str, Value] = {}
    position = 0
    while True:
        position = _skip(text, position)
        key = _KEY.match(text, position)
        if key is None:
            return found
        after = re.compile(r"[^=\n]*=[ \t]*").match(text, key.end())
        if after is None:
            return found
        start = after.end()
        string = _STRING.match(text, start)
        name = key.group().strip("\"'")
        found.setdefault(name, Value(key.start(), start, _offsets(text, string) if string else ()))
        position = string.end() if string else _end_of_value(text, start)


def _skip(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _end_of_value(text: str, position: int) -> int:
    """Skips a value that is no string: to the line's end, brackets and strings in them whole."""
    depth = 0
    while position < len(text):
        string = _STRING.match(text, position)
        if string:
            position = string.end()
            continue
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(text[position], 0)
        if text[position] == "\n" and depth <= 0:
            break
        position += 1
    return position


def _offsets(text: str, string: re.Match[str]) -> tuple[int, ...]:
    quote = string.group()[:3] if string.group()[:3] in ('"""', "'''") else string.group()[:1]
    start, end = string.start() + len(quote), string.end() - len(quote)
    if len(quote) == 3 and text.startswith("\n", start):
        start += 1
    offsets = []
    position = start
    while position < end:
        step = 1
        if quote[0] == '"' and text[position] == "\\":
            fold = _FOLD.match(text, position, end) if len(quote) == 3 else None
            if fold:
                position = fold.end()
                continue
            escape = _ESCAPE.match(text, position, end)
            step = len(escape.group()) if escape else 1
        offsets.append(position)
        position += step
    return (*offsets, end)
