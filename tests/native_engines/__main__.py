"""`make native-engines`: beside an engine, plain Spark's rows, and what is left of each point."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pyspark
from rich.console import Console
from rich.table import Table
from spark_suites.ways import ADVERSARIAL, SPARKS_OWN

import generated
import submitting
import tpcds
import tpch
from aqepilot import Policy, recipes
from native_engines.engines import ORDERS, Beside
from native_engines.joins import compared

HERE = Path(__file__).parent
WORKLOADS: dict[str, Any] = {"tpch": tpch, "tpcds": tpcds}
POINTS = (
    *("join_reorder", "join_selection", "shuffle_partitions", "dynamic_join_selection"),
    *("skew_join", "partition_coalescing", "cost_evaluation"),
)
ROWS_OF_A_GROUP = 4096
ADAPTIVE = "spark.sql.adaptive."
# At the data's little size there is something to do at each point.
SETTINGS = {
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.autoBroadcastJoinThreshold": "16KB",
    "spark.sql.files.maxPartitionBytes": "256KB",
    "spark.sql.files.openCostInBytes": "64KB",
    ADAPTIVE + "autoBroadcastJoinThreshold": "32KB",
    ADAPTIVE + "advisoryPartitionSizeInBytes": "16KB",
    ADAPTIVE + "coalescePartitions.parallelismFirst": "false",
    ADAPTIVE + "coalescePartitions.minPartitionSize": "1KB",
    ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "8KB",
    ADAPTIVE + "skewJoin.skewedPartitionFactor": "1.2",
    "spark.aqepilot.guard.max_partitions": "60",
}
PLAIN = "plain"
MOST_SECONDS = 4 * 3600
console = Console(width=None if sys.stdout.isatty() else 160)


def sets() -> dict[str, dict[str, str]]:
    """Returns the sets of policies, a text for each point; none of plain Spark."""
    own = dict[str, str]()
    for name in SPARKS_OWN:
        own |= recipes.get(name, spark=pyspark.__version__).texts()
    return {
        PLAIN: {},
        "null": dict.fromkeys(own, "NULL"),
        "recipes": own,
        "balanced": recipes.get("balanced").texts(),
        "native_joins": recipes.get("native_joins").texts(),
        "adversarial": Policy.from_file(ADVERSARIAL).texts(),
    }


@click.command(help=__doc__)
@click.option("--jars", default="", help="The engines' jars, ENGINE=PATH, by blanks.")
@click.option("--order", "orders", multiple=True, help="Only aqepilot first, or last.")
@click.option("--workload", "workloads", multiple=True, help="Only tpch, or tpcds.")
@click.option("--set", "names", multiple=True, help="Only these sets of policies.")
@click.option("--query", "numbers", multiple=True, type=int, help="Only these queries.")
@click.option("--scale", default=0.01, show_default=True, help="The workloads' scale factor.")
@click.option("--fuzz", default=0, help="Instead, so many examples of the fuzz beside each engine.")
@click.option("--joins", default=0, help="Instead, so many rounds of Comet's settings of joins.")
@click.option("--conf", "more", multiple=True, help="For --joins: a setting, KEY=VALUE.")
@click.option("--keep", is_flag=True, help="Take what an earlier run has of Spark alone.")
@click.option("--out", default="target/native-engines", type=Path, help="Where results are.")
def main(
    jars: str,
    orders: Sequence[str],
    workloads: Sequence[str],
    names: Sequence[str],
    numbers: Sequence[int],
    scale: float,
    fuzz: int,
    joins: int,
    more: Sequence[str],
    keep: bool,
    out: Path,
) -> None:
    beside = [
        Beside(engine, Path(path), ours)
        for engine, path in (word.split("=", 1) for word in jars.split())
        for ours in orders or ORDERS
    ]
    folder = out.absolute() / pyspark.__version__
    if fuzz:
        sys.exit(max(fuzzed(one, fuzz) for one in beside))
    if joins:
        own = dict(word.split("=", 1) for word in more)
        (one, *_) = (b for b in beside if b.engine == "comet" and b.ours == "first")
        sys.exit(compared(one, scale, numbers, joins, own, folder, console) > 0)
    wanted = {name: texts for name, texts in sets().items() if name in (PLAIN, *(names or sets()))}
    asked = {
        "workloads": {w: _work(w, scale, numbers) for w in workloads or WORKLOADS},
        "sets": wanted,
        "settings": SETTINGS if scale < 1 else {},
        "rows": str(folder / f"rows-{scale:g}"),
    }
    Path(asked["rows"]).mkdir(parents=True, exist_ok=True)
    alone = kept(folder) if keep else []
    alone = alone or run(Beside(), asked | {"is_reference": True}, folder)
    failures = printed(Beside(), alone, alone)
    for one in beside:
        runs = run(one, asked | {"is_reference": False}, folder)
        failures += printed(one, runs, alone)
    sys.exit(1 if failures else 0)


def _work(workload: str, scale: float, numbers: Sequence[int]) -> dict[str, Any]:
    module = WORKLOADS[workload]
    tables = module.files(scale)
    if scale < 1:
        tables = generated.in_groups(tables, ROWS_OF_A_GROUP)
    return {
        "tables": str(tables),
        "numbers": [n for n in module.queries() if n in numbers or not numbers],
    }


def run(beside: Beside, asked: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Runs all queries under all sets in one application, and keeps what came of each."""
    own = folder / beside.folder
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    runs = []
    with (own / "found.jsonl").open("w", encoding="utf-8") as file:
        for one in _lines(beside, asked, own):
            runs.append(one)
            file.write(json.dumps(one) + "\n")
            file.flush()
    return runs


