"""Sharing tests out to two Sparks loses none."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tiers


def items() -> list[Any]:
    """Sixteen cases of a marked test, two of one, a single case, three of one that is not."""
    marks = {"many": True, "few": True, "single": True, "plain": False}
    numbers = {"many": 16, "few": 2, "single": 1, "plain": 3}
    return [
        SimpleNamespace(
            function=name, number=i, get_closest_marker=lambda _, is_so=is_marked: is_so or None
        )
        for name, is_marked in marks.items()
        for i in range(numbers[name])
    ]


def selected(monkeypatch: pytest.MonkeyPatch, minor: str, everything: bool) -> set[Any]:
    monkeypatch.setattr(tiers, "MINOR", minor)
    monkeypatch.setattr(tiers, "ALL", everything)
    return {(item.function, item.number) for item in tiers.select(items())}


def test_each_spark_has_cases_of_its_own_of_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (selected(monkeypatch, minor, False) for minor in ("3.5", "4.3"))
    everything = {(item.function, item.number) for item in items()}
    assert {name for name, _ in old & new} == {"single", "plain"}
    for found in (old, new):
        counts = Counter(name for name, _ in found)
        assert counts == {"many": 2, "few": 1, "single": 1, "plain": 3}
    for minor in ("3.5", "4.3"):
        assert selected(monkeypatch, minor, True) == everything


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("test_*.py")), ids=lambda file: file.stem
)
def test_what_runs_on_one_spark_runs_there_whole(file: Path) -> None:
    """Else most of the cases that the other Spark would run are never run."""
    text = file.read_text("utf-8")
    if re.search(r"^pytestmark = \[?tiers\.on", text, re.MULTILINE):
        assert not re.findall(r"tiers\.(?:share|EIGHTH)|^@tiers\.on", text, re.MULTILINE)
