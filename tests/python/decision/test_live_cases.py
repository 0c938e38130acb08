"""The cases that both languages run: settings, facts, policy -> answer, decision, reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import places
from aqepilot import catalog

FOLDER = places.CASES
FILES = [FOLDER / f"{point}.json" for point in catalog.point_names()]
# A query has a task for each case.
AT_ONCE = 50


def merged(every: Any, difference: Any) -> Any:
    """What the file says of all cases, with a case's difference."""
    if not (isinstance(every, dict) and isinstance(difference, dict)):
        return difference
    return every | {key: merged(every.get(key), value) for key, value in difference.items()}


def cases(path: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """The file's cases, each whole, by the point and their name."""
    whole = json.loads(path.read_text(encoding="utf-8"))
    every = {"facts": whole["facts"], "settings": whole["settings"]}
    return {(path.stem, case["name"]): merged(every, case) for case in whole["cases"]}


CASES = {key: case for path in FILES for key, case in cases(path).items()}


@pytest.fixture(scope="module")
def answers(
    _spark_context: SparkSession, swallowed_faults: Callable[[], dict[str, int]]
) -> dict[tuple[str, str], Row]:
    """What Spark says of each case: cases with the same settings in one session and query."""
    before = swallowed_faults()
    answers: dict[tuple[str, str], Row] = {}
    by_settings = groupby(
        sorted(CASES, key=lambda key: settings(CASES[key])), lambda key: settings(CASES[key])
    )
    for of_session, keys in by_settings:
        spark = _spark_context.newSession()
        for key, value in of_session:
            spark.conf.set(f"spark.aqepilot.{key}", value)
        rest = list(keys)
        while rest:
            some, rest = rest[:AT_ONCE], rest[AT_ONCE:]
            answers |= zip(some, decided(spark, some), strict=True)
    assert swallowed_faults() == before
    return answers


def settings(case: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted(case["settings"].items())


def decided(spark: SparkSession, keys: list[tuple[str, str]]) -> list[Row]:
    selects, args = [], dict[str, str]()
    for n, key in enumerate(keys):
        selects.append(f"SELECT {n} AS n, * FROM aqepilot_decide(:point{n}, :text{n}, :facts{n})")
        case = CASES[key]
        arguments = {"point": key[0], "text": case["policy"], "facts": json.dumps(case["facts"])}
        args |= {f"{name}{n}": value for name, value in arguments.items()}
    return sorted(spark.sql(" UNION ALL ".join(selects), args=args).collect(), key=itemgetter("n"))


@pytest.mark.parametrize(("point", "name"), [pytest.param(*key, id=key[1]) for key in CASES])
def test_case(answers: dict[tuple[str, str], Row], point: str, name: str) -> None:
    case, row = CASES[point, name], answers[point, name]
    assert (row.answer, row.decision, row.reason) == (
        text(case["answer"]),
        text(case["decision"]),
        case["reason"],
    )


def text(value: Any) -> str | None:
    """A word as it is, a struct's fields as the JSON that the record has."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, dict) else value
