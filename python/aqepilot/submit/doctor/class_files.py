"""Reads JVM class files: what a class declares, and what the code of its methods refers to.

As the Java Virtual Machine Specification, chapter 4, lays a class file out.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

PUBLIC, PRIVATE, STATIC, INTERFACE, ABSTRACT = 0x0001, 0x0002, 0x0008, 0x0200, 0x0400
_TEXT, _CLASS, _STRING, _HANDLE, _DYNAMIC = 1, 7, 8, 15, 18
_MEMBERS = {9: "field", 10: "method", 11: "method"}
# By tag: how many bytes of a constant follow the tag, and how they are read.
_CONSTANTS = {
    **dict.fromkeys((7, 8, 16, 19, 20), struct.Struct(">H")),
    **dict.fromkeys((9, 10, 11, 12, 17, 18), struct.Struct(">HH")),
    **dict.fromkeys((3, 4), struct.Struct(">i")),
    **dict.fromkeys((5, 6), struct.Struct(">q")),
    _HANDLE: struct.Struct(">BH"),
}
_TWO_PLACES = (5, 6)
# By operation: how many bytes of operands follow. Those that are not named have none.
_OPERANDS = {
    **dict.fromkeys((16, 18, *range(21, 26), *range(54, 59), 169, 188), 1),
    **dict.fromkeys((17, 19, 20, 132, *range(153, 169), 198, 199), 2),
    **dict.fromkeys((*range(178, 185), 187, 189, 192, 193), 2),
    197: 3,
    **dict.fromkeys((185, 186, 200, 201), 4),
}
_WITH_CONSTANT = frozenset((18, 19, *range(178, 188), 189, 192, 193, 197))
NEW, DYNAMIC = 187, 186
CALLS = frozenset((182, 183, 184, 185))
_TABLE, _LOOKUP, _WIDE = 170, 171, 196


class Member(NamedTuple):
    """A field or method: its class and name with slashes, and its descriptor."""

    kind: str
    owner: str
    name: str
    descriptor: str


class Instruction(NamedTuple):
    """An instruction that refers to something.

    Attributes:
        place: Where it begins, in bytes from the method's begin.
        end: Where the next one begins.
        operation: The number of the operation.
        operand: The member; a class' name; a text in quotes; or the methods that a call site is
            made of.
        descriptor: Of a call site: what it takes and makes.
    """

    place: int
    end: int
    operation: int
    operand: Member | str | tuple[Member, ...]
    descriptor: str = ""

    @property
    def member(self) -> Member | None:
        """The field or method that it refers to; null if it refers to none, or to several."""
        return self.operand if isinstance(self.operand, Member) else None

    @property
    def handles(self) -> tuple[Member, ...]:
        """The methods that a call site is made of; none of another instruction."""
        return self.operand if self.operation == DYNAMIC else ()  # type: ignore[return-value]

    @property
    def class_name(self) -> str | None:
        """The class that it refers to; null if it refers to none."""
        is_name = isinstance(self.operand, str) and not self.operand.startswith('"')
        return self.operand if is_name else None  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class Method:
    """A method as its class declares it; code is empty where it is abstract or native."""

    owner: str
    name: str
    descriptor: str
    flags: int
    code: bytes
    caught: tuple[str, ...]


class ClassFile:
    """What a class file says.

    Raises:
        zipfile.BadZipFile: These bytes are no class file.
    """

    def __init__(self, data: bytes) -> None:
        if data[:4] != b"\xca\xfe\xba\xbe":
            raise zipfile.BadZipFile("no class file")
        self._data = data
        self._constants: dict[int, tuple[int, Any]] = {}
        self._at = self._read_constants()
        self.flags, name, above, interfaces = self._numbers(4)
        self.name = self._class(name)
        self.superclass = self._class(above) if above else None
        self.interfaces = tuple(self._class(i) for i in self._numbers(interfaces))
        self.fields = {(f.name, f.descriptor): f.flags for f in self._members()}
        self.methods = {(m.name, m.descriptor): m for m in self._members()}
        self._end_of_members = self._at

    @property
    def parents(self) -> tuple[str, ...]:
        """The superclass and the interfaces."""
        return (*((self.superclass,) if self.superclass else ()), *self.interfaces)

    def instructions(self, method: Method) -> Iterator[Instruction]:
        """Yields the instructions of a method that refer to something, in their order."""
        code, at = method.code, 0
        while at < len(code):
            operation, place = code[at], at
            at = _next(code, at)
            if operation in _WITH_CONSTANT:
                index = code[place + 1]
                if operation != 18:
                    index = index << 8 | code[place + 2]
                if (operand := self._operand(index)) is not None:
                    yield Instruction(place, at, operation, *operand)

    def _operand(self, index: int) -> tuple[Member | str | tuple[Member, ...], str] | None:
        """What an instruction refers to, and the descriptor of a call site."""
        tag, value = self._constants[index]
        if tag in _MEMBERS:
            return self._member(index), ""
        if tag == _CLASS:
            return self._class(index), ""
        if tag == _STRING:
            return f'"{self._text(value[0])}"', ""
        if tag == _DYNAMIC:
            bootstrap, pair = value
            _, descriptor = self._constants[pair][1]
            return self._bootstraps[bootstrap], self._text(descriptor)
        return None

    def _member(self, index: int) -> Member:
        tag, (owner, pair) = self._constants[index]
        name, descriptor = self._constants[pair][1]
        return Member(
            _MEMBERS[tag],
            self._class(owner),
            self._text(name),
            self._text(descriptor),
        )

    @cached_property
    def _bootstraps(self) -> list[tuple[Member, ...]]:
        self._at = self._end_of_members
        for name, start in self._attributes():
            if name == "BootstrapMethods":
                self._at = start
                (count,) = self._numbers(1)
                return [self._bootstrap() for _ in range(count)]
        return []

    def _bootstrap(self) -> tuple[Member, ...]:
        handle, arguments = self._numbers(2)
        handles = [
            i for i in (handle, *self._numbers(arguments)) if self._constants[i][0] == _HANDLE
        ]
        return tuple(self._member(self._constants[i][1][1]) for i in handles)

    def _members(self) -> Iterator[Method]:
        (count,) = self._numbers(1)
        for _ in range(count):
            flags, name, descriptor = self._numbers(3)
            code, caught = b"", tuple[str, ...]()
            for attribute, start in self._attributes():
                if attribute == "Code":
                    code, caught = self._code(start)
            yield Method(self.name, self._text(name), self._text(descriptor), flags, code, caught)

    def _code(self, start: int) -> tuple[bytes, tuple[str, ...]]:
        (length,) = struct.unpack_from(">I", self._data, start + 4)
        at = start + 8 + length
        (handlers,) = struct.unpack_from(">H", self._data, at)
        table = struct.unpack_from(f">{4 * handlers}H", self._data, at + 2)
        caught = tuple(self._class(i) for i in table[3::4] if i)
        return self._data[start + 8 : start + 8 + length], caught

    def _attributes(self) -> Iterator[tuple[str, int]]:
        """Yields the names of attributes and where they begin, and goes on to their end."""
        (count,) = self._numbers(1)
        for _ in range(count):
            name, length = struct.unpack_from(">HI", self._data, self._at)
            start = self._at + 6
            yield self._text(name), start
            self._at = start + length

    def _read_constants(self) -> int:
        (places,) = struct.unpack_from(">H", self._data, 8)
        place, at = 1, 10
        while place < places:
            tag = self._data[at]
            if tag == _TEXT:
                (length,) = struct.unpack_from(">H", self._data, at + 1)
                text = self._data[at + 3 : at + 3 + length].decode("utf-8", "replace")
                self._constants[place] = tag, text
                at += 3 + length
            else:
                layout = _CONSTANTS[tag]
                self._constants[place] = tag, layout.unpack_from(self._data, at + 1)
                at += 1 + layout.size
            place += 2 if tag in _TWO_PLACES else 1
        return at

    def _class(self, index: int) -> str:
        return self._text(self._constants[index][1][0])

    def _text(self, index: int) -> str:
        return str(self._constants[index][1])

    def _numbers(self, count: int) -> tuple[int, ...]:
        numbers = struct.unpack_from(f">{count}H", self._data, self._at)
        self._at += 2 * count
        return numbers


class Classes:
    """Class files of jars, by name with slashes, read when they are asked for.

    Args:
        jars: Paths; of two with the same class the first one counts.
        opened: Told the number of jars that are open, each time that one more is.
    """

    def __init__(
        self, jars: Sequence[Path], opened: Callable[[int], None] = lambda _: None
    ) -> None:
        self._left = list(reversed(jars))
        self._count = 0
        self._opened = opened
        self._jars: dict[str, zipfile.ZipFile] = {}
        self._read: dict[str, ClassFile | None] = {}

    def get(self, name: str) -> ClassFile | None:
        """Returns a class; null where no jar has it."""
        if name not in self._read:
            while name not in self._jars and self._left:
                self._open(self._left.pop())
            jar = self._jars.get(name)
            self._read[name] = ClassFile(jar.read(f"{name}.class")) if jar else None
        return self._read[name]

    def all(self) -> list[ClassFile]:
        """Returns the classes of all jars."""
        while self._left:
            self._open(self._left.pop())
        return [class_file for name in self._jars if (class_file := self.get(name))]

    def _open(self, path: Path) -> None:
        jar = zipfile.ZipFile(path)
        for name in jar.namelist():
            if name.endswith(".class"):
                self._jars.setdefault(name.removesuffix(".class"), jar)
        self._count += 1
        self._opened(self._count)


def _next(code: bytes, at: int) -> int:
    """Where the instruction after the one at `at` begins."""
    operation = code[at]
    if operation == _TABLE:
        padded = at + 4 - at % 4
        low, high = struct.unpack_from(">ii", code, padded + 4)
        return int(padded + 12 + 4 * (high - low + 1))
    if operation == _LOOKUP:
        padded = at + 4 - at % 4
        (pairs,) = struct.unpack_from(">i", code, padded + 4)
        return int(padded + 8 + 8 * pairs)
    if operation == _WIDE:
        return at + (6 if code[at + 1] == 132 else 4)
    return at + 1 + _OPERANDS.get(operation, 0)
