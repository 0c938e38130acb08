"""The columns of logs: teams have months of tables, so none may go, and none may come unseen."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

from aqepilot.log import columns

# By version, the columns of each frame with their types. A version that was released stays.
PINNED = json.loads((Path(__file__).parent / "log_columns.json").read_text("utf-8"))


def of_now() -> dict[str, dict[str, str]]:
    return {
        name: {column.name: column.type for column in frame}
        for name, frame in columns.FRAMES.items()
    }


def test_a_change_of_columns_raises_the_version() -> None:
    """Raise `columns.VERSION`, and add what `of_now` returns to log_columns.json under it."""
    assert max(map(int, PINNED)) == columns.VERSION
    assert PINNED[str(columns.VERSION)] == of_now()


def test_columns_are_only_added() -> None:
    versions = [PINNED[version] for version in sorted(PINNED, key=int)]
    for before, after in itertools.pairwise(versions):
        for name, frame in before.items():
            kept = {column: after[name].get(column) for column in frame}
            assert kept == frame
