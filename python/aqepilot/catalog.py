"""What this version of aqepilot knows: decision points, facts, settings, codes.

Read from ``catalog.json``, which the Scala code prints, so that both languages say the same.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from aqepilot.errors import AqePilotError, Problem, nearest


class Word(NamedTuple):
    """A word that a policy may answer, and its meaning."""

    word: str
    meaning: str


class Fact(NamedTuple):
    """A fact that a policy may read.

    Attributes:
        path: Its name in SQL, e.g. ``side.max_bytes``.
        type: Its Spark SQL type, e.g. ``bigint``.
        meaning: What it is, its unit, and what null means.
    """

    path: str
    type: str
    meaning: str


class Field(NamedTuple):
    """A field of a decision.

    Attributes:
        path: Its name, e.g. ``skew_factor``.
        type: Its Spark SQL type.
        meaning: What it does, its unit, and what null means.
    """

    path: str
    type: str
    meaning: str


class Point(NamedTuple):
    """A decision point: a place where Spark chooses.

    Attributes:
        name: Its name, also the key in a policy file.
        built_in: Spark's own rule there.
        asked: When the policy is asked.
        summary: What is decided, in a sentence.
        answer_type: The type of an answer: ``string``, a number's, or ``struct``.
        answer_meaning: What an answer means.
        words: The answers that it takes, where they are words; null is always one more: leave it
            to Spark.
        fields: The fields of an answer, where it is a struct; each may be null.
        facts: What a policy can read there.
    """

    name: str
    built_in: str
    asked: str
    summary: str
    answer_type: str
    answer_meaning: str
    words: tuple[Word, ...]
    fields: tuple[Field, ...]
    facts: tuple[Fact, ...]


class Column(NamedTuple):
    """A column of `aqepilot_decisions()`.

    Attributes:
        name: Its name.
        type: Its Spark SQL type.
        is_optional: Whether it may be null.
        meaning: What it holds, its unit, and what null means.
    """

    name: str
    type: str
    is_optional: bool
    meaning: str


class Setting(NamedTuple):
    """A setting of aqepilot.

    Attributes:
        key: Its key; ``<name>`` and ``<point>`` stand for a policy's and a point's name.
        type: What it takes.
        default: Its default as text; null when unset means something of its own.
        where: ``any``, or ``submitted`` when sessions cannot change it.
        meaning: What it does.
    """

    key: str
    type: str
    default: str | None
    where: str
    meaning: str


class SparkMinor(NamedTuple):
    """A Spark minor that aqepilot supports: the minor, its Scala version, its newest release."""

    minor: str
    scala: str
    newest: str


@cache
def _catalog() -> dict[str, Any]:
    text = files("aqepilot").joinpath("catalog.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


@cache
def points() -> tuple[Point, ...]:
    """Returns every decision point, in the order in which Spark comes to them."""
    return tuple(
        Point(
            name=entry["name"],
            built_in=entry["built_in"],
            asked=entry["asked"],
            summary=entry["summary"],
            answer_type=entry["decision"]["type"],
            answer_meaning=entry["decision"]["meaning"],
            words=tuple(Word(w["word"], w["meaning"]) for w in entry["decision"]["words"]),
            fields=tuple(
                Field(f["path"], f["type"], f["meaning"]) for f in entry["decision"]["fields"]
            ),
            facts=tuple(Fact(f["path"], f["type"], f["meaning"]) for f in entry["facts"]),
        )
        for entry in _catalog()["points"]
    )


def point(name: str) -> Point:
    """Returns the decision point of that name.

    Raises:
        AqePilotError: There is none; says which there are.

    >>> point("dynamic_join_selection").words[0].word
    'BROADCAST'
    """
    by_name = {p.name: p for p in points()}
    if name in by_name:
        return by_name[name]
    known = ", ".join(by_name)
    message = f"there is no decision point {name!r}; there are: {known}."
    raise AqePilotError(
        Problem("POLICY_POINT_UNKNOWN", message, suggestions=nearest(name, by_name))
    )


def facts_schema(point_name: str) -> str:
    """Returns the schema of a decision point's facts, in SQL.

    >>> facts_schema("cost_evaluation")[:42]
    '`query` struct<`execution_id`: bigint, `fi'
    """
    return schema_of(point(point_name).facts)


def schema_of(facts: Iterable[Fact]) -> str:
    """Returns the schema of some facts of a point, in SQL.

    >>> schema_of([Fact("side.is_left", "boolean", ""), Fact("side.max_bytes", "bigint", "")])
    '`side` struct<`is_left`: boolean, `max_bytes`: bigint>'
    """
    return ", ".join(f"`{group}` {struct_of(members)}" for group, members in grouped(facts).items())


def struct_of(facts: Iterable[Fact]) -> str:
    """Returns the type of a group of facts, in SQL."""
    fields = (f"`{fact.path.partition('.')[2]}`: {fact.type}" for fact in facts)
    return f"struct<{', '.join(fields)}>"


def fields_of(struct: str) -> dict[str, str]:
    """Returns the types of a struct's fields by their names.

    >>> fields_of("struct<position:int,tables:array<string>,history:struct<runs:int>>")
    {'position': 'int', 'tables': 'array<string>', 'history': 'struct<runs:int>'}
    """
    fields, depth, start = [], 0, 0
    inner = struct[len("struct<") : -1]
    for i, char in enumerate(inner):
        depth += (char == "<") - (char == ">")
        if char == "," and not depth:
            fields.append(inner[start:i])
            start = i + 1
    pairs = (field.partition(":") for field in (*fields, inner[start:]))
    return {name: kind for name, _, kind in pairs}


def grouped(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    """Returns facts by what stands before the dot of their names."""
    groups: dict[str, list[Fact]] = {}
    for fact in facts:
        groups.setdefault(fact.path.partition(".")[0], []).append(fact)
    return groups


def history() -> tuple[Fact, ...]:
    """Returns the facts of a struct `history` of a sub-plan, by their names in it."""
    return _facts_at("history")


def query_history() -> tuple[Fact, ...]:
    """Returns the facts of `query.history`, by their names in it."""
    return _facts_at("query_history")


def _facts_at(key: str) -> tuple[Fact, ...]:
    return tuple(Fact(f["path"], f["type"], f["meaning"]) for f in _catalog()[key])


@cache
def point_names() -> tuple[str, ...]:
    """Returns the names of the decision points."""
    return tuple(p.name for p in points())


def decision_columns() -> tuple[Column, ...]:
    """Returns every column of `aqepilot_decisions()`, in its order."""
    return tuple(
        Column(c["name"], c["type"], c["is_optional"], c["meaning"])
        for c in _catalog()["decision_columns"]
    )


def settings() -> tuple[Setting, ...]:
    """Returns every setting of aqepilot."""
    return tuple(
        Setting(s["key"], s["type"], s.get("default"), s["where"], s["meaning"])
        for s in _catalog()["settings"]
    )


def reasons() -> dict[str, str]:
    """Returns each reason code of a decision with its meaning."""
    return {entry["code"]: entry["meaning"] for entry in _catalog()["reasons"]}


def spark_faults() -> list[dict[str, Any]]:
    """Returns the faults of Spark releases that decisions are kept from."""
    faults: list[dict[str, Any]] = _catalog()["spark_faults"]
    return faults


def problems() -> dict[str, str]:
    """Returns each problem code of `aqepilot_status()` with its meaning."""
    return {entry["code"]: entry["meaning"] for entry in _catalog()["problems"]}


def fates() -> dict[str, str]:
    """Returns each fate of an applied decision with its meaning."""
    return {entry["name"]: entry["meaning"] for entry in _catalog()["fates"]}


def run_sources() -> dict[str, str]:
    """Returns each source of a run's name with what it reads, in the order of asking."""
    return {entry["name"]: entry["meaning"] for entry in _catalog()["run_sources"]}


