"""The runs: each in a process of its own under spark-submit, plain Spark and ours in turn."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from rich.console import Console
from rich.progress import track

import submitting
import tpcds
import tpch
from aqepilot import recipes
from bench import history

JOBS = Path(__file__).parent / "jobs"
SORT_MERGE = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}


class Ask(NamedTuple):
    """What is asked.

    Attributes:
        point: The decision point.
        text: The policy's.
        counted: Facts that have to be the number of partitions, for an ask to count.
        conf: Settings.
        joins: How often the smaller table is joined.
    """

    point: str
    text: str
    counted: Sequence[str]
    conf: Mapping[str, str] = SORT_MERGE
    joins: int = 1


def _recipe(name: str, *counted: str, conf: Mapping[str, str] = SORT_MERGE, joins: int = 1) -> Ask:
    ((point, text),) = recipes.get(name, pyspark.__version__).texts().items()
    return Ask(point, text, counted, conf, joins)


_SIDES = ("side.num_partitions", "other.num_partitions")
_LEFT_RIGHT = ("left.num_partitions", "right.num_partitions")
ASKS = {
    "sizes": Ask(
        "dynamic_join_selection",
        "CASE WHEN side.max_bytes > 8 * side.median_bytes AND side.size_in_bytes < "
        "other.size_in_bytes THEN 'SHUFFLE_HASH' END",
        _SIDES,
    ),
    "every partition": Ask(
        "dynamic_join_selection",
        "CASE WHEN exists(side.bytes_by_partition_id, b -> b > 8 * "
        "side.median_bytes) THEN 'SHUFFLE_HASH' END",
        _SIDES,
    ),
    "hot_keys": _recipe("hot_keys", *_LEFT_RIGHT),
    "optimize_skewed_join": _recipe("optimize_skewed_join", *_LEFT_RIGHT),
    "coalesce_shuffle_partitions": _recipe("coalesce_shuffle_partitions", "shuffle.num_partitions"),
    "right_sized_shuffles": _recipe("right_sized_shuffles", "shuffles.num_partitions"),
    # Before anything has run, whatever the number of partitions.
    "join_selection": _recipe("join_selection"),
    "most_selective_first": _recipe("most_selective_first", joins=3),
    # A side turns out to be small: a re-plan.
    "simple_cost_evaluator": _recipe(
        "simple_cost_evaluator",
        conf={
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
        },
    ),
}


class Planned(NamedTuple):
    """What is planned.

    Attributes:
        tables: The folder with the tables at a scale factor.
        queries: The queries.
        recipes: The policies of a further session.
        signatures: How many a pack of history has beside those of the queries; 0 for no pack.
    """

    tables: Callable[[float], Path]
    queries: Callable[[], list[str]]
    recipes: Sequence[str] = ()
    signatures: int = 0


SIX_TABLES = """
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
  AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
  AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name ORDER BY revenue DESC
"""
CHAIN_OF_12 = """
SELECT count(*), sum(l.l_quantity)
FROM region r, nation n, customer c, orders o, lineitem l, partsupp ps, supplier s, nation n2,
  region r2, nation n3, customer c2, orders o2
WHERE r.r_regionkey = n.n_regionkey AND n.n_nationkey = c.c_nationkey
  AND c.c_custkey = o.o_custkey AND o.o_orderkey = l.l_orderkey AND l.l_partkey = ps.ps_partkey
  AND ps.ps_suppkey = s.s_suppkey AND s.s_nationkey = n2.n_nationkey
  AND n2.n_regionkey = r2.r_regionkey AND r2.r_regionkey = n3.n_regionkey
  AND n3.n_nationkey = c2.c_nationkey AND c2.c_custkey = o2.o_custkey
