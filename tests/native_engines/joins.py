"""Comet's two settings of joins and the recipe `native_joins`, beside each other on TPC-H."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyspark
from rich.console import Console
from rich.table import Table

import submitting
import tpch
from aqepilot import recipes
from native_engines.engines import Beside

HERE = Path(__file__).parent
MOST_SECONDS = 4 * 3600
# Before Comet 1.0 it has the second name.
SWITCHES = ("spark.comet.exec.forceShuffledHashJoin", "spark.comet.exec.replaceSortMergeJoin")
POLICY = "spark.aqepilot.policy.native_joins."
# No wall clock on a shared machine is more exact.
NOISE = 1.1


def arms() -> dict[str, dict[str, str]]:
    """Returns the settings of each arm."""
    texts = recipes.get("native_joins", spark=pyspark.__version__).texts()
    off = {"spark.aqepilot.mode": "off"}
    return {
        "sort-merge": off,
        "hash": off
        | dict.fromkeys(SWITCHES[1:] if pyspark.__version__ < "4" else SWITCHES[:1], "true"),
        "native_joins": {"spark.aqepilot.policies": "native_joins"}
        | {POLICY + point: text for point, text in texts.items()},
    }


def compared(
    beside: Beside,
    scale: float,
    numbers: Sequence[int],
    rounds: int,
    more: dict[str, str],
    out: Path,
    console: Console,
) -> int:
    """Runs the arms by turns; prints each query's fastest times, and returns how many are worse.

    Args:
        beside: The engine.
        scale: TPC-H's scale factor.
        numbers: The queries; none for all.
        rounds: How often each is run.
        more: Settings of the application, as its memory.
        out: Where results are.
        console: To print on.
    """
    out.mkdir(parents=True, exist_ok=True)
    asked = {
        "tables": str(tpch.files(scale)),
        "numbers": [n for n in tpch.queries() if n in numbers or not numbers],
        "arms": arms(),
        "rounds": rounds,
    }
    path = os.pathsep.join([str(HERE.parent / "support"), *filter(None, [os.getenv("PYTHONPATH")])])
    runs = []
    with (out / "joins.jsonl").open("w", encoding="utf-8") as file:
        for line in submitting.lines(
            Path(tempfile.mkdtemp(dir=out)),
            (HERE / "joins_job.py").read_text("utf-8"),
            MOST_SECONDS,
            conf=beside.settings() | {"spark.log.level": "ERROR"} | more,
            job_words=[json.dumps(asked)],
            extension=False,
            memory="2g",
            quick=False,
            env={"PYTHONPATH": path},
        ):
            if line.startswith("FOUND "):
                runs.append(json.loads(line.removeprefix("FOUND ")))
                file.write(json.dumps(runs[-1]) + "\n")
                file.flush()
    return _printed(runs, console)


def _printed(runs: list[dict[str, Any]], console: Console) -> int:
    names = list(arms())
    table = Table("Query", *names, "Against the better", "Joins of native_joins")
    worse = 0
    ratios = []
    for number in dict.fromkeys(f["query"] for f in runs):
        own = [f for f in runs if f["query"] == number]
        times = {
            name: min(
                (f["seconds"] for f in own if f["arm"] == name and "error" not in f), default=None
            )
            for name in names
        }
        better = min((times[n] for n in names[:2] if times[n] is not None), default=None)
        recipe = times["native_joins"]
        ratio = better / recipe if better and recipe else None
        if ratio:
            ratios.append(ratio)
        worse += ratio is None or ratio * NOISE < 1
        worse += any("differ" in f for f in own)
        joins = next((f["joins"] for f in own if f["arm"] == "native_joins" and "joins" in f), {})
        table.add_row(
            str(number),
            *(f"{times[name]:.2f} s" if times[name] else "fails" for name in names),
            f"{ratio:.2f}x" if ratio else "-",
            ", ".join(f"{count} {name}" for name, count in joins.items() if count),
        )
        for one in own:
            for word in ("error", "differ"):
                if word in one and not one["round"]:
                    console.print(f"{number}, {one['arm']}: {one[word][:300]}", markup=False)
    console.print(table)
    if ratios:
        console.print(
            f"geometric mean against the better: {statistics.geometric_mean(ratios):.3f}x"
        )
    return worse
