"""Spark's compressed event logs as lines, in a task of Spark's own.

This travels to executors by value, where neither aqepilot nor Spark's JVM codecs are at hand: it
needs pyarrow only, which `mapInArrow` needs, too.

Source: the streams of Spark's `ZStdCompressionCodec`, `LZ4CompressionCodec` (lz4-java's
LZ4BlockOutputStream) and `SnappyCompressionCodec` (snappy-java's SnappyOutputStream). None of them
is what Hadoop means by these names, but zstd.
"""

from __future__ import annotations

import io
import itertools
import struct
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped,unused-ignore]

_BLOCK = 1 << 18
_BATCH = 4 << 20
_LZ4 = b"LZ4Block"
_LZ4_STORED, _LZ4_PACKED = 0x10, 0x20
_SNAPPY = b"\x82SNAPPY\0"
_SNAPPY_HEAD = 16
_ZSTD = b"\x28\xb5\x2f\xfd"
_LZF = b"ZV"


class UnreadableError(ValueError):
    """A file that is cut off, damaged, or packed as nobody here can unpack."""


def lines_of(wanted: tuple[bytes, ...]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[object]]:
    """Makes what `DataFrame.mapInArrow` runs: pieces of compressed files in, their lines out.

    Args:
        wanted: Lines that begin with one of these are put out; of no prefix, all.

    Returns:
        A function of batches of `file`, `file_size` and `piece`, in the order of each file, to
        batches of `file`, `value` and `problem`; of a file that cannot be read to its end, the last
        row is the problem.
    """

    def lines(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = (
            row
            for batch in batches
            for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )
        for (file, size), of_file in itertools.groupby(rows, key=lambda row: row[:2]):
            yield from _batches(file, (row[2] for row in of_file), size, wanted)

    return lines


def _batches(
    file: str, pieces: Iterator[bytes], size: int, wanted: tuple[bytes, ...]
) -> Iterator[pa.RecordBatch]:
    held: list[bytes] = []
    held_bytes = 0
    problem = None
    try:
        for line in lines(decompressed(whole(pieces, size))):
            if not wanted or line.startswith(wanted):
                held.append(line)
                held_bytes += len(line)
                if held_bytes >= _BATCH:
                    yield _batch(file, held, None)
                    held, held_bytes = [], 0
    except UnreadableError as error:
        problem = str(error)
    if held:
        yield _batch(file, held, None)
    if problem:
        yield _batch(file, [b""], problem)


def _batch(file: str, values: list[bytes], problem: str | None) -> pa.RecordBatch:
    import pyarrow as pa

    # Text that is no UTF-8 is the reader's to judge.
    value = pa.array(values, pa.binary()).view(pa.string())
    columns = [
        pa.array([file] * len(values)),
        value,
        pa.array([problem] * len(values), pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, ["file", "value", "problem"])


def whole(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    r"""Puts a file together that was cut at each newline.

    Args:
        pieces: What was between the newlines.
        size: The file's size in bytes; whether it ends with a newline is seen by it.

    >>> b"".join(whole([b"a", b"", b"b"], 5))
    b'a\n\nb\n'
    """
    total = 0
    for piece in pieces:
        if total:
            yield b"\n"
        yield piece
        total += len(piece) + 1
    if total and total == size:
        yield b"\n"


def lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yields lines without their ends; holds one line at a time.

    >>> list(lines([b"a\nb", b"c\n", b"d"]))
    [b'a', b'bc', b'd']
    """
    begun: list[bytes] = []
    for block in blocks:
        first, *others = block.split(b"\n")
        begun.append(first)
        if others:
            yield b"".join(begun)
            yield from others[:-1]
            begun = [others[-1]]
    if last := b"".join(begun):
        yield last


def decompressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yields the content of a file in blocks; its first bytes tell the codec.

    Raises:
        UnreadableError: The file is cut off or damaged, after all that could be read; or it is
            packed by a codec that is not read here.
    """
    source = _Source(pieces)
    head = source.peek(len(_LZ4))
    if head.startswith(_ZSTD):
        yield from _zstd(source)
    elif head == _LZ4:
        yield from _lz4(source)
    elif head == _SNAPPY:
        yield from _snappy(source)
    elif head.startswith(_LZF):
        raise UnreadableError("packed by the codec lzf, which is not read; zstd, lz4, snappy are.")
    else:
        while block := source.read(_BLOCK):
            yield block


class _Source(io.RawIOBase):
    """Pieces as a stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""

    def readable(self) -> bool:
        return True

    def peek(self, count: int) -> bytes:
        """Returns up to so many bytes of what comes, and leaves them there."""
        if len(self._held) < count:
            parts, held = [self._held], len(self._held)
            for piece in self._pieces:
                parts.append(piece)
                held += len(piece)
                if held >= count:
                    break
            self._held = b"".join(parts)
        return self._held[:count]

    def read(self, count: int | None = -1, /) -> bytes:
        wanted = count if count is not None and count >= 0 else 1 << 62
        piece = self.peek(wanted)
        self._held = self._held[len(piece) :]
        return piece

    def exactly(self, count: int) -> bytes:
        """Raises UnreadableError where fewer are left."""
        piece = self.read(count)
        if len(piece) < count:
            raise UnreadableError("the compressed file is cut off.")
        return piece


def _zstd(source: _Source) -> Iterator[bytes]:
    import pyarrow as pa

    block = bytearray(_BLOCK)
    with pa.CompressedInputStream(pa.PythonFile(source, "r"), "zstd") as stream:
        while True:
            try:
                count = stream.readinto(block)
            except OSError as error:
                # What came before the error is in the block already, which JSON has no NUL for.
                yield bytes(block).rstrip(b"\0")
                raise UnreadableError(f"the compressed file ends too early: {error}.") from None
            if not count:
                return
            yield bytes(block[:count])
            block[:] = bytes(_BLOCK)


def _lz4(source: _Source) -> Iterator[bytes]:
    import pyarrow as pa

    codec = pa.Codec("lz4_raw")
    while source.peek(1):
        magic, token, packed_size, size, _ = struct.unpack("<8sBiiI", source.exactly(21))
        if magic != _LZ4 or token & 0xF0 not in (_LZ4_STORED, _LZ4_PACKED) or packed_size < 0:
            raise UnreadableError("the compressed file is damaged: an lz4 block has no head.")
        packed = source.exactly(packed_size)
        if token & 0xF0 == _LZ4_STORED:
            yield packed
        elif size:
            yield _block(codec, packed, size)


def _snappy(source: _Source) -> Iterator[bytes]:
    import pyarrow as pa

    codec = pa.Codec("snappy")
    while source.peek(1):
        if source.peek(len(_SNAPPY)) == _SNAPPY:
            source.exactly(_SNAPPY_HEAD)
            continue
        (packed_size,) = struct.unpack(">I", source.exactly(4))
        packed = source.exactly(packed_size)
        yield _block(codec, packed, _varint(packed))


def _varint(data: bytes) -> int:
    """A number in the bytes' lower 7 bits, least first, as snappy begins a block with its size."""
    value = 0
    for place, byte in enumerate(data[:5]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return value


def _block(codec: pa.Codec, packed: bytes, size: int) -> bytes:
    try:
        block: bytes = codec.decompress(packed, decompressed_size=size, asbytes=True)
    except OSError as error:
        raise UnreadableError(f"the compressed file is damaged: {error}.") from None
    return block
