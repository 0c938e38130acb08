"""Which files make up an event log, and what is inside Spark's compressed ones."""

from __future__ import annotations

import struct
import sys
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from aqepilot import Log
from aqepilot.errors import AqePilotError
from aqepilot.eventlog import codecs, files
from aqepilot.eventlog.files import LogFile

TEXT = b"".join(b'{"Event":"%d"}\n' % n for n in range(100_000))


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


def lz4(data: bytes) -> bytes:
    packed = pa.Codec("lz4_raw").compress(data, asbytes=True)
    head = struct.pack("<8sBiiI", b"LZ4Block", 0x26, len(packed), len(data), 0)
    return head + packed


def snappy(data: bytes) -> bytes:
    packed = pa.Codec("snappy").compress(data, asbytes=True)
    return b"\x82SNAPPY\0" + struct.pack(">iiI", 1, 1, len(packed)) + packed


def read(data: bytes) -> tuple[bytes, str | None]:
    """What comes before it breaks off, and why it does."""
    parts = []
    try:
        for block in codecs.decompressed(iter([data[:7], data[7:1000], data[1000:]])):
            parts.append(block)
    except codecs.UnreadableError as error:
        return b"".join(parts), str(error)
    return b"".join(parts), None


@pytest.mark.parametrize("pack", [lambda data: data, zstd, lz4, snappy])
def test_each_codec_is_told_by_its_first_bytes(pack) -> None:
    half = len(TEXT) // 2
    assert read(pack(TEXT)) == (TEXT, None)
    # Spark flushes, and an application that starts again appends.
    assert read(pack(TEXT[:half]) + pack(TEXT[half:])) == (TEXT, None)


@pytest.mark.parametrize("pack", [lz4, snappy])
def test_whole_blocks_before_a_cut_are_read(pack) -> None:
    content, why = read(pack(TEXT) + pack(TEXT)[:-5])
    assert content == TEXT
    assert "cut off" in why


def test_all_of_zstd_before_a_cut_is_read() -> None:
    """As much as comes out byte by byte."""
    data = zstd(TEXT)
    uneven = 0
    for tenth in range(3, 10):
        cut = data[: len(data) * tenth // 10]
        possible = 0
        with pa.CompressedInputStream(pa.BufferReader(cut), "zstd") as stream, suppress(OSError):
            while stream.read(1):
                possible += 1
        content, why = read(cut)
        assert content == TEXT[:possible]
        assert "too early" in why
        uneven += possible % codecs._BLOCK > 0
    assert uneven


def test_what_cannot_be_unpacked_says_why() -> None:
    assert "lzf" in read(b"ZV\1\0\0")[1]
    assert "damaged" in read(lz4(TEXT) + b"x" * 40)[1]


def chosen(*paths: str) -> list[str]:
    chosen_files = files._chosen(LogFile(path, files.log_of(path), 1, 0) for path in paths)
    return [file.path for file in chosen_files]


def test_a_finished_log_stands_for_the_same_in_progress() -> None:
    assert chosen("/l/app-1.zstd", "/l/app-1.zstd.inprogress") == ["/l/app-1.zstd"]
    assert chosen("/l/app-1.inprogress") == ["/l/app-1.inprogress"]


def test_a_rolled_log_begins_with_its_last_compact_file() -> None:
    folder = "/l/eventlog_v2_a"
    parts = [f"{folder}/events_{n}_a.zstd" for n in (1, 2, 3, 10)]
    assert chosen(*parts, f"{folder}/appstatus_a.inprogress") == sorted(parts)
    compact = f"{folder}/events_2_a.zstd.compact"
    assert set(chosen(*parts, compact)) == {compact, *parts[2:]}


def test_errors_say_what_to_do() -> None:
    denied = files._unlisted(["/l"], Exception("AccessControlException: Permission denied: user=a"))
    assert denied.problems[0].code == "LOG_NOT_PERMITTED"
    assert isinstance(denied, AqePilotError)
    other = files._unlisted(["/l"], Exception("the network\nis down"))
    assert str(other) == "/l cannot be listed: the network"


def test_a_compressed_log_is_refused_where_pyarrow_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain, packed = (LogFile(name, name, 1, 0) for name in ("app-1", "app-2.zstd"))
    files.refuse_unreadable([plain, packed])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    files.refuse_unreadable([plain])
    with pytest.raises(AqePilotError, match="pip install pyarrow"):
        files.refuse_unreadable([plain, packed])


def test_a_frame_of_a_log_is_made_once_and_not_before_it_is_asked_for() -> None:
    made: list[str] = []

    def frame(name: str) -> Any:
        made.append(name)
        return [name]

    log = Log(**{name: partial(frame, name) for name in ("queries", "stages")})
    other = log.replace(stages=frame("others"))
    assert made == ["others"]
    assert other.stages == ["others"]
    assert other.queries is log.queries is other.queries
    assert made == ["others", "queries"]
