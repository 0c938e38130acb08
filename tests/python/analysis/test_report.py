"""The report's page: prices, pictures, escaping and what a person can make out in it."""

from __future__ import annotations

import re
import sys
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

import aqepilot.analysis.report
from aqepilot.analysis.prices import Prices, PricesError
from aqepilot.analysis.report import page, pictures
from aqepilot.analysis.report.values import (
    Data,
    Joins,
    Run,
)
from aqepilot.cli import main as cli
from aqepilot.display import templating
from aqepilot.errors import AqePilotError
from report_pages import DAY_MS, EVIL, Tree, data, empty, heading, rendered

PAGES = {"full": data(), "empty": empty(), "unread": data(heading=heading(unreadable_lines=3))}
every_page = pytest.mark.parametrize("page_data", PAGES.values(), ids=PAGES)


@every_page
def test_sentences_have_a_space_between_them(page_data: Data) -> None:
    """Jinja takes the end of a line away after a block."""
    text = re.sub(
        "<[^>]*>", "\n", re.sub(r"</?(?:span|code|strong|a)\b[^>]*>", "", rendered(page_data))
    )
    assert re.findall(r"[^.]*[a-z]\.[A-Z][^.]*", text) == []


@every_page
def test_the_page_is_whole_and_ids_are_unique(page_data: Data) -> None:
    tree = Tree(rendered(page_data))
    ids = [attrs["id"] for _, attrs, _ in tree.elements if "id" in attrs]
    assert len(ids) == len(set(ids)) > 5
    for _, attrs, _ in tree.elements:
        target = attrs.get("href") or ""
        assert not target or target.removeprefix("#") in ids
        for name in ("aria-labelledby",):
            assert attrs.get(name, ids[0]) in ids


@every_page
def test_nothing_runs_and_nothing_is_loaded(page_data: Data) -> None:
    tree = Tree(rendered(page_data))
    assert not {tag for tag, _, _ in tree.elements} & {"script", "img", "link", "iframe", "object"}
    for _, attrs, _ in tree.elements:
        assert not [name for name in attrs if name.startswith("on") or name == "src"]
    assert "@import" not in rendered(page_data)
    assert not re.search(r"url\((?!#)", rendered(page_data))


def test_users_texts_are_shown_as_they_are() -> None:
    words = "".join(Tree(rendered(data())).words["body"])
    assert words.count(EVIL) > 10


@every_page
def test_each_picture_has_words(page_data: Data) -> None:
    text = rendered(page_data)
    drawn = [a for tag, a, _ in Tree(text).elements if tag == "svg" and "aria-hidden" not in a]
    assert all(attrs.get("role") == "img" for attrs in drawn)
    titled = re.findall(r'<svg role="img"[^>]*><title>[^<]+</title>', text)
    assert len(titled) == len(drawn)
    assert (len(drawn) > 5) == (page_data.heading.queries > 0)


@every_page
def test_tables_have_captions_and_scopes(page_data: Data) -> None:
    text = rendered(page_data)
    elements = Tree(text).elements
    assert all("scope" in attrs for tag, attrs, _ in elements if tag == "th")
    assert len(re.findall(r"<table>\s*<caption[ >]", text)) == text.count("<table>")
    regions = [attrs for _, attrs, _ in elements if attrs.get("class") == "scroll"]
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)
    assert len(regions) == text.count("<table>")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    """WCAG 2.2 AA: 4.5 for text, 3 for what a picture says."""
    colours = pictures.PALETTE[scheme]
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    for text, ground in product(("text", "soft", "link", "bad"), ("ground", "panel")):
        assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
    for mark in ("mark", *(f"c{i}" for i in range(pictures.CATEGORIES))):
        assert contrast(colours[mark], colours["ground"]) >= 3, mark
    assert set(colours) == set(pictures.PALETTE["light"])


def test_categories_differ_by_pattern_too() -> None:
    assert len(pictures.FATES) == pictures.CATEGORIES
    patterns = re.findall(r'<pattern id="over\d".*?<path class="over" d="(.*?)"', rendered(data()))
    assert len(set(patterns)) == pictures.CATEGORIES - 1


