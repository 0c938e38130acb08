"""The comparison of two logs as one HTML page."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from aqepilot.__about__ import __version__
from aqepilot.analysis import report
from aqepilot.analysis.prices import Prices
from aqepilot.analysis.report.page import environment
from aqepilot.analysis.report.pictures import CATEGORIES, PALETTE
from aqepilot.analysis.upgrade.result import Upgrade
from aqepilot.analysis.upgrade.shown import headline, sentence, setting_text, time_text


def write(result: Upgrade, path: str | Path, prices: Prices | None = None) -> int:
    """Writes the page, whole or not at all.

    Args:
        result: What it shows.
        path: The page, a file of this machine; one that is there is replaced.
        prices: What cores and memory cost; null shows no money.

    Returns:
        Its size in bytes.

    Raises:
        AqePilotError: There is no jinja2, or the page cannot be written.
    """
    report.check(path)
    order = {"worse": 0, "better": 1}
    queries = sorted(result.queries, key=lambda one: order.get(one.verdict, 2))
    text = str(
        environment()
        .get_template("upgrade.html.jinja")
        .render(
            result=result,
            heading=headline(result),
            queries=[
                (one, time_text(one, prices), [sentence(change) for change in one.changes])
                for one in queries
            ],
            settings=[(one, setting_text(one)) for one in result.settings],
            prices=prices,
            made=f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}",
            version=__version__,
            palette=PALETTE,
            categories=CATEGORIES,
        )
    )
    report.write(text, Path(path))
    return len(text.encode())
