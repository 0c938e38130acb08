"""What decisions in the event log cost: time of TPC-DS, and bytes of the log.

Every decision point is asked, with a recipe of Spark's own rule, so that plans are plain Spark's.

Time. No setting keeps decisions out of the event log. So the job puts itself between Spark's
listener bus and its event log (`jobs/EventLogs.java`), and keeps aqepilot's events from the log
where it is told to; all else is the same: decisions are made, kept for `aqepilot_decisions()` and
posted to the bus. `summary` sets, by reflection, what spark.aqepilot.log.facts sets when an
application starts. "no history" is `full` without what history learns from, as
spark.aqepilot.history.learn=false has it. Thus all ways take turns query by query in one session of
one JVM, as two JVMs differ by more than what is measured. "no events" runs twice; ratios are to the
mean of the two, and how far these are from 1 is the noise. Spark writes its log beside the query,
so there are three figures: the seconds until the rows are there; those until all is in the log, as
if the next query had to wait for it; and the driver's processor seconds until then, tasks included.

Size. One application for each setting runs some queries once. Its log as it is gives the bytes of
aqepilot's lines and of the others; two more logs of the same events, compressed by Spark's own
writer, are with these lines and without.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

import submitting
import tpcds
from bench import turns
from bench.cases import CASES
from bench.figures import Table, ratios, spread
from bench.recipes import OF_ALL, SMALL, variants

JOBS = Path(__file__).parent / "jobs"
NONE, AGAIN = "no events", "no events again"
WITHOUT_HISTORY = "no history"
WAYS = {
    **{NONE: NONE, "summary": "summary", WITHOUT_HISTORY: WITHOUT_HISTORY, "full": "full"},
    AGAIN: NONE,
}
MEASURED = ("until the rows are there", "until all is logged", "processor time")
PARTITIONS = (2000, 200)
FACTS = ("full", "summary", "none")
# Of TPC-DS, one in ten.
SIZED = tuple(str(number) for number in range(1, 100, 10))
OURS = b'{"Event":"io.aqepilot'
LEARNT = b'"subPlans":['
TIME_HEAD = (
    *("measured", "decisions in the log", "total s", "to no events"),
    *("rounds' median", "p10", "p90", "rounds"),
)
SIZE_HEAD = (
    *("partitions, spark.aqepilot.log.facts", "log without, MB", "added MB", "added"),
    "of that history",
    *("zstd: log without, MB", "added MB", "added", "events"),
)
console = Console(stderr=True, highlight=False)


def policies() -> dict[str, str]:
    """Returns the settings of recipes of Spark's own rules at all points."""
    return variants(CASES["all_points"])["Spark's recipes"]


def seconds(
    rounds: int, scale: float, only: Sequence[str] = ()
) -> dict[str, dict[str, list[list[float]]]]:
    """Returns each query's runs by way and query, one a round: a figure for each of `MEASURED`.

    Args:
        rounds: How often each way runs each query.
        scale: Scale factor of the tables.
        only: Numbers of the queries; none for all.
    """
    queries = _queries(only)
    times: dict[str, dict[str, list[list[float]]]] = {
        way: {query: [] for query in queries} for way in WAYS
    }
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as name:
        folder = Path(name)
        (folder / "log").mkdir()
        work = {
            "code": (JOBS / "EventLogs.java").read_text("utf-8"),
            "small": str(tpcds.files(SMALL)),
            "tables": str(tpcds.files(scale)),
            "queries": queries,
            "ways": WAYS,
            "rounds": rounds,
        }
        began = ""
        for line in _ran(folder, "overhead.py", work, OF_ALL):
            if not line.startswith("RUN "):
                console.print(line.rstrip())
                continue
            number, query, way, *took = json.loads(line.removeprefix("RUN "))
            what = "warm-up" if number < 0 else f"round {number + 1} of {rounds}"
            if what != began:
                console.print(f"overhead, {what}")
                began = what
            if number >= 0:
                times[way][query].append(took)
    return times


