"""What a job of one query pays for aqepilot: the seconds of its whole `spark-submit`, and its asks.

All ways take turns, each run in a JVM of its own, with the JVM options, class loading and settings
of Spark that users have. A run of its own tells how long the asks took, as to read them takes a
query more.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from rich.console import Console

import submitting
import tpch
from aqepilot import recipes
from bench import turns
from bench.figures import Table, ratios, spread
from bench.runs import SORT_MERGE

JOB = Path(__file__).parent / "jobs" / "first_query.py"
PLAIN, INSTALLED, BALANCED = "plain", "installed", "balanced"
WAYS = (PLAIN, BALANCED, INSTALLED)
SMALL = "small_tables"
DEFAULTS = {"spark.sql.shuffle.partitions": "200"}
FITTING = {"spark.sql.shuffle.partitions": "8"}
JOBS: dict[str, dict[str, str]] = {
    # Without broadcasts, so that joins have shuffles to ask about; with a number of partitions that
    # fits, so that `balanced` has nothing to gain.
    SMALL: SORT_MERGE | FITTING,
    "tpch_9": DEFAULTS,
    "tpch_9_8_partitions": SORT_MERGE | FITTING,
}
SMALL_QUERY = (
    "SELECT b.k % 100 AS g, count(*), sum(v + w) FROM big b JOIN small s ON b.k = s.k"
    " WHERE w % 3 = 0 GROUP BY 1"
)
# Rounds in which a run more tells how long the asks took.
ASKED_ROUNDS = 3
HEAD = ("way", "median s", "to plain: of the medians", "rounds' median", "p10", "p90", "rounds")
ASKED = ("decision point", "first ask, median ms", "p10", "p90", "later asks, median ms")
console = Console(stderr=True, highlight=False)


def described(name: str, scale: float) -> dict[str, str]:
    """Returns a job's query and the folder of its tables; "" where it generates them itself.

    Args:
        name: Of `JOBS`.
        scale: TPC-H's scale factor.
    """
    if name == SMALL:
        return {"query": SMALL_QUERY, "tables": ""}
    return {"query": tpch.queries()[9], "tables": str(tpch.files(scale))}


def measure(names: Sequence[str], rounds: int, scale: float, master: str) -> dict[str, Any]:
    """Returns by job the seconds of each way's runs, and the asks of runs under `balanced`.

    Args:
        names: Of `JOBS`.
        rounds: How often each way runs; the first round, which reads Spark from disk, is not kept.
        scale: TPC-H's scale factor.
        master: Where the jobs run, as `spark-submit --master` has it.
    """
    return {name: _measured(name, described(name, scale), rounds, master) for name in names}


def _measured(name: str, job: Mapping[str, str], rounds: int, master: str) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    asked = []
    for number in range(-1, rounds):
        console.print(f"first query, {name}, round {number + 1} of {rounds}")
        for way in turns.in_turn(WAYS, number):
            took, _ = _ran(way, job, JOBS[name], master)
            if number >= 0:
                seconds[way].append(took)
        if 0 <= number < ASKED_ROUNDS:
            asked.append(_ran(BALANCED, job, JOBS[name], master, ["asked"])[1]["asked"])
    return {"seconds": seconds, "asked": asked}


def _ran(
    way: str,
    job: Mapping[str, str],
    settings: Mapping[str, str],
    master: str,
    job_words: Sequence[str] = (),
) -> tuple[float, dict[str, Any]]:
    texts = recipes.get(BALANCED, pyspark.__version__).texts()
    policy = {f"spark.aqepilot.policy.{BALANCED}.{point}": text for point, text in texts.items()}
    policies = {"spark.aqepilot.policies": BALANCED, **policy} if way == BALANCED else {}
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        query = Path(folder, "query.json")
        query.write_text(json.dumps(job), encoding="utf-8")
        begun = time.perf_counter()
        ran = submitting.submit(
            Path(folder),
            JOB.read_text("utf-8"),
            conf={**settings, **policies},
            extension=way != PLAIN,
            job_words=[str(query), *job_words],
            master=master,
            quick=False,
        )
        took = time.perf_counter() - begun
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}:\n{ran.stderr[-4000:]}")
    return took, json.loads(ran.stdout.splitlines()[-1])


def tables(figures: Mapping[str, Any]) -> list[Table]:
    """Returns a table of each job's times and one of its asks', from `measure`."""
    return [table for name in figures for table in _tables(name, figures[name])]


def _tables(name: str, figures: Mapping[str, Any]) -> list[Table]:
    seconds = figures["seconds"]
    plain = spread(seconds[PLAIN])
    rows = []
    for way, values in seconds.items():
        all_runs, paired = spread(values), spread(ratios(values, seconds[PLAIN]))
        compared = (all_runs.median / plain.median, *paired[:3])
        to_plain = [f"{100 * (ratio - 1):+.1f} %" if way != PLAIN else "" for ratio in compared]
        rows.append((way, f"{all_runs.median:.2f}", *to_plain, str(all_runs.count)))
    return [
        (f"A job of one query, {name}: its whole spark-submit", HEAD, rows),
        (f"{name}: how long its asks took", ASKED, _of_asks(figures["asked"])),
    ]


def _of_asks(runs: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, ...]]:
    rows = []
    for point in dict.fromkeys(point for run in runs for point, _ in run):
        asks = [[us / 1e3 for asked, us in run if asked == point] for run in runs]
        first = spread([times[0] for times in asks if times])
        later = [ms for times in asks for ms in times[1:]]
        of_later = f"{spread(later).median:.1f}" if later else ""
        rows.append((point, *(f"{ms:.1f}" for ms in first[:3]), of_later))
    return rows
