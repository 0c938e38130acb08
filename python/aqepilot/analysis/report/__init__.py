"""A page of event logs that a person would rather look at than read."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from aqepilot.analysis.prices import Prices
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Prices", "Reported", "check", "report"]


class Reported(NamedTuple):
    """What a report is made of.

    Attributes:
        applications: Logs that were read.
        queries: Queries in them.
        unreadable_lines: Lines that are no whole event: left out.
        unreadable_logs: Logs with a file that could not be read to its end.
        page_bytes: Size of the page.
    """

    applications: int
    queries: int
    unreadable_lines: int
    unreadable_logs: int
    page_bytes: int


def report(
    spark: SparkSession,
    path: str | Path | Iterable[str | Path],
    output: str | Path,
    *,
    prices: Prices | None = None,
    top: int = 200,
) -> Reported:
    """Writes one HTML page of event logs: what ran, where time went, and what was decided.

    All figures are aggregated by Spark; what comes to the driver is bounded, whatever the logs'
    size. The page needs no network and no script. A page that is there is replaced.

    Args:
        spark: Any session.
        path: Logs, or tables that `collect` wrote, as for `read_log`.
        output: The page, a file of this machine.
        prices: What cores and memory cost; null shows no money.
        top: So many fingerprints are shown, those with most task time; 1 or more.

    Raises:
        AqePilotError: There is no log, there is no jinja2, or the page cannot be written.
    """
    from aqepilot.analysis.report import data, page
    from aqepilot.eventlog import read_log

    check(output)
    given = [path] if isinstance(path, (str, Path)) else list(path)
    found = data.gather(spark, read_log(spark, given), top)
    made = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    text = page.render(found, prices, ", ".join(map(str, given)), made)
    _write(text, Path(output))
    heading = found.heading
    return Reported(
        heading.applications,
        heading.queries,
        heading.unreadable_lines,
        heading.unreadable_logs,
        len(text.encode()),
    )


def check(output: str | Path) -> None:
    """Tells before a long run that its page cannot be made.

    Args:
        output: Where it is to be.

    Raises:
        AqePilotError: It is a folder, or its folder is not there or may not be written; or there
            is no jinja2.
    """
    from aqepilot.analysis.report import page

    page.environment()
    path = Path(output)
    folder = path.absolute().parent
    why = None
    if path.is_dir():
        why = "it is a folder; name a file, e.g. report.html."
    elif not folder.is_dir():
        why = f"there is no folder {folder}."
    elif not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        why = "it may not be written by the user that runs this."
    if why:
        raise AqePilotError(
            Problem("OUTPUT_UNWRITABLE", f"cannot write the page: {why}", str(path))
        )


def _write(text: str, path: Path) -> None:
    """Writes the page whole or not at all."""
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".report-") as folder:
            made = Path(folder, path.name)
            made.write_text(text, encoding="utf-8")
            made.replace(path)
    except OSError as error:
        message = f"cannot write the page: {error.strerror}."
        raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(path))) from error
