"""The methods of the classes in a jar, read from their class files."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PUBLIC_STATIC = 0x0009
# By tag: how many bytes of a constant follow the tag. A text says its own length.
CONSTANTS = {
    **dict.fromkeys((7, 8, 16, 19, 20), 2),
    **dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4),
    **dict.fromkeys((5, 6), 8),
    15: 3,
}
TEXT = 1
TWO_PLACES = (5, 6)


class Method(NamedTuple):
    """A method: its class and name, its descriptor (``(Ljava/lang/String;)V``) and its flags."""

    owner: str
    name: str
    descriptor: str
    flags: int

    @property
    def is_public_static(self) -> bool:
        return self.flags & PUBLIC_STATIC == PUBLIC_STATIC


def methods(jar: Path) -> Iterator[Method]:
    """Yields the methods of all classes in a jar."""
    with zipfile.ZipFile(jar) as files:
        for name in files.namelist():
            if name.endswith(".class"):
                yield from _Reader(files.read(name), name.removesuffix(".class")).methods()


class _Reader:
    def __init__(self, code: bytes, owner: str) -> None:
        self.code = code
        self.owner = owner.replace("/", ".")
        self.at = 8

    def methods(self) -> Iterator[Method]:
        texts = self._texts()
        self.at += 6
        interfaces = self._number()
        self.at += 2 * interfaces
        for _ in range(self._number()):
            self._member()
        for _ in range(self._number()):
            flags, name, descriptor = self._member()
            yield Method(self.owner, texts[name], texts[descriptor], flags)

    def _texts(self) -> dict[int, str]:
        texts = {}
        place, places = 1, self._number()
        while place < places:
            tag = self.code[self.at]
            self.at += 1
            if tag == TEXT:
                length = self._number()
                texts[place] = self.code[self.at : self.at + length].decode("utf-8", "replace")
                self.at += length
            else:
                self.at += CONSTANTS[tag]
            place += 2 if tag in TWO_PLACES else 1
        return texts

    def _member(self) -> tuple[int, int, int]:
        member = self._number(), self._number(), self._number()
        for _ in range(self._number()):
            (length,) = struct.unpack_from(">I", self.code, self.at + 2)
            self.at += 6 + length
        return member

    def _number(self) -> int:
        (number,) = struct.unpack_from(">H", self.code, self.at)
        self.at += 2
        return int(number)
