"""Thirty days of inputs that change, each really executed: history decides by the days before.

Each day's tables are generated anew, at the same place. Then, on that day:

- the job runs once under `learned` and `balanced`, with the pack of the days before, and writes its
  event log, as a job in production does;
- another application, which writes no log, runs the queries under plain Spark and under these
  policies in turn, for the figures;
- `aqepilot history build` makes the next day's pack of all logs so far.

The inputs stay alike for some days, then grow, shrink, flip which side has the hot key and which
relation is small, go empty, and come back.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

import submitting
from bench import history, turns
from bench.recipes import AGAIN, OF_ALL, PLAIN

JOB = Path(__file__).parent / "jobs" / "drift.py"
LEARNED = "learned"
HEAD = (
    "day",
    "inputs",
    "query",
    "plain s",
    "learned to plain",
    "plain again",
    "changed by history",
)
console = Console(stderr=True, highlight=False)


class Inputs(NamedTuple):
    """What a day's tables are like.

    Attributes:
        name: What has changed.
        sales: Rows of the large table.
        kept: The share of the events that the queries keep.
        hot: The table that has the hot key.
        rare: The table that has few rows left after its filter.
    """

    name: str
    sales: int = 1_000_000
    kept: float = 0.002
    hot: str = "sales"
    rare: str = "shops"


STEADY = Inputs("steady")
# Each lasts as many days.
REGIMES = (
    (STEADY, 5),
    (Inputs("grown", sales=4_000_000, kept=0.2), 5),
    (Inputs("shrunk", sales=200_000), 5),
    (Inputs("flipped", hot="events", rare="goods"), 5),
    (Inputs("empty", kept=0.0), 5),
    (STEADY, 5),
)
QUERIES = {
    "a side that a filter makes small": """
        SELECT count(*), sum(quantity) FROM sales JOIN
          (SELECT shop AS kept_shop, max(weight) AS weight FROM events
           WHERE kind = 'kept' AND other = 'kept' GROUP BY shop) ON shop = kept_shop""",
    "a hot key": """
        SELECT count(*), sum(quantity), sum(weight) FROM sales JOIN events ON sale_key = event_key
        WHERE weight % 3 > 0""",
    "an order": """
        SELECT count(*), sum(quantity) FROM sales, events, shops, goods
        WHERE sales.shop = events.shop AND sales.shop = shop_id AND good = good_id
          AND shop_kind = 'rare' AND good_kind = 'rare' AND kind = 'kept'""",
}


def days(count: int) -> list[Inputs]:
    """Returns the inputs of so many days, by `REGIMES`.

    >>> [inputs.name for inputs in days(7)][4:]
    ['steady', 'grown', 'grown']
    """
    every = [inputs for inputs, lasts in REGIMES for _ in range(lasts)]
    return every[:count]


def measure(count: int, rounds: int) -> list[dict[str, Any]]:
    """Returns a row for each day and query.

    Args:
        count: How many days, up to 30.
        rounds: How often each way runs each query on a day, for the figures.

    Raises:
        SystemExit: Rows differ from plain Spark's.
    """
    rows = []
    with tempfile.TemporaryDirectory(prefix="aqepilot-bench-") as name:
        folder = Path(name)
        tables, logs, pack = folder / "tables", folder / "logs", folder / "history.parquet"
        tables.mkdir()
        logs.mkdir()
        for number, inputs in enumerate(days(count)):
            console.print(f"drift: day {number + 1} of {count}, {inputs.name}")
            _generate(inputs, tables)
            known = {"spark.aqepilot.history": str(pack)} if pack.exists() else {}
            learned = history.policies("learned", "balanced")
            _ran(folder, tables, {LEARNED: learned}, 1, 0, known | _logged(logs))
            ways = {PLAIN: {}, LEARNED: learned, AGAIN: {}}
            runs = _ran(folder, tables, ways, rounds, 1, known)
            rows += [{"day": number + 1, "inputs": inputs.name, **row} for row in _rows(runs)]
            history.build(logs, pack)
    return rows


def _logged(logs: Path) -> dict[str, str]:
    return {
        "spark.aqepilot.history.learn": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
    }


def _ran(
    folder: Path,
    tables: Path,
    ways: Mapping[str, Mapping[str, str]],
    rounds: int,
    warm_up: int,
    conf: Mapping[str, str],
) -> list[list[Any]]:
    began = datetime.now(timezone.utc)
    work = {"tables": str(tables), "queries": QUERIES, "ways": ways}
    work_file = folder / "work.json"
    work_file.write_text(json.dumps(work | {"rounds": rounds, "warm_up": warm_up}), "utf-8")
    lines = submitting.lines(
        folder / f"job-{began:%H%M%S%f}",
        JOB.read_text("utf-8"),
        timeout_s=3600,
        conf=OF_ALL | dict(conf),
        job_words=[str(work_file)],
        memory="4g",
        quick=False,
        env=turns.environment(),
    )
    return [json.loads(line.removeprefix("RUN ")) for line in lines if line.startswith("RUN ")]


def _rows(runs: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    rows = []
    for query in QUERIES:
        of_query = [run for run in runs if run[0] == query]
        if len({run[3] for run in of_query}) != 1:
            raise SystemExit(f"{query}: rows differ: {sorted({run[3][:200] for run in of_query})}")
        seconds = {
            way: [run[2] for run in of_query if run[1] == way] for way in (PLAIN, LEARNED, AGAIN)
        }
        changes = sorted({change for run in of_query if run[1] == LEARNED for change in run[4]})
        rows.append({"query": query, "seconds": seconds, "changes": changes})
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Returns a row for each day and query, as `HEAD` names them."""
    return [
        (
            *(str(row["day"]), row["inputs"], row["query"]),
            f"{statistics.median(row['seconds'][PLAIN]):.2f}",
            *(_ratio(row["seconds"], way) for way in (LEARNED, AGAIN)),
            "; ".join(row["changes"]) or "nothing",
        )
        for row in rows
    ]


