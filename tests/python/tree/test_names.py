"""Names are nouns or verbs: what a value holds can be read and searched for."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from places import ROOT

SOURCES = ("python/aqepilot", "bench", "tools", "tests")
# They say nothing of a thing, and stand in every second sentence.
NO_NAMES = {"of", "its", "said", "told", "found", "given"}
# Comments and texts.
_NO_SCALA = re.compile(r'/\*.*?\*/|//[^\n]*|""".*?"""+|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_WORD = "|".join(sorted(NO_NAMES))
# A value, a parameter, and what a function or a case binds. A companion's `of` is a method.
_SCALA = re.compile(
    rf"\b(?:val|var) (?:{_WORD})\b|(?<![\w.])(?:{_WORD})(?:: |\s*=>)"
    rf"|\bcase [^\n=]*(?<![\w.])(?:{_WORD})\b(?!\()[^\n=]*=>"
)


def names(text: str) -> Iterator[tuple[str, int]]:
    """Yields the names that a source gives to functions, parameters, values and fields."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node.lineno
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name, node.lineno


def without_a_noun(text: str) -> list[str]:
    return [f"{line}: {name}" for name, line in names(text) if name.strip("_").lower() in NO_NAMES]


@pytest.mark.parametrize("folder", SOURCES)
def test_every_name_has_a_noun_or_a_verb(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    wrong = {str(file): without_a_noun(file.read_text("utf-8")) for file in files}
    assert {file: lines for file, lines in wrong.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    ["def of(a): ...", "def f(its): ...", "found = 1", "self.told = 1", "import json as _said"],
)
def test_a_name_without_one_is_found(text: str) -> None:
    assert without_a_noun(text)


def test_a_noun_is_none_of_them() -> None:
    assert without_a_noun("def offer(findings): ...\ntold_lines = 1\nx = a.of") == []


def without_a_noun_in_scala(text: str) -> list[str]:
    return [match[0] for match in _SCALA.finditer(_NO_SCALA.sub("", text))]


def test_every_value_in_scala_has_a_noun() -> None:
    files = [file for folder in ("jvm", "tests") for file in (ROOT / folder).rglob("*.scala")]
    assert len(files) > 200
    wrong = {file.name: without_a_noun_in_scala(file.read_text("utf-8")) for file in files}
    assert {file: names for file, names in wrong.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "val of = 1",
        "def f(a: Int, its: Int) = 1",
        "xs.map(told => 1)",
        "case Some(found) => 1",
        "case (said, _) if a => 1",
        "  given: Int,",
    ],
)
def test_a_value_in_scala_without_one_is_found(text: str) -> None:
    assert without_a_noun_in_scala(text)


def test_a_factory_in_scala_is_none_of_them() -> None:
    text = '/* of: a */ def of(a: Int) = 1\nA.of(b)\ncase A(b) => C.of(b)\nval x = "found: 1"'
    assert without_a_noun_in_scala(text) == []
