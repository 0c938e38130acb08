"""What of the long tests `make test` runs on 3.5 and what on 4.3; `make test-all` runs all on both.

A case may be left to the other Spark, or to `make test-all`, if what it shows depends on our code
rather than on the Spark: one of an exhaustive grid, or a test that takes most of a minute. So are
files about what stands beside Spark's planner: logs and what is read of them, the command line, the
Python worker, sessions, the control file.
"""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterable
from typing import TypeVar

import pyspark
import pytest

import plans

T = TypeVar("T")
ALL = os.environ.get("TEST_ALL") == "1"
MINOR = "3.5" if pyspark.__version__ < "4" else "4.3"
# Settings of what need not compile its queries: jobs, and sessions that read logs.
INTERPRETED = {} if ALL else plans.INTERPRETED
# Whether each job gets a JVM: else those that a test asks no own one for run in one that is kept.
OWN_JVM = ALL
# The other queries of the pytest process are compiled on one of the two Sparks only.
CODE = {} if MINOR == "4.3" else INTERPRETED


def share(cases: Iterable[T], parts: int = 8) -> list[T]:
    """Returns a random eighth of the cases, 3.5's or 4.3's, the same each time; for all, all.

    Where there are few, each Spark has one of its own. ``parts`` makes it another part than an
    eighth.
    """
    every = list(cases)
    shuffled = random.Random(len(every)).sample(range(len(every)), len(every))
    return [every[i] for i in sorted(shuffled[MINOR == "4.3" :: parts])] if not ALL else every


# Of a test with this mark, or of each test in a file, `make test` runs `share` of the cases.
EIGHTH = pytest.mark.eighth
# Each case of a test or file with this mark, but those that are shared out as `EIGHTH`, runs on one
# of the two Sparks, by its name: the others of its file show the point on the other Spark.
ON_ONE = pytest.mark.on_one
# Of a file whose queries are about logs, many times wider than those that policies decide on.
READS_LOGS = pytest.mark.reads_logs
# A test or a case that takes long, beside others that show much of the same;
# docs/develop/build-and-test.md says which those are.
LONG = pytest.mark.skipif(not ALL, reason="takes long: runs with TEST_ALL=1")


def select(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests to run: of those marked `EIGHTH` and `ON_ONE`, this Spark's."""
    cases: dict[object, list[int]] = {}
    for place, item in enumerate(items):
        if item.get_closest_marker("eighth"):
            cases.setdefault(getattr(item, "function", item), []).append(place)
    groups = [places for places in cases.values() if len(places) > 1]
    left_out = {place for places in groups for place in set(places).difference(share(places))}
    shared_out = {place for places in groups for place in places}
    if not ALL:
        left_out |= {
            place
            for place, item in enumerate(items)
            if place not in shared_out and _is_for_the_other(item)
        }
    return [item for place, item in enumerate(items) if place not in left_out]


def _is_for_the_other(item: pytest.Item) -> bool:
    # What may be skipped may be so on the Spark that it would be left to.
    if not item.get_closest_marker("on_one") or item.get_closest_marker("skipif"):
        return False
    return zlib.crc32(item.name.encode()) % 2 != (MINOR == "4.3")


def on(minor: str) -> pytest.MarkDecorator:
    """Marks a test that runs on ``3.5`` or ``4.3`` only; on both with ``TEST_ALL=1``."""
    reason = f"runs on {minor}; on every Spark with TEST_ALL=1"
    return pytest.mark.skipif(not ALL and minor != MINOR, reason=reason)
