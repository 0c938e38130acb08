"""What Spark makes of a job whose jar is missing: on YARN, `make yarn` tries it."""

from __future__ import annotations

import re

import pytest

import tiers
from conftest import Submit

pytestmark = tiers.ON_ONE

JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("rows", spark.range(100).join(spark.range(50), "id").count())
"""
CONF = {
    "spark.sql.extensions": "io.aqepilot.AqePilotExtension",
    "spark.aqepilot.policies": "p",
    "spark.aqepilot.policy.p.join_selection": "'SHUFFLE_HASH'",
    "spark.hadoop.fs.viewfs.mounttable.test.link./jars": "file:///",
}


@tiers.EIGHTH
@pytest.mark.parametrize(
    "words",
    [
        ["--jars", "missing.jar"],
        ["--jars", "file:///missing.jar"],
        ["--driver-class-path", "/missing.jar"],
    ],
    ids=lambda words: words[1],
)
def test_a_jar_missing_on_the_drivers_disk_leaves_plain_spark(
    spark_submit: Submit, words: list[str]
) -> None:
    done = spark_submit(JOB, words, conf=CONF, extension=False, own_jvm=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 50" in done.stdout
    assert "Cannot use io.aqepilot.AqePilotExtension" in done.stderr


@tiers.EIGHTH
@pytest.mark.parametrize("uri", ["viewfs://test/jars/missing.jar", "local:///missing.jar"])
def test_a_missing_jar_that_spark_fetches_unseen_fails_the_job(
    spark_submit: Submit, uri: str
) -> None:
    """`spark-submit` downloads it, or an executor takes it, whatever it is a jar of."""
    done = spark_submit(JOB, ["--jars", uri], conf=CONF, extension=False, own_jvm=True)
    assert done.returncode != 0
    assert "rows" not in done.stdout
    assert "missing.jar" in done.stderr
    assert re.search("FileNotFoundException|NoSuchFileException|does not exist", done.stderr)
