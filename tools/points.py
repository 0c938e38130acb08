"""Writes modules of types from catalog.json (make catalog).

Those are aqepilot/points.py, of facts and decisions, and aqepilot/decision_columns.py, of records.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from aqepilot import catalog

WIDTH = 100
SHARED = ("query", "conf", "cluster")
TYPES = {
    "boolean": "bool",
    "int": "int",
    "bigint": "int",
    "double": "float",
    "string": "str",
    "timestamp": "datetime",
}
HEAD = '''\
"""Types of the facts and decisions of each decision point, for annotations and editors.

Generated from catalog.json: `make catalog`. The facts that a function is given have these
attributes; `aqepilot.testing.facts` makes some. None means that Spark does not know. In a decision,
None leaves that field to Spark.

>>> SkewJoin(force=True, left_splits=[1, 4]).asdict()
{'force': True, 'left_splits': [1, 4]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


class _Decision:
    def asdict(self) -> dict[str, Any]:
        """Returns the fields that are decided, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}
'''


class Attribute(NamedTuple):
    """One of a class; ``items`` are the fields of the structs in an array of them."""

    name: str
    type: str
    meaning: str
    items: tuple[Attribute, ...] = ()


COLUMNS_HEAD = '''\
"""The columns of a recorded decision.

Generated from catalog.json: `make catalog`.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
'''


def columns() -> str:
    """Returns the module of the columns of decisions, as `ruff format` would leave it."""
    members = [
        Attribute(
            "facts_json" if column.name == "facts" else column.name,
            TYPES[column.type] + (" | None" if column.is_optional else ""),
            column.meaning,
        )
        for column in catalog.decision_columns()
    ]
    about = "The columns of `aqepilot_decisions()`; its `facts` are `facts_json`."
    written = _class("DecisionColumns", "NamedTuple", about, members)
    return f"{COLUMNS_HEAD}\n\n{written}\n"


def page() -> str:
    """Returns the module of points, as `ruff format` would leave it."""
    points = catalog.points()
    shared = [part for name in SHARED for part in group(name.title(), _groups(points[0])[name])]
    shared = [*histories(), *shared]
    return "\n\n\n".join([HEAD.rstrip(), *shared, *(c for p in points for c in classes(p))]) + "\n"


def histories() -> Iterator[str]:
    """The classes of what past runs measured."""
    abouts = ("What past runs measured of a sub-plan, or of a shuffle.", "Past runs of a query.")
    for (name, facts), about in zip(_histories().items(), abouts, strict=True):
        members = [_attribute(f.path, f.type, f.meaning) for f in facts]
        yield from group(name, members, about)


def _histories() -> dict[str, tuple[catalog.Fact, ...]]:
    return {"History": catalog.history(), "QueryHistory": catalog.query_history()}


def classes(point: catalog.Point) -> Iterator[str]:
    prefix = point.name.title().replace("_", "")
    groups = _groups(point)
    seen: dict[tuple[Attribute, ...], str] = {}
    members = []
    for name, facts in groups.items():
        class_name = name.title() if name in SHARED else prefix + name.title()
        members.append(Attribute(name, class_name, ""))
        if name in SHARED:
            continue
        same = seen.setdefault(facts, class_name)
        if same == class_name:
            yield from group(class_name, facts, f"The facts `{name}` at `{point.name}`.")
        else:
            about = f"The facts `{name}` at `{point.name}`: those of `{same}`."
            yield _class(class_name, f"{same}, Protocol", about)
    about = f"The facts at `{point.name}`.\n\n{_sentence(point.summary)} Asked {point.asked}."
    yield _class(f"{prefix}Facts", "Protocol", about, members)
    yield from decision(point, prefix)


def group(name: str, facts: Iterable[Attribute], about: str = "") -> Iterator[str]:
    members = []
    for fact in facts:
        if fact.items:
            own = fact.name.title().replace("_", "").removesuffix("s")
            class_name = name.removesuffix(fact.name.title()) + own
            yield from group(class_name, fact.items, f"One of `{fact.name}`.")
            fact = fact._replace(type=f"tuple[{class_name}, ...]")
        members.append(fact._replace(type=f"{fact.type} | None"))
    yield _class(name, "Protocol", about or f"The facts `{name.lower()}`, at every point.", members)


def decision(point: catalog.Point, prefix: str) -> Iterator[str]:
    """The class of a struct, and the words that an answer, or its main field, may be."""
    words = ", ".join(f'"{w.word}"' for w in point.words)
    fields = [Attribute(f.path, _type(f.type, "Sequence"), f.meaning) for f in point.fields]
    if point.words:
        name = prefix + (fields[0].name.title() if fields else "")
        fields = [fields[0]._replace(type=name), *fields[1:]] if fields else []
        yield _fitted(f"{name} = Literal[{words}]")
    if fields:
        about = f"The decision at `{point.name}`.\n\n{_sentence(point.answer_meaning)}"
        members = [f._replace(type=f"{f.type} | None = None") for f in fields]
        class_name = _class(prefix, "_Decision", about, members)
        yield f"@dataclass(frozen=True, kw_only=True)\n{class_name}"


def _groups(point: catalog.Point) -> dict[str, tuple[Attribute, ...]]:
    return {
        name: tuple(_attribute(f.path.partition(".")[2], f.type, f.meaning) for f in facts)
        for name, facts in groupby(point.facts, lambda fact: fact.path.partition(".")[0])
    }


def _attribute(name: str, sql: str, meaning: str) -> Attribute:
    struct = re.fullmatch(r"array<(struct<.*>)>", sql)
    fields = catalog.fields_of(struct[1]) if struct else {}
    items = tuple(_attribute(field, kind, "") for field, kind in fields.items())
    return Attribute(name, "" if struct else _type(sql, "tuple"), meaning, items)


def _type(sql: str, sequence: str) -> str:
    if sql.startswith("struct<"):
        known = {tuple(f.path for f in facts): name for name, facts in _histories().items()}
        return known[tuple(catalog.fields_of(sql))]
    if sql == "array<bigint>":
        return "memoryview"
    array = re.fullmatch(r"array<(\w+)>", sql)
    if array and sequence == "tuple":
        return f"tuple[{TYPES[array[1]]}, ...]"
    return f"Sequence[{TYPES[array[1]]} | None]" if array else TYPES[sql]


def _class(name: str, bases: str, about: str, members: Sequence[Attribute] = ()) -> str:
    lines = [f"class {name}({bases}):", *_doc(about)]
    if members:
        lines.append("")
    for member in members:
        lines.append(f"    {member.name}: {member.type}")
        lines += _doc(member.meaning) if member.meaning else []
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _doc(text: str) -> list[str]:
    if len(text) + 10 <= WIDTH and "\n" not in text:
        return [f'    """{text}"""']
    lines = [
        line and f"    {line}"
        for part in f'"""{text}'.split("\n")
        for line in textwrap.wrap(part, WIDTH - 4) or [""]
    ]
    return [*lines, '    """']


def _fitted(line: str) -> str:
    """A line, or the list in it an item a line where it is too long."""
    if len(line) <= WIDTH:
        return line
    head, _, items = line.removesuffix("]").partition("[")
    return "\n".join([f"{head}[", *(f"    {item}," for item in items.split(", ")), "]"])


if __name__ == "__main__":
    package = Path(catalog.__file__).parent
    package.joinpath("points.py").write_text(page(), "utf-8")
    package.joinpath("decision_columns.py").write_text(columns(), "utf-8")
