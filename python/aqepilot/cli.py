"""The command line: what a platform team does without writing Python."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import ParamSpec

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aqepilot.__about__ import __version__
from aqepilot.errors import AqePilotError, Problem

P = ParamSpec("P")
_EXIT_CODES = "Exit codes: 0 all is well, 1 something is wrong, 2 the command was misused."
_as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
_spark = click.option("--spark", metavar="VERSION", help="Spark version, e.g. 3.5 or 3.5.6-amzn-1.")
_scala = click.option("--scala", metavar="VERSION", help="Scala version, 2.12 or 2.13.")


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=140)


def _reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    @wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except AqePilotError as error:
            for problem in error.problems:
                click.echo(f"error: {problem}", err=True)
            sys.exit(1)

    return reporting


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  aqepilot recipes dynamic_join_selection > sales.toml\n"
    "  aqepilot check sales.toml\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n\n' + _EXIT_CODES,
)
@click.version_option(__version__, prog_name="aqepilot")
def main() -> None:
    """Replace decisions of Spark's adaptive query execution by policies in SQL or Python."""


@main.command(
    short_help="Print the settings for policies.",
    epilog="\b\nExamples:\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n'
    "  aqepilot conf sales.toml --format defaults >> spark-defaults.conf\n"
    "  aqepilot conf sales.toml --format json --spark 3.5 --jar-uri s3://jars/aqepilot.jar\n"
    "  aqepilot conf sales.toml --merge $SPARK_HOME/conf/spark-defaults.conf\n\n" + _EXIT_CODES,
)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["args", "defaults", "json"]),
    default="args",
    show_default=True,
    help="Shell words for spark-submit, lines for spark-defaults.conf, or a JSON object.",
)
@click.option(
    "--merge",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A spark-defaults.conf: its extensions, jars and policies are kept in what is printed.",
)
@click.option(
    "--jar-uri", metavar="URI", help="Where the jar is for the jobs; else this package's."
)
@_spark
@_scala
@_reports_errors
def conf(
    files: Sequence[Path],
    form: str,
    merge: Path | None,
    jar_uri: str | None,
    spark: str | None,
    scala: str | None,
) -> None:
    """Print the settings that switch aqepilot on with the policies in FILEs.

    Settings go to the standard output, advice to the standard error. Without a FILE: the extension
    and its jar only.
    """
    from aqepilot import conf as settings
    from aqepilot import jars
    from aqepilot.policies import as_policies

    policies = as_policies(files)
    jar = jar_uri or str(jars.find(spark, scala))
    there = settings.parse_defaults(merge.read_text("utf-8")) if merge else {}
    values = settings.settings(policies, jar, there)
    write = {
        "args": settings.to_args,
        "defaults": settings.to_defaults,
        "json": settings.to_json,
    }[form]
    click.echo(write(values))
    for line in settings.advice(form, values, merge is not None):
        click.echo(f"# {line}", err=True)
    for key in settings.stale_keys(policies, there):
        click.echo(f"# Delete {key} from {merge}: the new policy does not have it.", err=True)


@main.command(
    short_help="Check policy files, SQL included.",
    epilog="\b\nExample:\n  aqepilot check policies/*.toml\n\n" + _EXIT_CODES,
)
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@_as_json
@_reports_errors
def check(files: Sequence[Path], as_json: bool) -> None:
    """Check policy FILEs: their keys, and their SQL against the facts, in a local Spark.

    Python functions are imported, also from the working directory, and asked on made facts.
    """
    from aqepilot.check import check_files

    sys.path.append(str(Path.cwd()))
    problems = check_files(files)
    if as_json:
        click.echo(json.dumps({"problems": [p._asdict() for p in problems]}, indent=2))
    else:
        _print_problems(problems)
        if not problems:
            click.echo(f"{len(files)} polic{'y' if len(files) == 1 else 'ies'}: good.")
    sys.exit(1 if problems else 0)