def experiment_units() -> dict[str, str]:
    """Returns what can get an arm of an experiment, with its meaning."""
    return {entry["name"]: entry["meaning"] for entry in _catalog()["experiment_units"]}


def control_selectors() -> dict[str, str]:
    """Returns what a rule of the control file can be for, by name, with its meaning."""
    return {entry["name"]: entry["meaning"] for entry in _catalog()["control_selectors"]}


@cache
def spark_minors() -> tuple[SparkMinor, ...]:
    """Returns the Spark minors that aqepilot supports, oldest first; one row per Scala version.

    >>> spark_minors()[0].minor
    '3.5'
    """
    text = files("aqepilot").joinpath("spark_versions.csv").read_text("utf-8")
    return tuple(
        SparkMinor(row["minor"].strip(), row["scala"].strip(), row["newest"].strip())
        for row in csv.DictReader(text.splitlines())
    )


def type_of_answers(point_name: str) -> str:
    """Returns the Spark SQL type of a point's answers.

    Args:
        point_name: The decision point.

    >>> type_of_answers("shuffle_partitions"), type_of_answers("join_selection")
    ('int', 'struct<strategy: string, build_side: string>')
    """
    known = point(point_name)
    if not known.fields:
        return known.answer_type
    return f"struct<{', '.join(f'{field.path}: {field.type}' for field in known.fields)}>"
