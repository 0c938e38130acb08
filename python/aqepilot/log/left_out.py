"""Arrays of facts that a log with `spark.aqepilot.log.facts=summary` has only the lengths of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aqepilot import catalog
from aqepilot.function import is_python

if TYPE_CHECKING:
    from pyspark.sql import Column

# Facts, as SQL, of which one was left out; texts in JSON have their quotes escaped.
IS = "contains(facts, '{\"left_out\":')"


def as_nulls(facts: str) -> Column:
    """Returns facts as JSON with a null in the place of each array that was left out."""
    from pyspark.sql import functions

    return functions.regexp_replace(facts, r'\{"left_out":\d+\}', "null")


def may_be_read(point: str, text: str) -> bool:
    """Whether a policy's text may read an array of numbers at a decision point.

    A Python function may read anything. A SQL text may where it names such an array, or a whole
    group of facts that has one.

    Args:
        point: The decision point.
        text: The policy's text there.

    >>> may_be_read("skew_join", "named_struct('skew_factor', left.max_bytes / 1e6)")
    False
    >>> may_be_read("skew_join", "transform(left.bytes_by_partition_id, b -> 1)")
    True
    >>> may_be_read("skew_join", "to_json(left)")
    True
    """
    if is_python(text):
        return True
    plain = text.lower().replace("`", "")
    arrays = [fact.path for fact in catalog.point(point).facts if fact.type == "array<bigint>"]
    groups, names = zip(*(path.split(".") for path in arrays), strict=True) if arrays else ((), ())
    return any(re.search(rf"\b{name}\b", plain) for name in names) or any(
        re.search(rf"\b{group}\b(?!\s*\.)|\b{group}\s*\.\s*\*", plain) for group in groups
    )
