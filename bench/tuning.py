"""What `aqepilot tune` finds, how often it is taken in by noise, and what a search costs.

- ``simulated``: searches whose runs are drawn from the noise of repeated runs (`repeated.py`);
- ``same``: real searches in which every candidate is plain Spark: a winner is a false one;
- ``correlated`` and ``tpcds``: the dearest queries, each tuned on one day's data and measured again
  on another day's.

A search that ended is kept in ``target/bench/tune``. So the command may be run in slices
(``--minutes 3``) until it has nothing left to do.
"""

from __future__ import annotations

import json
import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import tpcds
from aqepilot.analysis.tune.evidence import Choice, Decided, Evidence
from aqepilot.analysis.tune.measure import Limits, Ran, Search
from aqepilot.analysis.tune.runs import SparkRuns
from aqepilot.analysis.tune.search import bandit
from aqepilot.analysis.tune.tuning import tune
from bench import correlated, repeated, simulation
from bench.cases import named
from bench.figures import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path("target/bench/tune")
CONF = {
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "16",
    # What Spark compiles is kept: else who comes first pays for the others.
    "spark.sql.codegen.cache.maxEntries": "100000",
}
GAINS = (1.0, 0.9, 0.8, 0.5)
SIMULATED, SAME = "simulated", "same"


class Workload(NamedTuple):
    """Queries over the tables of two days.

    Attributes:
        day: The folder of a day, 0 or 1, at a scale factor.
        queries: By name.
    """

    day: Callable[[float, int], Path]
    queries: Callable[[], Mapping[str, str]]


WORKLOADS = {
    "correlated": Workload(correlated.day, correlated.queries),
    "tpcds": Workload(tpcds.day, lambda: named(tpcds.queries())),
}
NAMES = (SIMULATED, SAME, *WORKLOADS)


class Drawn:
    """A runner whose times are drawn; one answer in the first choice makes the query faster."""

    def __init__(self, generator: Any, gain: float) -> None:
        self._generator, self._gain, self._rests = generator, gain, repeated.rests("wall_ms")

    def first(self, answers: Sequence[Decided], timeout_ms: float) -> Ran:
        return self.timed(answers, timeout_ms)

    def timed(
        self, answers: Sequence[Decided], timeout_ms: float | None, held_out: bool = False
    ) -> Ran:
        factor = self._gain if any(one.answer == 3 for one in answers) else 1.0
        ms = 1000 * factor * math.exp(self._generator.choice(self._rests))
        if timeout_ms is not None and ms > timeout_ms:
            return Ran("timed_out", timeout_ms)
        return Ran("ran", ms)


def simulated(searches: int, tries: int, rounds: int) -> dict[str, dict[str, float]]:
    """Returns, by the best answer's time, how many of the searches gave a policy, and its error."""
    outcomes_by_gain = {}
    for gain in GAINS:
        outcomes = simulation.each(_simulated, searches, 48, gain, tries, rounds)
        real = [ratio for ratio in outcomes if ratio is not None]
        outcomes_by_gain[f"{gain:g}"] = {
            "searches": searches,
            "policies": len(real),
            "geometric_mean": math.exp(statistics.fmean(real)) if real else math.nan,
        }
    return outcomes_by_gain


def _simulated(generator: Any, gain: float, tries: int, rounds: int) -> float | None:
    choices = tuple(
        Choice(
            point=f"p{number}",
            signatures=(str(number),),
            answers=(1, 2, 3, 4) if number == 0 else (1, 2),
        )
        for number in range(5)
    )
    runner = Drawn(generator, gain)
    drawn = random.Random(int(generator.integers(1 << 30)))
    loop = Search(runner, bandit, Limits(tries, rounds), 0.03, drawn, lambda _: None, True)
    plain = min(runner.timed((), None).ms for _ in range(3))
    evidence = loop.run(Evidence(query="simulated", plain_ms=plain, choices=choices))
    return evidence.fresh.log_ratio.mean if evidence.is_real and evidence.fresh else None


class Same(SparkRuns):
    """Every candidate is plain Spark."""

    def first(self, answers: Sequence[Decided], timeout_ms: float) -> Ran:
        return super().timed((), timeout_ms)

    def timed(
        self, answers: Sequence[Decided], timeout_ms: float | None, held_out: bool = False
    ) -> Ran:
        return super().timed((), timeout_ms, held_out)


def same(scale: float, minutes: float, tries: int, rounds: int) -> list[dict[str, Any]]:
    """Runs further real searches without a difference, and returns what all of them came to."""
    folder = FOLDER / f"same-sf{scale:g}"
    folder.mkdir(parents=True, exist_ok=True)
    queries = list(correlated.queries().items())
    end = time.monotonic() + 60 * minutes
    with _session() as spark:
        _views(spark, correlated.day(scale, 0))
        while time.monotonic() < end:
            number = len(list(folder.glob("*.json")))
            name, sql = queries[number % len(queries)]
            runs = Same(spark, sql)
            plain_ms, _, choices, starts = runs.begin()
            begun = Evidence(query=name, plain_ms=plain_ms, choices=choices, starts=starts)
            loop = Search(
                runs, bandit, Limits(tries, rounds), 0.03, random.Random(), lambda _: None
            )
            loop.run(begun).write(folder / f"{number}.json")
    return [_figures(evidence) for evidence in _kept(folder)]


