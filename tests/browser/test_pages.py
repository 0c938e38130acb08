"""The report and the site of the documentation in a real browser, as a reader has them before him.

`make browser` runs this: in light and dark, at the width of a desk and of a telephone. What it saw
is in target/browser/, to be looked at.
"""

from __future__ import annotations

import functools
import http.server
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from looks import WIDTHS, faults, shown, too_wide
from playwright.sync_api import Browser, Page

import report_pages
from aqepilot.analysis.prices import Prices

ROOT = Path(__file__).parents[2]
SITE = ROOT / "dist/site"
# What a reader prefers, and Material's name for it.
SCHEMES = {"light": "default", "dark": "slate"}
# What of a page is ours; the rest is the theme's.
ARTICLE = "article"
REPORTS = {"everything": report_pages.data(), "nothing": report_pages.empty()}
PICTURED = ("index.html", "start/tutorial.html", "do/hot-key.html")
# pdoc makes the pages in api/ by templates of its own.
SITE_PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if SITE / "api" not in path.parents
)
assert SITE_PAGES, "There is no site in dist/site: make site."


class Heard(NamedTuple):
    """What a page said and asked for while it was open."""

    messages: list[str]
    asked: list[str]


@pytest.fixture(params=SCHEMES)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WIDTHS)
def width(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def page(browser: Browser, scheme: str, width: str) -> Iterator[Page]:
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": WIDTHS[width], "height": 900},
        reduced_motion="reduce",
    )
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The addresses of a page of everything, with the worst texts that users may have, and of one
    of nothing.
    """
    folder = tmp_path_factory.mktemp("reports")
    reports = {}
    for name, data in REPORTS.items():
        (folder / f"{name}.html").write_text(
            report_pages.rendered(data, Prices(currency="EUR", per_core_hour=0.5)), encoding="utf-8"
        )
        reports[name] = (folder / f"{name}.html").as_uri()
    return reports


@pytest.fixture(scope="session")
def site() -> Iterator[str]:
    """The address of the site, as a web server gives it."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    serve = functools.partial(Quiet, directory=str(SITE))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def opened(page: Page, address: str) -> Heard:
    """Opens an address and listens until it is quiet."""
    heard = Heard([], [])
    page.on("console", lambda message: heard.messages.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.messages.append(str(error)))
    page.on("dialog", lambda dialog: (heard.messages.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: heard.asked.append(request.url))
    page.on("requestfailed", lambda request: heard.messages.append(f"failed: {request.url}"))
    page.on(
        "response",
        lambda answer: answer.ok or heard.messages.append(f"{answer.status}: {answer.url}"),
    )
    page.goto(address, wait_until="networkidle")
    return heard


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_can_be_read(
    page: Page, reports: dict[str, str], name: str, scheme: str, width: str
) -> None:
    """It says nothing in the console, runs no user's text, asks nobody, and fits the window."""
    heard = opened(page, reports[name])
    shown(page, f"report-{name}-{scheme}-{width}")
    assert heard == Heard([], [reports[name]])
    assert too_wide(page) <= 0
    assert faults(page) == []


@pytest.mark.parametrize("width", ["desk"], indirect=True)
@pytest.mark.parametrize("scheme", ["light"], indirect=True)
def test_all_of_a_report_is_reached_by_the_keyboard(page: Page, reports: dict[str, str]) -> None:
    opened(page, reports["everything"])
    parts = page.locator("summary").count()
    assert parts > 3
    reached = set()
    for _ in range(200):
        page.keyboard.press("Tab")
        at = page.evaluate(
            "[...document.querySelectorAll('summary')].indexOf(document.activeElement)"
        )
        if at < 0 or at in reached:
            continue
        reached.add(at)
        was = page.evaluate("document.activeElement.parentElement.open")
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.parentElement.open") != was
        if was:
            page.keyboard.press("Enter")
    assert reached == set(range(parts))
    # Unfolded, it is no worse.
    assert faults(page) == []
    assert too_wide(page) <= 0


@pytest.mark.parametrize("width", ["desk"], indirect=True)
@pytest.mark.parametrize("path", SITE_PAGES)
def test_a_page_of_the_site_can_be_read(page: Page, site: str, path: str, scheme: str) -> None:
    """It says nothing in the console, asks nobody else, has what it shows, and fits the window."""
    heard = opened(page, site + path)
    assert heard.messages == []
    assert [address for address in heard.asked if not address.startswith((site, "data:"))] == []
    assert page.evaluate("document.body.dataset.mdColorScheme") == SCHEMES[scheme]
    empty = "[...document.images].filter(i => !i.naturalWidth || !i.alt).map(i => i.src)"
    assert page.evaluate(empty) == []
    assert faults(page, ARTICLE) == []
    for width, pixels in WIDTHS.items():
        page.set_viewport_size({"width": pixels, "height": 900})
        assert too_wide(page) <= 0, width
        if path in PICTURED:
            shown(page, f"site-{Path(path).stem}-{scheme}-{width}")


@pytest.mark.parametrize("width", ["desk"], indirect=True)
@pytest.mark.parametrize("scheme", ["light"], indirect=True)
@pytest.mark.parametrize(
    ("words", "leads_to"),
    [("skew", "skew_join.html"), ("small files", "how-to/small-files.html")],
)
def test_search_finds(page: Page, site: str, words: str, leads_to: str) -> None:
    opened(page, site + "index.html")
    box = page.locator("input[name=query]")
    box.click()
    box.press_sequentially(words)
    hits = page.locator("a.md-search-result__link")
    hits.first.wait_for()
    shown(page, f"search-{words.replace(' ', '-')}")
    links = [hits.nth(i).get_attribute("href") or "" for i in range(hits.count())]
    assert any(leads_to in link for link in links), links
    page.goto(next(link for link in links if leads_to in link))
    assert re.search(words.split()[0], page.locator(ARTICLE).inner_text(), re.IGNORECASE)
