"""Commands of the autopilot: its looks, what it tries, and what a person does to a trial."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from getpass import getuser
from pathlib import Path
from typing import get_args

import click

from aqepilot.autopilot.names import Action
from aqepilot.cli.options import (
    EXIT_CODES,
    LOGS,
    P,
    as_json,
    console,
    log_session,
    master,
    prices,
    reports_errors,
    setting,
    table,
)
from aqepilot.errors import AqePilotError, Problem


@click.group(
    short_help="Try, promote and take back policies by itself.",
    epilog="\b\nExamples:\n  aqepilot autopilot run --file autopilot.toml\n"
    "  aqepilot autopilot status --file autopilot.toml\n\n" + EXIT_CODES,
)
def autopilot() -> None:
    """Try policies on jobs, promote what helps, and take back what hurts, with error rates."""


def _file(command: Callable[P, None]) -> Callable[P, None]:
    """The definition, and settings of its file systems."""
    command = click.option(
        "--conf",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        help="A Spark setting, such as spark.hadoop.*; may be given several times.",
    )(command)
    return click.option(
        "--file",
        "path",
        required=True,
        envvar="AQEPILOT_AUTOPILOT",
        show_envvar=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="What the autopilot may do: a TOML file with a table [autopilot].",
    )(command)


@autopilot.command(
    "run",
    short_help="Take one look.",
    epilog="\b\nExamples:\n  aqepilot autopilot run --file autopilot.toml\n"
    "  aqepilot autopilot run --file autopilot.toml --log s3a://lake/aqepilot --look 2026-12-01\n\n"
    + EXIT_CODES,
)
@_file
@click.option("--log", "logs", multiple=True, metavar="PATH", help=LOGS)
@click.option(
    "--look",
    metavar="DAY",
    help="The look: a day, or an hour such as 2026-12-01T13. One that was decided is only "
    "delivered, where that was broken off.  [default: today, UTC]",
)
@master
@as_json
@reports_errors
def run_autopilot(
    path: Path,
    settings: Sequence[str],
    logs: Sequence[str],
    look: str | None,
    master: str | None,
    as_json: bool,
) -> None:
    """Read what came of the runs, decide the next step of each trial, and deliver it.

    A scheduler runs it each night or each hour: error rates hold however often it looks. It can be
    killed and run again at any time.
    """
    from aqepilot import read_log
    from aqepilot.analysis.experiment import needs_numpy

    needs_numpy()
    from aqepilot.autopilot import candidates, sentences
    from aqepilot.autopilot.autopilot import Autopilot
    from aqepilot.autopilot.definition import Definition
    from aqepilot.autopilot.logs import Seen
    from aqepilot.autopilot.state import State

    conf = dict(setting(text) for text in settings)
    definition = Definition.from_file(path)
    at = _time(look)
    name = look or f"{at:%Y-%m-%d}"
    paths = list(logs or definition.logs)
    if not paths:
        message = 'no logs are named: give --log PATH, or logs = ["..."] in the file.'
        raise AqePilotError(Problem("OPTION_INVALID", message))
    problems: list[Problem] = []

    with log_session(paths, master, "aqepilot autopilot run", conf) as spark:

        def known(state: State) -> object:
            seen = Seen(read_log(spark, paths), definition, at.timestamp() / 86400)
            try:
                evidence = seen.evidence(state)
                offered = candidates.find(seen, definition)
            finally:
                seen.close()
            problems.extend(offered.problems)
            return evidence, offered.listed

        with console().status("Reading event logs ..."):
            events = Autopilot(definition, conf).look(name, known, now=at)  # type: ignore[arg-type]
    for problem in problems:
        click.echo(f"warning: {problem}", err=True)
    steps = [event for event in events if event.trial]
    if as_json:
        click.echo(json.dumps([event.model_dump(mode="json") for event in steps], indent=2))
    elif not events:
        click.echo(f"The look {name} was decided before; all of it is delivered now.")
    elif not steps:
        click.echo(
            f"The look {name} has no step: no trial is due for one, and nothing new is offered."
        )
    else:
        console().print(table(_LOG_HEAD, sentences.logged(steps)))


def _time(look: str | None) -> datetime:
    if look is None:
        return datetime.now(timezone.utc).replace(microsecond=0)
    try:
        at = datetime.fromisoformat(look if "T" in look or len(look) < 10 else f"{look}T23:59:59")
        at = at if at.tzinfo else at.replace(tzinfo=timezone.utc)
    except ValueError:
        message = f"--look {look!r} is no day such as 2026-12-01, nor an hour: 2026-12-01T13."
        raise AqePilotError(Problem("OPTION_INVALID", message)) from None
    return at


_LOG_HEAD = ("When", "Look", "Trial", "Step", "Why", "Who")


@autopilot.command(
    "status",
    short_help="Show all that it tries.",
    epilog="\b\nExamples:\n  aqepilot autopilot status --file autopilot.toml\n"
    "  aqepilot autopilot status --file autopilot.toml --prices prices.toml --json\n\n"
    + EXIT_CODES,
)
@_file
@prices
@click.option("--learned", is_flag=True, help="Show which recipe helped which shape.")
@as_json
@reports_errors
def autopilot_status(
    path: Path, settings: Sequence[str], prices_file: Path | None, learned: bool, as_json: bool
) -> None:
    """Show each trial: state, share, effect with its interval, days left, and what it saved."""
    from aqepilot import Prices
    from aqepilot.autopilot import sentences, shown
    from aqepilot.autopilot.definition import Definition

    definition = Definition.from_file(path)
    state = shown.state(definition, dict(setting(text) for text in settings))
    prices = Prices.from_file(prices_file) if prices_file else None
    if learned:
        rows = sentences.learned_rows(state)
        if as_json:
            named = [dict(zip(sentences.LEARNED_HEAD, row, strict=True)) for row in rows]
            click.echo(json.dumps(named, indent=2))
        else:
            console().print(table(sentences.LEARNED_HEAD, rows))
        return
    listed = sentences.data(state, definition, prices)
    if as_json:
        click.echo(json.dumps(listed, indent=2))
    elif not listed:
        click.echo("There is no trial yet.")
    else:
        console().print(table(sentences.HEAD, sentences.rows(listed)))


@autopilot.command(
    "log",
    short_help="Show its steps, with their reasons.",
    epilog="\b\nExamples:\n  aqepilot autopilot log --file autopilot.toml\n"
    "  aqepilot autopilot log --file autopilot.toml --trial 3f0c --json\n\n" + EXIT_CODES,
)
@_file
@click.option("--trial", metavar="ID", help="Of this trial only: its id, or the beginning of it.")
@as_json
@reports_errors
def autopilot_log(path: Path, settings: Sequence[str], trial: str | None, as_json: bool) -> None:
    """Show the steps of all looks and persons, the newest last."""
    from aqepilot.autopilot import sentences
    from aqepilot.autopilot.definition import Definition
    from aqepilot.autopilot.journal import Journal

    definition = Definition.from_file(path)
    events = Journal(definition.state, dict(setting(text) for text in settings)).events()
    steps = [e for e in events if e.trial and e.trial.startswith(trial or "")]
    if as_json:
        click.echo(json.dumps([e.model_dump(mode="json") for e in steps], indent=2))
    else:
        console().print(table(_LOG_HEAD, sentences.logged(steps)))


@autopilot.command(
    "conf",
    short_help="Print the settings of a job, to submit it with.",
    epilog="\b\nExamples:\n"
    "  aqepilot autopilot conf --file autopilot.toml --job daily.sales\n\n" + EXIT_CODES,
)
@_file
@click.option("--job", required=True, metavar="NAME", help="The job.")
@as_json
@reports_errors
def autopilot_conf(path: Path, settings: Sequence[str], job: str, as_json: bool) -> None:
    """Print what is live for a job as words for spark-submit; nothing where nothing is.

    A job whose submission does not ask gets nothing of the autopilot's. The settings never have a
    mode of their own: spark.aqepilot.mode, as submitted, is the most that any policy may do.
    """
    from aqepilot.autopilot import shown
    from aqepilot.autopilot.definition import Definition

    definition = Definition.from_file(path)
    conf = shown.settings(definition, job, dict(setting(text) for text in settings))
    if as_json:
        click.echo(json.dumps(conf, indent=2))
        return
    click.echo(" ".join(f"--conf {shlex.quote(f'{key}={value}')}" for key, value in conf.items()))


_MEANINGS = {
    "hold": ("Leave a trial as it is.", "What hurts is still taken back."),
    "release": ("Let a held trial go on.", "The next look decides on it again."),
    "skip": ("End a trial for good.", "This policy is not tried on this job again."),
    "pin": ("Keep a policy for all runs.", "It has no hold-out, and only undo ends it."),
    "undo": ("Take a policy back for good.", "Applications that run leave it, too, where live."),
}


def _act(action: Action) -> click.Command:
    """A command for each thing that a person does to a trial."""

    @_file
    @click.argument("trial")
    @click.option("--reason", default="", help="Why, for those who wonder later.")
    @click.option("--by", metavar="NAME", help="Who says so.  [default: this user]")
    @reports_errors
    def command(
        path: Path, settings: Sequence[str], trial: str, reason: str, by: str | None
    ) -> None:
        from aqepilot.autopilot.autopilot import Autopilot
        from aqepilot.autopilot.definition import Definition

        conf = dict(setting(text) for text in settings)
        pilot = Autopilot(Definition.from_file(path), conf)
        event = pilot.act(action, trial, reason=reason, by=by or getuser())
        click.echo(f"{event.trial}: {event.reason}.")

    short, more = _MEANINGS[action]
    example = f"aqepilot autopilot {action} --file autopilot.toml 3f0c --reason 'as agreed'"
    return click.command(
        action,
        short_help=short,
        help=f"{short}\n\n{more}",
        epilog=f"\b\nExamples:\n  {example}\n\n" + EXIT_CODES,
    )(command)


for _action in get_args(Action):
    autopilot.add_command(_act(_action))

COMMANDS = (autopilot,)
