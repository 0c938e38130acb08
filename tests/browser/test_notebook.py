"""A notebook whose cells show what aqepilot returns: run by a kernel, rendered, and looked at.

`make browser` runs this. What it saw is in target/browser/.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from looks import WIDTHS, faults, shown, too_wide
from nbclient import NotebookClient
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Page

import injections
import shown_values

ROOT = Path(__file__).parents[2]
OUTPUT = ".aqepilot"
# JupyterLab's own schemes.
THEMES = ("light", "dark")
BEGIN = """
import injections
import shown_values as made
from aqepilot.analysis.bench.pairs import Rounds
from aqepilot.analysis.explanation import Explanation, describe
from aqepilot.decision import Decisions
decisions = Decisions(
    made.decision(
        "orders ⋈ lineitem", n, point="dynamic_join_selection", policy="sales",
        answer="SHUFFLE_HASH", spark_strategy="SortMergeJoin", spark_answer=None,
        final_strategy="ShuffledHashJoin BuildLeft", subject=f"join {n}, left side",
        applied=n % 4 > 0, reason="APPLIED" if n % 4 else "GUARD_MEMORY",
        detail=None if n % 4 else "it would need 679 MiB of a task's 512 MiB",
        fate=("adopted", "no_change", "refused_by_cost")[n % 3],
    )
    for n in range(12)
)
"""
PLAIN = [
    "decisions",
    "decisions[1]",
    "Explanation(describe(decisions, knew=True))",
    "made.everything('sales of today')['status']",
    "made.everything('sales of today')['suggestions']",
    "made.everything('sales of today')['costs']",
    "made.everything('SHUFFLE_HASH')['replay']",
    "made.paired('q1')",
    # Of long work, the last output alone stays.
    "Rounds(iter([made.paired('q1'), made.paired('q2')])).watch()",
]
INJECTED = [
    f"made.everything(injections.STRINGS[{n}])['{kind}']"
    for n in range(len(injections.STRINGS))
    for kind in shown_values.KINDS_SHOWN
]


def executed(cells: list[str], folder: Path) -> nbformat.NotebookNode:
    """Runs a notebook of these cells; the first one has no output."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (BEGIN, *cells)]
    path = f"{ROOT / 'python'}{os.pathsep}{ROOT / 'tests/support'}"
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = path
    try:
        resources = {"metadata": {"path": str(folder)}}
        NotebookClient(notebook, timeout=300, resources=resources).execute()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return notebook


@pytest.fixture(scope="session")
def notebooks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, nbformat.NotebookNode]:
    folder = tmp_path_factory.mktemp("notebooks")
    return {name: executed(cells, folder) for name, cells in CELLS.items()}


CELLS = {"plain": PLAIN, "injected": INJECTED}


@pytest.fixture(params=THEMES)
def theme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": WIDTHS[request.param], "height": 900})
    # The page of a notebook asks for MathJax and the like.
    context.route("http*://**", lambda route: route.abort())
    context.add_init_script(injections.LISTENER)
    made = context.new_page()
    made.set_default_timeout(60_000)
    yield made
    context.close()


def opened(page: Page, notebook: nbformat.NotebookNode, theme: str, folder: Path) -> list[str]:
    """Opens a rendered notebook; returns the errors that it threw."""
    html, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
    (folder / "notebook.html").write_text(html, "utf-8")
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: (errors.append(dialog.message), dialog.dismiss()))
    page.goto((folder / "notebook.html").as_uri(), wait_until="domcontentloaded")
    return [error for error in errors if "require" not in error]


def outputs(notebook: nbformat.NotebookNode) -> list[list[str]]:
    return [list(o.get("data", {})) for cell in notebook.cells for o in cell["outputs"]]


def test_what_is_shown_is_html_with_a_text_beside(
    notebooks: dict[str, nbformat.NotebookNode],
) -> None:
    *values, place, last = outputs(notebooks["plain"])
    assert {tuple(sorted(kinds)) for kinds in [*values, last]} == {("text/html", "text/plain")}
    assert place == ["text/plain"]


def test_a_notebook_can_be_read(
    page: Page, notebooks: dict[str, nbformat.NotebookNode], theme: str, tmp_path: Path
) -> None:
    """It fits the window, folded and unfolded, and WCAG has nothing against it."""
    errors = opened(page, notebooks["plain"], theme, tmp_path)
    width = page.viewport_size["width"]
    shown(page, f"notebook-{theme}-{width}")
    assert page.locator(OUTPUT).count() == len(PLAIN)
    for _ in ("folded", "unfolded"):
        wide = "e => e.scrollWidth - e.clientWidth"
        assert page.eval_on_selector_all(OUTPUT, f"all => Math.max(...all.map({wide}))") <= 0
        assert faults(page, OUTPUT) == []
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert errors == []


def test_no_text_of_a_user_is_an_element_of_a_notebook(
    page: Page, notebooks: dict[str, nbformat.NotebookNode], theme: str, tmp_path: Path
) -> None:
    errors = opened(page, notebooks["injected"], theme, tmp_path)
    assert page.locator(OUTPUT).count() == len(INJECTED)
    assert page.evaluate(injections.IN_PAGE) == []
    assert page.evaluate("window.ran") == []
    assert errors == []
    assert too_wide(page) <= 0
