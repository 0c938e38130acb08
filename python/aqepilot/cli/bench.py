"""Commands that run queries with and without policies, side by side."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import click

from aqepilot.cli.options import (
    EXIT_CODES,
    against,
    as_json,
    console,
    margin,
    master,
    policies,
    reports_errors,
    seed,
    setting,
    settings,
    setup,
    tables,
)
from aqepilot.errors import AqePilotError, Problem


@click.command(
    short_help="Time queries with and without policies, in pairs.",
    epilog="\b\nExamples:\n"
    "  aqepilot bench queries/ --tables data/ --policy new.toml\n"
    "  aqepilot bench q5.sql --setup views.sql --policy new.toml --against old.toml\n\n"
    + EXIT_CODES,
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@policies("A policy file, the treatment")
@against(".  [default: plain Spark]")
@tables
@setup
@settings
@click.option(
    "--rounds",
    type=click.IntRange(1),
    default=30,
    show_default=True,
    metavar="N",
    help="How many at most; it ends when the verdict is clear.",
)
@click.option(
    "--all-rounds", is_flag=True, help="Go on to the last round, for the verdict on each query."
)
@click.option(
    "--warm-up",
    type=click.IntRange(0),
    default=2,
    show_default=True,
    metavar="N",
    help="Rounds before that do not count.",
)
@margin
@seed
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Gets a line of JSON for each run.",
)
@master
@as_json
@reports_errors
def bench(
    files: Sequence[Path],
    policies: Sequence[Path],
    against: Sequence[Path],
    tables: Path | None,
    setup: Path | None,
    settings: Sequence[str],
    rounds: int,
    all_rounds: bool,
    warm_up: int,
    margin: float,
    seed: int | None,
    runs: Path | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Time queries with and without policies, in pairs, until it is clear which is faster.

    FILES hold one SQL statement each; of a folder, all *.sql are run. Intervals hold at all times
    at once, so that one may stop when one likes. Ends with 1 where the treatment is slower, where
    a query is, or where one fails with the policies only.
    """
    from aqepilot.analysis.bench import pairs, queries, summary
    from aqepilot.submit.check import local_session

    wanted = queries.read(files)
    conf = dict(setting(text) for text in settings)
    sys.path.append(str(Path.cwd()))
    with local_session(master, "aqepilot bench", conf) as spark:
        if tables:
            queries.register(spark, tables)
        if setup:
            queries.set_up(spark, setup)
        each = pairs.bench(
            spark,
            wanted,
            policies,
            against,
            rounds=rounds,
            all_rounds=all_rounds,
            warm_up=warm_up,
            margin=margin / 100,
            seed=seed,
            runs=runs,
        )
        result = summary.streamed(each, console(), quiet=as_json)
    if as_json:
        click.echo(json.dumps(summary.data(result), indent=2))
    else:
        for line in summary.sentences(result):
            click.echo(line)
    sys.exit(1 if result.verdict in ("slower", "broken") or result.harmed else 0)


@click.command(
    short_help="Run one job plain and with a policy.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@reports_errors
def demo(words: Sequence[str]) -> None:
    """Run one job twice, plain and with a policy, and show what changed (`demo --help`)."""
    if find_spec("aqepilot.demo") is None:
        message = "the demo is not part of this installation; run `make demo` in the repository."
        raise AqePilotError(Problem("DEMO_MISSING", message))
    sys.exit(import_module("aqepilot.demo").main(list(words)))


COMMANDS = (bench, demo)