def sizes(scale: float, only: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Returns the bytes of event logs for each number of partitions and of `FACTS`.

    ``others`` and ``ours`` are those of Spark's lines and of aqepilot's, which are ``events``, and
    ``history`` the part of these that history learns from;
    ``zstd_without`` and ``zstd`` are those of compressed logs without and with aqepilot's.

    Args:
        scale: Scale factor of the tables.
        only: Numbers of the queries; none for `SIZED`.
    """
    queries = _queries(only or SIZED)
    rows = []
    for partitions, facts in itertools.product(PARTITIONS, FACTS):
        console.print(f"sizes of logs: {partitions} partitions, {facts}")
        with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as name:
            own, both, without = (Path(name, log) for log in ("log", "with", "without"))
            for folder in (own, both, without):
                folder.mkdir()
            work = {
                "code": (JOBS / "EventLogs.java").read_text("utf-8"),
                "tables": str(tpcds.files(scale)),
                "queries": queries,
                "with": both.as_uri(),
                "without": without.as_uri(),
            }
            conf = {
                **OF_ALL,
                "spark.sql.shuffle.partitions": str(partitions),
                "spark.aqepilot.log.facts": facts,
                "spark.eventLog.compress": "false",
                "spark.eventLog.rolling.enabled": "false",
            }
            for line in _ran(Path(name), "log_sizes.py", work, conf):
                console.print(line.rstrip())
            row: dict[str, Any] = {"partitions": partitions, "facts": facts}
            row |= lines(_log(own))
            row["zstd"], row["zstd_without"] = (_log(log).stat().st_size for log in (both, without))
            rows.append(row)
    return rows


def _queries(only: Sequence[str]) -> dict[str, str]:
    every = {str(number): text for number, text in tpcds.queries().items()}
    return {query: every[query] for query in (only or every) if query in every}


def _ran(folder: Path, job: str, work: Mapping[str, Any], conf: Mapping[str, str]) -> Iterator[str]:
    work_file = folder / "work.json"
    work_file.write_text(json.dumps(work), encoding="utf-8")
    logged = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "log").as_uri(),
    }
    return submitting.lines(
        folder / "job",
        (JOBS / job).read_text("utf-8"),
        timeout_s=24 * 3600,
        conf={**conf, **policies(), **logged},
        job_words=[str(work_file)],
        memory="8g",
        quick=False,
        env=turns.environment(),
    )


def _log(folder: Path) -> Path:
    (log,) = (path for path in folder.iterdir() if not path.name.startswith("."))
    return log


def lines(log: Path) -> dict[str, int]:
    """Returns the bytes of aqepilot's lines and of the others, and how many aqepilot's are.

    ``history`` are the bytes among aqepilot's that history learns from.
    """
    bytes_by_owner = {"others": 0, "ours": 0, "events": 0, "history": 0}
    with log.open("rb") as written:
        for line in written:
            is_ours = line.startswith(OURS)
            bytes_by_owner["ours" if is_ours else "others"] += len(line)
            bytes_by_owner["events"] += is_ours
            if is_ours and LEARNT in line:
                learnt = json.loads(line)["subPlans"]
                bytes_by_owner["history"] += len(json.dumps(learnt, separators=(",", ":")))
    return bytes_by_owner


def tables(figures: Mapping[str, Any], scale: float) -> list[Table]:
    """Returns a table of times and one of sizes, from `seconds` and `sizes`."""
    made: list[Table] = []
    if "seconds" in figures:
        ran = figures["seconds"]
        title = f"Decisions in the event log: TPC-DS SF{scale:g}, {len(ran[NONE])} queries"
        rows = [row for at in range(len(MEASURED)) for row in _of_time(ran, at)]
        made.append((title, TIME_HEAD, rows))
    if "sizes" in figures:
        title = f"Size of the event log: queries of TPC-DS SF{scale:g}"
        made.append((title, SIZE_HEAD, [_of_size(size) for size in figures["sizes"]]))
    return made


def _of_time(ran: Mapping[str, Mapping[str, Any]], at: int) -> list[tuple[str, ...]]:
    medians = {way: _sum(times, at, statistics.median) for way, times in ran.items()}
    rounds = {way: _by_round(times, at) for way, times in ran.items()}
    without = (medians[NONE] + medians[AGAIN]) / 2
    none = [statistics.fmean(pair) for pair in zip(rounds[NONE], rounds[AGAIN], strict=True)]
    rows = []
    for way in ran:
        times = spread(ratios(rounds[way], none))
        cells = map(_percent, (medians[way] / without, *times[:3]))
        rows.append((MEASURED[at], way, f"{medians[way]:.2f}", *cells, str(times.count)))
    return rows


def _sum(
    by_query: Mapping[str, Sequence[Sequence[float]]],
    at: int,
    figure: Callable[[list[float]], float],
) -> float:
    return sum(figure([run[at] for run in runs]) for runs in by_query.values())


def _by_round(by_query: Mapping[str, Sequence[Sequence[float]]], at: int) -> list[float]:
    return [sum(run[at] for run in runs) for runs in zip(*by_query.values(), strict=True)]


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"


def _of_size(size: Mapping[str, Any]) -> tuple[str, ...]:
    added = size["zstd"] - size["zstd_without"]
    return (
        f"{size['partitions']:,}, {size['facts']}",
        *_added(size["others"], size["ours"]),
        f"{100 * size['history'] / size['others']:.1f} %",
        *_added(size["zstd_without"], added),
        str(size["events"]),
    )


def _added(to: int, added: int) -> tuple[str, str, str]:
    return f"{to / 1e6:.2f}", f"{added / 1e6:.2f}", f"{100 * added / to:+.1f} %"
