"""How long the analysis of a million outcomes takes, as arrays and out of collected tables."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aqepilot import read_log
from aqepilot.analysis.experiment import history, verdicts
from aqepilot.analysis.experiment.analysis import analyse, harmed_queries
from aqepilot.analysis.experiment.metrics import METRICS
from aqepilot.analysis.experiment.runs import Runs
from aqepilot.eventlog.frames import columns
from aqepilot.submit.check import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OUTCOMES = 1_000_000
JOBS = 2_000
DAYS = 200
# Of an application; one application in a hundred is killed when half of them have run.
QUERIES = 100
KINDS = ("query_run", "job_run")


class Took(NamedTuple):
    """What a step took: the processors' time says it on a busy machine, too.

    Attributes:
        wall: Seconds.
        python: Seconds of processors, in Python.
        jvm: Seconds of processors, in the driver's JVM; NaN where that is not known.
    """

    wall: float
    python: float
    jvm: float


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


def seconds(outcomes: int = OUTCOMES) -> dict[str, dict[str, Took]]:
    """Returns what each step takes, by what is analysed."""
    runs = made(outcomes)
    steps_by_case: dict[str, dict[str, Took]] = {"arrays, and as many from before": {}}
    with _timed(steps_by_case["arrays, and as many from before"], "analyse"):
        analyse(runs, "task_ms")
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            with local_session("local[2]", "bench", {"spark.driver.memory": "3g"}) as spark:
                collected(spark, folder, outcomes, kind)
            steps_by_case[f"tables, {kind}"] = steps(folder)
            with _timed(steps_by_case[f"tables, {kind}"], "the command, Spark's start included"):
                _analysed(folder)
    return steps_by_case


def steps(folder: str) -> dict[str, Took]:
    """Returns what each step takes that `aqepilot experiment analyse` does with these tables."""
    steps_taken: dict[str, Took] = {}
    few = {"spark.sql.shuffle.partitions": "16"}
    with (
        local_session("local[2]", "bench", few) as spark,
        history.cached(read_log(spark, folder)) as log,
    ):
        pid = spark.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
        with _timed(steps_taken, "units", pid):
            experiment, runs = history.runs_in(log)
        queries = None
        if experiment.unit_kind == "job_run":
            with _timed(steps_taken, "queries of units", pid):
                queries = history.queries_in(log, experiment)
    with _timed(steps_taken, "analyse"):
        analysis = analyse(runs, experiment.metric)
    if queries:
        with _timed(steps_taken, "harmed queries"):
            harmed_queries(queries, experiment.metric)
    verdicts.sentences(experiment, analysis)
    return steps_taken


def _analysed(folder: str) -> None:
    command = [sys.executable, "-m", "aqepilot", "experiment", "analyse", "--master", "local[2]"]
    run = subprocess.run(
        [*command, "--json", "--log", folder], capture_output=True, text=True, check=False
    )
    if not run.stdout.startswith("{"):
        raise RuntimeError(run.stderr[-4000:])


@contextmanager
def _timed(steps_taken: dict[str, Took], step: str, jvm: int | None = None) -> Iterator[None]:
    def now() -> tuple[float, float, float]:
        of_children = os.times()
        python = time.process_time() + of_children.children_user + of_children.children_system
        return time.perf_counter(), python, _processor_seconds(jvm) if jvm else 0.0

    begun = now()
    yield
    steps_taken[step] = Took(*(end - start for start, end in zip(begun, now(), strict=True)))


def _processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
    except OSError:
        return float("nan")
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def collected(spark: SparkSession, folder: str, outcomes: int, kind: str = "query_run") -> None:
    """Writes tables, as `aqepilot log collect` does, of an experiment and of some days before."""
    of_time = {"queries": "started", "experiments": "time"}
    for name, frame in tables(spark, outcomes, kind).items():
        to = f"{folder}/{name}/batch=20261101T000000000000-00000000"
        if name in of_time:
            frame = frame.selectExpr("*", f"to_date({of_time[name]}) AS date")
            frame.write.partitionBy("date").parquet(to)
        else:
            frame.write.parquet(to)


def tables(
    spark: SparkSession,
    outcomes: int,
    kind: str = "query_run",
    lost: float = 0.0,
    each: int = QUERIES,
) -> dict[str, DataFrame]:
    """Returns the tables of an experiment, with a quarter as many queries from before it.

    Each application is a run of one of 200 jobs. The experiment has three arms, whose weights are
    45, 45 and 10.

    Args:
        spark: Any session.
        outcomes: Of queries in the experiment.
        kind: Of its units: `query_run` or `job_run`.
        lost: Share of the logs of the second arm's runs that are lost.
        each: Queries of an application.
    """
    before = outcomes // 4
    # An application's number, and its unit's draw.
    app = f"id DIV {each}"
    unit = app if kind == "job_run" else "id"
    drawn = f"pmod(xxhash64({unit}, 4), 100)"
    arm = f"CASE WHEN {drawn} < 45 THEN 'spark' WHEN {drawn} < 90 THEN 'wide' ELSE 'other' END"
    job, run = f"concat('daily.sales.job', {app} % 200)", f"concat('scheduled__', {app})"
    fingerprint = f"sha2(cast(id % {each} AS string), 256)"
    names = [job, run] if kind == "job_run" else [job, run, fingerprint]
    is_in = f"id >= {before}"
    killed = f"pmod(xxhash64({app}, 5), 100) = 0"
    left = f"pmod(xxhash64({app}, 6), 1000000) < {lost * 1e6} AND {arm} = 'wide'"
    at = "1700000000 + id * 8"
    took = "1000 + abs(xxhash64(id, 3) % 1000)"
    # The number of the killed application's last query, which has no end.
    last = each // 2
    runs_on = f"NOT ({killed} AND id % {each} = {last})"
    of_experiment = {"experiment": f"CASE WHEN {is_in} THEN 'e' END"}
    of_experiment["unit"] = f"CASE WHEN {is_in} THEN concat_ws('|', {', '.join(names)}) END"
    common = {
        **{"log": run, "app_id": run, "app_name": job, "job": job, "run": run},
        **of_experiment,
        "fingerprint": fingerprint,
        "unit_kind": f"'{kind}'",
        "arm": arm,
        "arms": "'spark:45,wide:45,other:10'",
        "metric": "'task_ms'",
        "what": "what",
        **dict.fromkeys(("time", "started"), f"timestamp_seconds({at})"),
        "lines": "1000",
        "bytes": "1000000",
    }
    of_query = {
        "ended": f"CASE WHEN {runs_on} THEN timestamp_seconds({at} + 60) END",
        "succeeded": f"CASE WHEN {runs_on} THEN xxhash64(id, 1) % 100 <> 0 END",
        "input_bytes": "1000000 + abs(xxhash64(id, 2) % 1000000)",
        "disk_spill_bytes": "0",
        **dict.fromkeys(
            ("task_ms", "wall_ms", "cpu_ms", "executor_core_ms", "shuffle_write_bytes"), took
        ),
    }
    of_application = {
        "ended": f"CASE WHEN NOT ({killed}) THEN timestamp_seconds({at} + 8 * {each}) END"
    }
    begun = f"NOT ({killed} AND id % {each} > {last}) AND NOT ({left})"
    numbers = spark.range(before + outcomes).where(begun)
    events = numbers.where(is_in)
    if kind == "job_run":
        events = events.where(f"id % {each} = 0")
    moments = "explode(array('assigned', 'exposed')) AS what"
    rows = {
        "applications": numbers.where(f"id % {each} = 0"),
        "queries": numbers,
        "experiments": events.selectExpr("id", moments),
    }
    more = {"applications": of_application, "queries": of_query, "experiments": {}}
    kept = {"applications": (columns.LogColumn("bytes", "bigint", ""),)}

    def listed(name: str) -> list[str]:
        values = common | more[name]
        return [
            f"cast({values.get(column.name, 'null')} AS {column.type}) AS {column.name}"
            for column in (*columns.FRAMES[name], *kept.get(name, ()))
        ]

    return {name: frame.selectExpr(*listed(name)) for name, frame in rows.items()}