def kept(folder: Path) -> list[dict[str, Any]]:
    """Returns what an earlier run found of Spark alone; nothing where there is none."""
    path = folder / Beside().folder / "found.jsonl"
    return (
        [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        if path.is_file()
        else []
    )


def _lines(beside: Beside, asked: dict[str, Any], own: Path) -> Iterator[dict[str, Any]]:
    path = os.pathsep.join([str(HERE.parent / "support"), *filter(None, [os.getenv("PYTHONPATH")])])
    for line in submitting.lines(
        Path(tempfile.mkdtemp(dir=own)),
        (HERE / "job.py").read_text("utf-8"),
        MOST_SECONDS,
        conf=beside.settings() | {"spark.log.level": "ERROR", "spark.aqepilot.ask.deadline": "20s"},
        job_words=[json.dumps(asked)],
        extension=False,
        memory="2g",
        env={"PYTHONPATH": path},
    ):
        if line.startswith("FOUND "):
            yield json.loads(line.removeprefix("FOUND "))


def fuzzed(beside: Beside, examples: int) -> int:
    """Runs the fuzz in a Spark that has the engine, too; returns its exit code."""
    settings = {k: v for k, v in beside.settings().items() if k != "spark.jars"}
    env = {
        **os.environ,
        **{"TEST_ALL": "1", "FUZZ_N": str(examples), "FUZZ_SETTINGS": json.dumps(settings)},
    }
    console.print(f"{beside.name}, Spark {pyspark.__version__}")
    test = HERE.parent / "python" / "plain_spark" / "test_live_fuzz.py"
    words = [sys.executable, "-m", "pytest", "-q", "-o", "faulthandler_timeout=0", str(test)]
    return subprocess.run(words, env=env, check=False).returncode


def _counts(runs: list[dict[str, Any]], name: str) -> dict[str, Counter[str]]:
    """Returns how many decisions of each point were asked, applied and adopted, by reason."""
    counts = {point: Counter[str]() for point in POINTS}
    for one in runs:
        for point, reason, fate in one.get("decisions", ()) if one.get("set") == name else ():
            if point in counts:
                counts[point].update(["asked", *filter(None, [reason, fate])])
    return counts


def printed(beside: Beside, runs: list[dict[str, Any]], alone: list[dict[str, Any]]) -> int:
    """Prints what is left of each point; returns how many queries differ or fail."""
    plain = {(f["workload"], f["query"]): f for f in runs if f.get("set") == PLAIN}
    failures = 0
    table = Table("Policies", "Queries", "Differ", "Engine", *POINTS)
    for name in dict.fromkeys(f["set"] for f in runs if "set" in f):
        own = [f for f in runs if f.get("set") == name]
        fails = 0
        for one in own:
            where = f"{one['workload']} {one['query']}, {name}"
            engines = plain[one["workload"], one["query"]]
            for word in ("differ", "error"):
                if word in one:
                    fails += 1
                    also = " (the engine alone, too)" if word in engines and name != PLAIN else ""
                    console.print(f"{where}: {word}s{also}: {one[word]}", markup=False)
                    failures += not also and name != PLAIN
        native = sum((Counter(f.get("operators", {})) for f in own), Counter[str]())
        here, there = _counts(runs, name), _counts(alone, name)
        table.add_row(
            *(name, str(len(own)), str(fails)),
            f"{native['engine'] / max(1, native.total()):.0%}",
            *(_cell(here[point], there[point]) for point in POINTS),
        )
    for one in runs:
        for fault in one.get("faults", ()):
            console.print(f"{one['workload']}: {fault}", markup=False)
    console.print(f"{beside.name}, Spark {pyspark.__version__}: {failures} failures")
    console.print("At each point: decisions asked, applied and adopted; in brackets, Spark alone")
    console.print(table)
    return failures


def _cell(here: Counter[str], there: Counter[str]) -> str:
    words = ("asked", "APPLIED", "adopted")
    if not here["asked"] and not there["asked"]:
        return "-"
    return "{} {} {} ({} {} {})".format(*(c[w] for c in (here, there) for w in words))


if __name__ == "__main__":
    main()
