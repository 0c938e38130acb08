"""The columns of logs: teams have months of tables, so none may go, and none may come unseen."""

from __future__ import annotations

import itertools
import json

import places
from aqepilot.eventlog.frames import columns

# By version, the columns of each frame with their types. A version that was released stays.
PINNED = json.loads((places.TESTS / "golden" / "log_columns.json").read_text("utf-8"))


def of_now() -> dict[str, dict[str, str]]:
    return {
        name: {column.name: column.type for column in frame}
        for name, frame in columns.FRAMES.items()
    }


def test_a_change_of_columns_raises_the_version() -> None:
    """Raise `columns.VERSION`, and add what `of_now` returns to log_columns.json under it."""
    assert max(map(int, PINNED)) == columns.VERSION
    assert PINNED[str(columns.VERSION)] == of_now()


def is_kept(before: str, after: str | None) -> bool:
    """Whether the type is the same, but for fields that a struct got at its end."""
    fields = before.rstrip(">")
    closing = before[len(fields) :]
    rest = (after or "").removeprefix(fields)
    return after is not None and (
        after == before
        or (fields != before and rest != after and rest.startswith(", ") and rest.endswith(closing))
    )


def test_columns_and_fields_are_only_added() -> None:
    versions = [PINNED[version] for version in sorted(PINNED, key=int)]
    for before, after in itertools.pairwise(versions):
        for name, frame in before.items():
            lost = {c: (t, after[name].get(c)) for c, t in frame.items()}
            assert {c: pair for c, pair in lost.items() if not is_kept(*pair)} == {}


def test_what_counts_as_kept() -> None:
    before = "array<struct<id: string, cores: int>>"
    assert is_kept(before, before)
    assert is_kept(before, "array<struct<id: string, cores: int, memory_mib: bigint>>")
    assert not is_kept(before, "array<struct<id: string, cores: bigint>>")
    assert not is_kept(before, "array<struct<cores: int, id: string>>")
    assert not is_kept(before, "array<struct<id: string>>")
    assert not is_kept("int", "int, x")
    assert not is_kept("int", None)
