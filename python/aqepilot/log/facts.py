"""The facts of decisions as columns: unpacked, and those of them that a policy's text names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aqepilot import catalog
from aqepilot.function import is_python
from aqepilot.log import functions_of_python, left_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PLAIN = ("bigint", "int", "double", "boolean", "string")


def with_facts(asks: DataFrame, point: str) -> DataFrame:
    """Adds the facts of a point as a struct `f`; `f._corrupt` is not null where they are cut."""
    from pyspark.sql import functions

    packed = functions.expr("CASE WHEN contains(facts, '\"packed\":') THEN facts END")
    facts = functions.coalesce(functions_of_python.unpacked()(packed), left_out.as_nulls("facts"))
    schema = f"{catalog.facts_schema(point)}, `_corrupt` string"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}
    return asks.withColumn("f", functions.from_json(facts, schema, options))


def named(point: str, texts: Iterable[str]) -> list[str]:
    """Returns the facts of a point, but for arrays, that texts in SQL name.

    A Python function does not say what it reads.

    Args:
        point: The decision point.
        texts: Policies' texts there, and their `when`.

    >>> named("skew_join", ["CASE WHEN `left`.max_bytes > right.p99_bytes THEN 1 END"])
    ['left.max_bytes', 'right.p99_bytes']
    """
    plain = [text.lower().replace("`", "") for text in texts if not is_python(text)]

    def is_named(path: str) -> bool:
        parts = r"\s*\.\s*".join(map(re.escape, path.split(".")))
        pattern = rf"(?<![\w.]){parts}(?!\w)"
        return any(re.search(pattern, text) for text in plain)

    return [
        fact.path
        for fact in catalog.point(point).facts
        if fact.type in _PLAIN and is_named(fact.path)
    ]
