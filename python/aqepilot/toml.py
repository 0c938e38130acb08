"""TOML files: their text, their values, where the keys and texts stand, and how they are written.

TOML parsers give values, not places. Our files are flat, so finding the places takes little.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from pathlib import Path
from typing import Any, NamedTuple

from aqepilot.errors import AqePilotError, Problem

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

# Path makes one slash of two.
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_ERROR = re.compile(r"^(.*) \(at line (\d+), column (\d+)\)$")

_KEY = re.compile(r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')""")
_STRING = re.compile(
    r"\"\"\"(?:\\[\s\S]|(?!\"\"\")[\s\S])*\"{3,5}"
    r"|'''(?:(?!''')[\s\S])*'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
)
_BLANK = re.compile(r"(?:\s+|#[^\n]*)*")
_FOLD = re.compile(r"\\[ \t]*\n\s*")
# What stands in no string without escapes, or becomes another line end there.
_NOT_LITERAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ESCAPE = re.compile(r"\\(?:u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|.)")


def read(path: str | Path, kind: str, error: type[AqePilotError] = AqePilotError) -> str:
    """Returns the text of a file of this machine.

    Args:
        path: The file, UTF-8.
        kind: What it is to a user, e.g. ``the policy file``.
        error: The error to raise.

    Raises:
        AqePilotError: The file cannot be read, or is not UTF-8.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except OSError as cause:
        why = f"cannot read {kind}: {cause.strerror}."
        if _URI.match(str(path)):
            why += " It has to be a file of this machine: fetch it first, and name its path."
    except UnicodeDecodeError as cause:
        why = f"{kind} is not UTF-8 (byte {cause.start})."
    raise error(Problem("FILE_UNREADABLE", why, str(path)))


def parse(
    text: str, source: str, error: type[AqePilotError] = AqePilotError, hint: str = ""
) -> dict[str, Any]:
    """Returns the values of a TOML file.

    Args:
        text: Its text.
        source: Its name, for the place in the error's message.
        error: The error to raise.
        hint: What to do about a text that is no TOML; empty for nothing.

    Raises:
        AqePilotError: It is no TOML; says where.
    """
    try:
        values: dict[str, Any] = tomllib.loads(text)
        return values
    except tomllib.TOMLDecodeError as cause:
        at = _ERROR.search(str(cause))
        what, place = (at[1], f"{source}:{at[2]}:{at[3]}") if at else (str(cause), source)
    message = f"this is not TOML: {what}" + (f"; {hint}" if hint else ".")
    raise error(Problem("TOML_INVALID", message, place))


def quoted(text: str) -> str:
    r"""Returns a string of TOML, which quotes as JSON does but for one character.

    >>> print(quoted('a "b"'), quoted("\x7f"))
    "a \"b\"" "\u007F"
    """
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def assigned(key: str, text: str) -> str:
    """Returns the lines that give a text of several lines to a key.

    >>> print(assigned("skew_join", "NULL"))
    skew_join = '''
    NULL
    '''
    """
    if "'''" in text or _NOT_LITERAL.search(text):
        return f"{key} = {quoted(text)}"
    return f"{key} = '''\n{text}\n'''"


class Place(NamedTuple):
    """A place in a file: line and column, both from 1."""

    line: int
    column: int


class Value(NamedTuple):
    """Where a key of a TOML file stands, and the text of its value.

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
    >>> places.place("when")
    Place(line=2, column=1)
    >>> places.place("when", char=2)
    Place(line=2, column=11)

    Args:
        text: The file's text.
        table: The table whose keys are looked for; null for those before any table.
    """

    def __init__(self, text: str, table: str | None = None) -> None:
        self._text = text.replace("\r\n", "\n")
        self._line_starts = [0, *(m.end() for m in re.finditer("\n", self._text))]
        header = (
            re.search(rf"^[ \t]*\[\s*{table}\s*\]", self._text, re.MULTILINE) if table else None
        )
        self._begin = header.start() if header else 0
        self.values = _values(self._text, header.end() if header else 0)

    def at(self, offset: int) -> Place:
        """Returns the place of an offset in the file."""
        line = bisect_right(self._line_starts, offset)
        return Place(line, offset - self._line_starts[line - 1] + 1)

    def place(self, key: str, char: int | None = None) -> Place:
        """Returns the place of a key, or of a character of its string.

        Args:
            key: The key; where there is none such, the start of the file or of the table.
            char: Index of a character of its string, from 0; null for the key itself.
        """
        value = self.values.get(key)
        if value is None:
            return self.at(self._begin)
        if char is None or not value.offsets:
            return self.at(value.key)
        return self.at(value.offsets[min(char, len(value.offsets) - 1)])


def _values(text: str, position: int) -> dict[str, Value]:
    """Finds the keys from a position on, before the next table header."""
    values: dict[str, Value] = {}
    while True:
        position = _skip(text, position)
        key = _KEY.match(text, position)
        if key is None:
            return values
        after = re.compile(r"[^=\n]*=[ \t]*").match(text, key.end())
        if after is None:
            return values
        start = after.end()
        string = _STRING.match(text, start)
        name = key.group().strip("\"'")
        values.setdefault(name, Value(key.start(), start, _offsets(text, string) if string else ()))
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
