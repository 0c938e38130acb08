"""The cases that both languages run: settings, facts, policy -> answer, decision, reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

FILES = sorted((Path(__file__).parents[1] / "cases").glob("*.json"))
CASES = [
    pytest.param(path.stem, case, id=case["name"])
    for path in FILES
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]
]


@pytest.mark.parametrize(("point", "case"), CASES)
def test_case(spark: SparkSession, point: str, case: dict[str, Any]) -> None:
    for key, value in case["settings"].items():
        spark.conf.set(f"spark.aqepilot.{key}", value)
    given = {"point": point, "text": case["policy"], "facts": json.dumps(case["facts"])}
    row = spark.sql("SELECT * FROM aqepilot_decide(:point, :text, :facts)", args=given).head()
    assert row is not None
    assert (row.answer, row.decision, row.reason) == (
        text(case["answer"]),
        text(case["decision"]),
        case["reason"],
    )


def text(value: Any) -> str | None:
    """A word as it is, a struct's fields as the JSON that the record has."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
