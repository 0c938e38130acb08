"""Switching on, changing policies and reading back, in a running Spark, classic and Connect."""

import json
from pathlib import Path

import pytest

import aqepilot
import little
import tiers
from aqepilot import NotLiveError, Policy, PolicyError
from connect_jobs import run_connect

pytestmark = tiers.on("4.3")

POINT = "dynamic_join_selection"
MERGE = Policy(name="merge", dynamic_join_selection="'SHUFFLE_MERGE'")
HASH = Policy(name="hash", dynamic_join_selection="IF(side.is_left, 'SHUFFLE_HASH', null)")


def run_decided(spark, query=little.BIG_DENSE):
    little.settings(spark, little.SORT_MERGE)
    return spark.sql(query).collect()


def test_a_policy_in_use_decides_and_the_record_says_so(little_tables):
    spark = little_tables
    aqepilot.use(spark, HASH)
    assert len(run_decided(spark)) == little.ROWS
    decisions = aqepilot.decisions(spark)
    left = [d for d in decisions if d.side == "left" and d.applied][-1]
    assert (left.policy, left.answer, left.reason) == ("hash", "SHUFFLE_HASH", "APPLIED")
    assert left.revision == HASH.revision(POINT)
    assert left.final_strategy == "ShuffledHashJoin BuildLeft"
    assert sum(left.facts["side"]["bytes_by_partition_id"]) == left.facts["side"]["shuffle_bytes"]
    assert [d.decision_id for d in decisions] == sorted(d.decision_id for d in decisions)
    explained = aqepilot.explain(spark)
    assert "policy `hash` said SHUFFLE_HASH" in explained
    assert "ShuffledHashJoin BuildLeft" in explained


def test_use_without_policies_decides_nothing_any_more(little_tables):
    spark = little_tables
    aqepilot.use(spark, MERGE)
    aqepilot.use(spark)
    run_decided(spark)
    assert aqepilot.decisions(spark) == []
    assert "No policy is set" in aqepilot.explain(spark)


def test_the_first_policy_with_an_answer_decides(little_tables):
    spark = little_tables
    nothing = Policy(name="nothing", dynamic_join_selection="null")
    aqepilot.use(spark, nothing, HASH, MERGE)
    run_decided(spark)
    answers = {(d.side, d.policy, d.answer) for d in aqepilot.decisions(spark)}
    assert ("left", "hash", "SHUFFLE_HASH") in answers
    assert ("right", "merge", "SHUFFLE_MERGE") in answers


@pytest.mark.parametrize(
    "comment", ["-- it's ${spark.app.name}", '/* \\n " ünï 😀 */', "-- \ttab; SELECT 1"]
)
def test_a_text_arrives_as_it_was_written(spark, comment):
    text = f"{comment}\nnull"
    aqepilot.use(spark, Policy(name="p", dynamic_join_selection=text))
    (row,) = [row for row in aqepilot.status(spark) if row.kind == "policy"]
    detail = json.loads(row.detail)
    assert detail["text"] == text
    assert detail["revision"] == Policy(name="p", dynamic_join_selection=text).revision(POINT)


