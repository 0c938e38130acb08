"""The legal answers at a decision: each of them is carried out, and others are refused."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import aqepilot
import each_point
from aqepilot import catalog

# A policy without an answer, which is asked and recorded.
ASKED = {point: f"CAST(NULL AS {catalog.type_of_answers(point)})" for point in each_point.POINTS}
# Of the same type as an answer, and never legal.
ILLEGAL = {
    "join_reorder": "array(0, 0, 1)",
    "join_selection": "named_struct('strategy', 'SHUFFLE_MERGE', 'build_side', 'LEFT')",
    "dynamic_join_selection": "'SHUFFLE_REPLICATE_NL'",
    "shuffle_partitions": "0",
    "skew_join": "named_struct('max_splits', 0)",
    "partition_coalescing": "named_struct('keep', true, 'min_partitions', 2)",
    "cost_evaluation": "double('NaN')",
    "write_distribution": "named_struct('rebalance', true, 'columns', array('nothing'))",
}


@pytest.fixture
def tables(skewed_tables: SparkSession) -> SparkSession:
    for key, value in each_point.SETTINGS.items():
        skewed_tables.conf.set(key, value)
    return skewed_tables


def literal(answer: str, point: str) -> str:
    """An answer of the record as SQL."""
    kind = catalog.type_of_answers(point)
    if kind.startswith("struct<"):
        return f"from_json('{answer}', '{kind}')"
    if answer.startswith("["):
        return f"array({answer[1:-1]})"
    return f"'{answer}'" if kind == "string" else answer


def recorded(spark: SparkSession) -> list[aqepilot.Decision]:
    """The query that reads them has a shuffle: nobody is to be asked about that."""
    spark.conf.set("spark.aqepilot.mode", "off")
    rows = list(aqepilot.decisions(spark))
    spark.conf.unset("spark.aqepilot.mode")
    return rows


def decided(spark: SparkSession, point: str, text: str) -> list[aqepilot.Decision]:
    """The decisions of the point that running its query led to."""
    before = max((one.decision_id for one in recorded(spark)), default=-1)
    each_point.use(spark, {point: text})
    each_point.run(spark, each_point.QUERIES[point])
    return [one for one in recorded(spark) if one.decision_id > before]


@pytest.mark.parametrize("point", each_point.POINTS)
def test_a_legal_answer_is_carried_out_and_another_is_refused(
    tables: SparkSession, point: str
) -> None:
    first, *_ = decided(tables, point, ASKED[point])
    rows = tables.sql("SELECT * FROM aqepilot_legal_answers()").collect()
    answers = [row.answer for row in rows if row.decision_id == first.decision_id]
    assert len(answers) >= 2
    for answer in (answers[0], answers[-1]):
        (made, *_) = decided(tables, point, literal(answer, point))
        assert (made.subject is not None, made.reason) == (True, "APPLIED"), (answer, made)
    (refused, *_) = decided(tables, point, ILLEGAL[point])
    assert refused.answer not in answers
    assert not refused.applied
