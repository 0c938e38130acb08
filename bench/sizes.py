"""Cost by size: planning by the number of joins, queries that run by the number of partitions."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from rich.console import Console

import parity
import submitting
from aqepilot import recipes
from bench.cases import SHUFFLED
from bench.figures import Spread, ratios, spread

JOBS = Path(__file__).parent / "jobs"
JOINS = (10, 80, 200)
PARTITIONS = (100, 10_000, 100_000)
# What is measured, in the order of Costs.java.
MEASURED = ("wall", "planning thread", "driver")
RUN = ("running join", "running skewed join")
ADAPTIVE = "spark.sql.adaptive."
BROADCAST = {"spark.sql.autoBroadcastJoinThreshold": "10MB"}
# The first table is the middle of a star; the others have what a link of a chain needs.
COLUMNS = ["id % 500 AS v", *(f"(id * {2 * i + 1}) % 20000 AS k{i}" for i in range(max(JOINS)))]
console = Console(stderr=True, highlight=False)


class Sized(NamedTuple):
    """What is measured at one size.

    Attributes:
        shape: The kind of query.
        size: Joins or partitions.
        query: Its text.
        conf: Settings.
        runs: Whether it runs, and AQE plans again after each stage; else it is only planned.
    """

    shape: str
    size: int
    query: str
    conf: dict[str, str]
    runs: bool

    @property
    def name(self) -> str:
        return f"{self.shape}, {self.size:,}"

    @property
    def smaller(self) -> int:
        """By how much the smallest size of this kind is smaller."""
        return self.size // (PARTITIONS if self.shape in RUN else JOINS)[0]


def _chain(joins: int) -> str:
    links = (f"JOIN t{i} ON t{i - 1}.k1 = t{i}.k0" for i in range(1, joins + 1))
    return f"SELECT count(*), sum(t0.v) FROM t0 {' '.join(links)}"


def _star(joins: int) -> str:
    rays = (f"JOIN t{i} ON t0.k{i - 1} = t{i}.k0" for i in range(1, joins + 1))
    return f"SELECT count(*), sum(t0.v) FROM t0 {' '.join(rays)}"


def _cases() -> list[Sized]:
    few = {"spark.sql.shuffle.partitions": "4"}
    planned = [
        Sized(f"{shape} of {joins} joins", size, text(size), few | conf, False)
        for size in JOINS
        for shape, text in (("chain", _chain), ("star", _star))
        for joins, conf in (("sort-merge", SHUFFLED), ("broadcast", BROADCAST))
    ]
    replanned = [
        Sized("running chain of sort-merge joins", size, _chain(size), few | SHUFFLED, True)
        for size in JOINS[:2]
    ]
    skewed = {
        ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "64B",
        ADAPTIVE + "skewJoin.skewedPartitionFactor": "1.5",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "1KB",
    }
    unskewed = {
        ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "256MB",
        ADAPTIVE + "skewJoin.skewedPartitionFactor": "5",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "64MB",
    }
    ran = [
        Sized(
            shape,
            size,
            f"SELECT count(*), sum(t0.v + t1.v) FROM t0 JOIN t1 ON t0.{key} = t1.k0",
            {"spark.sql.shuffle.partitions": str(size)} | SHUFFLED | conf,
            True,
        )
        for size in PARTITIONS
        for shape, key, conf in zip(RUN, ("k0", "v"), (unskewed, skewed), strict=True)
    ]
    return planned + replanned + ran


CASES = _cases()
KINDS = list(dict.fromkeys(case.shape for case in CASES))


def measure(rounds: int, warm_up: int, only: Sequence[str], sizes: Sequence[int]) -> dict[str, Any]:
    """Returns, by case, the milliseconds of each session's rounds, and what was asked.

    Args:
        rounds: Of each query in each session.
        warm_up: Rounds before those, at the smallest size; a fifth of it where queries run.
        only: Some of `KINDS`; none of those for all.
        sizes: Some of `JOINS` and `PARTITIONS`; none of those for all.
    """
    kinds = set(only) & set(KINDS) or set(KINDS)
    cases = [c for c in CASES if c.shape in kinds and (not sizes or str(c.size) in sizes)]
    texts = dict[str, str]()
    for name in parity.SPARKS_OWN:
        texts |= recipes.get(name, spark=pyspark.__version__).texts()
    at = "spark.aqepilot.policy.bench."
    named = {"spark.aqepilot.policies": "bench"}
    work = {
        "code": (JOBS / "Costs.java").read_text("utf-8"),
        "columns": [COLUMNS, COLUMNS[:3]],
        "tables": 1 + max(1 if c.shape in RUN else c.size for c in cases),
        "policies": {
            "null": named | {at + point: "NULL" for point in texts},
            "recipes": named | {at + point: text for point, text in texts.items()},
        },
        "cases": [
            c._asdict()
            | {
                "name": c.name,
                "rounds": rounds,
                "warm_up": max(2, warm_up // (c.smaller * (5 if c.runs else 1))),
            }
            for c in cases
        ],
    }
    figures = {}
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        work_file = Path(folder, "work.json")
        work_file.write_text(json.dumps(work), encoding="utf-8")
        lines = submitting.lines(
            Path(folder),
            (JOBS / "sizes.py").read_text("utf-8"),
            4 * 3600,
            job_words=[str(work_file)],
            memory="2g",
            quick=False,
        )
        for line in lines:
            if line.startswith("CASE "):
                name, took, asked = json.loads(line.removeprefix("CASE "))
                figures[name] = {"ms": took, "asked": asked}
                console.print("\n".join(" | ".join(row) for row in rows(name, figures[name])))
    return figures


ASKED = ("planned or run, size", "session", "point, reason", "asks", "median µs")
HEAD = (
    "planned or run, size",
    "session",
    *(f"{measured_name}, median ms" for measured_name in MEASURED),
    *(f"{measured_name}, to plain (p10-p90)" for measured_name in MEASURED),
)


def rows(name: str, figures: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns a case's rows of the table that `HEAD` is above.

    What plain Spark takes in a round is the mean of its two sessions.
    """
    both = zip(figures["ms"]["plain"], figures["ms"]["plain again"], strict=True)
    plain = [[statistics.mean(pair) for pair in zip(*ms, strict=True)] for ms in both]
    table = []
    for session, took in figures["ms"].items():
        medians = [
            f"{statistics.median(_median_times(i, took)):,.1f}" for i in range(len(MEASURED))
        ]
        paired = [
            spread(ratios(_median_times(i, took), _median_times(i, plain)))
            for i in range(len(MEASURED))
        ]
        table.append((name, session, *medians, *map(_ratio, paired)))
    return table


def _median_times(measured: int, took: Sequence[Sequence[float]]) -> list[float]:
    return [ms[measured] for ms in took]


def _ratio(spread: Spread) -> str:
    return f"{spread.median:.2f} ({spread.p10:.2f}-{spread.p90:.2f})"


def asked(name: str, figures: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns what was asked in a case: point and reason, how often, median microseconds."""
    return [
        (name, session, what, str(count), f"{median_us:,.0f}")
        for session, by_reason in figures["asked"].items()
        for what, (count, median_us) in sorted(by_reason.items())
    ]
