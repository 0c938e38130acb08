"""Spark's own suites: how their results are compared, and what the ways ask for. None runs here."""

import re
import sys

import pytest

from aqepilot import catalog
from places import TESTS

sys.path.append(str(TESTS))

from spark_suites import jvm, ledger, outcomes, ways
from spark_suites.ledger import differences, load, stale, unknown
from spark_suites.outcomes import Case, Outcome

PASSED, FAILED = (
    Outcome("passed"),
    Outcome("failed", "a.TestFailedException: 5 did not equal 3"),
)
ONE, TWO = Case("JoinSuite", "one"), Case("JoinSuite", "two")
LEDGER = """
[[difference]]
ways = ["adversarial"]
kind = "plan shape"
says = "did not equal"
why = "it counts the joins of one strategy"
tests.JoinSuite = ["one"]
"""


def compared(before, after, text=LEDGER, way="adversarial"):
    return differences(way, before, after, load(text), "3.5")


def test_a_difference_is_found_and_has_its_entry():
    (one,) = compared({ONE: PASSED, TWO: PASSED}, {ONE: FAILED, TWO: PASSED})
    assert one.test == ONE
    assert one.entry is not None


def test_a_difference_without_an_entry_is_new():
    (two,) = compared({TWO: PASSED}, {TWO: FAILED})
    assert two.entry is None
    (one,) = compared({ONE: PASSED}, {ONE: FAILED}, way="recipes")
    assert one.entry is None


@pytest.mark.parametrize(
    "message",
    [
        "a.TestFailedException: 5 was empty",
        "a.TestFailedException: Results do not match: 5 did not equal 3",
        "a.TestFailedException: Expected exception, 5 did not equal 3",
        "class org.SparkException: 5 did not equal 3",
    ],
)
def test_no_other_failure_rows_or_error_hide_behind_an_entry(message):
    (one,) = compared({ONE: PASSED}, {ONE: Outcome("failed", message)})
    assert one.entry is None


def test_rows_in_another_order_are_told_from_other_rows():
    ordered = LEDGER.replace("plan shape", "order").replace("did not equal", "do not match")
    results = "a.TestFailedException: Results do not match [x] == Results == ![1,a] [2,b] ![2,b] "
    (one,) = compared({ONE: PASSED}, {ONE: Outcome("failed", results + "[1,a]")}, ordered)
    assert one.entry is not None
    for rows in ("[1,b]", "", "[1,a] [1,a]"):
        (one,) = compared({ONE: PASSED}, {ONE: Outcome("failed", results + rows)}, ordered)
        assert one.entry is None


def test_a_test_that_is_absent_or_skipped_does_not_hide_behind_an_entry():
    anything = LEDGER.replace('"did not equal"', '""')
    for outcome in (outcomes.NONE, Outcome("skipped")):
        (one,) = compared({ONE: PASSED}, {ONE: outcome}, anything)
        assert one.entry is None


def test_a_test_that_did_not_come_to_an_end_is_a_difference():
    (two,) = compared({TWO: PASSED}, {})
    assert (two.outcome.kind, two.entry) == ("absent", None)
    (two,) = compared({TWO: PASSED}, {TWO: Outcome("skipped")})
    assert two.entry is None


def test_a_test_that_fails_in_plain_spark_has_to_be_named():
    (two,) = compared({TWO: FAILED}, {TWO: FAILED}, way=ways.PLAIN)
    assert two.entry is None
    assert compared({TWO: FAILED}, {TWO: FAILED}) == []


def test_an_entry_is_stale_when_its_test_passes_again():
    entries = load(LEDGER)
    assert stale("adversarial", [], {ONE: PASSED}, entries, "3.5") == entries
    differ = compared({ONE: PASSED}, {ONE: FAILED})
    assert stale("adversarial", differ, {ONE: FAILED}, entries, "3.5") == []
    assert stale("recipes", [], {ONE: PASSED}, entries, "3.5") == []
    flaky = load(LEDGER + 'flaky = "a race"\n')
    assert stale("adversarial", [], {ONE: PASSED}, flaky, "3.5") == []


