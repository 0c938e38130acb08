"""Commands about what event logs say: what it costs, one query in words, and suggestions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from aqepilot import texts
from aqepilot.analysis.costs import TITLES
from aqepilot.cli.options import (
    EXIT_CODES,
    as_json,
    console,
    log_session,
    logs,
    master,
    prices,
    reports_errors,
    table,
    top,
    write_policies,
)


@click.command(
    short_help="Say where cores' time did no work.",
    epilog="\b\nExamples:\n  aqepilot costs --log s3a://logs/spark-events\n"
    "  aqepilot costs --log s3a://lake/aqepilot --slots 400 --prices prices.toml\n\n" + EXIT_CODES,
)
@logs
@click.option(
    "--slots",
    type=click.IntRange(1),
    metavar="N",
    help="Also lay the tasks of each stage out on so many cores.",
)
@prices
@top(20, 10_000, "How many queries to show.")
@master
@as_json
@reports_errors
def costs(
    logs: Sequence[str],
    slots: int | None,
    prices_file: Path | None,
    top: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Say what stages cost beside their work: waiting, tiny tasks, spills and retries.

    All figures are time of cores. With --slots it is an estimate: tasks keep the times that they
    had, however many run at once.
    """
    from aqepilot import read_log
    from aqepilot.analysis.prices import Prices

    prices = Prices.from_file(prices_file) if prices_file else None
    with log_session(logs, master, "aqepilot costs") as spark:
        dearest = read_log(spark, logs).costs(slots).fingerprints.limit(top).collect()
    rows = [row.asDict() for row in dearest]
    if prices:
        for row in rows:
            row["cost"] = {n: round(prices.cost(row[n] or 0), 6) for n in TITLES}
            row["currency"] = prices.currency
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    head = ["Query", "Description", "Runs", *TITLES.values()]
    if slots is not None:
        head += ["Stages take", f"On {slots:,}", "and wait"]
    console().print(table(head, _rows(rows, slots, prices)))
    unknown = sum(row["not_known"] for row in rows)
    if unknown:
        message = (
            f"{unknown} stages are of tables that an older aqepilot collected, and lack these "
            "figures."
        )
        click.echo(message, err=True)
    if slots is not None:
        message = (
            "What stages take is an estimate: their own tasks laid out, one stage after the other."
        )
        click.echo(message, err=True)


def _rows(
    rows: Sequence[dict[str, Any]], slots: int | None, prices: Any
) -> Iterator[tuple[str, ...]]:
    def time_and_money(row: dict[str, Any], name: str) -> str:
        shown = texts.duration(row[name])
        if prices and row[name] is not None:
            shown += f"\n{texts.money(prices.cost(row[name]), prices.currency)}"
        return shown

    for row in rows:
        laid_out: list[str] = []
        if slots is not None:
            laid_out = [texts.duration(row["own_span_ms"]), texts.duration(row["span_ms"])]
            laid_out.append(time_and_money(row, "span_waiting_ms"))
        yield (
            (row["fingerprint"] or ("not known" if row["queries"] else "none"))[:12],
            (row["description"] or row["key"])[:60],
            texts.number(row["queries"]),
            *(time_and_money(row, name) for name in TITLES),
            *laid_out,
        )


_QUERIES = ("Query", "Application", "Took", "Task time", "Decisions", "Description")


def _listed(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(row["execution_id"]),
        row["app_id"] or "not known",
        texts.duration(row["wall_ms"]),
        texts.duration(row["task_ms"]),
        texts.number(row["decisions"]),
        (row["description"] or "")[:60],
    )


@click.command(
    short_help="Tell one query of an event log in words.",
    epilog="\b\nExamples:\n  aqepilot explain --log logs\n"
    "  aqepilot explain --log logs/app-20261124-0001 --query 12\n"
    "  aqepilot explain --log s3a://lake/aqepilot --query 12 --app application_1_0007\n\n"
    + EXIT_CODES,
)
@logs
@click.option(
    "--query",
    type=int,
    metavar="ID",
    help="The query, as in Spark's UI; without it the queries are listed.",
)
@click.option("--app", metavar="ID", help="Its application; needed where several have such a one.")
@top(20, 10_000, "How many queries to list, those with most task time.")
@master
@as_json
@reports_errors
def explain(
    logs: Sequence[str],
    query: int | None,
    app: str | None,
    top: int,
    master: str | None,
    as_json: bool,
) -> None:
    """Tell what Spark knew in one query, what was decided, and what came of it."""
    from aqepilot import read_log
    from aqepilot.analysis.explanation.query import most_expensive

    with log_session(logs, master, "aqepilot explain") as spark:
        log = read_log(spark, logs)
        if query is None:
            rows = [row.asDict() for row in most_expensive(log, top, app)]
        else:
            explanation = log.explain(query, app)
    if query is None:
        if as_json:
            click.echo(json.dumps(rows, indent=2))
        else:
            console().print(table(_QUERIES, map(_listed, rows)))
            click.echo("--query ID tells of one.", err=True)
        return
    click.echo(json.dumps({"text": str(explanation)}, indent=2) if as_json else repr(explanation))


@click.command(
    short_help="Name what a policy or a change would help.",
    epilog="\b\nExamples:\n  aqepilot suggest --log s3a://logs/spark-events\n"
    "  aqepilot suggest --log s3a://lake/aqepilot --top 3 --write policies/\n\n" + EXIT_CODES,
)
@logs
@top(10, 100, "How many at most, those with most at stake.")
@click.option(
    "--write",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write each policy into a file here; what no policy helps has none.",
)
@master
@as_json
@reports_errors
def suggest(
    logs: Sequence[str], top: int, folder: Path | None, master: str | None, as_json: bool
) -> None:
    """Name what the queries of event logs would gain most from, each with a policy to try.

    The policies are in shadow mode, and are replayed where the logs have the facts. Where no
    policy helps, it says what to change in the job. What is at stake is the most that could be
    had, and no promise.
    """
    from aqepilot import read_log
    from aqepilot.analysis import findings, suggestions

    with log_session(logs, master, "aqepilot suggest") as spark:
        suggested = read_log(spark, logs).suggest(top)
    if folder:
        write_policies(folder, ((one.policy, one.kind) for one in suggested if one.policy))
    if as_json:
        click.echo(json.dumps([one._asdict() for one in suggested], indent=2))
        return
    if not suggested:
        click.echo("Nothing in these logs would gain from a policy or a change that is known here.")
    for number, one in enumerate(suggested, 1):
        query = f"{one.fingerprint[:12]} " if one.fingerprint else ""
        kind = findings.KINDS[one.kind]
        click.echo(f"{number}. {kind[0].upper()}{kind[1:]}: {query}{one.description or ''}")
        for line in suggestions.sentences(one):
            click.echo(f"   {line}")
        click.echo("\n" + "".join(f"     {line}\n" for line in (one.policy or "").splitlines()))


COMMANDS = (costs, explain, suggest)
