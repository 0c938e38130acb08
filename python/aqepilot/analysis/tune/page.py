"""A page of a search: what was tried, what was gained, what it cost."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from aqepilot.__about__ import __version__
from aqepilot.analysis import report
from aqepilot.analysis.intervals import interval
from aqepilot.analysis.report import pictures
from aqepilot.analysis.tune import summary
from aqepilot.analysis.tune.evidence import Evidence, Measured
from aqepilot.analysis.tune.tuning import Tuned
from aqepilot.display.templating import environment


def write(tuned: Tuned, path: str | Path, currency: str = "") -> None:
    """Writes one HTML page, which needs no network and no script.

    Args:
        tuned: What came of the search.
        path: The page, a file of this machine.
        currency: Of the cost.

    Raises:
        AqePilotError: There is no jinja2, or the page cannot be written.
    """
    report.check(path)
    template = environment("aqepilot.analysis.report", "aqepilot.analysis.tune")
    text = template.get_template("tune.html.jinja").render(
        version=__version__,
        palette=pictures.PALETTE,
        categories=pictures.CATEGORIES,
        made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
        evidence=tuned.evidence,
        sentences=list(summary.sentences(tuned, currency)),
        head=summary.HEAD,
        rows=summary.rows(tuned.evidence),
        times=_times(tuned.evidence),
        measured=_measured(tuned.evidence),
    )
    report.write(text, Path(path))


def _times(evidence: Evidence) -> list[tuple[str, float, float]]:
    """For each try that ran: its name, plain Spark's time beside it, and its own."""
    times = []
    for number, one in enumerate(evidence.tries, 1):
        if one.outcome == "ran" and one.pairs:
            plain = sum(pair[0] for pair in one.pairs) / len(one.pairs)
            tuned = sum(pair[1] for pair in one.pairs) / len(one.pairs)
            times.append((f"try {number}, {one.proposal.came_from}", plain, tuned))
    return times


def _measured(evidence: Evidence) -> list[tuple[str, Measured, str]]:
    both = (("fresh pairs", evidence.fresh), ("other data", evidence.held_out))
    return [(name, one, interval(one.log_ratio)) for name, one in both if one and one.pairs]
