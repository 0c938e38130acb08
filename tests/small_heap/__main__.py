"""`make small-heap`: random joins in a small driver; no decision may fail what plain Spark runs."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import click
import pyspark
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import submitting
from small_heap import drawing
from small_heap.driver import Driver

POINTS = (
    *("join_reorder", "join_selection", "shuffle_partitions", "dynamic_join_selection"),
    *("skew_join", "partition_coalescing", "cost_evaluation"),
)
# Sets of policies under which a query runs, after it ran without any.
SETS = 4
# How often plain Spark runs what failed under policies: at the heap's edge it fails at times, too.
PLAIN_AGAIN = 3
console = Console(width=None if sys.stdout.isatty() else 160)


class Failure(NamedTuple):
    """A run that failed, twice, or gave other rows, where plain Spark's did not."""

    drawn: drawing.Drawn
    policies: dict[str, str]
    outcome: dict[str, Any]

    def __str__(self) -> str:
        """What to run to see it again."""
        what = self.outcome.get("error") or f"other rows: {self.outcome['rows']}"
        settings = "".join(f"\n  SET {key}={value}" for key, value in self.drawn.settings.items())
        return f"{what}\n  {self.drawn.sql}{settings}\n  {json.dumps(self.policies)}"


@click.command(help=__doc__)
@click.option("--runs", default=1000, show_default=True, help="Runs with policies.")
@click.option("--seed", default=1, show_default=True, help="The same runs each time.")
@click.option("--memory", default="640m", show_default=True, help="The driver's heap.")
@click.option("--out", default="target/small-heap", type=Path, help="Where data and results are.")
@click.option("--unguarded", is_flag=True, help="With guard rails that refuse nothing, to compare.")
def main(runs: int, seed: int, memory: str, out: Path, unguarded: bool) -> None:
    data = _data(out.absolute() / pyspark.__version__)
    rng = random.Random(seed)
    reasons: Counter[tuple[str, str]] = Counter()
    fates: Counter[tuple[str, str]] = Counter()
    left_out: Counter[str] = Counter()
    failures: list[Failure] = []
    done = queries = 0
    # Whoever stops it is told what has been run.
    with (
        suppress(KeyboardInterrupt),
        Driver(data, memory, unguarded) as driver,
        _progress(runs) as advance,
    ):
        while done < runs:
            drawn = drawing.draw(rng, SETS)
            plain = driver.run(drawn, {})
            if "error" in plain:
                left_out[plain["error"][:100]] += 1
                continue
            queries += 1
            for policies in drawn.policies:
                outcome = driver.run(drawn, policies)
                if outcome.get("problems"):
                    raise click.ClickException(f"{outcome['problems']}: {policies}")
                if "error" in outcome:
                    outcome = driver.run(drawn, policies)
                if "error" in outcome and (error := _error_of_plain(driver, drawn)):
                    left_out[error[:100]] += 1
                    break
                if outcome.get("rows") != plain["rows"]:
                    failures.append(Failure(drawn, policies, outcome))
                    console.print(f"[red]failed[/] {failures[-1]}", highlight=False, markup=True)
                reasons.update((d[0], d[1]) for d in outcome.get("decisions", ()))
                fates.update((d[0], d[3]) for d in outcome.get("decisions", ()) if d[2] and d[3])
                done += 1
                advance()
    console.print(_table(reasons, fates))
    console.print(
        f"{done} runs of {queries} queries in a driver of {memory}, Spark {pyspark.__version__},"
        f" seed {seed}: {len(failures)} failed or gave other rows; {sum(left_out.values())} queries"
        " left out, which plain Spark does not run, or not each time"
    )
    for error, count in left_out.most_common():
        console.print(f"  {count} x {error}", markup=False)
    written = [
        {"error": str(f)} | {"drawn": f.drawn._asdict(), "policies": f.policies} for f in failures
    ]
    (data.parent / f"failures-{seed}.json").write_text(json.dumps(written, indent=1), "utf-8")
    sys.exit(1 if failures or done < runs else 0)


def _error_of_plain(driver: Driver, drawn: drawing.Drawn) -> str | None:
    """Returns what a query fails with in plain Spark, where that runs it at times only."""
    for _ in range(PLAIN_AGAIN):
        outcome = driver.run(drawn, {})
        if "error" in outcome:
            return str(outcome["error"])
    return None


def _data(folder: Path) -> Path:
    """Writes the tables, once for each Spark."""
    data = folder / "data"
    if not (folder / "written").exists():
        tables = {
            name: (
                shape.rows,
                f"IF(id % 10 < 3, 0, id div {shape.copies})"
                if shape.skewed
                else f"id div {shape.copies}",
                [f"{expression} AS {column}" for column, expression in shape.columns.items()],
            )
            for name, shape in drawing.SHAPES.items()
        }
        script = (
            "from pyspark.sql import SparkSession\n"
            "spark = SparkSession.builder.getOrCreate()\n"
            f"for name, (rows, key, columns) in {tables!r}.items():\n"
            "    ids = spark.range(0, rows, 1, 4).selectExpr('id', key + ' AS k', *columns)\n"
            f"    ids.write.mode('overwrite').parquet({str(data)!r} + '/' + name)\n"
        )
        done = submitting.submit(folder, script, extension=False, memory="2g", timeout_s=900)
        if done.returncode:
            raise click.ClickException(f"the tables were not written:\n{done.stderr[-2000:]}")
        (folder / "written").touch()
    return data


@contextmanager
def _progress(runs: int) -> Iterator[Any]:
    with Progress(console=console) as progress:
        task = progress.add_task("runs", total=runs)
        yield lambda: progress.advance(task)


def _table(reasons: Counter[tuple[str, str]], fates: Counter[tuple[str, str]]) -> Table:
    table = Table("Decision point", "Decisions", "Applied", "Adopted", "Refused, by guard rail")
    for point in POINTS:
        reasons_at_point = {reason: count for (p, reason), count in reasons.items() if p == point}
        guarded = ", ".join(
            f"{reason} {count}"
            for reason, count in sorted(reasons_at_point.items(), key=lambda pair: -pair[1])
            if reason.startswith("GUARD_")
        )
        table.add_row(
            point,
            str(sum(reasons_at_point.values())),
            str(reasons_at_point.get("APPLIED", 0)),
            str(fates[point, "adopted"]),
            guarded,
        )
    return table


if __name__ == "__main__":
    main()
