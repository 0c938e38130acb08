"""Runs shapes under plain Spark, an expert's settings and recipes; tables of what came of it."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import submitting
from bench import history, turns
from bench.shapes import SHAPES
from bench.shapes.shape import Shape
from bench.shapes.tasks import by_group

ROOT = Path(__file__).resolve().parents[2]
JOB = ROOT / "bench" / "jobs" / "shapes.py"
PLAIN, BY_HAND, RECIPE, AGAIN = "plain", "settings by hand", "recipe", "plain again"
LEARNED = "learned"
HEAD = (
    *("query", "way", "median s", "to plain", "longest task s", "over median", "task s"),
    *("tasks", "spill MB", "failed", "decisions adopted", "files", "KB a file"),
)


class Work(NamedTuple):
    """What the job is told.

    Attributes:
        shape: One of `SHAPES`.
        size: Of its tables.
        tables: Their folder. The job writes them where they are not there.
        queries: Which it runs.
        ways: The settings of each way.
        rounds: How often each way runs each query.
        warm_up: Rounds before, which are not counted.
    """

    shape: str
    size: float
    tables: str
    queries: Sequence[str]
    ways: dict[str, dict[str, str]]
    rounds: int
    warm_up: int


def ways(name: str) -> dict[str, dict[str, str]]:
    """Returns the settings of each way to run a shape."""
    shape = SHAPES[name]
    return {
        **{PLAIN: {}, BY_HAND: dict(shape.by_hand)},
        **{RECIPE: history.policies(*shape.recipes), AGAIN: {}},
    }


def settings(shape: Shape) -> dict[str, str]:
    """Returns the settings of an application that runs a shape."""
    return {
        "spark.sql.shuffle.partitions": "200",
        # The tests' settings say 2, whatever the master is.
        "spark.default.parallelism": str(shape.slots),
        "spark.sql.codegen.cache.maxEntries": "100000",
        "spark.driver.extraJavaOptions": "-XX:ReservedCodeCacheSize=1g -XX:+UseParallelGC",
        "spark.log.level": "WARN",
        **shape.start,
    }


def measure(
    name: str,
    rounds: int,
    only: Sequence[str] = (),
    size: float = 1.0,
    second_day: bool = False,
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Returns each query's runs, by query and way, one a round.

    Args:
        name: One of `bench.shapes.SHAPES`.
        rounds: How often each way runs each query.
        only: The queries; none for all that the shape has.
        size: Of the tables; 1 is what is documented.
        second_day: Whether there was a day before: an application that ran each query twice under
            plain Spark. Then `learned` is one of the ways, with `balanced` behind it.
    """
    shape = SHAPES[name]
    queries = [
        query_name
        for query_name in {**shape.queries, **shape.counters}
        if not only or query_name in only
    ]
    with tempfile.TemporaryDirectory(prefix="aqepilot-shapes-") as folder:
        tables = str(Path(folder, "tables"))
        work = Work(name, size, tables, queries, ways(name), rounds, shape.warm_up)
        conf = {}
        if second_day:
            pack = Path(folder, "history.parquet")
            day = work._replace(ways={PLAIN: {}}, rounds=2, warm_up=0)
            _, log = _runs(Path(folder, "first"), day, {"spark.aqepilot.history.learn": "true"})
            history.build(log, pack)
            conf = {"spark.aqepilot.history": str(pack)}
            learned = {LEARNED: history.policies("learned", "balanced")}
            work = work._replace(ways=work.ways | learned)
        runs_by_query, log = _runs(Path(folder, "measured"), work, conf)
        tasks = by_group(log)
    for runs in (runs for query_name in runs_by_query.values() for runs in query_name.values()):
        for run in runs:
            group = run.pop("group")
            run["tasks"] = tasks[group]._asdict() if group in tasks else None
    return runs_by_query


def _runs(
    folder: Path, work: Work, conf: dict[str, str]
) -> tuple[dict[str, dict[str, list[dict[str, Any]]]], Path]:
    """Runs an application; returns each query's runs, and its event log."""
    shape, console = SHAPES[work.shape], Console(stderr=True)
    runs_by_query: dict[str, dict[str, list[dict[str, Any]]]] = {
        query: {way: [] for way in work.ways} for query in work.queries
    }
    work_file, log = folder / "work.json", folder / "log"
    log.mkdir(parents=True)
    work_file.write_text(json.dumps(work._asdict()), encoding="utf-8")
    for line in submitting.lines(
        folder,
        JOB.read_text("utf-8"),
        timeout_s=6 * 3600,
        conf={
            **settings(shape),
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": str(log),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            **conf,
        },
        job_words=[str(work_file)],
        master=shape.master,
        memory="3g",
        quick=False,
        env=turns.environment(),
    ):
        if not line.startswith("RUN "):
            continue
        number, query, way, seconds, adopted, error, files, size = json.loads(
            line.removeprefix("RUN ")
        )
        outcome = error or f"{seconds:.2f} s"
        console.print(f"{work.shape}, round {number + 1}: {query}, {way}: {outcome}")
        if number >= 0:
            run = {"seconds": seconds, "adopted": adopted, "error": error}
            run |= {"files": files, "file_bytes": size}
            runs_by_query[query][way].append({**run, "group": f"{number}|{query}|{way}"})
    (written,) = (path for path in log.iterdir() if path.is_file())
    return runs_by_query, written


def table(runs_by_query: dict[str, dict[str, list[dict[str, Any]]]]) -> list[tuple[str, ...]]:
    """Returns a row for each query and way."""
    return [
        _row(query, way, runs, by_way[PLAIN])
        for query, by_way in runs_by_query.items()
        for way, runs in by_way.items()
    ]


def _row(
    query: str, way: str, runs: Sequence[dict[str, Any]], plain: Sequence[dict[str, Any]]
) -> tuple[str, ...]:
    good = [run for run in runs if not run["error"]]
    errors = {run["error"] for run in runs if run["error"]}
    head = (query, way) if way == PLAIN else ("", way)
    if not good:
        outcome = next(iter(errors), "not run")
        return (*head, f"fails: {outcome[:80]}", *[""] * 6, str(len(runs)), "", "", "")
    pairs = [
        ours["seconds"] / theirs["seconds"]
        for ours, theirs in zip(runs, plain, strict=False)
        if not ours["error"] and not theirs["error"]
    ]
    to_plain = f"{statistics.median(pairs):.3f}" if pairs and way != PLAIN else ""
    seconds_by_way = {
        key: statistics.median(run["tasks"][key] for run in good if run["tasks"])
        for key in ("longest_s", "over_median", "seconds", "count", "spilled_bytes")
    }
    return (
        *head,
        f"{statistics.median(run['seconds'] for run in good):.2f}",
        to_plain,
        f"{seconds_by_way['longest_s']:.2f}",
        f"{seconds_by_way['over_median']:.1f}",
        f"{seconds_by_way['seconds']:.1f}",
        f"{seconds_by_way['count']:g}",
        f"{seconds_by_way['spilled_bytes'] / 1e6:.0f}",
        str(len(runs) - len(good)),
        f"{statistics.median(run['adopted'] for run in runs):g}",
        *_files(good),
    )


def _files(runs: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """How many files a write made, and their mean size; nothing for what writes none."""
    wrote = [(run["files"], run["file_bytes"]) for run in runs if run.get("files")]
    if not wrote:
        return "", ""
    count, size = (statistics.median(values) for values in zip(*wrote, strict=True))
    return f"{count:g}", f"{size / count / 1000:.0f}"
