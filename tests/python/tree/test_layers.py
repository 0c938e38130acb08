"""The Scala packages lie in layers: a file refers to its own and to those beneath, never up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from typing import NamedTuple

import pytest

import places

SOURCES = places.ROOT / "jvm/src/main"
OURS = "io.aqepilot"
IN_SPARK = "org.apache.spark.sql.aqepilot"
POINTS = f"{IN_SPARK}.points"
# From the lowest to the highest. A package that is not named belongs to the one around it.
LAYERS = {
    "what logs name, and codes": (f"{OURS}.log", f"{IN_SPARK}.reasons"),
    "calls into Spark": (
        "org.apache.spark.sql.execution.adaptive",
        "org.apache.spark.sql.execution.aqepilot",
        f"{IN_SPARK}.spark",
    ),
    "settings": (f"{IN_SPARK}.settings",),
    "history": (f"{IN_SPARK}.history",),
    "facts": (f"{IN_SPARK}.facts",),
    "decision": (f"{IN_SPARK}.decision",),
    "policy": (f"{IN_SPARK}.policy",),
    "run: experiment and control": (f"{IN_SPARK}.run",),
    "record": (f"{IN_SPARK}.record",),
    "what each point's rule does alike": (f"{IN_SPARK}.rule",),
    "plans, shared by the points": (f"{IN_SPARK}.plans",),
    "points": (POINTS,),
    "the table functions": (f"{IN_SPARK}.sql",),
    "Spark's UI": (f"{IN_SPARK}.ui",),
    "extension": (OURS, IN_SPARK),
}
PACKAGES = {
    package: layer for layer, packages in enumerate(LAYERS.values()) for package in packages
}
# Comments and texts.
_NO_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)
_PACKAGE = re.compile(r"^package ([\w.]+)", re.MULTILINE)
_NAME = re.compile(r"\b(?:io\.aqepilot|org\.apache\.spark\.sql\.(?:aqepilot|execution))(?:\.\w+)*")
_IMPORT = re.compile(r"\bimport ([\w.]+)\.\{([^}]*)\}")


class Reference(NamedTuple):
    """That a file refers to a package of ours.

    Attributes:
        file: Where, below the sources.
        package: Of the file.
        to: The package, or what is in it.
    """

    file: str
    package: str
    to: str


def home(name: str) -> str | None:
    """Returns the package in the layers that a name is in, if it is one of ours."""
    homes = [p for p in PACKAGES if name == p or name.startswith(f"{p}.")]
    return max(homes, key=len) if homes else None


def of_point(package: str) -> str | None:
    """Returns the decision point that a package is of."""
    return package[len(POINTS) + 1 :] if package.startswith(f"{POINTS}.") else None


def references(file: str, text: str) -> Iterator[Reference]:
    """Yields what a source refers to by full names: in imports and anywhere else in the code."""
    package = _PACKAGE.search(text)
    assert package, file
    code = _NO_CODE.sub("", text[package.end() :])
    names = set(_NAME.findall(code))
    for path, selected in _IMPORT.findall(code):
        names |= {f"{path}.{name.split('=>')[0].strip()}" for name in selected.split(",")}
    for name in sorted(names):
        if home(name):
            yield Reference(file, package[1], name)


def wrong(reference: Reference) -> str | None:
    """Says what is wrong with a reference, if anything."""
    here, there = home(reference.package), home(reference.to)
    assert here, f"{reference.file}: {reference.package} is in no layer"
    assert there
    if there in (OURS, IN_SPARK) and not re.search(r"\.[A-Z]", reference.to):
        return None
    if PACKAGES[there] > PACKAGES[here]:
        return f"{reference.file} refers up to {reference.to}"
    one, other = of_point(reference.package), of_point(reference.to)
    if one and other and not (f"{other}.".startswith(f"{one}.")):
        return f"{reference.file} of {one} refers to another point: {reference.to}"
    return None


def all_references() -> list[Reference]:
    return [
        reference
        for file in sorted(SOURCES.rglob("*.scala"))
        for reference in references(str(file.relative_to(SOURCES)), file.read_text())
    ]


def test_no_source_refers_to_a_layer_above_its_own_or_to_another_point() -> None:
    above = all_references()
    assert len(above) > 500
    assert [what for what in map(wrong, above) if what] == []


def test_packages_do_not_refer_to_each_other_in_a_circle() -> None:
    beneath: dict[str, set[str]] = {}
    for here, there in (
        (home(reference.package), home(reference.to)) for reference in all_references()
    ):
        if here and there and here != there and {here, there}.isdisjoint({OURS, IN_SPARK}):
            beneath.setdefault(here, set()).add(there)
    order = list(TopologicalSorter(beneath).static_order())  # CycleError names the circle.
    assert order.index(f"{IN_SPARK}.decision") < order.index(f"{IN_SPARK}.run")


@pytest.mark.parametrize(
    ("package", "line", "is_wrong"),
    [
        (f"{IN_SPARK}.policy.sql", f"import {IN_SPARK}.record.DecisionLog", True),
        (f"{IN_SPARK}.spark", f"def mode = {IN_SPARK}.settings.AqePilotConf.Mode", True),
        (f"{IN_SPARK}.record", f"import {POINTS}.skew_join.SkewJoinPoint", True),
        (f"{POINTS}.skew_join", f"import {POINTS}.join_reorder.{{A, B}}", True),
        (f"{IN_SPARK}.decision", f"import {IN_SPARK}.{{run, Status}}", True),
        (f"{POINTS}.skew_join", f"import {IN_SPARK}.plans.joins.{{A => B, C}}", False),
        (f"{IN_SPARK}.spark", f"/* see {IN_SPARK}.record.DecisionLog */", False),
        (f"{IN_SPARK}.policy", "import org.apache.spark.sql.execution.SparkPlan", False),
    ],
)
def test_a_reference_up_is_told(package: str, line: str, is_wrong: bool) -> None:
    listed = references("Some.scala", f"package {package}\n\n{line}\n")
    assert any(map(wrong, listed)) == is_wrong


def test_each_point_has_its_package() -> None:
    sources = (SOURCES / "scala/org/apache/spark/sql/aqepilot/points").glob("*/*Point.scala")
    names = sorted(file.parent.name for file in sources)
    assert names == sorted(set(names))
    text = (
        SOURCES / "scala/org/apache/spark/sql/aqepilot/decision/DecisionPoints.scala"
    ).read_text()
    listed = text[text.index("final val") : text.index("val names")]
    assert names == sorted(re.findall(r'"(\w+)"', listed))
