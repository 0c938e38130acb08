"""The Python modules lie in layers: none refers up, and none in a circle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import aqepilot
import places

SOURCES = places.ROOT / "python"
# From the lowest to the highest. Below are policies, facts, sessions and what submits them.
LAYERS = (
    ("aqepilot.eventlog",),
    ("aqepilot.history",),
    ("aqepilot.analysis",),
    ("aqepilot.autopilot",),
    ("aqepilot.assistant",),
    ("aqepilot.cli", "aqepilot.demo", "aqepilot.__main__"),
)


class Reference(NamedTuple):
    """That a module imports another, at its top or in a function.

    Attributes:
        module: The one that imports.
        imported: The other.
    """

    module: str
    imported: str


def module_name(file: Path) -> str:
    """Returns the dotted name of a source."""
    parts = file.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(file): file for file in sorted(SOURCES.rglob("*.py"))}


def references(module: str, text: str) -> Iterator[Reference]:
    """Yields what a source imports of ours, but for types alone."""
    for_types = {
        node
        for block in ast.walk(ast.parse(text))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ((child.lineno, child.end_lineno) for child in block.body)
    }
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        if any(first <= node.lineno <= (last or first) for first, last in for_types):
            continue
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            imported_modules = {home(node.module, alias.name) for alias in node.names}
        else:
            imported_modules = {alias.name for alias in node.names} & MODULES.keys()
        for name in sorted(imported_modules - {module}):
            yield Reference(module, name)


def home(package: str, name: str) -> str:
    """Returns the module that a name of a package is, or that has it."""
    full = f"{package}.{name}"
    if package == "aqepilot" and name in aqepilot._HOME:
        return f"aqepilot.{aqepilot._HOME[name]}"
    return full if full in MODULES else package


def layer(module: str) -> int:
    """Returns the number of a module's layer; 0 is below all that are named."""
    numbers = [
        number
        for number, packages in enumerate(LAYERS, 1)
        if any(f"{module}.".startswith(f"{package}.") for package in packages)
    ]
    return max(numbers, default=0)


def wrong(reference: Reference) -> str | None:
    """Says what is wrong with a reference, if anything."""
    # The package itself has no code of its own: it loads what is asked of it.
    if reference.imported == "aqepilot" or reference.module == "aqepilot":
        return None
    if layer(reference.imported) > layer(reference.module):
        return f"{reference.module} refers up to {reference.imported}"
    return None


def all_references() -> list[Reference]:
    return [
        reference
        for module, file in MODULES.items()
        for reference in references(module, file.read_text("utf-8"))
    ]


def order(listed: list[Reference]) -> list[str]:
    """Returns modules, each after what it imports; a CycleError names a circle."""
    beneath: dict[str, set[str]] = {}
    for reference in listed:
        if "aqepilot" not in reference:
            beneath.setdefault(reference.module, set()).add(reference.imported)
    return list(TopologicalSorter(beneath).static_order())


def test_no_module_refers_to_a_layer_above_its_own() -> None:
    listed = all_references()
    assert len(listed) > 300
    assert [what for what in map(wrong, listed) if what] == []


def test_modules_do_not_import_each_other_in_a_circle() -> None:
    modules = order(all_references())
    assert modules.index("aqepilot.eventlog.files") < modules.index("aqepilot.analysis.log")


@pytest.mark.parametrize(
    ("module", "line", "is_wrong"),
    [
        ("aqepilot.policies", "from aqepilot.eventlog import files", True),
        ("aqepilot.eventlog.files", "from aqepilot import read_log", True),
        ("aqepilot.eventlog.frames", "def f():\n    from aqepilot.analysis import costs", True),
        ("aqepilot.analysis.costs", "import aqepilot.cli", True),
        ("aqepilot.assistant.tools", "import aqepilot.cli", True),
        ("aqepilot.analysis.costs", "from aqepilot.assistant import answers", True),
        ("aqepilot.analysis.costs", "from aqepilot.eventlog.frames import Frames", False),
        ("aqepilot.policies", "if TYPE_CHECKING:\n    from aqepilot.analysis import log", False),
        ("aqepilot.session", "from aqepilot import policies", False),
    ],
)
def test_a_reference_up_is_found(module: str, line: str, is_wrong: bool) -> None:
    assert any(map(wrong, references(module, line))) == is_wrong


def test_a_circle_is_found() -> None:
    one, other = "aqepilot.policies", "aqepilot.catalog"
    circle = [Reference(one, other), Reference(other, one)]
    with pytest.raises(CycleError):
        order(circle)
