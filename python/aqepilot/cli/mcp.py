"""The command that serves an assistant."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from aqepilot.cli.options import EXIT_CODES, log_session, master, reports_errors

_IN_A_TERMINAL = (
    "An assistant starts this command and speaks to it here: name it in the assistant's settings. "
    "With --http PORT it serves by HTTP instead. Ctrl+C ends it."
)


@click.command(
    short_help="Serve logs and policies to an assistant.",
    epilog="\b\nExamples:\n  aqepilot mcp --log s3a://lake/aqepilot\n"
    "  aqepilot mcp --log logs --propose policies/proposed --control s3a://etc/aqepilot.json\n"
    "  aqepilot mcp --log logs --http 8765\n"
    "  aqepilot mcp --skill\n\n" + EXIT_CODES,
)
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="PATH",
    help="Spark's event logs, or tables that collect wrote, which are answered sooner; may be "
    "given several times.",
)
@click.option(
    "--propose",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False, writable=True),
    metavar="FOLDER",
    help="Let it write policies in shadow mode into this folder, each as a new file.",
)
@click.option(
    "--control",
    "control_file",
    metavar="PATH",
    help="Let it read this control file, and lower it; it never lifts a rule.",
)
@click.option(
    "--history",
    metavar="FILE",
    help="Let it say what this file holds, which `aqepilot history build` wrote.",
)
@click.option(
    "--autopilot",
    "autopilot_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Let it say what the autopilot of this file tries.",
)
@click.option(
    "--redact",
    metavar="REGEX",
    help="Also hide in answers what this matches; what looks like a secret is hidden anyway.",
)
@click.option(
    "--http",
    "port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve by HTTP on this machine's loopback, 0 for any port, instead of the standard input "
    "and output; prints the address.",
)
@click.option("--skill", is_flag=True, help="Print where the SKILL.md for an assistant is.")
@master
@reports_errors
def mcp(
    logs: Sequence[str],
    folder: Path | None,
    control_file: str | None,
    history: str | None,
    autopilot_file: Path | None,
    redact: str | None,
    port: int | None,
    skill: bool,
    master: str | None,
) -> None:
    """Serve an assistant by the Model Context Protocol: it reads, and does what cannot harm.

    It reads findings, explanations, facts, costs, parts of the report, experiments, the control
    file and documentation, and checks and replays policies. Nothing that it does raises a mode.
    Set AQEPILOT_MCP_KEY for an address that stays the same with --http.
    """
    from aqepilot.assistant import documents, server
    from aqepilot.assistant.answers import Answers
    from aqepilot.assistant.reading import Reading
    from aqepilot.assistant.tools import Tools

    if skill:
        click.echo(documents.skill())
        return
    answers = Answers(redact)
    session = partial(log_session, logs, master, "aqepilot mcp")
    with Reading(logs, session, history, autopilot_file) as reading:
        serving = server.made(Tools(reading, answers, folder, control_file))
        server.warm(reading)
        if port is None:
            if sys.stdin.isatty():
                click.echo(_IN_A_TERMINAL, err=True)
            server.serve_stdio(serving)
        else:
            server.serve_http(serving, port, os.environ.get("AQEPILOT_MCP_KEY"))


COMMANDS = (mcp,)