@main.command(
    short_help="Show what a policy can read and answer.",
    epilog="\b\nExample:\n  aqepilot facts dynamic_join_selection\n\n" + _EXIT_CODES,
)
@click.argument("point")
@_as_json
@_reports_errors
def facts(point: str, as_json: bool) -> None:
    """Show what a policy can read at a decision POINT, and what it may answer."""
    from aqepilot import catalog

    found = catalog.point(point)
    if as_json:
        parts = ("words", "fields", "facts")
        rows = {part: [row._asdict() for row in getattr(found, part)] for part in parts}
        click.echo(json.dumps(found._asdict() | rows, indent=2))
        return
    console = _console()
    console.print(f"[bold]{found.name}[/bold]: {escape(found.summary)}")
    console.print(f"Asked {escape(found.asked)}. Spark's own rule: {escape(found.built_in)}.")
    if found.fields:
        console.print(_table(("Field of the answer", "Type", "Meaning"), found.fields))
        console.print(
            "An answer is named_struct('<field>', value, ...): fields that are not named, or are "
            "null, keep Spark's value. A null answer leaves all to Spark."
        )
    if found.words or not found.fields:
        words = found.words or [(found.answer_type, found.answer_meaning)]
        console.print(_table(("Answer", "Meaning"), [*words, ("null", "leave it to Spark")]))
    console.print(_table(("Fact", "Type", "Meaning"), found.facts))


@main.command(
    short_help="List or print Spark's own rules as policies.",
    epilog="\b\nExamples:\n  aqepilot recipes\n"
    "  aqepilot recipes dynamic_join_selection --spark 4.3 > sales.toml\n\n" + _EXIT_CODES,
)
@click.argument("name", required=False)
@_spark
@_as_json
@_reports_errors
def recipes(name: str | None, spark: str | None, as_json: bool) -> None:
    """List Spark's own rules as policies, or print the policy file NAME to begin with."""
    from aqepilot import recipes as book

    if name is not None:
        text = book.text(name, spark)
        click.echo(json.dumps({"name": name, "text": text}) if as_json else text, nl=as_json)
    elif as_json:
        click.echo(
            json.dumps([{"name": n, "summary": book.summary(n, spark)} for n in book.names()])
        )
    else:
        rows = [(n, book.summary(n, spark)) for n in book.names()]
        _console().print(_table(("Recipe", "What it is"), rows))


@main.command(
    short_help="Print the path of the jar for a Spark.",
    epilog="\b\nExample:\n  aqepilot jar --spark 3.5.6-amzn-1\n\n" + _EXIT_CODES,
)
@_spark
@_scala
@_reports_errors
def jar(spark: str | None, scala: str | None) -> None:
    """Print the path of the jar for a Spark; without --spark, for the one installed here."""
    from aqepilot import jars

    click.echo(jars.find(spark, scala))


@main.command(
    short_help="Say whether aqepilot is live, and why not.",
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n  aqepilot doctor\n"
    "  aqepilot doctor --json -- --master yarn --properties-file job.conf\n\n" + _EXIT_CODES,
)
@_as_json
@click.argument("submit_words", nargs=-1, type=click.UNPROCESSED, metavar="[-- SPARK-SUBMIT-WORDS]")
@_reports_errors
def doctor(as_json: bool, submit_words: Sequence[str]) -> None:
    """Start a session where the jobs run and say whether aqepilot is live there, and why not."""
    from aqepilot.doctor import Finding, run

    try:
        findings = run(submit_words)
    except AqePilotError as error:
        if not as_json:
            raise
        findings = [Finding("error", p.code, str(p)) for p in error.problems]
    is_well = all(f.level != "error" for f in findings)
    if as_json:
        found = [f._asdict() for f in findings]
        click.echo(json.dumps({"is_well": is_well, "findings": found}, indent=2))
    else:
        styles = {"ok": "green", "warning": "yellow", "error": "bold red"}
        for f in findings:
            line = f"[{styles[f.level]}]{f.level:8}[/] {escape(f.message)} [dim]{f.code}[/]"
            _console().print(line, soft_wrap=True)
    sys.exit(0 if is_well else 1)


@main.command(
    short_help="Run one job plain and with a policy.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@_reports_errors
def demo(words: Sequence[str]) -> None:
    """Run one job twice, plain and with a policy, and show what changed (`demo --help`)."""
    if find_spec("aqepilot.demo") is None:
        message = "the demo is not part of this installation; run `make demo` in the repository."
        raise AqePilotError(Problem("DEMO_MISSING", message))
    sys.exit(import_module("aqepilot.demo").main(list(words)))


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(head):
        table.add_column(name, no_wrap=index == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        click.echo(str(problem), err=True)
