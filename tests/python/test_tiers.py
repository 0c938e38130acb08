"""Sharing tests out to two Sparks loses none."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tiers


def items() -> list[Any]:
    """Five cases of a test that is marked, one that has a single case, three of one that is not."""
    marks = {"many": True, "single": True, "plain": False}
    numbers = {"many": 5, "single": 1, "plain": 3}
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


def test_each_case_runs_on_one_spark_and_each_test_on_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old, new = (selected(monkeypatch, minor, False) for minor in ("3.5", "4.3"))
    everything = {(item.function, item.number) for item in items()}
    assert old | new == everything
    assert {name for name, _ in old & new} == {"single", "plain"}
    assert {name for name, _ in old} == {name for name, _ in new}
    for minor in ("3.5", "4.3"):
        assert selected(monkeypatch, minor, True) == everything


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parent.glob("test_*.py")), ids=lambda file: file.stem
)
def test_what_runs_on_one_spark_runs_there_whole(file: Path) -> None:
    """Else the half that the other Spark would run is never run."""
    text = file.read_text("utf-8")
    if re.search(r"^pytestmark = tiers\.on", text, re.MULTILINE):
        assert not re.findall(r"tiers\.(?:share|HALF)|^@tiers\.on", text, re.MULTILINE)