def test_figures_are_on_the_page() -> None:
    text = " ".join("".join(Tree(rendered(data())).words["body"]).split())
    for words in ("1.5 min", "7,200", "1.0 GiB", "left out here, have 10.0 % of the task time"):
        assert words in text
    assert "The 2 with most task time of 5" in text
    assert "All 500 lines of 2 logs could be read." in text
    assert "4 partitions; half of them or more are empty" in text


def test_what_could_not_be_read_is_said() -> None:
    lost = heading(unreadable_lines=3, unreadable_logs=1, problem=EVIL)
    text = " ".join("".join(Tree(rendered(data(heading=lost))).words["main"]).split())
    assert "Not all could be read. 3 lines are no whole event, of 500." in text
    assert f"1 log could not be read to the end: {EVIL}" in text


def test_experiments_are_on_the_page_where_there_are_some() -> None:
    text = rendered(data())
    assert '<a href="#experiments">Experiments</a>' in text
    assert "<h3>other</h3>" in text
    assert "It could not be analysed: " in text
    assert '<td class="n bad">2.0 %</td>' in text
    assert "xperiment" not in rendered(empty())


def test_history_that_was_not_used_is_on_the_page_where_there_is_some() -> None:
    assert "History that was not used" not in rendered(empty())
    text = rendered(data())
    assert "History that was not used" in text
    assert "00000000000000aa" in text


def test_a_page_without_anything_says_so() -> None:
    words = "".join(Tree(rendered(empty())).words["main"])
    for text in ("have no queries", "have no decisions", "No plan in the logs has a join"):
        assert text in words


def test_money_is_shown_with_prices_only() -> None:
    prices = Prices(currency="EUR", per_core_hour=0.5)
    text = rendered(data(), prices)
    assert "1.00 EUR" in text  # two hours of cores
    assert "0.5000 EUR" in text  # of the first query
    plain = rendered(data())
    assert "EUR" not in plain
    assert "Cost" not in plain


def test_suggestions_are_there_with_their_policy() -> None:
    prices = Prices(currency="EUR", per_core_hour=0.5)
    text = " ".join("".join(Tree(rendered(data(), prices)).words["main"]).split())
    assert "At stake: 30.0 min of cores' time in 5 runs" in text
    assert "it would have answered otherwise 3 of 9 times. That is 0.2500 EUR." in text
    assert text.count("A policy for") == 1
    assert "A policy for join_selection" in text
    assert "No policy helps that. Write repartition." in text
    assert "Nothing in these logs" in "".join(Tree(rendered(empty())).words["main"])


def test_costs_beside_work_are_there() -> None:
    prices = Prices(currency="EUR", per_core_hour=0.5)
    text = " ".join("".join(Tree(rendered(data(), prices)).words["main"]).split())
    assert "cores waited 30.0 min for the last tasks" in text
    assert "30.0 min0.2500 EUR" in text
    assert "outside queries" in text


def test_points_are_put_together_by_policy() -> None:
    first, other = page.points(data().answers)
    assert [row.policy for row in first.policies] == ["p", None]
    assert first.policies[0].decisions == 8
    assert first.policies[0].applied == 4
    assert first.policies[0].fates == [3, 0, 0, 0, 0, 1, 4]
    assert first.policies[0].reasons == [("GUARD_PARTITIONS", 2), ("PYTHON_RAISED", 2)]
    assert other.point == EVIL


def test_many_partitions_are_put_together() -> None:
    shuffle = data().shuffles[0]._replace(
        bytes_by_partition_id=[*range(1, 1001)], num_partitions=1000, max_bytes=1000,
        median_bytes=500,
    )  # fmt: skip
    bars = pictures.partitions(shuffle)
    assert (bars.columns, bars.per_column, bars.median) == (112, 9, 50)
    heights = [float(height) for height in re.findall(r"v-([\d.]+)", bars.path)]
    assert heights == sorted(heights, reverse=True)
    assert heights[0] == 100
    assert len(heights) == 112