def tuned(
    name: str, scale: float, minutes: float, tries: int, rounds: int, most: int, only: Sequence[str]
) -> list[dict[str, Any]]:
    """Tunes further queries of a workload, the dearest first, and returns what all came to."""
    workload = WORKLOADS[name]
    folder = FOLDER / f"{name}-sf{scale:g}"
    folder.mkdir(parents=True, exist_ok=True)
    queries = workload.queries()
    end = time.monotonic() + 60 * minutes
    with _session() as spark:
        _views(spark, workload.day(scale, 0))
        other = spark.newSession()
        _views(other, workload.day(scale, 1))
        for query in only or _dearest(spark, queries, folder / "plain-seconds", end, most):
            out = folder / f"{query.replace(' ', '_')}.toml"
            before = Evidence.read(out.with_suffix(".json"))
            if time.monotonic() < end and not (before and before.is_finished):
                tune(
                    *(spark, queries[query], out),
                    held_out=other,
                    tries=tries,
                    rounds=rounds,
                    progress=lambda evidence: print(
                        f"{evidence.query}: {len(evidence.tries)} tries", flush=True
                    ),
                )
    return [_figures(evidence) for evidence in _kept(folder)]


def _dearest(
    spark: SparkSession, queries: Mapping[str, str], file: Path, end: float, most: int
) -> list[str]:
    """The queries whose one run takes longest, of as many as there was time for."""
    known: dict[str, float] = json.loads(file.read_text()) if file.is_file() else {}
    for query, sql in queries.items():
        if query not in known and time.monotonic() < end:
            for _ in range(1 if known else 2):  # the very first warms Spark up
                begin = time.perf_counter()
                spark.sql(sql).write.format("noop").mode("overwrite").save()
                known[query] = time.perf_counter() - begin
            file.write_text(json.dumps(known))
    return sorted(known, key=lambda query: -known[query])[:most]


def _kept(folder: Path) -> list[Evidence]:
    read = [Evidence.read(file) for file in sorted(folder.glob("*.json"))]
    return [evidence for evidence in read if evidence and evidence.is_finished]


def _figures(evidence: Evidence) -> dict[str, Any]:
    def ratio(measured: Any) -> float | None:
        return math.exp(measured.log_ratio.mean) if measured and measured.pairs else None

    winner = None if evidence.winner is None else evidence.tries[evidence.winner]
    return {
        "query": evidence.query,
        "plain_ms": evidence.fresh.plain_ms if evidence.fresh else evidence.plain_ms,
        "tries": len(evidence.tries),
        "came_from": winner and winner.proposal.came_from,
        "in_search": math.exp(winner.log_ratio) if winner else None,
        "fresh": ratio(evidence.fresh),
        "fresh_pairs": len(evidence.fresh.pairs) if evidence.fresh else 0,
        "held_out": ratio(evidence.held_out),
        "is_real": evidence.is_real,
        "search_ms": evidence.search_ms,
        "paid_after_runs": evidence.paid_after_runs,
    }


def _session() -> Any:
    from aqepilot.submit.check import local_session

    return local_session("local[2]", "aqepilot bench tune", CONF)


def _views(spark: SparkSession, folder: Path) -> None:
    for file in sorted(folder.glob("*.parquet")):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)


def tables(figures: Mapping[str, Any]) -> list[Table]:
    """Returns titles, heads and rows."""
    made = []
    if SIMULATED in figures:
        rows = [
            (ratio, str(one["searches"]), str(one["policies"]), _ratio(one["geometric_mean"]))
            for ratio, one in figures[SIMULATED].items()
        ]
        head = ("time of the best answer", "searches", "policies", "measured, geometric mean")
        made.append(("Searches with the noise of repeated runs", head, rows))
    for name, searches in figures.items():
        if name == SIMULATED or not searches:
            continue
        head = ("searches", "policies", "geometric mean of all", "of the real", "P90 before, after")
        made.append((f"{name}: all queries", (*head, "search, median"), [_whole(searches)]))
        by_query = (
            *("query", "plain ms", "tries", "best from", "in the search", "fresh pairs"),
            *("other data", "real", "search", "paid after"),
        )
        made.append((f"{name}: by query", by_query, [_row(one) for one in searches]))
    return made


def _whole(searches: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    # Where no policy is written, plain Spark runs on.
    ratios = [one["held_out"] or one["fresh"] if one["is_real"] else 1.0 for one in searches]
    real = [ratio for ratio in ratios if ratio != 1.0]
    before = [one["plain_ms"] for one in searches]
    after = [ms * ratio for ms, ratio in zip(before, ratios, strict=True)]
    return (
        str(len(searches)),
        str(sum(one["is_real"] for one in searches)),
        _ratio(statistics.geometric_mean(ratios)),
        _ratio(statistics.geometric_mean(real)) if real else "",
        f"{_p90(before) / 1000:.2f} s, {_p90(after) / 1000:.2f} s",
        f"{statistics.median(one['search_ms'] for one in searches) / 1000:.0f} s",
    )


def _p90(values: Sequence[float]) -> float:
    return sorted(values)[math.ceil(0.9 * len(values)) - 1]


def _row(one: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        *(one["query"], f"{one['plain_ms']:.0f}", str(one["tries"]), one["came_from"] or ""),
        *map(_ratio, (one["in_search"], one["fresh"], one["held_out"])),
        "yes" if one["is_real"] else "no",
        f"{one['search_ms'] / 1000:.0f} s",
        f"{one['paid_after_runs']} runs" if one["paid_after_runs"] else "never",
    )


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None or math.isnan(ratio) else f"{ratio:.2f}"
