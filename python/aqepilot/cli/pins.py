"""Commands that keep plans: pins, and comparing what ran before and after an upgrade."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from aqepilot import display, texts
from aqepilot.cli.options import (
    EXIT_CODES,
    LOGS,
    as_json,
    console,
    log_session,
    logs,
    master,
    prices,
    reports_errors,
    setting,
    top,
    write_policies,
)

if TYPE_CHECKING:
    from aqepilot.analysis.pins.run import Pinned
    from aqepilot.policies import Mode

_CONDITIONS = ("worse", "changed", "harms")
_DAYS = click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=30,
    show_default=True,
    metavar="N",
    help="After how many days a pin is not asked any more.",
)


@click.command(
    short_help="Make the next runs of a query have the plan of a good one.",
    epilog="\b\nExamples:\n"
    "  aqepilot pin --log s3a://logs/spark-events --query 71680ee55248 > q4.toml\n"
    "  aqepilot pin --log logs --query 12 --app application_1_0007 --write pins/\n\n" + EXIT_CODES,
)
@logs
@click.option(
    "--query",
    "queries",
    multiple=True,
    required=True,
    metavar="QUERY",
    help="First digits of a fingerprint, or the number of a run in Spark's UI; repeatable.",
)
@click.option("--app", metavar="ID", help="The application of the run.")
@click.option(
    "--also",
    multiple=True,
    metavar="FINGERPRINT",
    help="A further fingerprint of the query, as on another Spark; repeatable.",
)
@click.option(
    "--mode",
    type=click.Choice(["off", "shadow", "enforce"]),
    help="The mode of the policy.  [default: enforce]",
)
@_DAYS
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write each policy into a file here, instead of printing it.",
)
@master
@as_json
@reports_errors
def pin(
    logs: Sequence[str],
    queries: Sequence[str],
    app: str | None,
    also: Sequence[str],
    mode: Mode | None,
    days: int,
    folder: Path | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Make a policy of what the best run of a query decided, and print it.

    The policy answers in this query alone: join strategies, build sides, the order of joins,
    numbers of partitions, coalescing and splits, as they were. What cannot be pinned is named with
    its reason. The run needs decisions: the recipe watch records Spark's own.
    """
    from aqepilot import read_log

    with log_session(logs, master, "aqepilot pin") as spark:
        log = read_log(spark, logs)
        pinned = [
            log.pin(_query(one), app_id=app, also=also, mode=mode, days=days) for one in queries
        ]
    if folder:
        _write(pinned, folder)
    if as_json:
        click.echo(json.dumps([one.data() for one in pinned], indent=2))
        return
    for one in pinned:
        if not folder and one.policy:
            click.echo(one.policy)
        for left in one.unpinned:
            click.echo(f"not pinned: {left.point}, {left.subject}: {left.why}.", err=True)
    if not all(one.policy for one in pinned):
        sys.exit(1)


def _query(text: str) -> str | int:
    """Numbers of runs are short, and fingerprints long."""
    return int(text) if text.isdecimal() and len(text) < 8 else text


def _write(pinned: Sequence[Pinned], folder: Path) -> None:
    made = ((one.policy, texts.plural(len(one.pins), "pin")) for one in pinned if one.policy)
    write_policies(folder, made)


@click.command(
    short_help="Say how pins fared, and what Spark would do now.",
    epilog="\b\nExamples:\n  aqepilot pins --log s3a://logs/spark-events\n"
    "  aqepilot pins --log logs --name pin_71680ee55248\n\n" + EXIT_CODES,
)
@logs
@click.option("--name", "names", multiple=True, metavar="NAME", help="Of a policy; repeatable.")
@master
@as_json
@reports_errors
def pins(logs: Sequence[str], names: Sequence[str], master: str | None, as_json: bool) -> None:
    """Say of each pin whether it holds, and whether Spark by itself now decides as it says.

    Ends with 1 where a pin has expired or is off, does not fit its query any more, was refused, or
    met no run of its query.
    """
    from aqepilot import read_log

    with log_session(logs, master, "aqepilot pins") as spark:
        states = read_log(spark, logs).pins(names)
    if as_json:
        click.echo(json.dumps([one._asdict() for one in states], indent=2))
    else:
        _show(states._table(len(states)))
    sys.exit(1 if any(one.is_trouble for one in states) else 0)


@click.command(
    short_help="Compare logs of before and after an upgrade of Spark.",
    epilog="\b\nExamples:\n"
    "  aqepilot upgrade --before logs/3.5 --after logs/4.3\n"
    "  aqepilot upgrade --before s3a://lake/w47 --after s3a://lake/w48 --fail-if worse "
    "--pins pins/ --page upgrade.html\n\n" + EXIT_CODES,
)
@click.option("--before", multiple=True, required=True, metavar="PATH", help=LOGS)
@click.option("--after", multiple=True, required=True, metavar="PATH", help="The same, of after.")
@click.option(
    "--margin",
    type=click.FloatRange(0, 1000, min_open=True),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="How little of a query's task time counts as no difference.",
)
@click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="What jobs set; repeatable."
)
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    type=click.Choice(_CONDITIONS),
    help="End with 1 where a query is surely slower, a plan changed, or a setting that jobs use "
    "lost its effect; repeatable.",
)
@click.option(
    "--pins",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Write here the pins that would restore the plans of what got slower.",
)
@_DAYS
@click.option(
    "--page",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write an HTML page.",
)
@prices
@top(30, 10_000, "How many queries to show.")
@master
@as_json
@reports_errors
def upgrade(
    before: Sequence[str],
    after: Sequence[str],
    margin: float,
    settings: Sequence[str],
    conditions: Sequence[str],
    folder: Path | None,
    days: int,
    page: Path | None,
    prices_file: Path | None,
    top: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Compare what ran before with what ran after, query by query and sub-plan by sub-plan.

    It names each plan that changed, the queries that are surely slower or faster, and the settings
    and rules that are others between these releases of Spark. Without decisions of aqepilot in the
    logs it compares times and joins alone: the recipe watch records what Spark decides.
    """
    from aqepilot import read_log
    from aqepilot.analysis import report
    from aqepilot.analysis.prices import Prices

    prices = Prices.from_file(prices_file) if prices_file else None
    if page:
        report.check(page)
    conf = dict(setting(text) for text in settings)
    with log_session([*before, *after], master, "aqepilot upgrade") as spark:
        old = read_log(spark, before)
        result = old.upgrade(read_log(spark, after), margin=margin / 100, conf=conf)
        if folder:
            from aqepilot.analysis.upgrade import pins as restoring

            _write(list(restoring(old, result, days)), folder)
    if page:
        from aqepilot.analysis.upgrade.page import write

        write(result, page, prices)
    if as_json:
        click.echo(json.dumps(result.data(prices), indent=2))
    else:
        for table in result.tables(prices, top):
            _show(table)
    failed = result.failed(conditions)
    for word in failed:
        click.echo(f"failed: {len(getattr(result, word))} {word}", err=True)
    sys.exit(1 if failed else 0)


def _show(table: display.Table) -> None:
    shown = display.text(table) if table.rows else table.caption
    console().print(Text(shown or table.caption), soft_wrap=True)


COMMANDS = (pin, pins, upgrade)
