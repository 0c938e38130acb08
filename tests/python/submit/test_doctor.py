"""The doctor's findings, from what its probe gathers."""

import pytest

from aqepilot import AqePilotError
from aqepilot.submit.conf import EXTENSION
from aqepilot.submit.doctor import driver, probe

LIVE = [
    ["version", "aqepilot", driver.__version__, None],
    ["jar", "path", "/j/a.jar", None],
    ["spark", "built_for", "4.3.0", None],
    ["spark", "running", "4.3.0", None],
    ["point", "dynamic_join_selection", "live", None],
    ["policy", "p.dynamic_join_selection", "enforce", "{}"],
]
CONF = {
    "spark.sql.extensions": EXTENSION,
    "spark.eventLog.enabled": "true",
    "spark.eventLog.dir": "hdfs:///log",
    "spark.aqepilot.policies": "p",
    "spark.aqepilot.policy.p.dynamic_join_selection": "null",
}


def examine(status=LIVE, error=None, **conf):
    facts = {
        "spark_version": "4.3.0",
        "scala": "2.13.18",
        "is_connect": False,
        "conf": CONF | {key.replace("__", "."): value for key, value in conf.items()},
        "is_class_found": status is not None,
        "status": status,
        "error": error,
    }
    return {f.code: f for f in driver.examine(facts)}


def test_all_well_has_no_warning():
    findings = examine()
    assert {f.level for f in findings.values()} == {"ok"}
    assert set(findings) == {"LIVE", "POINT_LIVE", "POLICY", "EVENT_LOG_ON"}


@pytest.mark.parametrize(
    ("conf", "code", "level", "words"),
    [
        ({"spark__sql__adaptive__enabled": "false"}, "AQE_OFF", "error", "true"),
        ({"spark__eventLog__enabled": "false"}, "EVENT_LOG_OFF", "warning", "eventLog.dir"),
        ({"spark__aqepilot__policies": ""}, "NO_POLICY", "warning", "aqepilot conf"),
        ({"spark__aqepilot__mode": "off"}, "MODE_OFF", "warning", "off"),
        (
            {"spark.sql.adaptive.optimizer.excludedRules": "a.b.DynamicJoinSelection,c"},
            "RULE_EXCLUDED",
            "warning",
            "a.b.DynamicJoinSelection",
        ),
        (
            {"spark.sql.shuffle.partitions": "2001"},
            "SIZES_AVERAGED",
            "warning",
            "minNumPartitionsToHighlyCompress",
        ),
        (
            {
                "spark.jars": "/j/aqepilot-spark-4.3_2.13-0.1.0.jar,"
                "/j/aqepilot-spark-4.3_2.13-0.0.9.jar"
            },
            "TWO_JARS",
            "error",
            "0.0.9",
        ),
    ],
)
def test_settings_that_conflict_are_found(conf, code, level, words):
    finding = examine(**conf)[code]
    assert finding.level == level
    assert words in finding.message


def test_problems_of_the_extension_are_errors():
    findings = examine(
        [*LIVE, ["problem", "SETTING_UNKNOWN", None, "spark.aqepilot.mod is unknown"]]
    )
    assert findings["SETTING_UNKNOWN"] == (
        "error",
        "SETTING_UNKNOWN",
        "spark.aqepilot.mod is unknown",
    )


def test_a_jar_of_another_version_than_the_package_is_told():
    findings = examine([["version", "aqepilot", "0.0.1", None], *LIVE[1:]])
    assert findings["VERSIONS_DIFFER"].level == "warning"


@pytest.mark.parametrize(
    ("conf", "code", "words"),
    [
        ({"spark__aqepilot__mod": "off"}, "SETTING_UNKNOWN", "did you mean spark.aqepilot.mode"),
        ({"spark__aqepilot__mode": "on"}, "MODE_INVALID", "off, shadow, enforce"),
        ({"spark__aqepilot__policy__p__mode": "on"}, "MODE_INVALID", "policy.p.mode"),
        ({"spark__aqepilot__policies": "p,q"}, "POLICY_NOT_DEFINED", "'q'"),
        (
            {"spark__aqepilot__policy__p__dynamic_join": "x"},
            "SETTING_UNKNOWN",
            "spark.aqepilot.policy.p.dynamic_join_selection",
        ),
    ],
)
def test_settings_are_looked_at_even_when_the_extension_is_missing(conf, code, words):
    findings = examine(None, "no function", **conf)
    assert findings["JAR_MISSING"].level == "error"
    assert findings[code].level == "error"
    assert words in findings[code].message


def test_a_session_that_does_not_start_shows_what_spark_said(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    script = tmp_path / "bin" / "spark-submit"
    script.write_text("#!/bin/sh\necho no master $2 >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(AqePilotError, match=r"ended with 3[^$]*no master nowhere"):
        driver.run(["--master", "nowhere"])
    with pytest.raises(AqePilotError, match="--deploy-mode client"):
        driver.run(["--deploy-mode", "cluster"])


def test_what_a_driver_finds_by_itself_is_what_the_doctor_finds():
    """The script runs where no package of aqepilot is, and where nobody reads what it prints."""
    facts = {
        "spark_version": "4.3.0",
        "scala": "2.13.18",
        "is_connect": False,
        "conf": CONF | {"spark.sql.adaptive.enabled": "false"},
        "is_class_found": True,
        "status": [*LIVE, ["problem", "POINT_OFF", None, "why"]],
        "error": None,
    }
    assert probe.findings(facts) == driver.examine(facts)
    for status, conf, findings, code in (
        (None, CONF, False, "JAR_MISSING"),
        (None, {}, False, "EXTENSION_NOT_NAMED"),
        (None, CONF, True, "EXTENSION_FAILED"),
    ):
        wrong = facts | {"status": status, "conf": conf, "is_class_found": findings}
        assert {f.code for f in probe.findings(wrong)} == {f.code for f in driver.examine(wrong)}
        assert code in {f.code for f in probe.findings(wrong)}


def test_an_answer_is_read_with_the_settings_of_the_job(tmp_path):
    (tmp_path / "job.conf").write_text("spark.hadoop.fs.a.impl one\nspark.jars.packages g:a:1\n")
    words = ["--master", "yarn", "--conf", "spark.hadoop.fs.b.impl=two", "--conf=spark.x=1"]
    words += [f"--properties-file={tmp_path / 'job.conf'}", "--jars", "a.jar"]
    assert driver._file_system_settings(words) == {
        "spark.hadoop.fs.a.impl": "one",
        "spark.jars.packages": "g:a:1",
        "spark.jars": "a.jar",
        "spark.hadoop.fs.b.impl": "two",
    }


def test_what_a_driver_says_while_it_stops_does_not_hide_why(tmp_path, monkeypatch):
    script = tmp_path / "bin" / "spark-submit"
    script.parent.mkdir()
    stops = "26/11/25 23:38:26 INFO SparkContext: stopping\n" * 20
    message = f"java.io.FileNotFoundException: File file:/a.jar does not exist\n{stops}"
    script.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{message}END\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(AqePilotError, match=r"a\.jar does not exist"):
        driver.run(["--master", "yarn"])
