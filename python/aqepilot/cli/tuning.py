"""Commands that search a better plan of a query."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from aqepilot.cli.options import (
    as_json,
    console,
    margin,
    master,
    prices,
    reports_errors,
    seed,
    setting,
    settings,
    setup,
    table,
    tables,
)
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from aqepilot.analysis.tune.evidence import Evidence


@click.command(
    short_help="Search a better plan of a query, and keep it as a policy.",
    epilog="\b\nExamples:\n"
    "  aqepilot tune q5.sql --tables day1/ --held-out day2/ --out q5.toml\n"
    "  aqepilot tune --call jobs.sales:report --fingerprint 3f9c... --out sales.toml\n\n"
    "Exit codes: 0 a policy is there, 1 nothing is really faster or something is wrong, 2 the "
    "command was misused.",
)
@click.argument(
    "file", required=False, type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option(
    "--call",
    metavar="MODULE:FUNCTION",
    help="A function of a session that runs the query, instead of a file; of a DataFrame that it "
    "returns the rows are compared.",
)
@click.option(
    "--fingerprint", metavar="HEX", help="Of the query to tune, where the function runs several."
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="The policy file, *.toml; the evidence is beside it, as *.json, and a search that was "
    "ended goes on from it.",
)
@tables
@click.option(
    "--held-out",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The same tables of another day; their paths may differ in dates and ids only.",
)
@setup
@settings
@click.option(
    "--search",
    default="bandit",
    show_default=True,
    metavar="NAME",
    help="bandit, exhaustive, an entry point of aqepilot_searchers, or module:function.",
)
@click.option(
    "--tries",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    metavar="N",
    help="Candidates at most.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    help="Wall time after which no candidate begins.",
)
@click.option(
    "--cost",
    type=click.FloatRange(0, min_open=True),
    metavar="MONEY",
    help="Cost after which no candidate begins; needs --prices.",
)
@prices
@click.option(
    "--rounds",
    type=click.IntRange(5),
    default=30,
    show_default=True,
    metavar="N",
    help="Fresh pairs of the best candidate at most; it ends when the gain is clear, or cannot "
    "become so.",
)
@margin
@seed
@click.option(
    "--page", type=click.Path(path_type=Path, dir_okay=False), help="Gets the evidence as HTML."
)
@master
@as_json
@reports_errors
def tune(
    file: Path | None,
    call: str | None,
    fingerprint: str | None,
    out: Path,
    tables: Path | None,
    held_out: Path | None,
    setup: Path | None,
    settings: tuple[str, ...],
    search: str,
    tries: int,
    minutes: float | None,
    cost: float | None,
    prices_file: Path | None,
    rounds: int,
    margin: float,
    seed: int | None,
    page: Path | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Search a better plan of a query, and keep it as a policy if it is really faster.

    FILE holds one SQL statement. Candidates are legal answers at the decisions of the query; each
    runs beside plain Spark, within a time-out, and its rows are compared. The best is measured
    again on fresh pairs, and on other data if there is any.
    """
    from aqepilot.analysis import report
    from aqepilot.analysis.bench import queries
    from aqepilot.analysis.prices import Prices
    from aqepilot.analysis.tune import page as pages
    from aqepilot.analysis.tune import summary, tuning
    from aqepilot.submit.check import local_session

    if (file is None) == (call is None):
        raise click.UsageError("Name either a FILE or --call, and not both.")
    if cost is not None and prices_file is None:
        raise click.UsageError("--cost needs --prices.")
    known = Prices.from_file(prices_file) if prices_file else None
    if page:
        report.check(page)
    sys.path.append(str(Path.cwd()))
    query: Any = _function(call) if call else next(iter(queries.read([file or Path()]).values()))
    conf = dict(setting(text) for text in settings)
    with ExitStack() as stack:
        spark = stack.enter_context(local_session(master, "aqepilot tune", conf))
        other = spark.newSession() if held_out else None
        for session, folder in ((spark, tables), (other, held_out)):
            if session is not None and folder:
                queries.register(session, folder)
            if session is not None and setup:
                queries.set_up(session, setup)
        shown = stack.enter_context(_Progress(tries, rounds, quiet=as_json))
        tuned = tuning.tune(
            spark,
            query,
            out,
            fingerprint=fingerprint,
            held_out=other,
            search=search,
            tries=tries,
            minutes=minutes,
            cost=cost,
            prices=known,
            rounds=rounds,
            margin=margin / 100,
            seed=seed,
            progress=shown.show,
        )
    currency = known.currency if known else ""
    if page:
        pages.write(tuned, page, currency)
    if as_json:
        click.echo(json.dumps(summary.data(tuned), indent=2))
    else:
        console().print(table(summary.HEAD, summary.rows(tuned.evidence)))
        for sentence in summary.sentences(tuned, currency):
            click.echo(sentence)
    sys.exit(0 if tuned.policy else 1)


class _Progress:
    """How far a search is, on a terminal."""

    def __init__(self, tries: int, rounds: int, *, quiet: bool) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(console=Console(stderr=True), disable=quiet, transient=True)
        self._tries = self._progress.add_task("warming up", total=tries)
        self._fresh = self._progress.add_task("fresh pairs", total=rounds)

    def __enter__(self) -> _Progress:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, evidence: Evidence) -> None:
        """Shows what is known after a step."""
        from aqepilot.analysis.intervals import percent

        ratios = [one.log_ratio for one in evidence.tries if one.outcome == "ran"]
        best = f", best {percent(min(ratios))}" if ratios else ""
        self._progress.update(
            self._tries, completed=len(evidence.tries), description=f"tries{best}"
        )
        pairs = len(evidence.fresh.pairs) if evidence.fresh else 0
        self._progress.update(self._fresh, completed=pairs)


def _function(name: str) -> Callable[..., Any]:
    if ":" not in name.rstrip(":"):
        raise click.BadParameter(f"{name!r} is not module:function.", param_hint="--call")
    try:
        loaded: Callable[..., Any] = resolve_name(name)
    except (ValueError, ImportError, AttributeError) as error:
        message = f"{name!r} cannot be loaded: {error}."
        raise AqePilotError(Problem("FUNCTION_MISSING", message, "--call")) from error
    return loaded


COMMANDS = (tune,)
