"""The JVM in which the tests' jobs run one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import submitting

BOTH = """
import json, os, sys
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def there():
    found = []
    for rows in "parquet.rows", "global_temp.rows":
        try:
            spark.table(rows).columns
            found.append(rows)
        except AnalysisException:
            pass
    return found
"""
LEAVES = (
    BOTH
    + """
spark.range(3).write.parquet("rows")
spark.range(3).createOrReplaceGlobalTempView("rows")
spark.sparkContext.setLogLevel("ERROR")
print(*there())
sys.exit(3)
"""
)
LOOKS = (
    BOTH
    + """
spark._jvm.org.slf4j.LoggerFactory.getLogger("looks").warn("a line")
print(json.dumps({
    "folder": os.getcwd(),
    "setting": spark.conf.get("spark.left", None),
    "there": there(),
    "mode": spark.sql("SELECT value FROM aqepilot_status() WHERE name = 'spark.aqepilot.mode'")
        .first()[0],
}))
"""
)


def test_a_job_finds_nothing_of_the_one_before(tmp_path: Path) -> None:
    left = {"spark.left": "yes", "spark.aqepilot.mode": "off"}
    first = submitting.submit(tmp_path / "first", LEAVES, conf=left, own_jvm=False)
    assert (first.returncode, first.stdout) == (3, "parquet.rows global_temp.rows\n"), first.stderr
    second = submitting.submit(tmp_path / "second", LOOKS, own_jvm=False)
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout) == {
        "folder": str(tmp_path / "second"),
        "setting": None,
        "there": [],
        "mode": "enforce",
    }
    assert "WARN looks: a line" in second.stderr
    assert str(tmp_path / "first") not in second.stderr
