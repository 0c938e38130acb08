"""How a page looks: its width, its picture, and what WCAG has against it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SHOTS = Path(__file__).parents[2] / "target/browser"
WIDTHS = {"desk": 1280, "telephone": 390}
# WCAG 2.1, levels A and AA.
WCAG = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]}


def too_wide(page: Page) -> int:
    """Returns by how many pixels the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))


def faults(page: Page, part: str | None = None, but: Sequence[str] = ()) -> list[str]:
    """Returns what axe finds against WCAG: the rule, the element, and what is wrong with it.

    Args:
        page: The page.
        part: What of it is looked at; null for all.
        but: What of that is left out.
    """
    context = {"include": [[part]], "exclude": [[each] for each in but]} if but else part
    violations = Axe().run(page, context=context, options=WCAG)
    return [
        f"{rule['id']}: {', '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in violations.response["violations"]
        for node in rule["nodes"]
    ]


def shown(page: Page, name: str) -> None:
    """Keeps a picture of the whole page."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"{name}.png", full_page=True)
