"""One HTML page of event logs: what ran, where time went, and what was decided."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from aqepilot.analysis.prices import Prices
from aqepilot.errors import AqePilotError, Problem
from aqepilot.eventlog.frames import Frames


class Autopilot(NamedTuple):
    """What an autopilot tries, as texts: a head and a row for each trial, and what it learnt.

    Attributes:
        head: Of the table of trials.
        rows: The trials.
        learned_head: Of the table of recipes.
        learned: Which recipe helped which shape.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    learned_head: Sequence[str]
    learned: Sequence[Sequence[str]]


class Report(NamedTuple):
    """How much a page was made of.

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
    log: Frames,
    path: str | Path,
    *,
    prices: Prices | None = None,
    top: int = 200,
    autopilot: Autopilot | None = None,
) -> Report:
    """Writes a page of a log. See `Log.report`."""
    from aqepilot.analysis.report import data, page

    check(path)
    figures = data.gather(log.applications.sparkSession, log, top)
    made = f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}"
    text = page.render(figures, prices, ", ".join(log.paths), made, autopilot)
    write(text, Path(path))
    heading = figures.heading
    return Report(
        heading.applications,
        heading.queries,
        heading.unreadable_lines,
        heading.unreadable_logs,
        len(text.encode()),
    )


def check(path: str | Path) -> None:
    """Refuses a page that cannot be made, before a long run.

    Args:
        path: The page.

    Raises:
        AqePilotError: It is a folder, or its folder is not there or may not be written; or there
            is no jinja2.
    """
    from aqepilot.analysis.report import page

    page.environment()
    path = Path(path)
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


def write(text: str, path: Path) -> None:
    """Writes a page whole or not at all.

    Raises:
        AqePilotError: It cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(dir=path.absolute().parent, prefix=".report-") as folder:
            made = Path(folder, path.name)
            made.write_text(text, encoding="utf-8")
            made.replace(path)
    except OSError as error:
        message = f"cannot write the page: {error.strerror}."
        raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(path))) from error
