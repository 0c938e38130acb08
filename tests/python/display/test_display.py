"""Values show themselves: as tables in a terminal, as HTML in a notebook, whatever is in them."""

from __future__ import annotations

import json
import pickle
import re
import sys
from types import SimpleNamespace

import pytest

import injections
import report_pages
from aqepilot import display
from aqepilot.analysis.bench.pairs import Paired, Rounds
from aqepilot.analysis.explanation import Explanation
from aqepilot.analysis.findings import KINDS
from aqepilot.analysis.suggestions import Suggestions
from aqepilot.decision import FATES, Decisions
from aqepilot.display import in_place, templating
from aqepilot.session import Status, Statuses
from shown_values import (
    KINDS_SHOWN,
    costs,
    decision,
    everything,
    paired,
    replay,
    suggestion,
)


@pytest.mark.parametrize("kind", KINDS_SHOWN)
def test_no_text_of_a_user_is_an_element_of_what_a_notebook_shows(kind: str) -> None:
    for text in injections.STRINGS:
        html = everything(text)[kind]._repr_html_()
        assert injections.elements(html) == []
        report_pages.Tree(html)
        assert "\x1b" not in html
        assert "\u202e" not in html


@pytest.mark.parametrize("kind", KINDS_SHOWN)
def test_the_page_of_a_notebook_stays_as_it_is(kind: str) -> None:
    """All rules are of one class, no formula is typeset, and nothing is fetched."""
    html = everything("$x^2$")[kind]._repr_html_()
    assert re.match(r'<div class="aqepilot tex2jax_ignore mathjax_ignore">', html)
    (css,) = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    selectors = re.findall(r"^\s*([^@{}\n][^{}\n]*)\{", css, re.MULTILINE)
    assert selectors
    assert [
        s for s in ",".join(selectors).split(",") if not s.strip().startswith(".aqepilot")
    ] == []
    assert not re.search(r"https?:|@import|url\((?!#)", html)
    assert "<script" not in html


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


# JupyterLab's and VS Code's.
@pytest.mark.parametrize("ground", ["#ffffff", "#111111", "#1e1e1e"])
@pytest.mark.parametrize("mark", templating.MARKS)
def test_marks_are_seen_on_light_and_on_dark_grounds(mark: str, ground: str) -> None:
    low, high = sorted([luminance(mark), luminance(ground)])
    assert (high + 0.05) / (low + 0.05) >= 3


def test_there_is_a_mark_for_each_fate() -> None:
    assert len(templating.MARKS) == len(FATES)


def test_lists_stay_lists() -> None:
    plain = [decision(), decision(number=2)]
    shown = Decisions(plain)
    assert shown == plain
    assert shown[:1] == plain[:1]
    assert type(shown[1:]) is Decisions
    assert [*shown] == plain
    assert pickle.loads(pickle.dumps(shown)) == plain
    assert isinstance(shown, list)
    assert repr(Decisions()) == "[]"
    assert "0 decisions" in Decisions()._repr_html_()


def test_a_terminal_shows_rows_in_its_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = repr(Decisions([decision(text="sales", number=n) for n in range(3)]))
    lines = shown.splitlines()
    assert lines[0] == "3 decisions of policies"
    assert {"Id", "Query", "Point", "About", "Outcome"} <= {*lines[1].split(), *lines[2].split()}
    assert max(map(len, lines)) <= 80
    assert shown.count("adopted") == 3
    assert "bytes_by_partition_id" not in shown


@pytest.mark.parametrize("text", injections.STRINGS)
def test_a_terminal_obeys_no_text(text: str) -> None:
    for value in everything(text).values():
        if isinstance(value, (display.Listed, Paired, Explanation)):
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", repr(value))


def test_of_many_rows_the_newest_are_shown_and_the_others_counted() -> None:
    many = Decisions(decision(number=n) for n in range(2000))
    assert "2,000 decisions of policies; the newest 40 of them" in repr(many)
    assert "1999" in repr(many)
    html = many._repr_html_()
    assert html.count("<tr>") == 101
    assert len(html) < 500_000


def test_problems_are_always_among_the_rows_of_a_status() -> None:
    rows = [Status("counter", str(n), "1", None) for n in range(500)]
    shown = repr(Statuses([*rows, Status("problem", "JAR_MISSING", None, "there is none")]))
    assert "JAR_MISSING" in shown
    assert "461 more rows" in shown


def test_long_values_are_folded() -> None:
    html = decision(answer="x" * 5000)._repr_html_()
    assert html.count("<details>") == 2
    assert "60 numbers: 900, 1, 2" in html
    facts = json.dumps({"side": {"a": ["x" * 9] * 5000}})
    assert len(decision(facts_json=facts)._repr_html_()) < 30_000


def test_partitions_are_a_picture() -> None:
    html = decision()._repr_html_()
    assert "Partitions of side: 60 partitions" in html
    assert "maximum 900 B" in html


def test_a_suggestion_shows_its_policy_and_what_to_do() -> None:
    html = Suggestions([suggestion("sales")])._repr_html_()
    assert KINDS["hot_key"] in html
    assert "it would have answered otherwise 3 of 9 times" in html
    assert "name = &#39;p&#39;" in html


def test_a_verdict_is_text_and_html() -> None:
    result = paired("q1")
    assert repr(result).startswith("The treatment is faster")
    assert "The treatment is faster" in result._repr_html_()


def test_lazy_results_read_the_logs_once_when_they_are_shown() -> None:
    for value, frame in ((costs("a"), "fingerprints"), (replay("a"), "changes")):
        repr(value)
        assert getattr(value, frame).actions == 0
        value._repr_html_()
        assert getattr(value, frame).actions == 1


@pytest.mark.parametrize("kind", KINDS_SHOWN)
def test_without_jinja2_a_notebook_shows_the_text(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    templating.environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert everything("a")[kind]._repr_html_() is None
    templating.environment.cache_clear()


def test_without_rich_a_list_is_shown_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert repr(Decisions([decision()])).startswith("[Decision(")


def test_what_a_bench_knows_is_shown_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook's output is made once, updated after each round, and empty at the end."""
    outputs: list[tuple[str, dict[str, str]]] = []

    class Output:
        def update(self, bundle: dict[str, str], raw: bool) -> None:
            outputs.append(("update", bundle))

    def shown(bundle: dict[str, str], raw: bool, display_id: bool) -> Output:
        outputs.append(("display", bundle))
        return Output()

    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=1))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=shown))
    last = paired("q2")
    assert Rounds(iter([paired("q1"), last])).watch() is last
    assert [kind for kind, _ in outputs] == ["display", "update", "update"]
    assert "q1" in outputs[0][1]["text/html"]
    assert outputs[-1][1] == {"text/plain": ""}


def test_where_nobody_looks_a_bench_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert not in_place.is_notebook()
    Rounds(iter([paired("q1")])).watch()
    assert capsys.readouterr().out == ""
