"""How long the analysis of a million outcomes takes, as arrays and out of tables."""

from __future__ import annotations

import tempfile
import time
from typing import TYPE_CHECKING

import numpy as np

from aqepilot.check import local_session
from aqepilot.experiment import history
from aqepilot.experiment.analysis import analyse
from aqepilot.experiment.metrics import METRICS
from aqepilot.experiment.runs import Runs
from aqepilot.log import Log, columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OUTCOMES = 1_000_000
JOBS = 2_000
DAYS = 200


def made(outcomes: int = OUTCOMES, seed: int = 1) -> Runs:
    """Returns outcomes of queries of 2,000 jobs over 100 days, and as many from before."""
    generator = np.random.default_rng(seed)
    n = 2 * outcomes
    day = np.sort(generator.integers(0, DAYS, n))
    job = generator.integers(0, JOBS, n)
    counted = np.arange(n) >= outcomes
    treated = (generator.random(n) < 0.3) & counted
    size = np.exp(generator.normal(20, 2, JOBS)[job]) * generator.uniform(0.7, 1.3, n)
    took = size**0.8 * np.exp(generator.normal(0, 0.3, n)) * (1 - 0.02 * treated)
    failed = generator.random(n) < 0.01
    return Runs(
        ended=day + np.linspace(0, 0.9 * DAYS, n) % 0.9,
        job=np.array([f"daily.sales.job{j}|{j:064x}" for j in range(JOBS)], dtype=object)[job],
        treated=treated,
        counted=counted,
        share=np.full(n, 0.3),
        exposed=counted & (generator.random(n) < 0.5),
        failed=failed,
        input_bytes=size,
        metrics={name: np.maximum(took, 1.0) for name in METRICS},
        out_of_memory=failed & (generator.random(n) < 0.1),
    )


def seconds(outcomes: int = OUTCOMES) -> dict[str, float]:
    """Returns how long it takes, by what is analysed."""
    runs = made(outcomes)
    begun = time.perf_counter()
    analyse(runs, "task_ms")
    found = {"arrays, and as many runs from before": time.perf_counter() - begun}
    with (
        local_session("local[2]", "bench", {"spark.driver.memory": "3g"}) as spark,
        tempfile.TemporaryDirectory() as folder,
    ):
        log = tables(spark, folder, outcomes)
        begun = time.perf_counter()
        _, read = history.runs_in(log)
        found["tables: reading"] = time.perf_counter() - begun
        analyse(read, "task_ms")
        found["tables: all"] = time.perf_counter() - begun
    return found


def tables(spark: SparkSession, folder: str, outcomes: int) -> Log:
    """Writes tables of an experiment of queries: applications of 100 queries each."""
    fingerprint = "sha2(cast(id % 100 AS string), 256)"
    job, run, log = (f"concat('{of}', id DIV 100{by})" for of, by in _NAMES)
    given = {
        **{"log": log, "job": job, "run": run, "fingerprint": fingerprint},
        "unit": f"concat_ws('|', {job}, {run}, {fingerprint})",
        "experiment": "'e'",
        "unit_kind": "'query_run'",
        "arm": "CASE WHEN xxhash64(id) % 2 = 0 THEN 'spark' ELSE 'wide' END",
        "arms": "'spark:50,wide:50'",
        "metric": "'task_ms'",
        "what": "'assigned'",
        **dict.fromkeys(("time", "started"), "timestamp_seconds(1700000000 + id * 8)"),
        "ended": "timestamp_seconds(1700000060 + id * 8)",
        "succeeded": "xxhash64(id, 1) % 100 <> 0",
        "input_bytes": "1000000 + abs(xxhash64(id, 2) % 1000000)",
        **dict.fromkeys(
            ("task_ms", "wall_ms", "cpu_ms", "executor_core_ms", "shuffle_write_bytes"),
            "1000 + abs(xxhash64(id, 3) % 1000)",
        ),
    }
    frames = {}
    for name, step in (("applications", 100), ("queries", 1), ("experiments", 1)):
        listed = [
            f"cast({given.get(of.name, 'null')} AS {of.type}) AS {of.name}" for of in _of(name)
        ]
        spark.range(0, outcomes, step).selectExpr(*listed).write.parquet(f"{folder}/{name}")
        frames[name] = spark.read.parquet(f"{folder}/{name}")
    queries, none = frames["queries"], frames["queries"].limit(0)
    return Log(frames["applications"], none, queries, none, none, frames["experiments"])


_NAMES = (("job", " % 50"), ("run", ""), ("log", ""))


def _of(name: str) -> tuple[columns.Column, ...]:
    return tuple(columns.FRAMES[name])
