"""Sharing tests out to two Sparks loses none."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import places
import tiers


class Case(NamedTuple):
    """What `tiers.select` reads of a test."""

    function: str
    name: str
    marks: tuple[str, ...]

    def get_closest_marker(self, name: str) -> bool | None:
        return name in self.marks or None


def items() -> list[Any]:
    """Cases of tests by the marks that they have."""
    numbers = {"many": 16, "few": 2, "single": 1, "plain": 3, "halved": 40, "both": 10, "on": 5}
    marks = {
        **dict.fromkeys(("many", "few", "single"), ("eighth",)),
        "halved": ("on_one",),
        "both": ("on_one", "eighth"),
        "on": ("on_one", "skipif"),
    }
    return [
        Case(name, f"{name}[{i}]", marks.get(name, ()))
        for name, number in numbers.items()
        for i in range(number)
    ]


def selected(monkeypatch: pytest.MonkeyPatch, minor: str, everything: bool) -> set[Any]:
    monkeypatch.setattr(tiers, "MINOR", minor)
    monkeypatch.setattr(tiers, "ALL", everything)
    return set(tiers.select(items()))


def test_each_spark_has_cases_of_its_own_of_each_test(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (selected(monkeypatch, minor, False) for minor in ("3.5", "4.3"))
    assert {case.function for case in old & new} == {"single", "plain", "on"}
    for cases in (old, new):
        counts = Counter(case.function for case in cases)
        assert 10 < counts.pop("halved") < 30
        assert counts == {"many": 2, "few": 1, "single": 1, "plain": 3, "both": 2, "on": 5}, counts
    halved = {case for case in items() if case.function == "halved"}
    assert {case for case in old | new if case.function == "halved"} == halved
    for minor in ("3.5", "4.3"):
        assert selected(monkeypatch, minor, True) == set(items())


@pytest.mark.parametrize(
    "file", sorted((places.TESTS / "python").rglob("test_*.py")), ids=lambda file: file.stem
)
def test_what_runs_on_one_spark_runs_there_whole(file: Path) -> None:
    """Else most of the cases that the other Spark would run are never run."""
    text = file.read_text("utf-8")
    if re.search(r"^pytestmark = .*tiers\.ON_ONE", text, re.MULTILINE):
        # Of cases that are shared out before it sees them, half would run nowhere.
        assert "tiers.share" not in text
    if re.search(r"^pytestmark = \[?tiers\.on", text, re.MULTILINE):
        assert not re.findall(r"tiers\.(?:share|EIGHTH|ON_ONE)|^@tiers\.on", text, re.MULTILINE)