def test_joins_stand_at_their_time() -> None:
    stacks = pictures.joins(data().joins)
    assert stacks.names == ["SortMergeJoin", EVIL]
    assert stacks.most == 4
    assert [stack.at for stack in stacks.stacks] == [0, 120]
    assert [[part.length for part in stack.parts] for stack in stacks.stacks] == [[75, 25], [50]]
    many = Joins("day", DAY_MS, [(0, "d", f"S{n}", n) for n in range(1, 9)], [])
    assert pictures.joins(many).names == ["S8", "S7", "S6", "S5", "S4", "others"]
    assert sum(part.length for part in pictures.joins(many).stacks[0].parts) == pytest.approx(100)


def test_failed_runs_are_drawn_apart() -> None:
    bars = pictures.runs([*data().runs, Run("f1", "later", None, None, None)])
    assert len(re.findall("M", bars.path)) == 1
    assert len(re.findall("M", bars.bad_path)) == 1
    assert "v-4.0" in bars.bad_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("currency = 'EUR'\nper_core_hour = '1'", "p.toml:2:1: per_core_hour has to be a number"),
        ("currency = ''\nper_core_hour = 1", "p.toml:1:1: currency has to be text"),
        ("currency = 'EUR'\nper_core_hour = true", "not True"),
        ("currency = 'EUR'\nper_core_hour = -1", "0 or more"),
        ("currency = 'EUR'\nper_core_hour = inf", "0 or more"),
        ("currency = 'EUR'", "per_core_hour is missing"),
        ("currency = 'EUR'\nper_core_huor = 1", "Did you mean per_core_hour"),
        ("currency = 'EUR'\nper_core_hour = 1\n\nper_gib_hour = 1", "p.toml:4:1: per_gib_hour"),
        ("currency = 'EUR'\nper_core_hour = 1\ngib_per_core = 1", "needs per_gib_hour"),
        ("currency = EUR", "p.toml:1:"),
    ],
)
def test_wrong_prices_are_refused_with_their_place(text: str, expected: str) -> None:
    with pytest.raises(PricesError) as caught:
        Prices.from_toml(text, "p.toml")
    assert expected in str(caught.value)
    assert str(caught.value).startswith("p.toml:")


def test_all_that_is_wrong_with_prices_is_told_at_once() -> None:
    with pytest.raises(PricesError) as caught:
        Prices.from_toml("currency = 1\nper_core_hour = ''\nper_gib_hour = 1")
    assert len(caught.value.problems) == 3


def test_memory_has_a_price() -> None:
    text = "currency = 'EUR'\nper_core_hour = 1\nper_gib_hour = 0.5\ngib_per_core = 4\n"
    assert Prices.from_toml(text).cost(7_200_000) == pytest.approx(6)
    with pytest.raises(ValueError, match="go together"):
        Prices(currency="EUR", per_core_hour=1, per_gib_hour=1)


def test_what_cannot_be_written_is_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: str) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("aqepilot.submit.check.local_session", started)

    def ran(*words: str) -> str:
        result = CliRunner().invoke(cli, ["report", "--log", "logs", *words])
        assert result.exit_code == 1
        assert isinstance(result.exception, SystemExit)
        return result.stderr

    assert "there is no folder" in ran("-o", str(tmp_path / "gone" / "r.html"))
    assert "it is a folder" in ran("-o", str(tmp_path))
    missing = ran("-o", str(tmp_path / "r.html"), "--prices", str(tmp_path / "p.toml"))
    assert "cannot read the prices" in missing
    templating.environment.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "pip install 'aqepilot[report]'" in ran("-o", str(tmp_path / "r.html"))


def test_a_page_that_is_there_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    path.write_text("before")
    aqepilot.analysis.report.write("after ⋈", path)
    assert path.read_text("utf-8") == "after ⋈"
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(AqePilotError, match="cannot write the page"):
        aqepilot.analysis.report.write("x", tmp_path / "gone" / "r.html")
