"""`make table-formats`: Delta Lake and Iceberg give plain Spark's rows under policies, too."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pyspark
from rich.console import Console
from rich.table import Table

import submitting
from table_formats import collected
from table_formats.policies import SETS

HERE = Path(__file__).parent
EXTENSIONS = {
    "delta": "io.delta.sql.DeltaSparkSessionExtension",
    "iceberg": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
}
CATALOGS = {
    "delta": {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"},
    "iceberg": {
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": "ice",
    },
}
SHAPES = {
    "delta": ("delta", "delta, deletion vectors", "delta, writes"),
    "iceberg": (
        *("iceberg, copy-on-write", "iceberg, merge-on-read", "iceberg, bucketed"),
        "iceberg, writes",
        "iceberg, partly clustered",
    ),
}
PLAIN = "plain"
# The tables that `aqepilot collect` makes: no policies are asked.
COLLECTED = "collected"
# On a busy machine, too.
MOST_SECONDS = 3600
SAME = ("answer", "error", "rows", "hash", "counts")
console = Console(width=None if sys.stdout.isatty() else 160)


class Formats(NamedTuple):
    """Formats that a Spark has beside aqepilot, as spark-defaults.conf says.

    Attributes:
        names: `delta`, `iceberg` or both.
        jars: Of these, all that they need.
        ours: Whether our extension is `first` or `last`.
        folder: Where it runs.
    """

    names: tuple[str, ...]
    jars: tuple[str, ...]
    ours: str
    folder: Path

    def settings(self) -> dict[str, str]:
        """Returns what makes a Spark that has them."""
        extensions = [EXTENSIONS[name] for name in self.names]
        extensions.insert(0 if self.ours == "first" else len(extensions), submitting.EXTENSION)
        defaults = {
            "spark.sql.extensions": ",".join(extensions),
            "spark.jars": ",".join((*self.jars, str(submitting.spark_jar()))),
            "spark.aqepilot.ask.deadline": "20s",
            "spark.aqepilot.python.allow_session": "true",
            "spark.log.level": "ERROR",
        }
        for name in self.names:
            defaults |= CATALOGS[name]
        return defaults

    def submit(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Runs the job; yields what it found, as it comes."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "spark-defaults.conf").write_text(
            "".join(f"{key} {value}\n" for key, value in self.settings().items()), "utf-8"
        )
        for line in submitting.lines(
            Path(tempfile.mkdtemp(dir=self.folder)),
            (HERE / "job.py").read_text("utf-8"),
            MOST_SECONDS,
            submit_words=[
                "--py-files",
                ",".join(str(HERE / f"{name}.py") for name in ("turns", "writes", "partly")),
            ],
            job_words=[json.dumps(asked)],
            extension=False,
            memory="2g",
            env={"SPARK_CONF_DIR": str(self.folder), "PYTHONHASHSEED": "0"},
        ):
            if line.startswith("FOUND "):
                yield json.loads(line.removeprefix("FOUND "))


@click.command(help=__doc__)
@click.option("--jars", required=True, help="The jars of the formats, FORMAT=PATH, by blanks.")
@click.option(
    "--order",
    type=click.Choice(["by turns", "first", "last", "both"]),
    default="by turns",
    show_default=True,
    help="Where our extension stands; by turns: each set of policies in one of both orders.",
)
@click.option("--shape", "shapes", multiple=True, help="Only these shapes of tables, or collected.")
@click.option("--set", "names", multiple=True, help="Only these sets of policies.")
@click.option("--out", default="target/table-formats", type=Path, help="Where results are.")
def main(
    jars: str,
    order: str,
    shapes: tuple[str, ...],
    names: tuple[str, ...],
    out: Path,
) -> None:
    pairs = [word.split("=", 1) for word in jars.split()]
    kinds = tuple(dict.fromkeys(name for name, _ in pairs))
    wanted = [s for name in kinds for s in SHAPES[name] if not shapes or s in shapes]
    paths = tuple(path for _, path in pairs)
    failures = 0
    if not shapes or COLLECTED in shapes:
        folder = out.absolute() / pyspark.__version__ / COLLECTED
        settings = Formats(kinds, paths, "last", folder).settings()
        failures += collected.failures(kinds, settings, folder)
    for turn, ours in enumerate(("first", "last")):
        own = [name for n, name in enumerate(SETS) if order != "by turns" or n % 2 == turn]
        sets = {name: SETS[name] for name in own if name in (names or SETS)}
        if order not in (ours, "by turns", "both") or not sets or not wanted:
            continue
        folder = out.absolute() / pyspark.__version__ / ours
        shutil.rmtree(folder, ignore_errors=True)
        formats = Formats(kinds, paths, ours, folder)
        failures += run(formats, {"shapes": wanted, "sets": {PLAIN: {}, **sets}})
    sys.exit(1 if failures else 0)


def run(formats: Formats, asked: dict[str, Any]) -> int:
    """Runs the commands, keeps what came of each, and returns how many differ."""
    outcomes = []
    for one in formats.submit(asked):
        outcomes.append(one)
        with (formats.folder / "found.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(one) + "\n")
    return printed(outcomes, formats.ours)


def printed(outcomes: list[dict[str, Any]], ours: str) -> int:
    """Prints what came of it; returns how many commands differ from plain Spark's."""
    plain = {(f["shape"], f["command"]): f for f in outcomes if f["set"] == PLAIN}
    table = Table("Table", "Policies", "Commands", "Decisions", "Applied", "Adopted", "Differ")
    failures = 0
    for shape, name in dict.fromkeys((f["shape"], f["set"]) for f in outcomes if f["set"] != PLAIN):
        own = [f for f in outcomes if (f["shape"], f["set"]) == (shape, name)]
        differ = [
            (f["command"], key, f.get(key), plain[shape, f["command"]].get(key))
            for f in own
            for key in SAME
            if f.get(key) != plain[shape, f["command"]].get(key)
        ]
        faults = [fault for f in own for fault in f.get("faults", ())]
        reasons = Counter(d[1] for f in own for d in f.get("decisions", ()))
        fates = Counter(d[2] for f in own for d in f.get("decisions", ()))
        internal = reasons["INTERNAL_ERROR"]
        for line in (*differ, *faults, *(["no decision was applied"] * (not reasons["APPLIED"]))):
            console.print(f"{shape}, {name}: {line}", markup=False, highlight=False)
            failures += 1
        failures += internal
        table.add_row(
            *(shape, name, str(len(own) - 1), str(sum(reasons.values()))),
            *(str(reasons["APPLIED"]), str(fates["adopted"]), str(len(differ))),
        )
    console.print(table)
    refused = Counter(f"{f['command']}: {f['error']}" for f in plain.values() if "error" in f)
    console.print(f"aqepilot {ours}, Spark {pyspark.__version__}: {failures} failures")
    console.print(f"  fails in plain Spark, too: {dict(refused)}", markup=False)
    return failures


if __name__ == "__main__":
    main()