def test_an_entry_of_a_test_that_does_not_exist_is_found():
    entries = load(LEDGER)
    assert unknown({TWO: PASSED}, {"JoinSuite"}, entries, "3.5") == entries
    assert unknown({TWO: PASSED}, set(), entries, "3.5") == []
    of_another = load(LEDGER + 'sparks = ["4.2"]\n')
    assert unknown({TWO: PASSED}, {"JoinSuite"}, of_another, "3.5") == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"plan shape"', '"answer"'),
        ('"adversarial"', '"adverserial"'),
        ('why = "it counts the joins of one strategy"', 'why = ""'),
        ('why = "it counts the joins of one strategy"', ""),
        ('"did not equal"', '"("'),
        ('["one"]', '["one", "one"]'),
    ],
)
def test_a_ledger_that_is_wrong_is_refused(old, new):
    assert old in LEDGER
    with pytest.raises((ValueError, re.error)):
        load(LEDGER.replace(old, new))


def test_outcomes_are_read_from_junit_files(tmp_path):
    (tmp_path / "xml").mkdir()
    (tmp_path / "xml" / "TEST-x.xml").write_text(
        '<testsuite><testcase classname="org.apache.spark.sql.JoinSuite" name="one"/>'
        '<testcase classname="org.apache.spark.sql.JoinSuite" name="two">'
        '<failure message="5 did not equal 3" type="Bad"/></testcase>'
        '<testcase classname="org.apache.spark.sql.JoinSuite" name="three"><skipped/></testcase>'
        "</testsuite>"
    )
    assert outcomes.read(tmp_path) == {
        ONE: PASSED,
        TWO: Outcome("failed", "Bad: 5 did not equal 3"),
        Case("JoinSuite", "three"): Outcome("skipped"),
    }


def test_counters_are_summed_over_contexts(tmp_path):
    (tmp_path / "counters").mkdir()
    for app, errors in (("local-1", 0), ("local-2", 3)):
        file = tmp_path / "counters" / f"{app}.driver.aqepilot.errors.csv"
        file.write_text(f"t,count\n1,0\n2,{errors}\n")
    assert outcomes.counters(tmp_path) == {"errors": 3, "contexts": 2}


def test_messages_of_two_runs_are_alike():
    first = outcomes.plainly("key#12L at /a/b/tmp/x-1 plan_id=345")
    assert first == outcomes.plainly("key#7 at /c/tmp/y-2 plan_id=99")


def test_the_ledger_is_good():
    entries = load(ledger.LEDGER.read_text("utf-8"))
    assert {entry.kind for entry in entries} <= {*ledger.KINDS}


def test_words_reach_java_as_they_are():
    assert jvm.quoted('a\n"b"\\') == '"a\\n\\"b\\"\\\\"'


@pytest.mark.parametrize("way", ["recipes", "adversarial"])
def test_policies_of_a_way_decide_at_every_point_and_bind(spark, way):
    settings = ways.WAYS[way](spark.version[:3])
    texts = {
        key.rpartition(".")[2]: text
        for key, text in settings.items()
        if key.startswith("spark.aqepilot.policy.")
    }
    # Spark has no rule of its own for writes, so no recipe says what it is.
    own = set() if way == "adversarial" else {"write_distribution"}
    assert set(texts) == set(catalog.point_names()) - own
    for point, text in texts.items():
        problems = spark.sql("SELECT * FROM aqepilot_check(:p, :t)", args={"p": point, "t": text})
        assert problems.collect() == [], text


def test_plain_spark_has_nothing_of_ours():
    assert ways.WAYS[ways.PLAIN]("3.5") == {}
    assert set(ways.WAYS["no policy"]("3.5")) == {"spark.sql.extensions"}


@pytest.mark.parametrize(
    ("text", "is_same"), [("2 b 1] a", True), ("2 b 1] c", False), ("2 b 1 1] a", False)]
)
def test_a_golden_file_may_differ_in_the_order_of_rows(text: str, is_same: bool) -> None:
    message = f'x.sql Expected "...0 [1 a 2] b", but got "...0 [{text}" Result did not match for'
    assert outcomes.has_same_rows(message) == is_same
