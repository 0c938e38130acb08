"""Do policies that say what Spark's own rules say leave plain Spark's plans as they are?

``python parity.py`` asks all of TPC-H and TPC-DS at all `SETTINGS`: `make parity`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import generated
import places
import plans
import submitting
import tpcds
import tpch
from aqepilot import recipes

SCALE = 0.01
ROWS_OF_A_GROUP = 4096
WORKLOADS: dict[str, Any] = {"tpch": tpch, "tpcds": tpcds}
SPARKS_OWN = (
    *("reorder_join", "join_selection"),
    *("dynamic_join_selection", "optimize_skewed_join", "coalesce_shuffle_partitions"),
    *("initial_partition_num", "simple_cost_evaluator"),
)
ADAPTIVE = "spark.sql.adaptive."
# Sort-merge joins at first, and several map tasks for each table, so that there is something to do.
COMMON = plans.INTERPRETED | {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.files.maxPartitionBytes": "256KB",
    "spark.sql.files.openCostInBytes": "64KB",
}
# Tables instead of views, analysed by column; else Spark knows the sizes of files only.
STATISTICS = {"spark.sql.cbo.enabled": "true"}
PLANNED = COMMON | {"spark.sql.shuffle.partitions": "4"}
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
# What Spark's own rules are to do at these, at the data's little size.
SETTINGS = {
    "splits": COMMON
    | {
        "spark.sql.shuffle.partitions": "8",
        ADAPTIVE + "autoBroadcastJoinThreshold": "-1",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "16KB",
        ADAPTIVE + "coalescePartitions.parallelismFirst": "false",
        ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "8KB",
        ADAPTIVE + "skewJoin.skewedPartitionFactor": "0.9",
    },
    "forces splits": COMMON
    | STATISTICS
    | {
        "spark.sql.shuffle.partitions": "32",
        ADAPTIVE + "coalescePartitions.initialPartitionNum": "12",
        ADAPTIVE + "coalescePartitions.minPartitionSize": "2KB",
        ADAPTIVE + "coalescePartitions.minPartitionNum": "3",
        ADAPTIVE + "autoBroadcastJoinThreshold": "8KB",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "4KB",
        ADAPTIVE + "skewJoin.skewedPartitionThresholdInBytes": "4KB",
        ADAPTIVE + "skewJoin.skewedPartitionFactor": "0.9",
        ADAPTIVE + "forceOptimizeSkewedJoin": "true",
    },
    "broadcasts": COMMON
    | {
        "spark.sql.shuffle.partitions": "16",
        ADAPTIVE + "autoBroadcastJoinThreshold": "64KB",
        ADAPTIVE + "nonEmptyPartitionRatioForBroadcastJoin": "0.5",
        ADAPTIVE + "advisoryPartitionSizeInBytes": "8KB",
        ADAPTIVE + "coalescePartitions.minPartitionSize": "1KB",
    },
    "plans few broadcasts": PLANNED | {THRESHOLD: "16KB"},
    "plans many broadcasts": PLANNED | {THRESHOLD: "10MB"},
    "plans few broadcasts by statistics": PLANNED | STATISTICS | {THRESHOLD: "16KB"},
    "plans many broadcasts by statistics": PLANNED
    | STATISTICS
    | {THRESHOLD: "10MB", "spark.sql.cbo.joinReorder.enabled": "true"},
}
REBALANCED = ("broadcasts",)
# The results of TPC-H are too small for a rebalance to split.
FURTHER = {
    "tpch": {
        "rebalance": "SELECT /*+ REBALANCE */ * FROM lineitem WHERE l_quantity < 10",
        "rebalance by column": "SELECT /*+ REBALANCE(l_shipmode) */ * FROM lineitem JOIN orders "
        "ON l_orderkey = o_orderkey WHERE l_quantity < 10",
    }
}
# By setting, what has to have happened there; else equal plans would show nothing.
FIRES = {
    "splits": ("joins split", "reads coalesced", "reads coalesced and skewed"),
    "forces splits": ("joins split", "reads coalesced", "goes on with the plan it had"),
    "broadcasts": ("reads local", "reads coalesced", "goes on with the re-plan"),
    "plans few broadcasts": ("orders chains", "selects BROADCAST", "selects SHUFFLE_MERGE"),
    "plans many broadcasts": ("orders chains", "selects BROADCAST"),
    "plans few broadcasts by statistics": (
        *("orders chains", "selects BROADCAST", "selects SHUFFLE_MERGE"),
    ),
    "plans many broadcasts by statistics": ("orders chains", "selects BROADCAST"),
}


class Work(NamedTuple):
    """What a parity job runs.

    Attributes:
        workload: ``tpch`` or ``tpcds``.
        scale: Its scale factor.
        tables: The folder with its tables.
        numbers: The queries.
        settings: Sets of settings by name.
        policies: By name, for each policy set the text at each point.
        rebalanced: The settings at which queries end in a `REBALANCE`.
        further: Queries by name, beside the numbered ones; DuckDB is not asked about them.
    """

    workload: str
    scale: float
    tables: str
    numbers: Sequence[int]
    settings: Mapping[str, Mapping[str, str]]
    policies: Mapping[str, Mapping[str, str]]
    rebalanced: Sequence[str] = ()
    further: Mapping[str, str] = {}


class Result(NamedTuple):
    """One query at one set of settings.

    Attributes:
        setting: Its name.
        query: The query's number or name.
        differ: For each policy set whose plan plain Spark never made: that plan, then all of its.
        plain_plans: How many plans plain Spark made of it: more than 1 is a race of its own.
        fired: How often its own rules did something.
    """

    setting: str
    query: str
    differ: dict[str, list[str]]
    plain_plans: int
    fired: Counter[str]


def of_recipes(workload: str, numbers: Sequence[int] = (), only: Sequence[str] = ()) -> Work:
    """Returns the work: recipes of all of Spark's own rules together, and null at the same points.

    Args:
        workload: ``tpch`` or ``tpcds``.
        numbers: The queries; none for all.
        only: The settings; none for all.
    """
    texts = dict[str, str]()
    for name in SPARKS_OWN:
        texts |= recipes.get(name, spark=pyspark.__version__).texts()
    tables = WORKLOADS[workload].files(SCALE)
    return Work(
        workload,
        SCALE,
        str(generated.in_groups(tables, ROWS_OF_A_GROUP)),
        [n for n in WORKLOADS[workload].queries() if n in numbers or not numbers],
        {name: SETTINGS[name] for name in only or SETTINGS},
        {"recipes": texts, "null": dict.fromkeys(texts, "NULL")},
        REBALANCED,
        {} if numbers else FURTHER.get(workload, {}),
    )


def run(work: Work, folder: Path, timeout_s: float, own_jvm: bool = True) -> Iterator[Result]:
    """Runs the work in an application of its own and yields each result as it comes."""
    here = places.SUPPORT
    lines = submitting.lines(
        folder,
        (here / "parity_job.py").read_text("utf-8"),
        timeout_s,
        conf=plans.METADATA_IN_FULL | {"spark.log.level": "WARN"},
        job_words=[json.dumps(work._asdict())],
        master="local[1]",
        memory="2g",
        own_jvm=own_jvm,
        env={"PYTHONPATH": os.pathsep.join([str(here), *filter(None, [os.getenv("PYTHONPATH")])])},
    )
    for line in lines:
        if line.startswith("RESULT "):
            setting, query, result = json.loads(line.removeprefix("RESULT "))
            result["fired"] = Counter(result["fired"])
            yield Result(setting, query, **result)


def fired(results: Iterable[Result], setting: str) -> Counter[str]:
    """Returns how often Spark's own rules did something at a setting."""
    return sum((r.fired for r in results if r.setting == setting), Counter[str]())


