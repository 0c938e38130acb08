"""The runs: each in a process of its own under spark-submit, plain Spark and ours in turn."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from rich.console import Console
from rich.progress import track

import submitting
import tpch
from aqepilot import recipes

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
    """

    point: str
    text: str
    counted: Sequence[str]
    conf: Mapping[str, str] = SORT_MERGE


def _recipe(name: str, *counted: str, conf: Mapping[str, str] = SORT_MERGE) -> Ask:
    ((point, text),) = recipes.get(name, pyspark.__version__).texts().items()
    return Ask(point, text, counted, conf)


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
    # A side turns out to be small: a re-plan.
    "simple_cost_evaluator": _recipe(
        "simple_cost_evaluator",
        conf={
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
        },
    ),
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
    found = {}
    asks_of = {policy: of for policy, of in ASKS.items() if policy in (only or ASKS)}
    for policy, of in track(asks_of.items(), "ask", console=console):
        conf = {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.aqepilot.policies": "bench",
            f"spark.aqepilot.policy.bench.{of.point}": of.text,
            **of.conf,
        }
        words = [str(warm_up), str(queries), of.point, ",".join(of.counted)]
        asks = _submitted("ask.py", words, conf, extension=True)
        name = f"{of.point}: {policy}"
        found[name] = [a["us"] for a in asks]
        found[f"{name}, first of a query"] = [a["us"] for a in asks if a["is_first"]]
        found[f"{name}, later ones"] = [a["us"] for a in asks if not a["is_first"]]
    return found


def planning(rounds: int, warm_up: int, timed: int) -> dict[str, list[float]]:
    """Returns the milliseconds of a planning, a round's median, by variant, all in one JVM."""
    console.print(f"planning: {rounds} rounds")
    words = [str(tpch.files(0.01)), str(warm_up), str(timed), str(rounds)]
    found: dict[str, list[float]] = _submitted("plan.py", words, {}, extension=True)
    return found


def total(rounds: int, scale: float) -> dict[str, list[dict[str, Any]]]:
    """Returns the seconds of each TPC-H query, and CPU seconds, by variant, an entry a round."""
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder, "queries.json")
        texts.write_text(json.dumps(tpch.queries()), encoding="utf-8")
        words = [str(tpch.files(scale)), str(tpch.files(0.01)), str(texts)]
        return _in_turn("TPC-H", rounds, lambda ours: _submitted("tpch.py", words, {}, ours))


def _in_turn(what: str, rounds: int, run: Callable[[bool], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {variant: [] for variant in VARIANTS}
    for number in range(rounds):
        for variant in ORDERS[number % len(ORDERS)]:
            console.print(f"{what}: round {number + 1} of {rounds}, {variant}")
            found[variant].append(run(VARIANTS[variant]))
    return found


def _submitted(job: str, words: Sequence[str], conf: dict[str, str], extension: bool) -> Any:
    conf = {"spark.sql.shuffle.partitions": "200"} | conf
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as folder:
        done = submitting.submit(
            Path(folder),
            (JOBS / job).read_text("utf-8"),
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
