"""Any query under any settings with any decisions at all points: the rows are plain Spark's.

`make fuzz N=10000` runs more examples than the test suite does.
"""

from __future__ import annotations

import json
import math
import os
import signal
import statistics
import threading
import time

import pytest
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from pyspark.sql import SparkSession

import fuzz_history
import fuzz_partitioned
import fuzz_policies
import fuzz_pruning
import fuzz_tables
import fuzzing
import tiers

N = int(os.environ.get("FUZZ_N", "120"))
# The test suite runs the same examples each time.
# A short run has few policies: at these seeds each point has some that are applied.
SEED = int(os.environ.get("FUZZ_SEED", {"3.5": "6"}.get(tiers.MINOR, "7")))

# Of the Spark that the examples run in: `make native-engines` has an engine beside aqepilot.
FURTHER: dict[str, str] = json.loads(os.environ.get("FUZZ_SETTINGS", "{}"))

# More than the test suite runs.
SHORT = 1000

# Who only wants to know how long it takes to find something needs no small example of it.
IS_SHRUNK = os.environ.get("FUZZ_SHRINK", "1") == "1"
PHASES = (Phase.generate, Phase.shrink) if IS_SHRUNK else (Phase.generate,)

# Policies decide by a history, too, which is wrong by any factor.
HAS_HISTORY = os.environ.get("FUZZ_HISTORY", "0") == "1"

# An example takes some seconds, and many more on a busy machine.
MOST_SECONDS = 1800

# The least number of decisions applied to one example, on average: about half of what is usual.
FLOORS = dict.fromkeys(fuzz_policies.POINTS, 0.3) | {
    **{"skew_join": 0.08, "join_reorder": 0.1},
    # One query in five is written.
    "write_distribution": 0.03,
}


@pytest.fixture(scope="session")
def context_settings() -> dict[str, str]:
    return (fuzzing.LONG if N > SHORT else {}) | (fuzz_history.SUBMITTED if HAS_HISTORY else {})


@pytest.fixture(scope="module")
def tables(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    fuzz_tables.write(_spark_context, tmp_path_factory.mktemp("fuzz"))
    fuzz_partitioned.write(_spark_context)
    fuzz_pruning.write(_spark_context)
    return _spark_context


@tiers.on("4.3")
@pytest.mark.timeout(0)
def test_any_decisions_leave_the_rows_of_any_query(
    tables: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    tally = fuzzing.Tally()
    session = tables.newSession()
    history = fuzz_history.WrongHistory(session) if HAS_HISTORY else None
    runner = fuzzing.Runner(session, history)
    started = time.monotonic()
    is_found: list[bool] = []

    def say(text: object) -> None:
        with capsys.disabled():
            print(f"\n{text}", flush=True)

    def late(example: fuzzing.Example) -> None:
        say(f"Not done after {MOST_SECONDS} s, without or with one of its policies:\n{example}")
        os.kill(os.getpid(), signal.SIGINT)

    @seed(SEED)
    @settings(
        backend="anew",
        max_examples=math.ceil(N / statistics.mean(fuzzing.SETS)),
        database=None,
        deadline=None,
        phases=PHASES,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(fuzzing.examples(HAS_HISTORY))
    def holds(example: fuzzing.Example) -> None:
        before = tally.examples
        watch = threading.Timer(MOST_SECONDS, late, [example])
        watch.start()
        try:
            tally.add(runner.check(example))
        except fuzzing.UndefinedError as error:
            tally.rejected[str(error)] += 1
            reject()
        except Exception:
            if not is_found:
                is_found.append(True)
                seconds = time.monotonic() - started
                say(f"Failed in example {tally.examples + 1} after {seconds:.0f} s:\n{example}")
            raise
        finally:
            watch.cancel()
        tally.queries += 1
        if tally.examples // 100 > before // 100:
            say(f"{tally.examples} examples in {time.monotonic() - started:.0f} s")

    try:
        holds()
    except BaseException:
        say(f"To run all again: make fuzz N={N} SEED={SEED}{' HISTORY=1' if HAS_HISTORY else ''}")
        raise
    finally:
        say(tally)
    if tally.examples < 100:
        return
    # Else the examples say nothing.
    assert sum(tally.rejected.values()) <= max(2, tally.queries / 20)
    for point, floor in FLOORS.items():
        if point not in fuzz_policies.POINTS:
            continue
        # A short run has twenty queries, and which of them plain Spark fails depends on the time
        # that its stages take: shares of so few vary by half.
        least = floor * tally.examples if tally.examples > SHORT else 1
        assert tally.applied(point) >= least, point
        assert tally.adopted(point) > 0 or tally.examples <= SHORT, point
    assert any(tally.adopted(point) for point in fuzz_policies.POINTS)
    if history is None:
        return
    assert history.parts > tally.queries
    # Few of the queries have chains of joins.
    often = ("join_selection", "shuffle_partitions")
    for point in (*often, "join_reorder") if tally.examples > SHORT else often:
        assert tally.learned[point] > 0, point
