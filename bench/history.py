"""The next run beside the first ones: `learned`, with the history of two plain runs, and others.

One application runs each query twice under plain Spark and learns. `aqepilot history build` makes a
pack of its event log. Another application reads the pack, and runs each query in these ways in
turn (see `jobs/recipes.py`):

- plain Spark, twice: how far they differ is the noise;
- the best fixed number of shuffle partitions;
- Spark's cost-based optimiser with join reordering, over tables with statistics of all columns;
- `balanced`, which knows nothing of former runs;
- `learned`, before `balanced`: where a query has no history, `balanced` answers.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyspark
from rich.console import Console

import submitting
import tpcds
import tpch
from aqepilot import recipes
from bench import correlated
from bench.cases import named
from bench.recipes import AGAIN, PLAIN, SMALL, Work, timed

JOBS = Path(__file__).parent / "jobs"
STATISTICS = "statistics"
LEARNED = "learned"
FIXED = {"spark.sql.shuffle.partitions": "8"}
COST_BASED = {
    "spark.sql.cbo.enabled": "true",
    "spark.sql.cbo.joinReorder.enabled": "true",
    "spark.sql.cbo.planStats.enabled": "true",
    "spark.sql.statistics.histogram.enabled": "true",
}
console = Console(stderr=True, highlight=False)


class Benchmark(NamedTuple):
    """Queries over tables.

    Attributes:
        tables: The folder with the tables at a scale factor.
        queries: By name.
    """

    tables: Callable[[float], Path]
    queries: Callable[[], Mapping[str, str]]


BENCHMARKS = {
    "tpcds": Benchmark(tpcds.files, lambda: named(tpcds.queries())),
    "tpch": Benchmark(tpch.files, lambda: named(tpch.queries())),
    "correlated": Benchmark(correlated.files, correlated.queries),
}


def variants(without: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Returns the settings of each way, plain Spark first.

    Args:
        without: The ways that are left out; plain Spark stays.
    """
    every = {
        f"{FIXED['spark.sql.shuffle.partitions']} partitions": FIXED,
        STATISTICS: COST_BASED | FIXED,
        "balanced": policies("balanced"),
        LEARNED: policies("learned", "balanced"),
        AGAIN: {},
    }
    return {PLAIN: {}} | {name: conf for name, conf in every.items() if name not in without}


def policies(*names: str) -> dict[str, str]:
    """Returns settings by which these recipes are asked in this order."""
    settings = [recipes.get(name, pyspark.__version__).to_conf() for name in names]
    return dict(ChainMap({"spark.aqepilot.policies": ",".join(names)}, *settings))


def measure(
    name: str, rounds: int, scale: float, only: Sequence[str] = (), without: Sequence[str] = ()
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Returns what each query's runs came to, as `bench.recipes.measure` does.

    Args:
        name: One of `BENCHMARKS`.
        rounds: How often each way runs each query.
        scale: The tables' scale factor.
        only: The queries; none for all.
        without: As for `variants`.
    """
    benchmark = BENCHMARKS[name]
    queries = {q: text for q, text in benchmark.queries().items() if not only or q in only}
    tables, small = str(benchmark.tables(scale)), str(benchmark.tables(SMALL))
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        pack = first_runs(name, queries, scale, Path(folder))
        ways = variants(without)
        analysed = [way for way in ways if way == STATISTICS]
        work = Work(tables, small, queries, {}, ways, rounds, analysed)
        return timed(name, work, {"spark.aqepilot.history": str(pack)})


def first_runs(name: str, queries: Mapping[str, str], scale: float, folder: Path) -> Path:
    """Runs each query twice under plain Spark, and returns the pack of what was learnt.

    Args:
        name: One of `BENCHMARKS`.
        queries: By name.
        scale: The tables' scale factor.
        folder: For the event log and the pack.
    """
    log, pack = folder / "log", folder / "history.parquet"
    log.mkdir()
    tables = BENCHMARKS[name].tables
    work = Work(str(tables(scale)), str(tables(SMALL)), dict(queries), {}, {PLAIN: {}}, rounds=2)
    learning = {
        "spark.aqepilot.history.learn": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
    }
    timed(f"{name}, the first runs", work, learning)
    build(log, pack)
    return pack


def filled(pack: Path, signatures: int) -> Path:
    """Returns a pack with so many signatures more, whose figures are those of others."""
    made = pack.with_name("filled.parquet")
    script = (JOBS / "pack.py").read_text("utf-8")
    words = [str(pack), str(signatures), str(made)]
    for line in submitting.lines(
        pack.parent / "job", script, timeout_s=3600, conf={}, job_words=words, quick=False
    ):
        console.print(line.rstrip())
    return made


def build(log: Path, pack: Path) -> None:
    """Makes the pack of a log, by the command that users have."""
    words = ["history", "build", "--from", str(log), "--to", str(pack)]
    done = subprocess.run(
        [sys.executable, "-m", "aqepilot", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"aqepilot {' '.join(words)}:\n{done.stdout}\n{done.stderr[-3000:]}")
    console.print(done.stdout.strip())
