"""Commands about where jobs run: switch policies off, and see that they are live."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from aqepilot import catalog
from aqepilot.cli.options import EXIT_CODES, P, as_json, console, reports_errors
from aqepilot.errors import AqePilotError

if TYPE_CHECKING:
    from aqepilot.submit.doctor.links import Checked, Missing


def _selectors(command: Callable[P, None]) -> Callable[P, None]:
    """An option for each selector of the control file, so that there is none too few."""
    for name, meaning in reversed(catalog.control_selectors().items()):
        command = click.option(f"--{name}", metavar="TEXT", help=f"Only: {meaning}.")(command)
    return command


@click.command(
    short_help="Switch policies off, or to shadow mode, in all applications at once.",
    epilog="\b\nExamples:\n"
    "  aqepilot control off --file s3a://etc/aqepilot.json --policy sales --reason 'slow joins'\n"
    "  aqepilot control shadow --file control.json --point skew_join --for 2h --reason 'a trial'\n"
    "  aqepilot control on --file control.json --policy sales --reason mended\n"
    "  aqepilot control status --file control.json\n\n" + EXIT_CODES,
)
@click.argument("action", type=click.Choice(["off", "shadow", "on", "status", "log"]))
@click.option(
    "--file",
    "path",
    required=True,
    envvar="AQEPILOT_CONTROL",
    show_envvar=True,
    metavar="PATH",
    help="The control file: a path of this machine or a URI of a Hadoop file system.",
)
@_selectors
@click.option("--rule", metavar="ID", help="With on: the rule with this id.")
@click.option("--all", "everything", is_flag=True, help="With on: all rules.")
@click.option("--reason", default="", help="Why; off and shadow need one.")
@click.option("--for", "lasts", metavar="TIME", help="End it after so long: 90m, 2h or 7d.")
@click.option("--until", metavar="TIME", help="End it then, e.g. 2026-12-24T18:00:00+01:00.")
@click.option("--by", metavar="NAME", help="Who says so.  [default: this user at this machine]")
@click.option(
    "--conf", multiple=True, metavar="KEY=VALUE", help="A Spark setting, for the file system."
)
@as_json
@reports_errors
def control(
    action: str,
    path: str,
    rule: str | None,
    everything: bool,
    reason: str,
    lasts: str | None,
    until: str | None,
    by: str | None,
    conf: Sequence[str],
    as_json: bool,
    **selectors: str | None,
) -> None:
    """Lower the modes of policies in all applications that read the same control file.

    off and shadow add a rule for what all the selectors fit, or for everything; on takes the rule
    with the same selectors back. status tells the rules, log who wrote what, when and why.
    """
    from aqepilot import control as files
    from aqepilot.control import sentences

    own = {name: value for name, value in selectors.items() if value is not None}
    shown: Sequence[files.Rule] | Sequence[files.Write]
    sentences.check_options(action, own, rule, everything, reason, lasts, until)
    settings = sentences.settings(conf)
    if action in ("off", "shadow"):
        end = sentences.end(lasts, until)
        mode: Literal["off", "shadow"] = "off" if action == "off" else "shadow"
        made = files.lower(path, mode, own, reason=reason, until=end, by=by, conf=settings)
        shown = [made]
        message: str | Table = sentences.done(action, [made], path)
    elif action == "on":
        shown = lifted = files.lift(
            path, own, rule=rule, everything=everything, reason=reason, by=by, conf=settings
        )
        message = sentences.done(action, lifted, path)
    else:
        content = files.read(path, settings)
        shown = content.rules if action == "status" else content.history
        message = sentences.table(content, action)
    if as_json:
        click.echo(json.dumps([one.model_dump(mode="json") for one in shown], indent=2))
    elif isinstance(message, str):
        click.echo(message)
    else:
        console().print(message)


@click.command(
    short_help="Say whether aqepilot is live, and why not.",
    context_settings={"ignore_unknown_options": True},
    epilog="\b\nExamples:\n  aqepilot doctor\n"
    "  aqepilot doctor --json -- --master yarn --properties-file job.conf\n"
    "  aqepilot doctor --answer-in hdfs:///tmp -- --master yarn --deploy-mode cluster\n"
    "  aqepilot doctor --script doctor_job.py\n"
    "  aqepilot doctor --spark-home /usr/lib/spark\n\n" + EXIT_CODES,
)
@as_json
@click.option(
    "--answer-in",
    metavar="FOLDER",
    help="Where the driver writes its answer, for --deploy-mode cluster: both reach it.",
)
@click.option(
    "--script",
    "script_file",
    metavar="FILE",
    help="Start nothing, and write the job that does this to FILE: spark-submit FILE PATH has the "
    "driver write one JSON of findings to PATH.",
)
@click.option(
    "--spark-home",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Start nothing, and say what the Spark in this folder (SPARK_HOME, or a pyspark's) lacks "
    "of what the jar refers to, and which decision points that switches off.",
)
@click.argument("submit_words", nargs=-1, type=click.UNPROCESSED, metavar="[-- SPARK-SUBMIT-WORDS]")
@reports_errors
def doctor(
    as_json: bool,
    answer_in: str | None,
    script_file: str | None,
    spark_home: Path | None,
    submit_words: Sequence[str],
) -> None:
    """Start a session where the jobs run and say whether aqepilot is live there, and why not."""
    from aqepilot.submit.doctor import links, probe
    from aqepilot.submit.doctor.driver import run
    from aqepilot.submit.doctor.probe import Finding

    if script_file:
        Path(script_file).write_bytes(Path(probe.__file__).read_bytes())
        click.echo(f"spark-submit ... {script_file} PATH writes one JSON of findings to PATH.")
        return

    if spark_home and (submit_words or answer_in):
        message = "--spark-home starts nothing: give it without words for spark-submit."
        raise click.UsageError(message)
    missing: list[Missing] | None = None
    try:
        if spark_home:
            checked = _links(spark_home)
            missing, findings = checked.missing, links.findings(checked)
        else:
            findings = run(submit_words, answer_in)
    except AqePilotError as error:
        if not as_json:
            raise
        findings = [Finding("error", p.code, str(p)) for p in error.problems]
    is_well = all(f.level != "error" for f in findings)
    if as_json:
        answer = {"is_well": is_well, "findings": [f._asdict() for f in findings]}
        if missing is not None:
            answer["missing"] = [lacking._asdict() for lacking in missing]
        click.echo(json.dumps(answer, indent=2))
    else:
        styles = {"ok": "green", "warning": "yellow", "error": "bold red"}
        for f in findings:
            line = f"[{styles[f.level]}]{f.level:8}[/] {escape(f.message)} [dim]{f.code}[/]"
            console().print(line, soft_wrap=True)
    sys.exit(0 if is_well else 1)


def _links(home: Path) -> Checked:
    """Looks for what a Spark lacks, and shows how far it is where it is for a person."""
    from aqepilot.submit.doctor import links

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("reading Spark's classes")
        return links.check(
            home, lambda count, total: progress.update(task, completed=count, total=total)
        )


COMMANDS = (control, doctor)
