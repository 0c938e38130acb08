"""How much runs of one query differ: repeated runs of TPC-DS, whose noise simulations resample."""

from __future__ import annotations

import csv
import json
import math
import statistics
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import submitting
import tpcds
from aqepilot import read_log
from aqepilot.submit.check import local_session

FILE = Path(__file__).parent / "repeated_runs.csv"
FIELDS = ("query", "round", "wall_ms", "task_ms", "cpu_ms")
JOB = Path(__file__).parent / "jobs" / "repeated.py"
Floats = np.ndarray[Any, np.dtype[np.float64]]


def record(rounds: int, scale: float, queries: Sequence[str] = (), to: Path = FILE) -> Path:
    """Runs each query of TPC-DS again and again on plain Spark, and writes what its log says.

    Each round has the queries in an order of its own. A first round, which warms the driver up, is
    not written.

    Args:
        rounds: How many.
        scale: Scale factor of the data.
        queries: Numbers of the queries; empty for all.
        to: The file.
    """
    texts = {str(number): sql for number, sql in tpcds.queries().items()}
    chosen = {number: texts[number] for number in queries or texts}
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as name:
        folder = Path(name)
        (folder / "events").mkdir()
        queries_file = folder / "queries.json"
        queries_file.write_text(json.dumps(chosen), encoding="utf-8")
        conf = {
            "spark.sql.shuffle.partitions": "200",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }
        words = [str(tpcds.files(scale)), str(queries_file), str(rounds)]
        run = submitting.submit(
            folder / "job",
            JOB.read_text("utf-8"),
            conf=conf,
            job_words=words,
            extension=False,
            memory="3g",
            quick=False,
            timeout_s=12 * 3600,
        )
        if run.returncode:
            raise SystemExit(f"repeated runs failed:\n{run.stderr[-3000:]}")
        with local_session("local[2]", "bench") as spark:
            logged = read_log(spark, folder / "events").queries
            rows = (
                logged.where("succeeded AND description RLIKE '^[0-9]+ [1-9][0-9]*$'")
                .selectExpr("split(description, ' ') AS of", *FIELDS[2:])
                .selectExpr("int(of[0])", "int(of[1])", *FIELDS[2:])
                .orderBy("of[1]", "of[0]")
                .collect()
            )
    with to.open("w", encoding="utf-8", newline="") as out:
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(FIELDS)
        lines.writerows(tuple(row) for row in rows)
    return to


@cache
def rests(metric: str) -> Floats:
    """Returns by how much each run differs from its query's median, on the log scale."""
    return np.array([rest for _, rest in _rests(metric)])


@cache
def rounds(metric: str) -> Floats:
    """Returns the same of whole rounds: the mean over the queries, as `aqepilot bench` takes it."""
    by_round: dict[int, list[float]] = {}
    for number, rest in _rests(metric):
        by_round.setdefault(number, []).append(rest)
    return np.array([statistics.fmean(values) for values in by_round.values()])


@cache
def _rests(metric: str) -> list[tuple[int, float]]:
    """Each run's round, and its rest; runs of a query stand together."""
    by_query: dict[str, list[tuple[int, float]]] = {}
    with FILE.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            run = int(row["round"]), math.log(max(1.0, float(row[metric])))
            by_query.setdefault(row["query"], []).append(run)
    medians = {query: statistics.median(y for _, y in values) for query, values in by_query.items()}
    return [
        (number, y - medians[query]) for query, values in by_query.items() for number, y in values
    ]


def are_there() -> bool:
    """Whether runs were recorded."""
    return FILE.is_file()