def _ratio(seconds: Mapping[str, Sequence[float]], way: str) -> str:
    pairs = zip(seconds[way], seconds[PLAIN], strict=True)
    return f"{statistics.median(a / b for a, b in pairs):.2f}"


def _generate(inputs: Inputs, folder: Path) -> None:
    """Writes the tables over those of the day before."""
    import duckdb

    kept = f"u(i, 5) < {inputs.kept}"
    hot = {
        table: "CASE WHEN u(i, 7) < 0.2 THEN 1 ELSE cast(floor(200000 * u(i, 8)) AS BIGINT) END"
        if table == inputs.hot
        else "cast(floor(200000 * u(i, 9)) AS BIGINT)"
        for table in ("sales", "events")
    }
    rare = {table: "i = 1" if table == inputs.rare else "i % 2 = 1" for table in ("shops", "goods")}
    tables = {
        "sales": f"SELECT i AS id, cast(floor(2000 * u(i, 1)) AS BIGINT) AS shop, "
        f"cast(floor(2000 * u(i, 2)) AS BIGINT) AS good, {hot['sales']} AS sale_key, "
        f"i % 9 AS quantity, md5(i::VARCHAR) AS note FROM range({inputs.sales}) t(i)",
        "events": f"SELECT i AS id, cast(floor(2000 * u(i, 3)) AS BIGINT) AS shop, "
        f"{hot['events']} AS event_key, CASE WHEN {kept} THEN 'kept' ELSE 'other' END AS kind, "
        f"CASE WHEN {kept} THEN 'kept' ELSE 'left' END AS other, i % 100 AS weight, "
        f"md5(i::VARCHAR) AS note FROM range(400000) t(i)",
        "shops": f"SELECT i AS shop_id, CASE WHEN {rare['shops']} THEN 'rare' ELSE 'usual' END "
        "AS shop_kind, md5(i::VARCHAR) AS shop_note FROM range(2000) t(i)",
        "goods": f"SELECT i AS good_id, CASE WHEN {rare['goods']} THEN 'rare' ELSE 'usual' END "
        "AS good_kind, md5(i::VARCHAR) AS good_note FROM range(2000) t(i)",
    }
    with duckdb.connect() as connection:
        connection.execute("CREATE MACRO u(i, salt) AS (hash(i * 1000 + salt) % 1000000007) / 1e9")
        for name, query in tables.items():
            connection.execute(f"COPY ({query}) TO '{folder / name}.parquet' (FORMAT parquet)")