"""
OF_TPCDS = (tpcds.files, lambda: list(tpcds.queries().values()))
PLANNED = {
    "a six-table join": Planned(tpch.files, lambda: [SIX_TABLES]),
    "a chain of 12 relations": Planned(tpch.files, lambda: [CHAIN_OF_12], ["reorder_join"]),
    "the 99 queries of TPC-DS": Planned(*OF_TPCDS, ["reorder_join", "join_selection"]),
    "the 99 queries of TPC-DS with balanced": Planned(*OF_TPCDS, ["balanced"]),
    "the 99 queries of TPC-DS with learned": Planned(*OF_TPCDS, ["learned"], 100_000),
}
# "plain again" against "plain" shows the noise.
VARIANTS = {"plain": False, "idle": True, "plain again": False}
ORDERS = (
    ("plain", "idle", "plain again"),
    ("plain again", "idle", "plain"),
    ("idle", "plain", "plain again"),
    ("plain again", "plain", "idle"),
    ("plain", "plain again", "idle"),
    ("idle", "plain again", "plain"),
)
console = Console(stderr=True, highlight=False)


def ask(
    queries: int, warm_up: int, only: Sequence[str] = (), partitions: int = 2000
) -> dict[str, list[float]]:
    """Returns the microseconds of each ask that counts, by point, policy and kind."""
    figures = {}
    asks_of = {policy: one for policy, one in ASKS.items() if policy in (only or ASKS)}
    for policy, one in track(asks_of.items(), "ask", console=console):
        conf = {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.aqepilot.policies": "bench",
            f"spark.aqepilot.policy.bench.{one.point}": one.text,
            **one.conf,
        }
        words = [str(warm_up), str(queries), one.point, ",".join(one.counted), str(one.joins)]
        asks = _submitted("ask.py", words, conf, extension=True)
        name = f"{one.point}: {policy}"
        figures[name] = [a["us"] for a in asks]
        figures[f"{name}, first of a query"] = [a["us"] for a in asks if a["is_first"]]
        figures[f"{name}, later ones"] = [a["us"] for a in asks if not a["is_first"]]
    return figures


def short(queries: int, warm_up: int) -> dict[str, list[float]]:
    """Returns the microseconds of the asks of short queries under `balanced`, by point."""
    conf = {
        "spark.sql.shuffle.partitions": "8",
        "spark.aqepilot.policies": "balanced",
        **SORT_MERGE,
    }
    for point, text in recipes.get("balanced", pyspark.__version__).texts().items():
        conf[f"spark.aqepilot.policy.balanced.{point}"] = text
    figures: dict[str, list[float]] = {}
    for point, micros in _submitted("short.py", [str(warm_up), str(queries)], conf, extension=True):
        figures.setdefault(point, []).append(micros)
    return figures


def python(queries: int) -> dict[str, dict[str, Any]]:
    """Returns the round trips in so many queries, after as many, by what else goes on."""
    figures = {}
    asked = {
        "both sides there": ("skew_join", "skew"),
        "tasks of one run": ("dynamic_join_selection", "join_strategy"),
    }
    cases = list(itertools.product((2000, 20000), asked, ("idle", "busy")))
    for partitions, when, driver in track(cases, "python", console=console):
        point, function = asked[when]
        conf = {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.aqepilot.policies": "warm_up",
            f"spark.aqepilot.policy.warm_up.{point}": f"python:asked:warm_{function}",
            f"spark.aqepilot.policy.bench.{point}": f"python:asked:{function}",
            **SORT_MERGE,
        }
        words = [str(max(1, queries * 2000 // partitions)), driver]
        files = ["--py-files", str(JOBS / "asked.py")]
        name = f"{partitions:,}, {when}, {driver}"
        figures[name] = _submitted("python.py", words, conf, True, files)
    return figures


def planning(
    rounds: int, warm_up: int, timed: int, only: Sequence[str] = ()
) -> dict[str, dict[str, list[float]]]:
    """Returns the milliseconds of planning, a round's median, by what is planned and variant."""
    figures = {}
    measured = {what: plan for what, plan in PLANNED.items() if what in (only or PLANNED)}
    for what, plan in track(measured.items(), "planning", console=console):
        texts = {
            f"spark.aqepilot.policy.bench.{point}": text
            for name in plan.recipes
            for point, text in recipes.get(name, pyspark.__version__).texts().items()
        }
        queries = plan.queries()
        work = {
            "tables": str(plan.tables(0.01)),
            "queries": queries,
            "policies": texts and {"spark.aqepilot.policies": "bench", **texts},
            "warm_up": max(1, warm_up // len(queries)),
            "timed": max(1, timed // len(queries)),
            "rounds": rounds,
        }
        with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
            conf = {}
            if plan.signatures:
                by_name = {str(number): text for number, text in enumerate(queries)}
                known = history.first_runs("tpcds", by_name, 0.01, Path(folder))
                conf["spark.aqepilot.history"] = str(history.filled(known, plan.signatures))
            work_file = Path(folder, "work.json")
            work_file.write_text(json.dumps(work), encoding="utf-8")
            figures[what] = _submitted("plan.py", [str(work_file)], conf, extension=True)
    return figures


def total(rounds: int, scale: float) -> dict[str, list[dict[str, Any]]]:
    """Returns the seconds of each TPC-H query, and CPU seconds, by variant, an entry a round."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, "queries.json")
        texts.write_text(json.dumps(tpch.queries()), encoding="utf-8")
        words = [str(tpch.files(scale)), str(tpch.files(0.01)), str(texts)]
        return _in_turn("TPC-H", rounds, lambda ours: _submitted("tpch.py", words, {}, ours))


def _in_turn(what: str, rounds: int, run: Callable[[bool], Any]) -> dict[str, list[Any]]:
    results: dict[str, list[Any]] = {variant: [] for variant in VARIANTS}
    for number in range(rounds):
        for variant in ORDERS[number % len(ORDERS)]:
            console.print(f"{what}: round {number + 1} of {rounds}, {variant}")
            results[variant].append(run(VARIANTS[variant]))
    return results


def _submitted(
    job: str,
    words: Sequence[str],
    conf: dict[str, str],
    extension: bool,
    submit_words: Sequence[str] = (),
) -> Any:
    conf = {"spark.sql.shuffle.partitions": "200"} | conf
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        done = submitting.submit(
            Path(folder),
            (JOBS / job).read_text("utf-8"),
            submit_words,
            conf=conf,
            job_words=words,
            extension=extension,
            memory="3g",
            quick=False,
            timeout_s=3600,
        )
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
