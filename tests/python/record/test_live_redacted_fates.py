"""Redaction hides texts from people: what became of a decision is told as without it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

import aqepilot
import each_point
import little
import tiers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATTERN = "spark.sql.redaction.string.regex"
HIDDEN = "*********(redacted)"
PATTERNS = ("[0-9]+", "[A-Za-z_]+", "(?s).+")


def run(spark: SparkSession, point: str, text: str, pattern: str) -> list[aqepilot.Decision]:
    """Runs the point's query under a policy and a pattern; what was applied at the point."""
    seen = len(aqepilot.decisions(spark))
    each_point.use(spark, {point: text})
    spark.conf.set(PATTERN, pattern)
    spark.sql(each_point.ROWS[point].query).collect()
    spark.conf.unset(PATTERN)
    # To read decisions is a query, too.
    each_point.use(spark, {})
    made = aqepilot.decisions(spark)[seen:]
    return [d for d in made if d.point == point and d.applied]


def adopted(decisions: list[aqepilot.Decision]) -> set[str]:
    """What ran of decisions that Spark went by; how often it asks hangs on what is done first."""
    ran = {d.final_strategy or "" for d in decisions if d.fate == "adopted"}
    return {re.sub("coalesced from [0-9]+", "coalesced", strategy) for strategy in ran}


@tiers.EIGHTH
@pytest.mark.parametrize("point", each_point.POINTS)
def test_redaction_of_texts_changes_no_fate(skewed_tables: SparkSession, point: str) -> None:
    spark = skewed_tables
    little.settings(spark, each_point.SETTINGS)
    row = each_point.ROWS[point]
    plain = {text: adopted(run(spark, point, text, "(?!)")) for text in (row.one, row.two)}
    assert any(plain.values())
    for pattern in PATTERNS:
        for text, fates in plain.items():
            made = run(spark, point, text, pattern)
            assert all(d.fate for d in made), pattern
            assert adopted(made) == fates, pattern
            shown = "".join(d.answer or "" for d in made).replace(HIDDEN, "")
            assert not re.search(pattern, shown), pattern
