"""The command line against a real spark-submit."""

import json
import shlex
from pathlib import Path

import pyspark
import pytest

import processes
import submitting
import tiers
from aqepilot import Policy
from aqepilot.submit import conf
from commands import aqepilot_command

pytestmark = tiers.on("3.5")

POINT = "dynamic_join_selection"
MOUNT = "fs.viewfs.mounttable.test.link./etc"
EXTENSION = f"spark.sql.extensions={conf.EXTENSION}"
TEXT = (
    '-- it\'s "so" ${spark.app.name} \\n = : # !\n'
    "\tCASE WHEN side.is_left THEN 'x\\\\' END -- ünï 😀"
)


def test_check_passes_good_files(tmp_path):
    (tmp_path / "good.toml").write_text(f'name = "good"\n{POINT} = "null"\n')
    # A command's own Spark writes no event log to where the jobs' are.
    logged = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path / "missing")}
    (tmp_path / "spark-defaults.conf").write_text(conf.to_defaults(logged))
    done = aqepilot_command("check", tmp_path / "good.toml", SPARK_CONF_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "good" in done.stdout
    # Java itself warns of a module that Spark 4 asks for.
    assert [line for line in done.stderr.splitlines() if "incubator" not in line] == []


def test_check_gives_every_place_in_every_file(command_line, tmp_path):
    good, bad, worse = (tmp_path / f"{name}.toml" for name in ("good", "bad", "worse"))
    good.write_text(f'name = "good"\n{POINT} = "null"\n')
    bad.write_text(
        f'name = "bad"\nwhen = "side.max_bytes > 1"\n{POINT} = """\nCASE\n'
        '  WHEN side.max_byte > 1 THEN \'BROADCAST\' END"""\n'
    )
    worse.write_text('name = "worse"\nmode = "on"\n')
    done = command_line("check", "--json", good, bad, worse)
    assert done.exit_code == 1, done.output
    problems = json.loads(done.stdout)["problems"]
    places = [p["where"] for p in problems]
    assert f"{bad}:5:8" in places
    assert f"{bad}:2:9" in places
    assert f"{worse}:2:1" in places
    assert not [place for place in places if str(good) in place]
    (fact,) = [p for p in problems if p["where"] == f"{bad}:5:8"]
    assert "side.max_bytes" in fact["suggestions"]


FUNCTIONS = """
import aqepilot

@aqepilot.policy("skew_join")
def good(facts):
    return {"max_splits": 2} if facts.left.max_bytes else None

@aqepilot.policy("skew_join")
def wrong(facts):
    return {"max_split": 2}

def raises_without_facts(facts):
    return "BROADCAST" if facts.side.max_bytes > 5 else None
"""


def test_check_asks_the_functions_of_the_working_directory_on_made_facts(
    command_line, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checked.py").write_text(FUNCTIONS)
    (tmp_path / "good.toml").write_text('name = "good"\nskew_join = "python:checked:good"\n')
    done = command_line("check", "good.toml")
    assert done.exit_code == 0, done.output
    (tmp_path / "bad.toml").write_text(
        f'name = "bad"\nskew_join = "python:checked:wrong"\n{POINT} = """\n'
        'python:checked:raises_without_facts"""\ncost_evaluation = "python:checked:good"\n'
    )
    done = command_line("check", "--json", "bad.toml")
    assert done.exit_code == 1, done.output
    problems = {p["where"]: p for p in json.loads(done.stdout)["problems"]}
    assert {where: problem["code"] for where, problem in problems.items()} == {
        "bad.toml:2:14": "PYTHON_WRONG_ANSWER",
        "bad.toml:4:1": "PYTHON_RAISED",
        "bad.toml:5:20": "PYTHON_LOAD_FAILED",
    }
    assert "max_splits" in problems["bad.toml:2:14"]["message"]
    assert "NoneType" in problems["bad.toml:4:1"]["message"]


SHOW = """
import json
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
rows = spark.sql("SELECT name, value, detail FROM aqepilot_status() WHERE kind = 'policy'")
key = "spark.aqepilot.policy.p.dynamic_join_selection"
print("TOLD" + json.dumps([spark.conf.get(key), rows.collect()]))
"""


@pytest.mark.parametrize("form", ["args", "defaults", "json"])
def test_a_text_reaches_a_submitted_job_as_it_was_written(spark_submit, tmp_path, spark_jar, form):
    policy = Policy(name="p", dynamic_join_selection=TEXT)
    values = conf.settings([policy], str(spark_jar))
    if form == "defaults":
        file = tmp_path / "p.conf"
        file.write_text(conf.to_defaults(values))
        words = ["--properties-file", str(file)]
    elif form == "args":
        words = shlex.split(conf.to_args(values))
    else:
        words = processes.words(json.loads(conf.to_json(values)))
    done = spark_submit(SHOW, words, extension=False, env={"LC_ALL": "C.UTF-8"})
    line = next((x for x in done.stdout.splitlines() if x.startswith("TOLD")), None)
    assert line is not None, done.stderr
    text, rows = json.loads(line.removeprefix("TOLD"))
    assert text == TEXT
    ((name, mode, detail),) = rows
    assert (name, mode) == (f"p.{POINT}", "enforce")
    assert json.loads(detail)["revision"] == policy.revision(POINT)


def test_merged_settings_keep_another_extension_alive(spark_submit, tmp_path, spark_jar):
    there = {"spark.sql.extensions": "org.example.NotThere", "spark.jars": ""}
    values = conf.settings([Policy(name="p", dynamic_join_selection="null")], str(spark_jar), there)
    file = tmp_path / "spark-defaults.conf"
    file.write_text(f"{conf.to_defaults(there)}\n{conf.to_defaults(values)}\n")
    done = spark_submit(SHOW, ["--properties-file", str(file)], extension=False, own_jvm=True)
    assert f"p.{POINT}" in done.stdout, done.stderr
    assert "org.example.NotThere" in done.stderr  # Spark's warning: it was asked for


def test_doctor_finds_a_good_set_up_good(doctor, spark_jar, tmp_path):
    values = conf.settings([Policy(name="p", dynamic_join_selection="null")], str(spark_jar))
    values |= {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(tmp_path)}
    findings = doctor(*processes.words(values))
    assert {f["level"] for f in findings.values()} == {"ok"}
    assert pyspark.__version__ in findings["LIVE"]["message"]


def test_doctor_finds_wrong_settings(doctor, spark_jar):
    findings = doctor(
        *("--jars", spark_jar, "--conf", EXTENSION),
        *processes.words(
            {
                "spark.aqepilot.policies": "p,undefined",
                f"spark.aqepilot.policy.p.{POINT}": "side.max_byte > 1",
                "spark.aqepilot.policy.p.mode": "on",
                "spark.aqepilot.polices": "p",
                "spark.sql.adaptive.enabled": "false",
            }
        ),
    )
    wrong = {code for code, f in findings.items() if f["level"] == "error"}
    assert wrong >= {
        "POLICY_NOT_DEFINED",
        "POLICY_TEXT_INVALID",
        "MODE_INVALID",
        "SETTING_UNKNOWN",
        "AQE_OFF",
    }
    assert "spark.aqepilot.policies" in findings["SETTING_UNKNOWN"]["message"]
    assert "side.max_bytes" in findings["POLICY_TEXT_INVALID"]["message"]
    assert findings["EVENT_LOG_OFF"]["level"] == "warning"


def test_doctor_finds_plain_spark(doctor):
    assert "aqepilot conf" in doctor()["EXTENSION_NOT_NAMED"]["message"]


def test_doctor_finds_the_jar_missing(doctor, spark_jar):
    message = doctor("--conf", EXTENSION)["JAR_MISSING"]["message"]
    assert str(spark_jar) in message


def test_doctor_says_what_spark_said_when_it_does_not_start(doctor):
    findings = doctor("--master", "nowhere://")
    assert "Master must either be yarn" in findings["SPARK_NOT_STARTED"]["message"]


def test_doctor_reads_what_a_driver_on_the_cluster_wrote(spark_jar, tmp_path, monkeypatch):
    """Of a driver there spark-submit prints nothing."""
    silent = tmp_path / "home" / "bin" / "spark-submit"
    silent.parent.mkdir(parents=True)
    real = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    silent.write_text(f'#!/bin/sh\nunset SPARK_HOME\nexec {real} "$@" > /dev/null\n')
    silent.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))
    folder = tmp_path / "an answer's"
    conf = ("--conf", EXTENSION, "--conf", f"spark.hadoop.{MOUNT}={folder.as_uri()}")
    words = ("--", "--master", "local[1]", "--jars", spark_jar, *conf)
    printed = aqepilot_command("doctor", "--json", "--answer-in", "viewfs://test/etc/a b's", *words)
    assert "LIVE" in {f["code"] for f in json.loads(printed.stdout)["findings"]}, printed.stderr
    assert [p.name for p in (folder / "a b's").iterdir()] == []
    printed = aqepilot_command("doctor", *words, "--deploy-mode=cluster")
    assert "--answer-in" in printed.stderr


def test_the_doctors_script_writes_one_json_of_findings(spark_jar, tmp_path):
    script, answer = tmp_path / "doctor_job.py", tmp_path / "it's told.json"
    assert aqepilot_command("doctor", "--script", script).returncode == 0
    done = submitting.submit(
        tmp_path / "job",
        script.read_text("utf-8"),
        conf={"spark.sql.extensions": conf.EXTENSION, "spark.aqepilot.polices": "typo"},
        job_words=[str(answer)],
    )
    assert done.returncode == 0, done.stderr
    findings = json.loads(answer.read_text("utf-8"))
    codes = {f["code"] for f in findings["findings"]}
    assert (findings["is_well"], {"LIVE", "SETTING_UNKNOWN", "NO_POLICY"} <= codes) == (False, True)
