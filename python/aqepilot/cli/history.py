"""Commands about history: what past runs measured, as a file that drivers read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from aqepilot import texts
from aqepilot.cli.options import (
    EXIT_CODES,
    LOGS,
    as_json,
    console,
    log_session,
    master,
    reports_errors,
    table,
)

if TYPE_CHECKING:
    from aqepilot.history import Pack

_KINDS = {
    "HELD": "not used for now",
    "PLAN": "rows of a sub-plan",
    "QUERY": "a query as a whole",
    "SHUFFLE": "a shuffle, and the stage that reads it",
}


@click.group(
    short_help="Let the next run know what past runs measured.",
    epilog="\b\nExamples:\n"
    "  aqepilot history build --from s3a://lake/aqepilot --to s3a://etc/history.parquet\n"
    "  aqepilot history show s3a://etc/history.parquet\n\n" + EXIT_CODES,
)
def history() -> None:
    """Let the next run of a query know what past runs measured of its sub-plans."""


@history.command(
    short_help="Write what past runs measured into a file for drivers.",
    epilog="\b\nExamples:\n"
    "  aqepilot history build --from s3a://logs/spark-events --to s3a://etc/history.parquet\n"
    "  aqepilot history build --from s3a://lake/aqepilot --to s3a://etc/sales.parquet "
    "--job 'daily.sales.*'\n\n" + EXIT_CODES,
)
@click.option("--from", "logs", multiple=True, required=True, metavar="PATH", help=LOGS)
@click.option(
    "--to",
    required=True,
    metavar="FILE",
    help="The file, which spark.aqepilot.history names; one that is there is replaced.",
)
@click.option(
    "--runs",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    metavar="N",
    help="How many runs of each sub-plan, the newest.",
)
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="GLOB",
    help="Only of jobs with such a name, like 'daily.sales.*'; may be given several times.",
)
@click.option(
    "--slower",
    type=click.FloatRange(1, 100, min_open=True),
    default=1.2,
    show_default=True,
    metavar="FACTOR",
    help="History is not used for a while where a run by it took so many times the task time of "
    "runs without.",
)
@master
@as_json
@reports_errors
def build(
    logs: Sequence[str],
    to: str,
    runs: int,
    jobs: Sequence[str],
    slower: float,
    master: str | None,
    as_json: bool,
) -> None:
    """Write what past runs measured of each sub-plan into one file, which drivers read.

    The file depends on the logs alone, and is replaced as a whole: run it as often as you like.
    """
    from aqepilot import read_log

    with log_session(logs, master, "aqepilot history build") as spark:
        pack = read_log(spark, logs).history(to, runs=runs, jobs=jobs, slower=slower)
    _tell(pack, as_json)


@history.command(
    short_help="Say what such a file holds.",
    epilog="\b\nExamples:\n  aqepilot history show s3a://etc/history.parquet\n"
    "  aqepilot history show history.parquet --json\n\n" + EXIT_CODES,
)
@click.argument("path")
@master
@as_json
@reports_errors
def show(path: str, master: str | None, as_json: bool) -> None:
    """Say what the file PATH holds, how old it is, and what is not used for now, and why."""
    from aqepilot import history as packs

    with log_session([path], master, "aqepilot history show") as spark:
        pack = packs.read(spark, path)
    _tell(pack, as_json)


def _tell(pack: Pack, as_json: bool) -> None:
    if as_json:
        shown = pack._asdict() | {
            "kinds": [kind._asdict() for kind in pack.kinds],
            "held": [held._asdict() for held in pack.held],
        }
        click.echo(json.dumps(shown, indent=2, default=datetime.isoformat))
        return
    head = ("Kind", "What it is", "Signatures", "Rows")
    rows = (
        (kind.kind, _KINDS.get(kind.kind, ""), *map(texts.number, (kind.signatures, kind.rows)))
        for kind in pack.kinds
    )
    console().print(table(head, rows))
    click.echo("\n".join(_sentences(pack)))
    if pack.held:
        held = ((one.signature, one.form, _minute(one.until), one.reason) for one in pack.held)
        console().print(table(("Not used", "Form", "Until", "Why"), held))


def _sentences(pack: Pack) -> Iterator[str]:
    yield (
        f"{pack.path}: {texts.plural(pack.signatures, 'signature')}, {texts.size(pack.size_bytes)}."
    )
    if pack.oldest and pack.newest:
        yield f"Runs from {_minute(pack.oldest)} to {_minute(pack.newest)}."


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"


COMMANDS = (history,)
