"""What the jobs that compare ways to run queries do alike."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def environment() -> dict[str, str]:
    """Returns the variables by which a job, in its own folder, imports what we do and aqepilot."""
    root = Path(__file__).parents[1]
    own = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    folders = [root, root / "tests" / "support", *map(Path, own)]
    return {"PYTHONPATH": os.pathsep.join(str(folder.resolve()) for folder in folders)}


def in_turn(names: Iterable[str], number: int) -> Iterator[str]:
    """The ways in the order of a round: rotated by one each two rounds, every second reversed.

    So that none always follows the same one, nor comes first more often. Between them Python
    collects its garbage: py4j's object of a DataFrame is part of a cycle, and as long as Python has
    it the driver keeps the tables that its query has broadcast. TPC-DS at scale factor 1 fills
    4.5 GB with them, and full collections of the JVM's then fall to one way or the other.
    """
    names = list(names)
    start = number // 2 % len(names)
    turned = names[start:] + names[:start]
    for name in reversed(turned) if number % 2 else turned:
        gc.collect()
        yield name


def adopted(spark: SparkSession, since: int) -> tuple[int, int]:
    """How many decisions changed a plan since one of them, and the last decision."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    (row,) = spark.sql(
        "SELECT count_if(fate = 'adopted') AS n, max(decision_id) AS last "
        f"FROM aqepilot_decisions() WHERE decision_id > {since}"
    ).collect()
    return row.n, row.last or since
