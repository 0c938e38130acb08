"""Any query, any settings, any decisions at all points at once: rows are plain Spark's."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from pyspark.sql import SparkSession

import fuzz_queries
import fuzzing

# `make fuzz` sets these; the test suite runs a few examples, the same each time.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "200"))
SEED = int(os.environ.get("FUZZ_SEED", "20261121"))


@pytest.fixture(scope="module")
def tables(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    fuzz_queries.write(_spark_context, tmp_path_factory.mktemp("fuzz"))
    return _spark_context


@pytest.mark.timeout(0)
def test_any_decisions_leave_the_rows_of_any_query(
    tables: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = fuzzing.Tally()
    started = time.monotonic()

    @seed(SEED)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        backend="anew",
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )
    @given(fuzzing.examples())
    def holds(example: fuzzing.Example) -> None:
        try:
            decisions, rows = fuzzing.check(tables.newSession(), example)
        except fuzzing.Undefined as error:
            tally.rejected[str(error)] += 1
            reject()
        tally.add(decisions, rows)
        if tally.examples % 100 == 0:
            with capsys.disabled():
                print(f"\n{tally.examples} examples, {time.monotonic() - started:.0f} s", end="", flush=True)

    try:
        holds()
    finally:
        with capsys.disabled():
            print(f"\nseed {SEED}: {tally}")