def main() -> None:
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument("workload", nargs="*", help="tpch, tpcds; default: both")
    parser.add_argument("--queries", help="some, as in 1,2,3")
    parser.add_argument("--settings", help=f"some, by commas, of {', '.join(SETTINGS)}")
    parser.add_argument("--out", type=Path, default=Path("target/parity"), help="for the results")
    options = parser.parse_args()
    numbers = [int(word) for word in (options.queries or "").split(",") if word]
    only = [word for word in (options.settings or "").split(",") if word]
    options.out.mkdir(parents=True, exist_ok=True)
    written = options.out / f"parity-spark-{pyspark.__version__}.jsonl"
    table = Table("workload", "settings", "queries", "differ", "several of plain Spark's")
    did = []
    differs = False
    with (
        Progress(console=Console(stderr=True)) as progress,
        tempfile.TemporaryDirectory() as folder,
        written.open("w", encoding="utf-8") as out,
    ):
        for workload in options.workload or WORKLOADS:
            work = of_recipes(workload, numbers, only)
            total = len(work.settings) * (len(work.numbers) + len(work.further))
            results = []
            for result in progress.track(
                run(work, Path(folder, workload), 6 * 3600), total=total, description=workload
            ):
                results.append(result)
                differs |= bool(result.differ)
                print(json.dumps([workload, result]), file=out, flush=True)
            for setting in work.settings:
                table.add_row(workload, *_row(setting, results))
                counts = sorted(fired(results, setting).items())
                summary = ", ".join(f"{what}: {count}" for what, count in counts)
                did.append(f"{workload}, {setting}: {summary}")
    console = Console()
    console.print(table)
    console.print("How often Spark's own rules did something:", *did, sep="\n")
    console.print(f"written: {written}")
    sys.exit(differs)


def _row(setting: str, results: Iterable[Result]) -> tuple[str, ...]:
    own = [result for result in results if result.setting == setting]
    return (
        *(setting, str(len(own))),
        ", ".join(f"{r.query} {' and '.join(r.differ)}" for r in own if r.differ) or "0",
        str(sum(r.plain_plans > 1 for r in own)),
    )


if __name__ == "__main__":
    main()
