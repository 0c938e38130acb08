"""The expressions of the alert rules and of the dashboard, without a Prometheus."""

from __future__ import annotations

import json
import re

import pytest

import places
from aqepilot import catalog

MONITORING = places.ROOT / "docs/run/monitoring"
DECISIONS = "metrics_spark_driver_aqepilot_decisions_"


def alerts() -> list[str]:
    text = (MONITORING / "alerts.yml").read_text("utf-8")
    rules = re.findall(r"expr: (?:>-\n)?(.*?)\n\s+(?:for|labels):", text, re.DOTALL)
    assert len(rules) == text.count("- alert:")
    return [" ".join(rule.split()) for rule in rules]


def panels() -> list[str]:
    board = json.loads((MONITORING / "dashboard.json").read_text("utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel["targets"]]


def names(expression: str) -> list[str]:
    """The patterns of names of counters of decisions."""
    return re.findall(rf'__name__=~"({DECISIONS}[^"]*)"', expression)


@pytest.mark.parametrize("expression", alerts() + panels())
def test_series_keep_apart_that_a_pattern_of_names_finds(expression: str) -> None:
    """A function over a range drops the name: two counters of a driver would have equal labels."""
    for match in re.finditer(r"(rate|increase|delta|deriv|_over_time)\(\s*(\S{20})", expression):
        assert "{__name__" not in match[2], match[0]
    if names(expression):
        assert re.search(
            r'(rate|increase)\(label_replace\(\s*\{__name__=~"[^"]+"[^}]*\},\s*"decision",\s*"\$1",'
            r'\s*"__name__",\s*"[^"]+"\)\[\w+:\w+\]\)',
            expression,
        ), expression
    assert expression.count("(") == expression.count(")")


def test_each_reason_of_a_policy_that_failed_is_counted_as_such() -> None:
    reasons = list(catalog.reasons())
    failed = {code for code in reasons if code.startswith(("EVALUATION_", "PYTHON_"))}
    assert len(failed) >= 11
    patterns = [
        pattern
        for text in alerts() + panels()
        for pattern in names(text)
        if "EVALUATION" in pattern
    ]
    assert len(patterns) == 2
    for pattern in patterns:
        counts = {
            code for code in reasons if re.fullmatch(pattern, f"{DECISIONS}skew_join_{code}_Count")
        }
        assert counts == failed
