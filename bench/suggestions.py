"""How many suggestions help: queries that logs suggest a policy for, with that policy and without.

For TPC-DS, TPC-H and for shapes of production, each in four steps:

1. The queries run three times under plain Spark with all decision points asked in shadow, so that
   the event log has facts. What looks like a shape and has nothing to gain, its counters, runs in
   an application of its own.
2. `suggest` reads each log by itself, in a session with the extension, so that it replays.
3. Each policy file that it gives, with the mode "enforce" in the place of "shadow", is used in a
   session of its own, as a person would. The queries that it is about, those with the fingerprint
   in its `when`, run without it, with it and without it again, in an order that rotates and turns
   around, after a round that is not counted. So do counters with that fingerprint.
4. A ratio is the median over the rounds of the seconds with it to the mean (geometric) of both runs
   without it. The noise is the median over the rounds of how much these two differ. A suggestion
   has helped, or is slower, where the ratio is away from 1 by more than 3 % and by more than the
   noise. One about several queries is slower where one of them is, and has helped where one is
   faster and none slower.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import submitting
import tpcds
import tpch
from aqepilot import catalog
from bench import turns
from bench.recipes import OF_ALL
from bench.shapes import SHAPES
from bench.shapes import runs as shape_runs
from bench.shapes.shape import Query, one
from bench.suggestion_tables import AGAIN, PLAIN, WITH

JOBS = Path(__file__).parent / "jobs"
TPCDS, TPCH = "tpcds", "tpch"
BENCHMARKS = {TPCDS: tpcds, TPCH: tpch}
WORKLOADS = (TPCDS, TPCH, "hot_key", "explode", "python_rows", "tiny_tasks", "wrong_broadcast")
# A join whose strategy flips needs three runs of each.
RECORDED = 3
COUNTER = "counter: "
console = Console(stderr=True, highlight=False)


class Case(NamedTuple):
    """What is measured as one: texts by name, how many clients run them, and the ways."""

    texts: Mapping[str, str]
    clients: int
    ways: Sequence[str]


class Work(NamedTuple):
    """What the job is told.

    Attributes:
        shape: Its name; empty for TPC-DS and TPC-H.
        size: Of the shape's tables.
        tables: Their folder; the job writes a shape's where there is none.
        cases: By name.
        ways: The policy file of each way; empty for none.
        rounds: How often each way runs each case.
        warm_up: Rounds before those.
        counts: Whether adopted decisions are counted, which takes a query after each run.
    """

    shape: str
    size: float
    tables: str
    cases: Mapping[str, Case] = {}
    ways: Mapping[str, str] = {}
    rounds: int = 0
    warm_up: int = 0
    counts: bool = True


def measure(
    name: str, rounds: int, scale: float, only: Sequence[str] = (), size: float = 1.0
) -> dict[str, Any]:
    """Returns what was suggested about a workload, with each suggestion's runs, by query and way.

    Args:
        name: One of `WORKLOADS`.
        rounds: How often each query runs with a suggestion.
        scale: Scale factor of TPC-DS and TPC-H.
        only: The queries; none for all.
        size: Of a shape's tables; 1 is what is documented.
    """
    queries, counters = _queries(name, only)
    listed = {f"{query}": text for query, text in queries.items()}
    listed |= {f"{COUNTER}{query}": text for query, text in counters.items()}
    with tempfile.TemporaryDirectory(prefix="aqepilot-suggestions-") as folder:
        at = Path(folder)
        work = Work(name, size, str(at / "tables"))
        if name in BENCHMARKS:
            work = Work("", size, str(BENCHMARKS[name].files(scale)))
        else:
            list(_ran(at, work))
        logs = {
            kind: _recorded(
                at,
                work,
                kind,
                {query: listed[query] for query in listed if (query in queries) == own},
            )
            for kind, own, some in (("queries", True, queries), ("counters", False, counters))
            if some
        }
        suggested = dict(zip(logs, _suggested(at, list(logs.values())), strict=True))
        applied = [
            {"of": kind} | suggestion
            for kind, result in suggested.items()
            for suggestion in result["suggestions"]
        ]
        console.print(f"{name}: {len(applied)} suggestions")
        named = {(f, d) for result in suggested.values() for f, d in result["named"]}
        _apply(at, work._replace(rounds=rounds, warm_up=1), listed, applied, sorted(named, key=str))
    return {"queries": len(queries), "counters": len(counters), "suggestions": applied}


def chosen(names: Sequence[str], only: Sequence[str]) -> list[str]:
    """Returns those of the workloads that are named, if any is, and that have one of the queries.

    >>> chosen(["explode", "balanced"], []), chosen([], ["72", "500 rows of each"])
    (['explode'], ['tpcds', 'explode'])
    """
    return [
        name
        for name in WORKLOADS
        if name in (names or WORKLOADS) and (not only or any(_queries(name, only)))
    ]


def _queries(name: str, only: Sequence[str]) -> tuple[dict[str, Query], dict[str, Query]]:
    """The queries of a workload, and its counters."""
    if name in BENCHMARKS:
        texts = {str(number): one(sql) for number, sql in BENCHMARKS[name].queries().items()}
        return {query: texts[query] for query in texts if query in (only or texts)}, {}
    queries, counters = (
        {query: some[query] for query in some if query in (only or some)}
        for some in (SHAPES[name].queries, SHAPES[name].counters)
    )
    return queries, counters


def _texts(name: str, query: Query) -> dict[str, str]:
    """Its texts, by what they are called in the log."""
    if len(query.texts) == 1:
        return {name: query.texts[0]}
    return {f"{name}, text {number}": text for number, text in enumerate(query.texts, 1)}


def _recorded(folder: Path, work: Work, kind: str, queries: Mapping[str, Query]) -> Path:
    """Runs queries with all points asked in shadow, and returns the folder of the log."""
    log, asked = folder / kind, folder / "asked.toml"
    log.mkdir()
    lines = ['name = "asked"', 'mode = "shadow"']
    lines += [f'{point} = "null"' for point in catalog.point_names()]
    asked.write_text("\n".join(lines), encoding="utf-8")
    cases = {
        name: Case(_texts(name, query), query.clients, ["recorded"])
        for name, query in queries.items()
    }
    conf = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": log.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    ways = {"recorded": str(asked)}
    recorded = work._replace(cases=cases, ways=ways, rounds=RECORDED, counts=False)
    for number, query, _, seconds, _, error in _ran(folder, recorded, conf):
        took = error or f"{seconds:.2f} s"
        console.print(
            f"{work.shape or Path(work.tables).name}, {kind}, run {number + 1}: {query}: {took}"
        )
    return log


def _suggested(folder: Path, logs: Sequence[Path]) -> list[dict[str, Any]]:
    run = submitting.submit(
        folder / "suggested",
        (JOBS / "suggested.py").read_text("utf-8"),
        job_words=[log.as_uri() for log in logs],
        memory="3g",
        quick=False,
        env=turns.environment(),
        timeout_s=3600,
    )
    if run.returncode:
        raise SystemExit(f"no suggestions were made:\n{run.stderr[-3000:]}")
    suggested: list[dict[str, Any]] = json.loads(run.stdout.strip().splitlines()[-1])
    return suggested


def _apply(
    folder: Path,
    work: Work,
    queries: Mapping[str, Query],
    suggestions: Sequence[dict[str, Any]],
    named: Sequence[tuple[str | None, str]],
) -> None:
    """Runs what each suggestion is about, and adds the runs to it, by query and way."""
    cases: dict[str, Case] = {}
    ways = {PLAIN: "", AGAIN: ""}
    for number, suggestion in enumerate(suggestions):
        suggestion["runs"] = defaultdict(lambda: {PLAIN: [], WITH: [], AGAIN: []})
        if not suggestion["policy"]:
            continue
        file = folder / f"suggestion{number}.toml"
        enforced = suggestion["policy"].replace('mode = "shadow"', 'mode = "enforce"')
        file.write_text(enforced, encoding="utf-8")
        ways[f"{WITH} {number}"] = str(file)
        about = {text for mark, text in named if mark == suggestion["fingerprint"]}
        if suggestion["fingerprint"] is None:
            about = {suggestion["description"]}
        for name, query in queries.items():
            texts = {text: sql for text, sql in _texts(name, query).items() if text in about}
            if texts:
                clients = min(query.clients, len(texts))
                order = [PLAIN, f"{WITH} {number}", AGAIN]
                cases[f"{number}|{name}"] = Case(texts, clients, order)
    if not cases:
        return
    applied = work._replace(cases=cases, ways=ways)
    for round_, case, way, seconds, adopted, error in _ran(folder, applied):
        number, _, query = case.partition("|")
        suggestion = suggestions[int(number)]
        way = way if way in (PLAIN, AGAIN) else WITH
        took = error or f"{seconds:.2f} s"
        console.print(
            f"{work.shape or Path(work.tables).name}, {suggestion['kind']}, round {round_ + 1}: "
            f"{query}, {way}: {took}"
        )
        if round_ >= 0:
            run = {"seconds": seconds, "adopted": adopted, "error": error}
            suggestion["runs"][query][way].append(run)


def _ran(folder: Path, work: Work, conf: Mapping[str, str] | None = None) -> Iterator[Any]:
    """Yields what the job says of each run."""
    work_file = folder / "work.json"
    work_file.write_text(json.dumps(_plain(work)), encoding="utf-8")
    shape = SHAPES.get(work.shape)
    for line in submitting.lines(
        folder / "job",
        (JOBS / "suggestions.py").read_text("utf-8"),
        timeout_s=24 * 3600,
        conf={**(shape_runs.settings(shape) if shape else OF_ALL), **(conf or {})},
        job_words=[str(work_file)],
        master=shape.master if shape else "local[2]",
        memory="3g" if shape else "8g",
        quick=False,
        env=turns.environment(),
    ):
        if line.startswith("RUN "):
            yield json.loads(line.removeprefix("RUN "))
        else:
            console.print(line.rstrip())


def _plain(work: Work) -> dict[str, Any]:
    return work._asdict() | {"cases": {name: case._asdict() for name, case in work.cases.items()}}
