"""The JVM in which the tests' jobs run one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import submitting

LEAVES = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
spark.range(3).write.parquet("rows")
spark.range(3).createOrReplaceGlobalTempView("rows")
spark.sparkContext.setLogLevel("ERROR")
print("left")
sys.exit(3)
"""
LOOKS = """
import json, os
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def is_there(rows):
    try:
        return bool(spark.table(rows).columns)
    except Exception:
        return False
spark._jvm.org.slf4j.LoggerFactory.getLogger("looks").warn("a line")
print(json.dumps({
    "folder": os.getcwd(),
    "setting": spark.conf.get("spark.left", None),
    "there": [rows for rows in ("parquet.rows", "global_temp.rows") if is_there(rows)],
    "mode": spark.sql("SELECT value FROM aqepilot_status() WHERE name = 'spark.aqepilot.mode'")
        .first()[0],
}))
"""


def test_a_job_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    left = {"spark.left": "yes", "spark.aqepilot.mode": "off"}
    first = submitting.submit(tmp_path / "first", LEAVES, conf=left, own_jvm=False)
    assert (first.returncode, first.stdout) == (3, "left\n"), first.stderr
    second = submitting.submit(tmp_path / "second", LOOKS, own_jvm=False)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout) == {
        "folder": str(tmp_path / "second"),
        "setting": None,
        "there": [],
        "mode": "enforce",
    }
    assert "WARN looks: a line" in second.stderr
    assert "first" not in second.stderr
