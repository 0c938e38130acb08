"""Settings survive each way into Spark, and what a platform has set stays."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aqepilot import Policy
from aqepilot.submit import conf

NASTY = [
    "CASE -- it's a \"comment\"\n  WHEN x THEN '${spark.app.name}' END",
    "a\\nb \\\\ c\\",
    "tab\there, form\ffeed, cr\r\nlf",
    "ünïcode ⋈ 😀  ",
    "= : # no key",
    "# no comment\n! nor this = : here",
    "$HOME `ls` $(ls) !! * ? ~ ; & | < >",
]


@pytest.mark.parametrize("text", NASTY)
def test_args_are_shell_words_that_give_the_text_back(text):
    assert shlex.split(conf.to_args({"spark.k": text})) == ["--conf", f"spark.k={text}"]


@pytest.mark.parametrize("text", NASTY)
def test_defaults_are_java_properties_that_give_the_text_back(text):
    values = {"spark.k": text, "spark.l": "after"}
    lines = conf.to_defaults(values)
    assert lines.isascii()
    assert len(lines.splitlines()) == 2
    assert conf.parse_defaults(lines) == {"spark.k": text.strip(" \t\f"), "spark.l": "after"}


@pytest.mark.parametrize("text", NASTY)
def test_json_gives_the_text_back(text):
    assert json.loads(conf.to_json({"spark.k": text})) == {"spark.k": text}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_policy_text_survives_as_defaults(text):
    stripped = text.strip("".join(map(chr, range(33))))
    assert conf.parse_defaults(conf.to_defaults({"spark.k": stripped})) == {"spark.k": stripped}


def test_properties_are_read_as_java_reads_them():
    text = (
        "# comment \\\n! another\n\n"
        "a=1\nb: 2\nc 3\n  d   =   4  \ne\\ f = g\\\n   h\ni = \\u00e9\\t!\nj\nk==l\na = last"
    )
    assert conf.parse_defaults(text) == {
        "a": "last",
        "b": "2",
        "c": "3",
        "d": "4",
        "e f": "gh",
        "i": "é\t!",
        "j": "",
        "k": "=l",
    }


def test_extensions_jars_and_policies_that_are_there_stay_in_their_order():
    there = {
        "spark.sql.extensions": "org.b.Two, org.a.One",
        "spark.jars": "/z.jar,/a.jar",
        "spark.aqepilot.policies": "platform,sales",
    }
    policy = Policy(name="sales", dynamic_join_selection="null")
    merged = conf.settings([policy], "s3://j/aqepilot-spark-3.5_2.12-0.1.0.jar", there)
    assert merged["spark.sql.extensions"] == f"org.b.Two,org.a.One,{conf.EXTENSION}"
    assert merged["spark.jars"] == "/z.jar,/a.jar,s3://j/aqepilot-spark-3.5_2.12-0.1.0.jar"
    assert merged["spark.aqepilot.policies"] == "sales,platform"


def test_merging_again_changes_nothing():
    policy = Policy(name="sales", dynamic_join_selection="null")
    once = conf.settings([policy], "/j/aqepilot-spark-4.3_2.13-0.1.0.jar", {"spark.jars": "/a.jar"})
    assert conf.settings([policy], "/j/aqepilot-spark-4.3_2.13-0.1.0.jar", once) == once


def test_a_newer_jar_takes_the_place_of_an_older_one():
    older, newer = "/j/aqepilot-spark-4.3_2.13-0.1.0.jar", "/k/aqepilot-spark-4.3_2.13-0.2.0.jar"
    assert conf.with_jar(["/a.jar", older, "/b.jar"], newer) == ["/a.jar", newer, "/b.jar"]


def test_coordinates_take_the_place_of_a_jar_and_a_jar_that_of_coordinates():
    """Both would be two jars on one class path."""
    older, newer = (f"io.aqepilot:aqepilot-spark-4.3_2.13:0.{n}.0" for n in (1, 2))
    jar = "/j/aqepilot-spark-4.3_2.13-0.2.0.jar"
    there = {"spark.jars": f"/a.jar,{jar}", "spark.jars.packages": f"org.a:a_2.13:1,{older},b:b:1"}
    by_package = conf.settings([], None, there, newer)
    assert by_package["spark.jars"] == "/a.jar"
    assert by_package["spark.jars.packages"] == f"org.a:a_2.13:1,{newer},b:b:1"
    by_jar = conf.settings([], jar, there)
    assert by_jar["spark.jars"] == f"/a.jar,{jar}"
    assert by_jar["spark.jars.packages"] == "org.a:a_2.13:1,b:b:1"
    assert "spark.jars" not in conf.settings([], None, {}, newer)
    again = conf.settings([], None, there | by_package, newer)
    assert again == {key: value for key, value in by_package.items() if key != "spark.jars"}


def test_advice_names_the_option_that_wins_over_the_coordinates():
    values = conf.settings([], None, {}, "io.aqepilot:aqepilot-spark-4.3_2.13:0.1.0")
    advice = " ".join(conf.advice("args", values, False))
    assert "--packages wins over spark.jars.packages" in advice
    assert "--jars" not in advice


def test_keys_that_a_replaced_policy_leaves_behind_are_named():
    there = {"spark.aqepilot.policy.p.when": "x", "spark.aqepilot.policy.q.when": "y"}
    policy = Policy(name="p", dynamic_join_selection="null")
    assert conf.stale_keys([policy], there) == ["spark.aqepilot.policy.p.when"]


def test_advice_warns_of_what_a_command_line_cannot_carry():
    advice = " ".join(conf.advice("args", {"k": "é" * 70_000}, False))
    assert "UTF-8" in advice
    assert "too long" in advice
    assert "--merge" in advice
    assert "--merge" not in " ".join(conf.advice("defaults", {}, True))