def test_bad_sql_is_refused_with_its_place_in_the_file(spark, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(
        f'name = "bad"\nwhen = "query.app_nam = 1"\n{POINT} = """\n\n  CASE\n'
        '    WHEN side.max_byte > 1 THEN \'BROADCAST\' END"""\n'
    )
    with pytest.raises(PolicyError) as caught:
        aqepilot.use(spark, path, MERGE)
    places = {p.where: p.suggestions for p in caught.value.problems}
    assert set(places) == {f"{path}:2:9", f"{path}:6:10"}
    assert "side.max_bytes" in places[f"{path}:6:10"]
    assert spark.conf.get("spark.aqepilot.policies", None) is None


@pytest.mark.parametrize(
    "text",
    [
        "rand() > 1",
        "(SELECT 1)",
        "sum(side.max_bytes)",
        "1 +",
        "side.max_bytes",
        "'A'; DROP TABLE x",
    ],
)
def test_what_is_no_answer_is_refused(spark, text):
    with pytest.raises(PolicyError):
        aqepilot.use(spark, Policy(name="p", dynamic_join_selection=text))


@pytest.fixture(scope="module")
def connected(tmp_path_factory):
    return run_connect(tmp_path_factory.mktemp("connect"), "live")


def test_a_spark_connect_client_is_refused_functions_and_columns(connected):
    assert connected["refused"] == {
        "function": "PYTHON_NOT_ALLOWED",
        "text": "PYTHON_NOT_ALLOWED",
        "column": "COLUMN_NOT_SQL",
    }
    assert connected["after refusals"] == "base"


def test_spark_connect_does_all_of_it(connected):
    answers = connected
    assert answers["error"].startswith(f"bad.{POINT}:")
    assert "hash" in answers["policies"].split(",")[0]
    assert answers["text_is_whole"]
    assert answers["rows"] == 20_000
    assert ["hash", "SHUFFLE_HASH", "APPLIED"] in answers["decisions"]
    assert "policy `hash` said SHUFFLE_HASH" in answers["explain"]
    assert answers["after"] == "base"


def test_a_connect_server_without_aqepilot_is_told(tmp_path):
    error = run_connect(tmp_path, "without")["error"]
    assert "the Spark Connect server" in error
    assert "spark.sql.extensions=io.aqepilot.AqePilotExtension" in error


SUBMITTED = """
import sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
import aqepilot
policy = {"name": "mine", "dynamic_join_selection": "null"}
spark = aqepilot.configure(SparkSession.builder, policy).getOrCreate()
rows = [row for row in aqepilot.status(spark) if row.kind == "policy"]
print("TOLD", [row.name for row in rows], spark.conf.get("spark.sql.extensions"))
"""


def test_configure_works_in_a_job_that_was_submitted_without_the_jar(spark_submit):
    conf = {
        "spark.sql.extensions": "org.example.NotThere",
        "spark.aqepilot.policies": "platform",
        f"spark.aqepilot.policy.platform.{POINT}": "null",
    }
    home = str(Path(aqepilot.__file__).parents[1])
    done = spark_submit(SUBMITTED, conf=conf, job_words=[home], extension=False, own_jvm=True)
    assert (
        f"TOLD ['mine.{POINT}', 'platform.{POINT}'] "
        "org.example.NotThere,io.aqepilot.AqePilotExtension" in done.stdout
    ), done.stdout + done.stderr


PLAIN = """
import sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
import aqepilot
spark = SparkSession.builder.getOrCreate()
for ask in (aqepilot.use, aqepilot.status, aqepilot.decisions, aqepilot.explain):
    try:
        ask(spark)
    except aqepilot.NotLiveError as error:
        print("TOLD", error.problems[0].code)
try:
    aqepilot.configure(SparkSession.builder)
except aqepilot.NotLiveError as error:
    print("TOLD", error.problems[0].code)
"""


@pytest.mark.parametrize(
    ("conf", "code"),
    [
        ({}, "EXTENSION_NOT_NAMED"),
        ({"spark.sql.extensions": "io.aqepilot.AqePilotExtension"}, "JAR_MISSING"),
    ],
)
def test_plain_spark_is_told_by_every_function(spark_submit, conf, code):
    home = str(Path(aqepilot.__file__).parents[1])
    done = spark_submit(PLAIN, conf=conf, job_words=[home], extension=False)
    codes = [x.split()[1] for x in done.stdout.splitlines() if x.startswith("TOLD")]
    expected = [code] * 4 + ([] if conf else ["SPARK_RUNS_ALREADY"])
    assert codes == expected, done.stdout + done.stderr


def test_not_live_is_an_error_of_its_own():
    assert issubclass(NotLiveError, aqepilot.AqePilotError)
