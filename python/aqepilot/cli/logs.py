"""Commands that read event logs as a whole: into tables, with other policies, as a page."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.markup import escape

from aqepilot.cli.options import (
    EXIT_CODES,
    against,
    as_json,
    console,
    log_session,
    logs,
    master,
    policies,
    prices,
    reports_errors,
    table,
    top,
)
from aqepilot.errors import AqePilotError, Problem


@click.command(
    short_help="Add event logs to tables, each application once.",
    epilog="\b\nExamples:\n"
    "  aqepilot collect --log s3a://logs/spark-events --to s3a://lake/aqepilot\n"
    "  aqepilot collect --log s3a://logs/spark-events --to catalog:lake.aqepilot\n\n" + EXIT_CODES,
)
@logs
@click.option(
    "--to",
    required=True,
    metavar="FOLDER",
    help="The tables' folder, or catalog:NAMESPACE for a namespace of one of Spark's catalogs.",
)
@click.option(
    "--format",
    "table_format",
    metavar="FORMAT",
    help="delta, iceberg or parquet: what tables of a catalog are made as; else its own default.",
)
@click.option(
    "--abandoned-after",
    default=24.0,
    show_default=True,
    metavar="HOURS",
    help="Read a log in progress that has not changed for so long.",
)
@click.option("--again", is_flag=True, help="Also logs that could not be read to their end before.")
@master
@as_json
@reports_errors
def collect(
    logs: Sequence[str],
    to: str,
    table_format: str | None,
    abandoned_after: float,
    again: bool,
    master: str | None,
    as_json: bool,
) -> None:
    """Add event logs that are not there yet to tables, which --log takes as it takes logs.

    The tables are Parquet in a folder, or Delta Lake, Iceberg or Parquet in a namespace of one of
    Spark's catalogs. Run it as often as you like: it can be killed at any point.
    """
    from aqepilot.eventlog.collect import destinations, open_destination, tables

    destinations.check(to, table_format)
    with log_session(logs, master, "aqepilot collect") as spark:
        lost = open_destination(spark, to, table_format).lost()
        if lost:
            raise AqePilotError(Problem("CATALOG_IN_MEMORY", lost, to))
        collected = tables.collect(
            spark,
            logs,
            to,
            table_format=table_format,
            abandoned_after_hours=abandoned_after,
            again=again,
        )
    if as_json:
        click.echo(json.dumps(collected._asdict(), indent=2))
        return
    click.echo(
        f"{collected.logs} logs added, {collected.known} known already, "
        f"{collected.running} still written."
    )
    if collected.unreadable_lines:
        message = f"{collected.unreadable_lines} lines of these are no whole events: left out."
        click.echo(message, err=True)
    if collected.unreadable_logs:
        message = (
            f"{collected.unreadable_logs} logs could not be read to their end: `problem` in the "
            "table applications says why. They are not read again until they change; --again does."
        )
        click.echo(message, err=True)


@click.command(
    short_help="Ask policies again with the facts of event logs.",
    epilog="\b\nExamples:\n"
    "  aqepilot replay --log s3a://logs/spark-events --policy new.toml\n"
    "  aqepilot replay --log logs --policy new.toml --against old.toml\n"
    "  aqepilot replay --log logs --policy new.toml --fail-if \"after = 'BROADCAST'\"\n\n"
    + EXIT_CODES,
)
@logs
@policies("A policy file")
@against("; else what the logs have.")
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="SQL",
    help="End with 1 where this is true of an answer, or could be checked on none; it may read the "
    "facts, too.",
)
@master
@as_json
@reports_errors
def replay(
    logs: Sequence[str],
    policies: Sequence[Path],
    against: Sequence[Path],
    conditions: Sequence[str],
    master: str | None,
    as_json: bool,
) -> None:
    """Ask policies again with the facts of event logs, and show what would change.

    Python functions are imported, also from the working directory, and called by Spark's tasks.
    """
    from aqepilot import read_log
    from aqepilot.analysis.replay import summary

    sys.path.append(str(Path.cwd()))
    with log_session(logs, master, "aqepilot replay") as spark:
        result = summary.replayed(read_log(spark, logs), policies, against, conditions)
    if as_json:
        click.echo(json.dumps(result, indent=2))
    else:
        out = console()
        out.print(escape(result["summary"]))
        if result["changes"]:
            out.print(table(summary.HEAD, summary.rows(result["changes"])))
        for line in summary.lines(result):
            click.echo(line, err=True)
    sys.exit(1 if summary.fails(result) else 0)


@click.command(
    short_help="Make one HTML page of event logs.",
    epilog="\b\nExamples:\n"
    "  aqepilot report --log s3a://logs/spark-events -o report.html\n"
    "  aqepilot report --log s3a://lake/aqepilot -o report.html --prices prices.toml --top 50\n\n"
    + EXIT_CODES,
)
@logs
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The page; one that is there is replaced.",
)
@prices
@top(200, 10_000, "How many queries to show, those with most task time.")
@click.option(
    "--autopilot",
    "autopilot_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also show what the autopilot of this file tries.",
)
@master
@reports_errors
def report(
    logs: Sequence[str],
    output: Path,
    prices_file: Path | None,
    top: int,
    autopilot_file: Path | None,
    master: str | None,
) -> None:
    """Make one HTML page of event logs: where time goes, and what was decided.

    It needs no network and no script. What comes to this machine is bounded, whatever the logs.
    """
    from aqepilot import Prices, read_log
    from aqepilot.analysis.report import check

    check(output)
    prices = Prices.from_file(prices_file) if prices_file else None
    tried = None
    if autopilot_file:
        from aqepilot.autopilot import shown
        from aqepilot.autopilot.definition import Definition

        definition = Definition.from_file(autopilot_file)
        tried = shown.for_report(definition, prices)
    with log_session(logs, master, "aqepilot report") as spark:
        made = read_log(spark, logs).report(output, prices=prices, top=top, autopilot=tried)
    click.echo(
        f"{output}: {made.queries} queries of {made.applications} applications, "
        f"{made.page_bytes / 1024:,.0f} KiB."
    )
    if made.unreadable_lines:
        message = f"{made.unreadable_lines} lines of the logs are no whole events: left out."
        click.echo(message, err=True)
    if made.unreadable_logs:
        click.echo(f"{made.unreadable_logs} logs could not be read to their end.", err=True)


COMMANDS = (collect, replay, report)
