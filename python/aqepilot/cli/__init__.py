"""The command line: what a platform team does without writing Python."""

from __future__ import annotations

import click

from aqepilot.__about__ import __version__
from aqepilot.cli import (
    analysis,
    autopilot,
    bench,
    experiments,
    fleet,
    history,
    logs,
    mcp,
    pins,
    policies,
    tuning,
)
from aqepilot.cli.options import EXIT_CODES


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExamples:\n  aqepilot recipes dynamic_join_selection > sales.toml\n"
    "  aqepilot check sales.toml\n"
    '  eval "spark-submit $(aqepilot conf sales.toml) job.py"\n\n' + EXIT_CODES,
)
@click.version_option(__version__, prog_name="aqepilot")
def main() -> None:
    """Replace decisions of Spark's adaptive query execution by policies in SQL or Python."""


for _group in (
    policies,
    fleet,
    logs,
    analysis,
    history,
    pins,
    tuning,
    bench,
    experiments,
    autopilot,
    mcp,
):
    for _command in _group.COMMANDS:
        main.add_command(_command)
