"""The tab `aqepilot` and the panel of Spark's page, live and in a history server, in a browser.

`make browser` runs this on the oldest Spark and the newest: in light, and in dark where Spark's UI
has it. What it saw is in target/browser/, to be looked at.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from looks import faults, shown
from playwright.sync_api import Browser, Page, expect

import injections

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("spark_uis.py")
SPARKS = os.environ.get("SPARKS", "3.5.9 4.3.0").split()
PLACES = ("live", "history")
# A desk's screen, and the half of one.
WIDTHS = (1440, 960)
OURS = ".aqepilot"
# The forms above and beneath a table in pages, by Spark's own class, and the colour of its links.
SPARKS_OWN = (".aqepilot form", ".aqepilot a")
PAGES = {"tab": "/aqepilot/", "query": "/aqepilot/query/?id={}", "panel": "/SQL/execution/?id={}"}
# What opens, leads on or takes words, as the reader of a keyboard comes to it.
REACHED = "a[href], button, input, select, summary, [tabindex]"


class Uis(NamedTuple):
    """UIs of one Spark.

    Attributes:
        spark: Its version.
        live: Where the driver's is.
        history: Where the history server has the same application.
        queries: The queries with decisions.
    """

    spark: str
    live: str
    history: str
    queries: list[int]


def started(spark: str, content: str, folder: Path) -> Iterator[Uis]:
    """Starts both, and ends them."""
    python = ROOT / f".envs/spark-{spark}/bin/python"
    path = os.pathsep.join(map(str, (ROOT / "python", ROOT / "tests/support")))
    with (
        (folder / "stderr").open("w") as errors,
        subprocess.Popen(
            [str(python), str(PROGRAM), str(folder / "spark"), content],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as program,
    ):
        assert program.stdout
        assert program.stdin
        line = next((line for line in program.stdout if line.startswith("{")), None)
        assert line, (folder / "stderr").read_text()[-4000:]
        yield Uis(spark, **json.loads(line))
        program.stdin.close()


@pytest.fixture(scope="module", params=SPARKS)
def planned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Uis:
    yield from started(request.param, "planned", tmp_path_factory.mktemp("planned"))


@pytest.fixture(scope="module", params=SPARKS)
def injected(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Uis:
    yield from started(request.param, "injected", tmp_path_factory.mktemp("injected"))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDTHS[0], "height": 900})
    context.add_init_script(injections.LISTENER)
    made = context.new_page()
    made.set_default_timeout(60_000)
    yield made
    context.close()


def listened(page: Page) -> list[str]:
    """Returns what the page will say of errors, and what it fails to get."""
    heard: list[str] = []
    page.on(
        "console",
        lambda message: message.type in ("error", "warning") and heard.append(message.text),
    )
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("dialog", lambda dialog: (heard.append(dialog.message), dialog.dismiss()))
    # A page that is left stops what it asked for.
    page.on(
        "requestfailed",
        lambda request: (
            "ERR_ABORTED" in (request.failure or "") or heard.append(f"failed: {request.url}")
        ),
    )
    page.on(
        "response",
        lambda answer: answer.status < 400 or heard.append(f"{answer.status}: {answer.url}"),
    )
    return heard


def themes(page: Page) -> list[str]:
    """The schemes that this Spark's UI has."""
    is_themed = page.evaluate("document.documentElement.hasAttribute('data-bs-theme')")
    return ["light", "dark"] if is_themed else ["light"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read(page: Page, planned: Uis, place: str, name: str) -> None:
    """It says nothing in the console, asks nobody else, and WCAG has nothing against our part."""
    heard = listened(page)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    base = getattr(planned, place)
    address = base + PAGES[name].format(planned.queries[0])
    page.goto(address, wait_until="networkidle")
    assert page.locator(OURS).count() >= 1
    for theme in themes(page):
        page.emulate_media(color_scheme=theme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.goto(address, wait_until="networkidle")
            for state in ("folded", "unfolded"):
                if state == "unfolded":
                    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = 1)")
                shown(page, f"ui-{planned.spark}-{place}-{name}-{theme}-{width}-{state}")
                assert faults(page, OURS, SPARKS_OWN) == [], (theme, width, state)
                beyond = f"document.querySelector('{OURS}').getBoundingClientRect().right"
                assert page.evaluate(beyond) <= width, (theme, state)
    origin = "/".join(base.split("/")[:3])
    assert [url for url in asked if not url.startswith((origin, "data:"))] == []
    assert heard == []


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", PAGES)
def test_all_of_a_page_is_reached_by_the_keyboard(
    page: Page, planned: Uis, place: str, name: str
) -> None:
    page.goto(
        getattr(planned, place) + PAGES[name].format(planned.queries[0]), wait_until="networkidle"
    )
    wanted = page.evaluate(
        f"""() => {{
          const all = [...document.querySelectorAll('{OURS}')].flatMap(
            e => [...e.querySelectorAll('{REACHED}')]).filter(e => e.checkVisibility());
          all.forEach((e, i) => e.dataset.reached = i);
          return all.length;
        }}"""
    )
    assert wanted > 0
    reached, folds = set(), 0
    for _ in range(600):
        page.keyboard.press("Tab")
        at, tag = page.evaluate(
            "[document.activeElement.dataset.reached, document.activeElement.tagName]"
        )
        if at is None or at in reached:
            if len(reached) == wanted:
                break
            continue
        reached.add(at)
        if tag == "SUMMARY":
            is_open = "document.activeElement.parentElement.open"
            page.keyboard.press("Enter")
            assert page.evaluate(is_open)
            page.keyboard.press("Enter")
            assert not page.evaluate(is_open)
            folds += 1
    assert len(reached) == wanted
    assert folds > 0 or page.locator(f"{OURS} summary").count() == 0


@pytest.mark.parametrize("place", PLACES)
def test_a_tab_leads_to_its_queries_and_to_spark_s_and_back(
    page: Page, planned: Uis, place: str
) -> None:
    page.goto(f"{getattr(planned, place)}/jobs/", wait_until="networkidle")
    page.get_by_role("link", name="aqepilot", exact=True).click()
    query = planned.queries[0]
    for path in ("aqepilot/query", "SQL/execution", "aqepilot/query"):
        page.locator(f"{OURS} a[href$='/{path}/?id={query}']").first.click()
    expect(page.get_by_role("heading", name=f"Decisions for query {query}")).to_be_visible()


@pytest.mark.parametrize("place", PLACES)
def test_no_text_of_a_user_becomes_an_element(page: Page, injected: Uis, place: str) -> None:
    """Of Spark's own page, our panel is looked at: the rest is Spark's."""
    base = getattr(injected, place)
    heard = listened(page)
    assert len(injected.queries) >= len(injections.STRINGS)
    # The panel is made of the same parts in both places.
    names = ("query", "panel") if place == "live" else ("query",)
    addresses = [PAGES[name].format(query) for query in injected.queries for name in names]
    addresses += [f"{PAGES['tab']}?queries.pageSize=1000", PAGES["tab"]]
    for address in addresses:
        page.goto(base + address, wait_until="domcontentloaded")
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        within = OURS if "/SQL/" in address else "html"
        assert page.evaluate(injections.IN_PAGE, within) == [], address
        assert page.evaluate("window.ran") == [], address
    shown(page, f"ui-{injected.spark}-{place}-injected")
    assert heard == []
