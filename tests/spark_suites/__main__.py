"""`make spark-suites`: Spark's own suites in four ways; fails on what the ledger does not name."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aqepilot import catalog
from aqepilot.submit import jars
from spark_suites import jvm, ledger, outcomes, selection
from spark_suites.ledger import Difference, Entry
from spark_suites.outcomes import Case, Outcome
from spark_suites.ways import PLAIN, WAYS

console = Console(width=None if sys.stdout.isatty() else 160)
GROUPS = tuple(selection.names())


class Run(NamedTuple):
    """All groups in one way."""

    way: str
    tests: dict[Case, Outcome]
    counters: Counter[str]


@click.command(help=__doc__)
@click.option("--spark", required=True, help="A minor: 3.5, 4.0, 4.1 or 4.2.")
@click.option("--long", is_flag=True, help="All inputs of SQLQueryTestSuite, not some.")
@click.option("--group", "-g", multiple=True, type=click.Choice(GROUPS), help="Some groups only.")
@click.option("--way", "-w", multiple=True, type=click.Choice([*WAYS]), help="Some ways only.")
@click.option("--suite", "-s", multiple=True, help="Some suites only, e.g. JoinSuite.")
@click.option("--test", "-z", multiple=True, help="Only tests whose names hold this.")
@click.option("--report", is_flag=True, help="Run nothing: compare what there is.")
@click.option("--timeout", default=7200, help="Seconds for a group in one way.")
@click.option("--out", default="target/spark-suites", type=Path, help="Where all is.")
def main(
    spark: str,
    long: bool,
    group: tuple[str, ...],
    way: tuple[str, ...],
    suite: tuple[str, ...],
    test: tuple[str, ...],
    report: bool,
    timeout: int,
    out: Path,
) -> None:
    entries = ledger.load(ledger.LEDGER.read_text("utf-8"))
    own = jvm.suites(out / spark, spark)
    chosen = [g for g in selection.groups(own, long) if g.name in group or not group]
    if suite or test:
        # Beside the results of the whole group.
        chosen = [
            g._replace(
                name=f"{g.name}-some",
                suites=[s for s in g.suites if s in suite or not suite],
                only=list(test) or g.only,
            )
            for g in chosen
        ]
    chosen = [g for g in chosen if g.suites]
    if not report:
        for g in chosen:
            for name in way or WAYS:
                _run(own, g, name, out, timeout)
    console.print(f"Spark {own.version}: {', '.join(g.name for g in chosen)}")
    runs = [_read(name, chosen, out / spark) for name in WAYS]
    runs = [run for run in runs if run.tests or run.way in way]
    sys.exit(_judge(own, chosen, runs, entries))


def _run(own: jvm.Suites, group: selection.Group, way: str, out: Path, timeout_s: float) -> None:
    started = time.monotonic()
    jar = None if way == PLAIN else jars.find(own.version)
    folder = _folder(out / own.minor, way, group)
    settings = WAYS[way](own.minor)
    jvm.run(own, group.suites, group.only, settings, jar, folder, timeout_s)
    counts = Counter(outcome.kind for outcome in outcomes.read(folder).values())
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))
    seconds = time.monotonic() - started
    console.print(
        f"{way}: {group.name}: {counted or 'no test ran'}; {seconds:.0f} s", highlight=False
    )


def _folder(root: Path, way: str, group: selection.Group) -> Path:
    return root / way.replace(" ", "-") / group.name


def _read(way: str, chosen: Iterable[selection.Group], root: Path) -> Run:
    tests: dict[Case, Outcome] = {}
    counters: Counter[str] = Counter()
    for group in chosen:
        folder = _folder(root, way, group)
        read = outcomes.read(folder)
        tests |= {test: read[test] for test in read if test.suite in group.suites}
        counters += outcomes.counters(folder)
    return Run(way, tests, counters)


def _judge(
    own: jvm.Suites, chosen: list[selection.Group], runs: list[Run], entries: list[Entry]
) -> int:
    """Prints what was found; returns 1 if something is not accounted for."""
    plain = next((run for run in runs if run.way == PLAIN), None)
    if plain is None or not plain.tests:
        sys.exit("plain Spark has to run first: leave out --way, or add --way plain")
    table = Table("way", "tests", "passed", "failed", "skipped", "differ", "not in the ledger")
    problems: list[str] = []
    for run in runs:
        differences = ledger.differences(run.way, plain.tests, run.tests, entries, own.minor)
        new = [difference for difference in differences if difference.entry is None]
        counts = Counter(outcome.kind for outcome in run.tests.values())
        differ = 0 if run.way == PLAIN else len(differences)
        kinds = [counts[kind] for kind in (outcomes.PASSED, outcomes.FAILED, outcomes.SKIPPED)]
        table.add_row(run.way, *map(str, [len(run.tests), *kinds, differ, len(new)]))
        problems += map(_sentence, new)
        for entry in ledger.stale(run.way, differences, run.tests, entries, own.minor):
            problems.append(f"{run.way}: {entry.test.suite}: {entry.test.name}\n  differs no more")
        problems += _idle(run)
    whole = {suite for group in chosen if not group.only for suite in group.suites}
    started = {test.suite for test in plain.tests}
    problems += [f"plain: {suite}\n  has no result" for suite in sorted(whole - started)]
    for entry in ledger.unknown(plain.tests, whole, entries, own.minor):
        problems.append(f"the ledger names no test: {entry.test.suite}: {entry.test.name}")
    console.print(table)
    for run in runs:
        console.print(_counted(run.way, run.counters), highlight=False)
    for problem in problems:
        console.print(escape(problem), style="red", highlight=False, soft_wrap=True)
    return 1 if problems else 0


def _sentence(difference: Difference) -> str:
    before = f" (in plain Spark {difference.plain.kind})" if difference.way != PLAIN else ""
    message = outcomes.plainly(difference.outcome.message).strip()[:600]
    return (
        f"{difference.way}: {difference.test.suite}: {difference.test.name}\n"
        f"  {difference.outcome.kind}{before}: {message}"
    )


def _idle(run: Run) -> list[str]:
    """What shows that the extension was not there, or failed at something."""
    if run.way == PLAIN:
        return []
    lacks = [] if run.counters["contexts"] else [f"{run.way}: the extension was not there"]
    errors = {name: n for name, n in run.counters.items() if name.startswith("errors") and n}
    return lacks + ([f"{run.way}: swallowed faults of aqepilot's own: {errors}"] if errors else [])


def _counted(way: str, counters: Counter[str]) -> str:
    """What was decided, by point: asked, and applied."""
    words = []
    for point in catalog.point_names():
        reasons = {
            name.rpartition(".")[2]: count
            for name, count in counters.items()
            if name.startswith(f"decisions.{point}.")
        }
        if reasons:
            words.append(f"{point} {sum(reasons.values())} ({reasons.get('APPLIED', 0)} applied)")
    return f"{way}: decisions: {', '.join(words) or 'none'}"


if __name__ == "__main__":
    main()
