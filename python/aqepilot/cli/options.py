"""What commands have in common: their options, how they print, and their exit codes."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from aqepilot.errors import AqePilotError, Problem, first_line
from aqepilot.texts import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

P = ParamSpec("P")
Command = TypeVar("Command", bound=Callable[..., object])
EXIT_CODES = "Exit codes: 0 all is well, 1 something is wrong, 2 the command was misused."
LOGS = (
    "Spark's event logs: a folder, a log or a glob; or tables that collect wrote: their folder, or "
    "catalog:NAMESPACE; may be given several times."
)
logs = click.option(
    "--log",
    "logs",
    multiple=True,
    required=True,
    metavar="PATH",
    help=LOGS,
)
master = click.option(
    "--master",
    metavar="URL",
    help="Where Spark runs; else where spark.master of spark-defaults.conf says, or local[*].",
)
prices = click.option(
    "--prices",
    "prices_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What cores and memory cost, as TOML; without it no money is shown.",
)
tables = click.option(
    "--tables",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A folder whose Parquet files and folders become views.",
)
setup = click.option(
    "--setup",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="SQL statements that are run first; each ends with a semicolon at a line's end.",
)
settings = click.option(
    "--conf", "settings", multiple=True, metavar="KEY=VALUE", help="A Spark setting; repeatable."
)
margin = click.option(
    "--margin",
    type=click.FloatRange(0, 100, min_open=True),
    default=3.0,
    show_default=True,
    metavar="PERCENT",
    help="How little counts as no difference.",
)
seed = click.option("--seed", type=int, metavar="N", help="Of the order of runs.  [default: drawn]")
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
spark = click.option("--spark", metavar="VERSION", help="Spark version, e.g. 3.5 or 3.5.6-amzn-1.")
scala = click.option("--scala", metavar="VERSION", help="Scala version, 2.12 or 2.13.")


def policies(what: str) -> Callable[[Command], Command]:
    """Returns the option for the policy files that a command is about."""
    return click.option(
        "--policy",
        "policies",
        multiple=True,
        required=True,
        type=click.Path(path_type=Path),
        help=f"{what}; several are asked in this order.",
    )


def against(otherwise: str) -> Callable[[Command], Command]:
    """Returns the option for the policy files that these are compared with."""
    return click.option(
        "--against",
        multiple=True,
        type=click.Path(path_type=Path),
        help=f"A policy file to compare with{otherwise}",
    )


def top(default: int, most: int, what: str, least: int = 1) -> Callable[[Command], Command]:
    """Returns an option for how much to show."""
    return click.option(
        "--top",
        type=click.IntRange(least, most),
        default=default,
        show_default=True,
        metavar="N",
        help=what,
    )


def setting(text: str) -> tuple[str, str]:
    """Returns the key and the value of a Spark setting.

    Raises:
        click.BadParameter: It is none.

    >>> setting("spark.sql.shuffle.partitions=8")
    ('spark.sql.shuffle.partitions', '8')
    """
    key, equals, value = text.partition("=")
    if not equals or not key.startswith("spark."):
        raise click.BadParameter(f"{text!r} is not spark.<key>=<value>.", param_hint="--conf")
    return key, value


# On one machine most of Spark's 200 tasks of a shuffle would have nothing to do.
_FEW_TASKS = {"spark.sql.shuffle.partitions": "16"}
# Spark's compilers take longer than it takes to read so little.
_LITTLE_BYTES = 64 * 2**20


@contextmanager
def log_session(
    logs: Iterable[str], master: str | None, name: str, conf: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Opens the Spark that reads logs; for little of this machine's, one that answers soon.

    Args:
        logs: The command's `--log`.
        master: Its `--master`.
        name: What the application is called.
        conf: Settings of the user's.

    Raises:
        AqePilotError: A log was there, and was gone when its turn came to be read.
    """
    from aqepilot.eventlog.files import is_gone
    from aqepilot.submit.check import local_session

    is_short = (master or "local").startswith("local") and _is_little(logs)
    few = _FEW_TASKS if is_short or (master or "").startswith("local") else {}
    with local_session(master, name, {**few, **(conf or {})}, is_short) as spark:
        try:
            yield spark
        except Exception as error:
            if isinstance(error, AqePilotError) or not is_gone(error):
                raise
            message = (
                "a log was renamed or deleted while it was read, as when its application ends. Run "
                f"the command again, or read the tables of `aqepilot collect`. {first_line(error)}"
            )
            raise AqePilotError(Problem("LOG_UNREADABLE", message)) from error


def _is_little(logs: Iterable[str]) -> bool:
    """Whether all logs are on this machine, and small; not known of globs, and false."""
    total = 0
    for log in logs:
        path = Path(log.removeprefix("file://"))
        if not path.exists():
            return False
        for file in path.rglob("*") if path.is_dir() else (path,):
            with suppress(OSError):
                total += file.stat().st_size
            if total > _LITTLE_BYTES:
                return False
    return True


def write_policies(folder: Path, policies: Iterable[tuple[str, str]]) -> None:
    """Writes policy files into a folder, each under its policy's name, and says so.

    Args:
        folder: Made where it is not there.
        policies: The text of each, and what to say of it beside its file's name.
    """
    # Most commands do without, and start in half of the time.
    from aqepilot.policies import Policy

    folder.mkdir(parents=True, exist_ok=True)
    for text, what in policies:
        path = folder / f"{Policy.from_toml(text).name}.toml"
        path.write_text(text, "utf-8")
        click.echo(f"{path}: {what}", err=True)


def console() -> Console:
    """Returns what commands print tables with."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=140)


# By the file system, where nothing is wrong with the file itself.
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC)


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Ends a command with 1 and the problems that an error tells."""

    @wraps(command)
    def reporting(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except AqePilotError as error:
            problems = error.problems
        except OSError as error:
            if error.errno not in _REFUSED or not error.filename:
                raise
            message = (
                f"{error.strerror}. Name a place that this user may write to, or run the command "
                "in another folder."
            )
            problems = (Problem("FILE_REFUSED", message, str(error.filename)),)
        else:
            return
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        sys.exit(1)

    return reporting


def table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> Table:
    """Returns a table of plain texts, whose control characters no terminal obeys."""
    made = Table(box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(head):
        made.add_column(name, no_wrap=index == 0, overflow="fold")
    for row in rows:
        made.add_row(*(escape(visible(cell)) for cell in row))
    return made
