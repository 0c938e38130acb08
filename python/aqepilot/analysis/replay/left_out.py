"""Arrays of facts that a log with `spark.aqepilot.log.facts=summary` has only the lengths of."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column

# Facts, as SQL, of which one was left out; texts in JSON have their quotes escaped.
IS = "contains(facts, '{\"left_out\":')"


def as_nulls(facts: str) -> Column:
    """Returns facts as JSON with a null in the place of each array that was left out."""
    from pyspark.sql import functions

    return functions.regexp_replace(facts, r'\{"left_out":\d+\}', "null")
