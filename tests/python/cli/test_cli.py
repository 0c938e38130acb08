"""The command line: what it prints where, and its exit codes."""

import json
import shlex
from contextlib import nullcontext

import pyspark
import pytest
from click.testing import CliRunner

from aqepilot import __version__, catalog, recipes
from aqepilot.cli import main, options
from aqepilot.errors import AqePilotError
from aqepilot.submit import check, conf
from aqepilot.submit.jars import installed_spark, minor_of

POINT = "dynamic_join_selection"


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def sales(tmp_path):
    path = tmp_path / "sales.toml"
    path.write_text(f"name = 'sales'\n{POINT} = '''\nCASE -- it's\n  WHEN true THEN 'é' END'''\n")
    return path


JAR = ("--jar-uri", "s3://j/a.jar")
TEXT = "CASE -- it's\n  WHEN true THEN 'é' END"


def test_conf_prints_the_same_settings_in_each_form(run, sales):
    args = shlex.split(run("conf", sales, *JAR).stdout)
    assert args[::2] == ["--conf"] * (len(args) // 2)
    values = dict(word.split("=", 1) for word in args[1::2])
    assert values[f"spark.aqepilot.policy.sales.{POINT}"] == TEXT
    assert values["spark.jars"] == "s3://j/a.jar"
    assert json.loads(run("conf", sales, *JAR, "--format", "json").stdout) == values
    assert conf.parse_defaults(run("conf", sales, *JAR, "--format", "defaults").stdout) == values


def test_conf_merges_and_says_what_to_delete(run, sales, tmp_path):
    defaults = tmp_path / "spark-defaults.conf"
    defaults.write_text(
        "spark.sql.extensions org.a.One\nspark.jars=/a.jar\n"
        "spark.aqepilot.policy.sales.when true\nspark.x 1\n"
    )
    done = run("conf", sales, *JAR, "--merge", defaults, "--format", "defaults")
    values = conf.parse_defaults(done.stdout)
    assert values["spark.sql.extensions"] == f"org.a.One,{conf.EXTENSION}"
    assert values["spark.jars"] == "/a.jar,s3://j/a.jar"
    assert "spark.x" not in values
    assert "Delete spark.aqepilot.policy.sales.when" in done.stderr


def test_conf_names_the_jar_by_its_coordinates(run, sales):
    done = run("conf", sales, "--packages", "--format", "json")
    values = json.loads(done.stdout)
    built_for = f"{minor_of(pyspark.__version__)}_{installed_spark().scala}"
    assert values["spark.jars.packages"] == f"io.aqepilot:aqepilot-spark-{built_for}:{__version__}"
    assert "spark.jars" not in values
    assert run("conf", sales, "--packages", *JAR).exit_code == 2


def test_conf_of_a_bad_file_prints_no_settings(run, tmp_path):
    (tmp_path / "bad.toml").write_text("mode = 'on'\n")
    done = run("conf", tmp_path / "bad.toml", *JAR)
    assert done.exit_code == 1
    assert done.stdout == ""
    assert "bad.toml:1:1: name is missing" in done.stderr
    assert "off, shadow, enforce" in done.stderr


@pytest.mark.parametrize("words", [["nothing"], ["conf", "--format", "xml"], ["check"], ["facts"]])
def test_misuse_exits_with_2(run, words):
    assert run(*words).exit_code == 2


def test_facts_shows_every_fact_and_word(run):
    done = run("facts", POINT)
    point = catalog.point(POINT)
    assert done.exit_code == 0
    for name in (*(fact.path for fact in point.facts), *(word.word for word in point.words)):
        assert name in done.stdout
    shown = json.loads(run("facts", POINT, "--json").stdout)
    assert shown["facts"] == [fact._asdict() for fact in point.facts]


def test_an_unknown_point_has_the_nearest(run):
    done = run("facts", "dynamic_join")
    assert done.exit_code == 1
    assert f"Did you mean {POINT}?" in done.stderr


def test_recipes_are_listed_and_printed_as_they_are(run):
    assert [r["name"] for r in json.loads(run("recipes", "--json").stdout)] == [*recipes.names()]
    for name in recipes.names():
        assert name in run("recipes").stdout
        assert run("recipes", name, "--spark", "4.0").stdout == recipes.text(name, "4.0")
    assert run("recipes", "none").exit_code == 1
    assert run("recipes", POINT, "--spark", "2.4").exit_code == 1


def test_jar_of_an_unknown_spark_is_an_error(run):
    done = run("jar", "--spark", "2.4.8")
    assert done.exit_code == 1
    assert "no jar for Spark 2.4" in done.stderr


def test_check_reports_files_that_are_no_policies_without_a_spark(run, tmp_path):
    (tmp_path / "a.toml").write_text("name = \n")
    (tmp_path / "b.toml").write_text(f"{POINT} = 'x'\n")
    done = run("check", "--json", tmp_path / "a.toml", tmp_path / "b.toml")
    assert done.exit_code == 1
    assert [p["code"] for p in json.loads(done.stdout)["problems"]] == [
        "TOML_INVALID",
        "POLICY_KEY_MISSING",
    ]


def test_every_command_has_help_with_an_example_and_exit_codes(run):
    assert run("--version").exit_code == 0
    for name in main.commands:
        if name != "demo":
            text = run(name, "--help").stdout
            assert f"aqepilot {name}" in text
            assert "Exit codes: 0" in text


@pytest.mark.parametrize(
    ("log", "master", "is_short", "partitions"),
    [
        ("little", None, True, "16"),
        ("file://{}/little", "local[2]", True, "16"),
        ("little/part-0", None, True, "16"),
        ("much", None, False, None),
        ("much", "local[*]", False, "16"),
        ("little", "yarn", False, None),
        ("none*", None, False, None),
    ],
)
def test_little_to_read_is_read_by_a_spark_that_starts_soon(
    monkeypatch, tmp_path, log, master, is_short, partitions
):
    """Its JVM would compile for longer than it reads: 78 s for half a megabyte, not 24."""
    for name, size in (("little", 10), ("much", options._LITTLE_BYTES + 1)):
        (tmp_path / name).mkdir()
        with (tmp_path / name / "part-0").open("wb") as file:
            file.truncate(size)
    starts = []

    def started(*arguments):
        starts.append(arguments)
        return nullcontext()

    monkeypatch.setattr(check, "local_session", started)
    monkeypatch.chdir(tmp_path)
    with options.log_session([log.format(tmp_path)], master, "a name"):
        pass
    ((_, _, conf, short),) = starts
    assert short == is_short
    assert conf.get("spark.sql.shuffle.partitions") == partitions


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("[PATH_NOT_FOUND] Path does not exist: file:/logs/app-1.inprogress", AqePilotError),
        ("[FAILED_READ_FILE.FILE_NOT_EXIST] File does not exist", AqePilotError),
        ("[DIVIDE_BY_ZERO] Division by zero", RuntimeError),
    ],
)
def test_a_log_that_is_gone_before_its_turn_is_no_stack_trace(monkeypatch, words, expected):
    monkeypatch.setattr(check, "local_session", lambda *_: nullcontext())
    with pytest.raises(expected) as caught, options.log_session([], "yarn", "a name"):
        raise RuntimeError(words)
    assert ("renamed or deleted" in str(caught.value)) == (expected is AqePilotError)
