"""Why aqepilot is not live, and what to do, for each way of going wrong."""

import pytest

from aqepilot.submit.conf import EXTENSION
from aqepilot.submit.doctor import driver, probe

JAR = "/j/aqepilot-spark-4.3_2.13-0.1.0.jar"


def facts(conf=None, **others):
    return {
        "spark_version": "4.3.0",
        "scala": "2.13.18",
        "is_connect": False,
        "conf": conf or {},
        "is_class_found": False,
        "status": None,
        "error": "no such function",
    } | others


@pytest.mark.parametrize(
    ("facts_of_driver", "code", "words"),
    [
        (facts(), "EXTENSION_NOT_NAMED", ["is not set", "configure", "aqepilot conf", "either"]),
        (
            facts({"spark.sql.extensions": "org.a.One"}, is_class_found=True),
            "EXTENSION_NOT_NAMED",
            ["is org.a.One, without", "Its jar is on the class path"],
        ),
        (
            facts({"spark.sql.extensions": EXTENSION}),
            "JAR_MISSING",
            ["plain Spark", "--jars", "comma"],
        ),
        (
            facts({"spark.sql.extensions": EXTENSION, "spark.jars": JAR}, scala="2.12.18"),
            "WRONG_SPARK_JAR",
            [JAR, "Scala 2.13", "Scala 2.12"],
        ),
        (
            facts(
                {"spark.sql.extensions": EXTENSION, "spark.driver.extraClassPath": f"/a:{JAR}"},
                spark_version="3.5.6-amzn-1",
                is_class_found=True,
            ),
            "WRONG_SPARK_JAR",
            ["was built for Spark 4.3", "3.5.6-amzn-1"],
        ),
        (
            facts(is_connect=True),
            "CONNECT_SERVER_WITHOUT_AQEPILOT",
            ["server", "not named", f"spark.sql.extensions={EXTENSION}", "--jars"],
        ),
        (
            facts({"spark.sql.extensions": EXTENSION}, is_connect=True),
            "CONNECT_SERVER_WITHOUT_AQEPILOT",
            ["not on the server's class path"],
        ),
        (
            facts({"spark.sql.extensions": EXTENSION, "spark.jars": JAR}, is_class_found=True),
            "EXTENSION_FAILED",
            ["log", "no such function"],
        ),
        (
            facts(status=[["problem", "WRONG_SPARK_JAR", None, "this jar was built for 3.5"]]),
            "WRONG_SPARK_JAR",
            ["built for 3.5"],
        ),
    ],
)
def test_each_cause_has_its_code_and_its_cure(facts_of_driver, code, words):
    (problem,) = driver.why_not_live(facts_of_driver)
    assert problem.code == code
    for word in words:
        assert word in problem.message


def test_a_live_extension_has_no_problem():
    assert driver.why_not_live(facts(status=[["version", "aqepilot", "0.1.0", None]])) == []


def test_two_jars_are_told_and_one_named_twice_is_not():
    older = "hdfs:///k/aqepilot-spark-4.3_2.13-0.0.9.jar"
    conf = {"spark.jars": f"/a.jar,{JAR},{older}", "spark.driver.extraClassPath": f"{JAR}:/x"}
    assert probe.aqepilot_jars(conf) == [JAR, older]
    problem = probe.two_jars(conf)
    assert problem is not None
    assert older in problem.message
    assert probe.two_jars({"spark.jars": f"{JAR},{JAR}"}) is None
