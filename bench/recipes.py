"""What recipes gain and where they lose: queries under each, beside Spark as it comes.

One application for each recipe, all its variants in turn (see `jobs/recipes.py`).
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyspark
from rich.console import Console
from rich.progress import Progress

import parity
import submitting
import tpcds
import tpch
from aqepilot import jars, recipes
from aqepilot.demo import data, sparks
from bench.figures import Spread, spread

JOB = Path(__file__).parent / "jobs" / "recipes.py"
SMALL = 0.01
LOSS = 1.05
PLAIN, AGAIN = "plain", "plain again"
ADAPTIVE = "spark.sql.adaptive."
SHUFFLED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    ADAPTIVE + "autoBroadcastJoinThreshold": "-1",
}

# What Spark compiles for a query is kept for all rounds: else who comes first pays for the others.
KEPT = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.codegen.cache.maxEntries": "100000",
    "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=1g -XX:+UseParallelGC",
}

# Long tasks for a few keys, and where splitting only repeats work.
HOT_KEYS = {
    "profit by ship mode": """
        SELECT l_shipmode, count(*),
               sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity)
        FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey
        GROUP BY l_shipmode""",
    "left join and much work for each row": """
        SELECT max(sha2(concat(l_comment, ps_comment), 512))
        FROM lineitem LEFT JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey""",
    "loses: no hot key": """
        SELECT count(*), max(a.l_comment)
        FROM lineitem a JOIN lineitem b
          ON a.l_orderkey = b.l_orderkey AND a.l_linenumber = b.l_linenumber""",
    "loses: little work for each row": """
        SELECT count(*)
        FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey""",
}
# As on a cluster of 64 cores, which Spark cuts shuffles for.
MANY_CORES = {ADAPTIVE + "coalescePartitions.minPartitionNum": "64"}
SHORT_QUERIES = (1, 4, 5, 10, 12, 13, 16, 18)
HEAVY_ROWS = {
    "loses: much work for each byte": """
        SELECT sum(aggregate(sequence(1, 200), 0L, (sum, i) -> sum + hash(o_custkey, i)))
        FROM (SELECT DISTINCT o_custkey FROM orders)""",
}
EXPANDING = {
    "much explode of few bytes": """
        SELECT max(hash(c, x)) FROM (SELECT DISTINCT o_custkey AS c FROM orders)
        LATERAL VIEW explode(sequence(1, 500)) AS x""",
    "pairs of a customer's orders": """
        WITH of AS (SELECT o_custkey AS c, collect_list(o_orderkey) AS keys FROM orders GROUP BY 1)
        SELECT hash(a, b) % 100000, count(*), max(c) FROM of
        LATERAL VIEW explode(keys) AS a LATERAL VIEW explode(keys) AS b GROUP BY 1""",
    "join on a range": """
        SELECT count(*), sum(q) FROM (SELECT l_suppkey AS s, l_partkey AS p, sum(l_quantity) AS q
          FROM lineitem GROUP BY 1, 2)
        JOIN (SELECT id * 40 AS low FROM range(25)) ON q >= low AND q < low + 400""",
    "Python": """
        SELECT sum(letters_in_python(name)) FROM (
          SELECT DISTINCT concat_ws(' ', l_suppkey, l_partkey) AS name FROM lineitem)""",
    "loses: a little explode": """
        SELECT count(*), sum(x) FROM (
          SELECT DISTINCT l_suppkey AS s, l_partkey AS p FROM lineitem)
        LATERAL VIEW explode(array(s, p)) AS x""",
    "loses: Python on few rows": """
        SELECT sum(letters_in_python(name)) FROM (
          SELECT DISTINCT concat_ws(' ', l_shipmode, l_returnflag) AS name FROM lineitem)""",
}
# A side turns out to be small while the other side's shuffle waits for a join of its own.
MEASURED = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    ADAPTIVE + "autoBroadcastJoinThreshold": "10MB",
}
REPLANS = {
    "window over multiplied rows": """
        SELECT max(n), count(*) FROM (
          SELECT row_number() OVER (PARTITION BY l_partkey ORDER BY o_totalprice, x) AS n
          FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN (SELECT ps_partkey AS p, explode(sequence(1, 2)) AS x FROM partsupp
                WHERE ps_availqty < 2500) ON l_partkey = p)""",
    "aggregation that keeps all rows": """
        SELECT max(size(of)), count(*) FROM (
          SELECT l_partkey, collect_list(o_orderdate) AS of
          FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN (SELECT ps_partkey AS p, explode(sequence(1, 2)) AS x FROM partsupp
                WHERE ps_availqty < 2500) ON l_partkey = p
          GROUP BY l_partkey)""",
    "loses: few joined rows": """
        SELECT max(n), count(*) FROM (
          SELECT row_number() OVER (PARTITION BY l_partkey ORDER BY o_totalprice) AS n
          FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN (SELECT ps_partkey AS p FROM partsupp WHERE ps_availqty < 20) ON l_partkey = p)""",
    "loses: few rows after aggregation": """
        SELECT max(n), count(*) FROM (
          SELECT l_partkey, count(*) AS n FROM lineitem JOIN orders ON l_orderkey = o_orderkey
          JOIN (SELECT ps_partkey AS p FROM partsupp WHERE ps_availqty < 20) ON l_partkey = p
          GROUP BY l_partkey)""",
}


class Case(NamedTuple):
    """One measurement.

    Attributes:
        of: The recipes, together one variant.
        tables: The folder with the tables at a scale factor.
        queries: By name.
        conf: Settings of all variants.
        beside: Settings of further variants.
    """

    of: Sequence[str]
    tables: Callable[[float], Path]
    queries: Callable[[], Mapping[str, str]]
    conf: Mapping[str, str] = {}
    beside: Mapping[str, Mapping[str, str]] = {}


class Work(NamedTuple):
    """What the job is told; the first variant is plain Spark."""

    tables: str
    small: str
    queries: Mapping[str, str]
    conf: Mapping[str, str]
    variants: Mapping[str, Mapping[str, str]]
    rounds: int


def _skewed(scale: float) -> Path:
    folder = Path(tpch.files(scale)).parent
    return data.skewed(folder, scale, sparks.find(jars.minor_of(pyspark.__version__), folder))


def _named(queries: Mapping[int, str]) -> dict[str, str]:
    return {str(number): text for number, text in queries.items()}


def _tpcds() -> dict[str, str]:
    return _named(tpcds.queries())


def _short() -> dict[str, str]:
    return _named({number: tpch.queries()[number] for number in SHORT_QUERIES}) | HEAVY_ROWS


CASES = {
    "right_sized_shuffles": Case(
        ["right_sized_shuffles"],
        tpcds.files,
        _tpcds,
        beside={"8 partitions": {"spark.sql.shuffle.partitions": "8"}},
    ),
    "hot_keys": Case(
        ["hot_keys"],
        _skewed,
        lambda: HOT_KEYS,
        SHUFFLED | {"spark.sql.files.maxPartitionBytes": "16MB"},
        {
            "settings by hand": {
                ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "4MB",
                ADAPTIVE + "skewJoin.skewedPartitionFactor": "2",
                ADAPTIVE + "advisoryPartitionSizeInBytes": "4MB",
            }
        },
    ),
    "small_tasks": Case(["small_tasks"], tpch.files, _short, MANY_CORES),
    "expanding_stages": Case(["expanding_stages"], tpch.files, lambda: EXPANDING),
    "no_regret_broadcast": Case(["no_regret_broadcast"], tpch.files, lambda: REPLANS, MEASURED),
    "all_points": Case(parity.SPARKS_OWN, tpcds.files, _tpcds),
}


def variants(case: Case) -> dict[str, dict[str, str]]:
    """Returns the settings of each variant: plain Spark, what stands beside it, the recipes."""
    texts = dict[str, str]()
    for name in case.of:
        texts |= recipes.get(name, pyspark.__version__).texts()
    policy = {f"spark.aqepilot.policy.bench.{point}": text for point, text in texts.items()}
    beside = {name: dict(conf) for name, conf in case.beside.items()}
    own = "Spark's recipes" if len(case.of) > 1 else case.of[0]
    return {PLAIN: {}, **beside, own: {"spark.aqepilot.policies": "bench"} | policy, AGAIN: {}}


def measure(
    name: str, scale: float, rounds: int, only: Sequence[str] = ()
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Returns what each query's runs came to, by variant and query, one a round.

    ``seconds`` is their wall time, ``adopted`` the number of decisions that changed their plans.

    Args:
        name: One of `CASES`.
        scale: The tables' scale factor.
        rounds: How often each variant runs each query.
        only: The queries; none for all that the case has.
    """
    case = CASES[name]
    every = case.queries()
    queries = {query: every[query] for query in (only or every) if query in every}
    work = Work(
        str(case.tables(scale)),
        str(case.tables(SMALL)),
        queries,
        case.conf,
        variants(case),
        rounds,
    )
    found: dict[str, dict[str, dict[str, list[float]]]] = {
        kind: {variant: {query: [] for query in queries} for variant in work.variants}
        for kind in ("seconds", "adopted")
    }
    runs = (rounds + 1) * len(queries) * len(work.variants)
    with (
        tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder,
        Progress(console=Console(stderr=True)) as progress,
    ):
        task = progress.add_task(name, total=runs)
        told = Path(folder) / "work.json"
        told.write_text(json.dumps(work._asdict()), encoding="utf-8")
        began = ""
        lines = submitting.lines(
            Path(folder),
            JOB.read_text("utf-8"),
            timeout_s=24 * 3600,
            conf=KEPT,
            job_words=[str(told)],
            memory="8g",
        )
        for line in lines:
            if line.startswith("RUN "):
                number, query, variant, seconds, adopted = json.loads(line.removeprefix("RUN "))
                what = "warm-up" if number < 0 else f"round {number + 1}"
                if what != began and not progress.console.is_terminal:
                    progress.console.print(f"{name}, {what}")
                began = what
                progress.update(
                    task, advance=1, description=f"{name}, {what}: {query[:30]}, {variant}"
                )
                if number >= 0:
                    found["seconds"][variant][query].append(seconds)
                    found["adopted"][variant][query].append(adopted)
    return found


