"""In each wrong environment one message says what to do: those that only a Spark shows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import aqepilot
import tiers
from aqepilot.submit import conf, jars
from conftest import CommandLine, Doctor
from wrong_environments import tells

pytestmark = tiers.ON_ONE

EXTENSION = ("--conf", f"spark.sql.extensions={conf.EXTENSION}")


def test_a_path_without_its_connector(
    spark: SparkSession, command_line: CommandLine, tmp_path: Path
) -> None:
    commands = (
        ("control", "status", "--file", "s3a://bucket/control.json"),
        ("explain", "--log", "s3a://bucket/logs"),
        ("report", "--log", "s3a://bucket/logs", "-o", tmp_path / "report.html"),
        ("check", "s3a://bucket/sales.toml"),
    )
    printed = [command_line(*words).output for words in commands]
    assert all(len(text.splitlines()) == 1 for text in printed), printed
    tells("an `s3a://` path without its connector", *printed)


def test_two_jars(doctor: Doctor, spark_jar: Path, tmp_path: Path) -> None:
    older = tmp_path / spark_jar.name.replace(jars.__version__, "0.0.1")
    shutil.copy(spark_jar, older)
    message = doctor("--jars", f"{spark_jar},{older}", *EXTENSION)["TWO_JARS"]["message"]
    tells("two aqepilot jars", message)
    assert str(older) in message


def test_a_jar_of_another_spark(doctor: Doctor, spark_jar: Path) -> None:
    others = [jar for jar in jars.available() if jar.name != spark_jar.name]
    if not others:
        pytest.skip("only this Spark's jar is built: make jars")
    findings = doctor("--jars", others[0], *EXTENSION)
    tells("a jar of another Spark", findings["WRONG_SPARK_JAR"]["message"])
    assert "LIVE" not in findings


@pytest.mark.parametrize("forbidden", ["spark.sql.extensions", "spark.driver.memory"])
def test_a_setting_that_the_platform_forbids(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, forbidden: str
) -> None:
    """A platform refuses settings as Spark refuses static ones and those of its core."""
    with pytest.raises(Exception, match=r"annot modify|CANNOT_MODIFY") as refused:
        spark.conf.set(forbidden, "x")

    def refuse(*_: Any) -> None:
        raise refused.value

    policy = {"name": "a", "skew_join": "null"}
    monkeypatch.setattr(type(spark.conf), "set", refuse)
    with pytest.raises(aqepilot.NotLiveError) as in_session:
        aqepilot.use(spark, policy)
    monkeypatch.setattr("aqepilot.gateway.running_conf", dict)
    with pytest.raises(aqepilot.NotLiveError) as at_start:
        aqepilot.configure(SparkSession.builder, policy)
    assert in_session.value.problems[0].code == "SETTING_REFUSED"
    tells("a setting that the platform forbids", str(in_session.value), str(at_start.value))
