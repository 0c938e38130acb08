"""Data of reports that were made up, and what a page of one holds."""

from __future__ import annotations

from html.parser import HTMLParser

from aqepilot.analysis.prices import Prices
from aqepilot.analysis.report import page
from aqepilot.analysis.report.values import (
    AnswerCount,
    BadPolicy,
    Cost,
    Costs,
    Data,
    Effect,
    Fingerprint,
    Fingerprints,
    Heading,
    Joins,
    Outcome,
    Run,
    Shuffle,
    Tried,
    TwoShares,
    UnevenStage,
    Withheld,
)
from aqepilot.analysis.suggestions import Suggestion

EVIL = "<script>alert('x')</script>\"><img src=x onerror=y>"


VOID = {"meta", "br", "link", "img", "hr", "input"}


DAY_MS = 86_400_000


def heading(**more: object) -> Heading:
    figures: dict[str, object] = {
        **{"applications": 2, "lines": 500, "unreadable_lines": 0, "unreadable_logs": 0},
        **{"problem": None, "spark_versions": "4.3.0", "queries": 7, "failed_queries": 1},
        **{"unfinished_queries": 1, "first": "2026-11-01 10:00", "last": "2026-11-02 11:00"},
        **{"task_ms": 90_000, "query_slot_ms": 100_000, "core_ms": 7_200_000, "decisions": 9},
        **{"applied": 4, "time_zone": "UTC"},
    }
    return Heading(**figures | more)


def data(**more: object) -> Data:
    """A little of everything, the texts of users as bad as can be."""
    fingerprints = [
        Fingerprint("f1", "f1" * 16, EVIL, 50, 1, 1500, 80_000, 3_600_000, 2**30, 0, 9),
        Fingerprint("described: x", None, None, 1, 0, None, 10_000, 9000, 0, 0, 0),
    ]
    runs = [Run("f1", "2026-11-01 10:00", 1000, True, None), Run("f1", EVIL, 5, False, EVIL)]
    lines = [
        AnswerCount("skew_join", "p", "enforce", "APPLIED", True, "adopted", 3, None),
        AnswerCount("skew_join", "p", "enforce", "APPLIED", True, None, 1, None),
        AnswerCount("skew_join", "p", "enforce", "GUARD_PARTITIONS", False, None, 2, EVIL),
        AnswerCount("skew_join", "p", "enforce", "PYTHON_RAISED", False, None, 2, EVIL),
        AnswerCount("skew_join", None, "enforce", "NULL_ANSWER", False, None, 1, None),
        AnswerCount(EVIL, EVIL, "shadow", EVIL, False, None, 1, EVIL),
    ]
    shuffle = Shuffle(
        *("log", 3, "f1", EVIL, EVIL, [5, 1, 9, 1], 4, 9, 1, False, [EVIL, "it was split"])
    )
    joins = Joins(
        "day",
        DAY_MS,
        [(0, "d0", "SortMergeJoin", 3), (0, "d0", EVIL, 1), (2 * DAY_MS, "d2", "SortMergeJoin", 2)],
        [("SortMergeJoin", EVIL, 2)],
    )
    report = Data(
        heading(),
        Fingerprints(fingerprints, 5, 100_000),
        runs,
        lines,
        [Outcome("f1", "skew_join", EVIL, "APPLIED", "adopted", EVIL, EVIL, 3)],
        [BadPolicy(EVIL, "skew_join", EVIL, 1)],
        [shuffle],
        [UnevenStage(EVIL, 3, EVIL, 7, 1, EVIL, 4, 900, 100)],
        joins,
        Costs(
            [
                Cost("f1", "f1" * 16, EVIL, 50, 3_600_000, 1_800_000, 0, 9000, 100),
                Cost("outside queries", None, None, 0, 10, None, None, None, None),
            ],
            Cost("", None, None, 50, 3_600_010, 1_800_000, 0, 9000, 100),
        ),
        [
            Suggestion(
                *("flipping", "f1" * 16, EVIL, 5, 1_800_000, EVIL, "join_selection"),
                *(f"name = 'p'\n# {EVIL}", 9, 3),
            ),
            Suggestion(
                *("coalesce", None, EVIL, 1, 60_000, EVIL, None, None, None, None),
                f"Write repartition. {EVIL}",
            ),
        ],
        [
            Tried(
                *(EVIL, "ship", [f"Ship. {EVIL}"], [Effect(EVIL, EVIL, "-5.0%")], EVIL, EVIL),
                [TwoShares(EVIL, "2.0 %", EVIL, True)],
            ),
            Tried("other", problem=EVIL),
        ],
        [Withheld("00000000000000aa", f"2.0 times the task time. {EVIL}", 3, EVIL)],
    )
    return report._replace(**more)


def empty() -> Data:
    nothing = heading(
        queries=0, decisions=0, applied=0, core_ms=None, first=None, last=None, spark_versions=None
    )
    joins = Joins("minute", 60_000, [], [])
    costs = Costs([], Cost("", None, None, 0, 0, 0, 0, 0, 0))
    return Data(nothing, Fingerprints([], 0, 0), [], [], [], [], [], [], joins, costs, [])


def rendered(data: Data, prices: Prices | None = None) -> str:
    return page.render(data, prices, EVIL, "now")


class Tree(HTMLParser):
    """Checks that what is opened is closed, and keeps elements and words."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None], tuple[str, ...]]] = []
        self.words: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs), tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, words: str) -> None:
        for tag in self.open:
            self.words.setdefault(tag, []).append(words)
