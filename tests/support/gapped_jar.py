"""Copies of our jar whose references name what no Spark has, so that any Spark lacks them.

A class of ours is left out itself.

For the JVM that is the same as a Spark without what they named: it throws what it throws there.
"""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import NamedTuple

from aqepilot.submit.doctor.class_files import ClassFile

GONE = "$gone"


class Gap(NamedTuple):
    """What a Spark lacks: a class, all methods of a name of a class, or what it calls of ours.

    Attributes:
        owner: The class, with dots.
        name: The methods'; empty for the class itself.
        is_overridden: Whether ours are renamed, as where Spark calls another one.
    """

    owner: str
    name: str = ""
    is_overridden: bool = False


def with_gap(jar: Path, gap: Gap, target: Path) -> None:
    """Writes a copy of a jar of ours that refers to nothing of a gap.

    Raises:
        ValueError: The jar does not refer to it.
    """
    with zipfile.ZipFile(jar) as before, zipfile.ZipFile(target, "w") as after:
        own = gap.owner.replace(".", "/") + ".class"
        is_changed = is_ours = own in before.namelist()
        for info in before.infolist():
            if info.filename == own:
                continue
            data = before.read(info)
            changed = (
                _changed(data, gap) if not is_ours and info.filename.endswith(".class") else data
            )
            is_changed |= changed != data
            after.writestr(info, changed)
    if not is_changed:
        raise ValueError(f"{jar.name} does not refer to {gap}")


def _changed(data: bytes, gap: Gap) -> bytes:
    constants, end = _constants(data)
    owner = gap.owner.replace(".", "/")
    texts = {place: data[at + 3 : end] for place, (at, end) in constants.items() if data[at] == 1}
    if not gap.name:
        new = {
            place: text.replace(f"L{owner};".encode(), f"L{owner}{GONE};".encode())
            if text != owner.encode()
            else text + GONE.encode()
            for place, text in texts.items()
        }
        # A need of a point is a text with dots.
        new = {p: t + GONE.encode() if t == gap.owner.encode() else t for p, t in new.items()}
        parts = [_text(new[p]) if p in new else data[at:e] for p, (at, e) in constants.items()]
        return data[:10] + b"".join(parts) + data[end:]
    return _without_methods(data, gap, constants, texts, end)


def _without_methods(
    data: bytes,
    gap: Gap,
    constants: dict[int, tuple[int, int]],
    texts: dict[int, bytes],
    end: int,
) -> bytes:
    changed = bytearray(data)
    (places,) = struct.unpack_from(">H", data, 8)
    added = _text((gap.name + GONE).encode())
    names, more = {place for place, text in texts.items() if text == gap.name.encode()}, 1
    owners = {gap.owner.replace(".", "/"), gap.owner.replace(".", "/") + "$"}

    def number(at: int) -> int:
        return int(struct.unpack_from(">H", data, at)[0])

    for at, _ in constants.values():
        if data[at] == 8 and number(at + 1) in names:  # a need of a point is a text
            struct.pack_into(">H", changed, at + 1, places)
        elif data[at] in (10, 11):
            owner = texts[number(constants[number(at + 1)][0] + 1)].decode()
            pair = constants[number(at + 3)][0]
            if owner in owners and number(pair + 1) in names:
                added += b"\x0c" + struct.pack(">HH", places, number(pair + 3))
                struct.pack_into(">H", changed, at + 3, places + more)
                more += 1
    if gap.is_overridden and any(each.endswith(gap.owner) for each in _above(data)):
        for at in _methods(data, end):
            if number(at) in names:
                struct.pack_into(">H", changed, at, places)
    if changed == data:
        return data
    struct.pack_into(">H", changed, 8, places + more)
    return bytes(changed[:end]) + added + bytes(changed[end:])


def _above(data: bytes) -> list[str]:
    return [each.replace("/", ".") for each in ClassFile(data).parents]


def _methods(data: bytes, at: int) -> list[int]:
    """Where the names of a class' methods are, in its bytes after the constants."""
    (interfaces,) = struct.unpack_from(">H", data, at + 6)
    at += 8 + 2 * interfaces
    names: list[int] = []
    for _ in ("fields", "methods"):
        names = []
        (count,) = struct.unpack_from(">H", data, at)
        at += 2
        for _ in range(count):
            names.append(at + 2)
            (attributes,) = struct.unpack_from(">H", data, at + 6)
            at += 8
            for _ in range(attributes):
                (length,) = struct.unpack_from(">I", data, at + 2)
                at += 6 + length
    return names


def _text(text: bytes) -> bytes:
    return b"\x01" + struct.pack(">H", len(text)) + text


def _constants(data: bytes) -> tuple[dict[int, tuple[int, int]], int]:
    """Where each constant begins and ends, by its place, and where all of them end."""
    sizes = {7: 3, 8: 3, 16: 3, 19: 3, 20: 3, 15: 4, 5: 9, 6: 9} | dict.fromkeys(
        (3, 4, 9, 10, 11, 12, 17, 18), 5
    )
    (places,) = struct.unpack_from(">H", data, 8)
    bounds, place, at = {}, 1, 10
    while place < places:
        size = 3 + struct.unpack_from(">H", data, at + 1)[0] if data[at] == 1 else sizes[data[at]]
        bounds[place] = at, at + size
        place += 2 if data[at] in (5, 6) else 1
        at += size
    return bounds, at
