"""What a job of one query pays for aqepilot: the seconds of its whole `spark-submit`, and its asks.

All ways take turns, each run in a JVM of its own, with the JVM options and class loading that users
have. A run of its own tells how long the asks took, as to read them takes a query more.
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
from aqepilot import recipes
from bench import turns
from bench.figures import ratios, spread
from bench.runs import SORT_MERGE

JOB = Path(__file__).parent / "jobs" / "first_query.py"
PLAIN, INSTALLED, BALANCED = "plain", "installed", "balanced"
WAYS = (PLAIN, BALANCED, INSTALLED)
HEAD = ("way", "median s", "to plain: of the medians", "rounds' median", "p10", "p90", "rounds")
ASKED = ("decision point", "first ask, median ms", "p10", "p90", "later asks, median ms")
Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]
console = Console(stderr=True, highlight=False)


def measure(rounds: int) -> dict[str, Any]:
    """Returns the seconds of each way's jobs, and those of its asks' runs under `balanced`.

    Args:
        rounds: How often each way runs; the first round, which reads Spark from disk, is not kept.
    """
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    asked = []
    for number in range(-1, rounds):
        console.print(f"first query, round {number + 1} of {rounds}")
        for way in turns.in_turn(WAYS, number):
            took, _ = _ran(way)
            if number >= 0:
                seconds[way].append(took)
        if number >= 0:
            asked.append(_ran(BALANCED, ["asked"])[1]["asked"])
    return {"seconds": seconds, "asked": asked}


def _ran(way: str, job_words: Sequence[str] = ()) -> tuple[float, dict[str, Any]]:
    texts = recipes.get(BALANCED, pyspark.__version__).texts()
    policy = {f"spark.aqepilot.policy.{BALANCED}.{point}": text for point, text in texts.items()}
    policies = {"spark.aqepilot.policies": BALANCED, **policy} if way == BALANCED else {}
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        begun = time.perf_counter()
        ran = submitting.submit(
            Path(folder),
            JOB.read_text("utf-8"),
            conf=SORT_MERGE | policies,
            extension=way != PLAIN,
            job_words=job_words,
            quick=False,
        )
        took = time.perf_counter() - begun
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}:\n{ran.stderr[-4000:]}")
    return took, json.loads(ran.stdout.splitlines()[-1])


def tables(found: Mapping[str, Any]) -> list[Table]:
    """Returns a table of the jobs' times and one of the asks', from `measure`."""
    seconds = found["seconds"]
    plain = spread(seconds[PLAIN])
    rows = []
    for way, values in seconds.items():
        of, paired = spread(values), spread(ratios(values, seconds[PLAIN]))
        compared = (of.median / plain.median, *paired[:3])
        to_plain = [f"{100 * (ratio - 1):+.1f} %" if way != PLAIN else "" for ratio in compared]
        rows.append((way, f"{of.median:.2f}", *to_plain, str(of.count)))
    return [
        ("A job of one query: its whole spark-submit", HEAD, rows),
        ("How long its asks took", ASKED, _of_asks(found["asked"])),
    ]


def _of_asks(runs: Sequence[Sequence[tuple[str, float]]]) -> list[tuple[str, ...]]:
    rows = []
    for point in dict.fromkeys(point for run in runs for point, _ in run):
        asks = [[us / 1e3 for asked, us in run if asked == point] for run in runs]
        first = spread([of[0] for of in asks if of])
        later = [ms for of in asks for ms in of[1:]]
        of_later = f"{spread(later).median:.1f}" if later else ""
        rows.append((point, *(f"{ms:.1f}" for ms in first[:3]), of_later))
    return rows
