"""The runs: each in a process of its own under spark-submit, plain Spark and ours in turn."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import submitting
import tpch

JOBS = Path(__file__).parent / "jobs"
ASK_POLICIES = {
    "sizes": "CASE WHEN side.max_bytes > 8 * side.median_bytes AND side.size_in_bytes < "
    "other.size_in_bytes THEN 'SHUFFLE_HASH' END",
    "every partition": "CASE WHEN exists(side.bytes_by_partition_id, b -> b > 8 * "
    "side.median_bytes) THEN 'SHUFFLE_HASH' END",
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


def ask(queries: int, warm_up: int, partitions: int = 2000) -> dict[str, list[float]]:
    """Returns the microseconds of each ask that had both sides' facts, by policy and kind."""
    found = {}
    for name, text in ASK_POLICIES.items():
        conf = {
            "spark.sql.shuffle.partitions": str(partitions),
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.aqepilot.policies": "bench",
            "spark.aqepilot.policy.bench.dynamic_join_selection": text,
        }
        console.print(f"ask: {name}")
        asks = _submitted("ask.py", [str(warm_up), str(queries)], conf, extension=True)
        found[name] = [a["us"] for a in asks]
        found[f"{name}: first of a join"] = [a["us"] for a in asks if a["is_first"]]
        found[f"{name}: second"] = [a["us"] for a in asks if not a["is_first"]]
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
            timeout_s=3600,
        )
    if done.returncode:
        raise SystemExit(f"{job} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])
