"""What recipes gain and where they lose: queries under each, beside Spark as it comes.

One application for each recipe, all its variants in turn (see `jobs/recipes.py`).
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyspark
from rich.console import Console
from rich.progress import Progress

import submitting
from aqepilot import recipes
from bench import turns
from bench.cases import CASES, Case
from bench.figures import Spread, spread

JOB = Path(__file__).parent / "jobs" / "recipes.py"
SMALL = 0.01
LOSS = 1.05
PLAIN, AGAIN = "plain", "plain again"
OF_ALL = {
    "spark.sql.shuffle.partitions": "200",
    # What Spark compiles is kept for all rounds: else who comes first pays for the others.
    "spark.sql.codegen.cache.maxEntries": "100000",
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=1g -XX:+UseParallelGC",
}


class Work(NamedTuple):
    """What the job is to run; the first variant is plain Spark.

    Attributes:
        analysed: The variants whose tables have statistics of all columns.
    """

    tables: str
    small: str
    queries: Mapping[str, str]
    conf: Mapping[str, str]
    variants: Mapping[str, Mapping[str, str]]
    rounds: int
    analysed: Sequence[str] = ()


def variants(case: Case, without: Sequence[str] = ()) -> dict[str, dict[str, str]]:
    """Returns the settings of each variant: plain Spark, what stands beside it, the recipes.

    Args:
        case: What is measured.
        without: The variants that are left out; plain Spark stays.
    """
    texts = dict[str, str]()
    for name in case.recipes:
        texts |= recipes.get(name, pyspark.__version__).texts()
    policy = {f"spark.aqepilot.policy.bench.{point}": text for point, text in texts.items()}
    beside = {name: dict(conf) for name, conf in case.beside.items()}
    own = "Spark's recipes" if len(case.recipes) > 1 else case.recipes[0]
    every = {**beside, own: {"spark.aqepilot.policies": "bench"} | policy, AGAIN: {}}
    return {PLAIN: {}} | {name: conf for name, conf in every.items() if name not in without}


def measure(
    name: str, scale: float, rounds: int, only: Sequence[str] = (), without: Sequence[str] = ()
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Returns what each query's runs came to, by variant and query, one a round.

    ``seconds`` is their wall time, ``adopted`` the number of decisions that changed their plans.

    Args:
        name: One of `bench.cases.CASES`.
        scale: The tables' scale factor.
        rounds: How often each variant runs each query.
        only: The queries; none for all that the case has.
        without: As for `variants`.
    """
    case = CASES[name]
    every = case.queries()
    queries = {query: every[query] for query in (only or every) if query in every}
    work = Work(
        str(case.tables(scale)),
        str(case.tables(SMALL)),
        queries,
        case.conf,
        variants(case, without),
        rounds,
    )
    return timed(name, work)


def timed(
    name: str, work: Work, conf: Mapping[str, str] | None = None
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Runs it and returns the figures, as `measure` does.

    Args:
        name: What is shown beside the progress.
        work: What is run.
        conf: Settings of the application.
    """
    times: dict[str, dict[str, dict[str, list[float]]]] = {
        kind: {variant: {query: [] for query in work.queries} for variant in work.variants}
        for kind in ("seconds", "adopted")
    }
    runs = (work.rounds + 1) * len(work.queries) * len(work.variants)
    with (
        tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder,
        Progress(console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task(name, total=runs)
        work_file = Path(folder) / "work.json"
        work_file.write_text(json.dumps(work._asdict()), encoding="utf-8")
        began = ""
        lines = submitting.lines(
            Path(folder),
            JOB.read_text("utf-8"),
            timeout_s=24 * 3600,
            conf=OF_ALL | dict(conf or {}),
            job_words=[str(work_file)],
            memory="8g",
            quick=False,
            env=turns.environment(),
        )
        for line in lines:
            if line.startswith("RUN "):
                number, query, variant, seconds, adopted = json.loads(line.removeprefix("RUN "))
                what = "warm-up" if number < 0 else f"round {number + 1}"
                if what != began:
                    progress.console.print(f"{name}, {what}")
                    began = what
                progress.update(
                    task, advance=1, description=f"{name}, {what}: {query[:30]}, {variant}"
                )
                if number >= 0:
                    times["seconds"][variant][query].append(seconds)
                    times["adopted"][variant][query].append(adopted)
    return times


class Against(NamedTuple):
    """A variant beside plain Spark.

    Attributes:
        total_s: The sum of its queries' medians.
        total: That, as a ratio to plain Spark's.
        mean: The geometric mean of the queries' ratios.
        ratios: Their spread; a query's ratio is the median over its rounds.
        slower: The queries that lose more than 5 % to plain Spark, and to plain Spark again where
            it was measured.
        faster: Those that gain as much over both.
    """

    total_s: float
    total: float
    mean: float
    ratios: Spread
    slower: list[str]
    faster: list[str]


def against_plain(seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, Against]:
    """Returns what each variant came to.

    >>> runs = {"plain": {"1": [2.0, 2.0]}, "own": {"1": [1.0, 3.0]}, "plain again": {"1": [2, 2]}}
    >>> found = against_plain(runs)["own"]
    >>> found.total_s, found.total, found.mean, found.slower
    (2.0, 1.0, 1.0, [])
    """
    plain = seconds[PLAIN]
    again = seconds.get(AGAIN, plain)
    totals = {v: sum(map(statistics.median, runs.values())) for v, runs in seconds.items()}
    ratios_by_variant = {}
    for variant, runs in seconds.items():
        to_plain = {query: _ratio(runs[query], plain[query]) for query in runs}
        to_again = {query: _ratio(runs[query], again[query]) for query in runs}
        both = {query: (to_plain[query], to_again[query]) for query in runs}
        ratios_by_variant[variant] = Against(
            totals[variant],
            totals[variant] / totals[PLAIN],
            math.exp(statistics.fmean(map(math.log, to_plain.values()))),
            spread(list(to_plain.values())),
            [query for query, ratios in both.items() if min(ratios) > LOSS],
            [query for query, ratios in both.items() if max(ratios) < 1 / LOSS],
        )
    return ratios_by_variant


def _ratio(seconds: Sequence[float], to: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(seconds, to, strict=True))


def table(seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, ...]]:
    """Returns a head and a row for each variant."""
    head = (
        *("variant", "total s", "total to plain", "geometric mean", "p10", "p90"),
        *("queries > 5 % slower", "> 5 % faster", "queries"),
    )
    rows = []
    for variant, compared in against_plain(seconds).items():
        paired = ("",) * 6
        if variant != PLAIN:
            ratios = (
                compared.total,
                compared.mean,
                compared.ratios.p10,
                compared.ratios.p90,
            )
            paired = (
                *map(_percent, ratios),
                str(len(compared.slower)),
                str(len(compared.faster)),
            )
        rows.append(
            (
                variant,
                f"{compared.total_s:.2f}",
                *paired,
                str(compared.ratios.count),
            )
        )
    return [head, *rows]


def by_query(times: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> list[tuple[str, ...]]:
    """Returns a head and a row for each query: plain Spark's median seconds, others' ratios."""
    seconds = times["seconds"]
    others = [variant for variant in seconds if variant != PLAIN]
    head = ("query", "plain s", *others, "decisions adopted")
    rows = [
        (
            query,
            f"{statistics.median(runs):.2f}",
            *(_percent(_ratio(seconds[variant][query], runs)) for variant in others),
            f"{max(statistics.median(counts[query]) for counts in times['adopted'].values()):g}",
        )
        for query, runs in seconds[PLAIN].items()
    ]
    return [head, *rows]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
