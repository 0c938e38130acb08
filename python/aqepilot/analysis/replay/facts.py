"""The facts of decisions as columns: unpacked, and those of them that a policy's text names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aqepilot import catalog
from aqepilot.analysis.replay import python_functions
from aqepilot.catalog import Fact
from aqepilot.function import is_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Facts in JSON of which a log with `spark.aqepilot.log.facts=summary` has an array's length only.
# Quotes within texts are escaped there.
LACKS_ARRAY = "contains(facts, '{\"left_out\":')"
_PLAIN = ("bigint", "int", "double", "boolean", "string")


def with_facts(asks: DataFrame, point: str, texts: Iterable[str]) -> DataFrame:
    """Adds facts of a point as a struct `f`; `f._corrupt` is not null where they are cut.

    Args:
        asks: Rows with `facts`, as JSON.
        point: The decision point.
        texts: All that read the facts. What none of them may read is left out: to read a fact costs
            more than to pass it over.
    """
    from pyspark.sql import functions

    read = may_be_read(point, texts)
    column = functions.col("facts")
    if has_long(read):
        packed = functions.expr("CASE WHEN contains(facts, '\"packed\":') THEN facts END")
        unpacked = python_functions.unpacked()(packed)
        column = functions.coalesce(
            unpacked, functions.regexp_replace("facts", r'\{"left_out":\d+\}', "null")
        )
    schema = ", ".join(filter(None, [catalog.schema_of(read), "`_corrupt` string"]))
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    return asks.withColumn("f", functions.from_json(column, schema, options))


def as_asked(point: str, texts: Iterable[str]) -> dict[str, str]:
    """Returns each group of a point's facts in SQL, over `with_facts` of the same texts.

    A fact that they do not read is a null there.
    """
    read = catalog.grouped(may_be_read(point, texts))
    values = {}
    for group, facts in catalog.grouped(catalog.point(point).facts).items():
        if read.get(group) == facts:
            values[group] = f"f.`{group}`"
        elif group in read:
            names = {fact.path for fact in read[group]}
            fields = ", ".join(_field(fact, fact.path in names) for fact in facts)
            values[group] = f"named_struct({fields})"
        else:
            values[group] = f"cast(null AS {catalog.struct_of(facts)})"
    return values


def may_be_read(point: str, texts: Iterable[str]) -> list[Fact]:
    """Returns the facts of a point that texts may read.

    A Python function may read all of them. A text in SQL may read those that it names, all of a
    group that it names as a whole, and all where it has a star that stands for columns.

    Args:
        point: The decision point.
        texts: Policies' texts there, their `when`, and conditions.

    >>> [f.path for f in may_be_read("skew_join", ["left.max_bytes / 1e6 * right . p99_bytes"])]
    ['left.max_bytes', 'right.p99_bytes']
    >>> {f.path.partition(".")[0] for f in may_be_read("skew_join", ["to_json(left)"])}
    {'left'}
    >>> len(may_be_read("skew_join", ["struct(*)"])) == len(catalog.point("skew_join").facts)
    True
    """
    facts = catalog.point(point).facts
    texts = list(texts)
    plain = [text.lower().replace("`", "") for text in texts]
    if any(map(is_python, texts)) or any(re.search(r"[(,]\s*\*", text) for text in plain):
        return list(facts)

    def are_read(group: str, name: str) -> bool:
        whole = rf"(?<![\w.]){group}(?!\w)(?!\s*\.\s*\w)"
        return any(re.search(rf"{whole}|{_pattern(group, name)}", text) for text in plain)

    return [fact for fact in facts if are_read(*fact.path.split("."))]


def _pattern(*names: str) -> str:
    path = r"\s*\.\s*".join(names)
    return rf"(?<![\w.]){path}(?!\w)"


def has_long(facts: Iterable[Fact]) -> bool:
    """Whether a log may have one of them packed, or left out."""
    return any(fact.type == "array<bigint>" for fact in facts)


def _field(fact: Fact, is_read: bool) -> str:
    value = f"f.{fact.path}" if is_read else f"cast(null AS {fact.type})"
    return f"'{fact.path.partition('.')[2]}', {value}"


def named(point: str, texts: Iterable[str]) -> list[str]:
    """Returns the facts of a point, but for arrays, that texts in SQL name.

    A Python function does not say what it reads.

    Args:
        point: The decision point.
        texts: Policies' texts there, and their `when`.

    >>> named("skew_join", ["CASE WHEN `left`.max_bytes > right.p99_bytes THEN 1 END"])
    ['left.max_bytes', 'right.p99_bytes']
    >>> named("skew_join", ["IF(left.history.runs > 1, NULL, NULL)"])
    ['left.history.runs']
    """
    plain = [text.lower().replace("`", "") for text in texts if not is_python(text)]

    def is_named(path: str) -> bool:
        return any(re.search(_pattern(*path.split(".")), text) for text in plain)

    return [
        path
        for fact in catalog.point(point).facts
        for path, kind in _leaves(fact.path, fact.type)
        if kind in _PLAIN and is_named(path)
    ]


def _leaves(path: str, kind: str) -> list[tuple[str, str]]:
    """A fact with its type, or those in a struct with theirs."""
    if not kind.startswith("struct<"):
        return [(path, kind)]
    return [(f"{path}.{name}", inner) for name, inner in catalog.fields_of(kind).items()]
