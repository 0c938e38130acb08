"""What Spark makes of a job whose jar is missing: on YARN, `make yarn` tries it."""

from __future__ import annotations

import pytest

import tiers
from conftest import Submit

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


@pytest.mark.parametrize(
    "words",
    tiers.share(
        [
            ["--jars", "missing.jar"],
            ["--jars", "file:///missing.jar"],
            ["--jars", "local:///missing.jar"],
            ["--driver-class-path", "/missing.jar"],
        ]
    ),
    ids=lambda words: words[1],
)
def test_a_jar_missing_on_the_drivers_disk_leaves_plain_spark(
    spark_submit: Submit, words: list[str]
) -> None:
    done = spark_submit(JOB, words, conf=CONF, extension=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "rows 50" in done.stdout
    assert "Cannot use io.aqepilot.AqePilotExtension" in done.stderr


def test_a_jar_missing_on_another_file_system_fails_the_submission(spark_submit: Submit) -> None:
    """`spark-submit` downloads it before there is a driver, whatever it is a jar of."""
    done = spark_submit(
        JOB, ["--jars", "viewfs://test/jars/missing.jar"], conf=CONF, extension=False
    )
    assert done.returncode != 0
    assert "rows" not in done.stdout
    assert "FileNotFoundException" in done.stderr