class Against(NamedTuple):
    """A variant beside plain Spark.

    Attributes:
        total_s: The sum of its queries' medians.
        total: That, as a ratio to plain Spark's.
        mean: The geometric mean of the queries' ratios.
        ratios: Their spread; a query's ratio is the median over its rounds.
        slower: The queries that lose more than 5 % to plain Spark and to plain Spark again.
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
    plain, again = seconds[PLAIN], seconds[AGAIN]
    totals = {v: sum(map(statistics.median, runs.values())) for v, runs in seconds.items()}
    found = {}
    for variant, runs in seconds.items():
        to_plain = {query: _ratio(runs[query], plain[query]) for query in runs}
        to_again = {query: _ratio(runs[query], again[query]) for query in runs}
        both = {query: (to_plain[query], to_again[query]) for query in runs}
        found[variant] = Against(
            totals[variant],
            totals[variant] / totals[PLAIN],
            math.exp(statistics.fmean(map(math.log, to_plain.values()))),
            spread(list(to_plain.values())),
            [query for query, ratios in both.items() if min(ratios) > LOSS],
            [query for query, ratios in both.items() if max(ratios) < 1 / LOSS],
        )
    return found


def _ratio(of: Sequence[float], to: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(of, to, strict=True))


def table(seconds: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, ...]]:
    """Returns a head and a row for each variant."""
    head = (
        *("variant", "total s", "total to plain", "geometric mean", "p10", "p90"),
        *("queries > 5 % slower", "> 5 % faster", "queries"),
    )
    rows = []
    for variant, of in against_plain(seconds).items():
        paired = ("",) * 6
        if variant != PLAIN:
            ratios = (of.total, of.mean, of.ratios.p10, of.ratios.p90)
            paired = (*map(_percent, ratios), str(len(of.slower)), str(len(of.faster)))
        rows.append((variant, f"{of.total_s:.2f}", *paired, str(of.ratios.count)))
    return [head, *rows]


def by_query(found: Mapping[str, Mapping[str, Mapping[str, list[float]]]]) -> list[tuple[str, ...]]:
    """Returns a head and a row for each query: plain Spark's median seconds, others' ratios."""
    seconds = found["seconds"]
    others = [variant for variant in seconds if variant != PLAIN]
    head = ("query", "plain s", *others, "decisions adopted")
    rows = [
        (
            query,
            f"{statistics.median(runs):.2f}",
            *(_percent(_ratio(seconds[variant][query], runs)) for variant in others),
            f"{max(statistics.median(of[query]) for of in found['adopted'].values()):g}",
        )
        for query, runs in seconds[PLAIN].items()
    ]
    return [head, *rows]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
