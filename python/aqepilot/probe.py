"""Finds out what a Spark session knows of aqepilot; prints it as JSON when run by spark-submit.

A folder that is named by a word also gets it, as a text file.

`doctor` submits a copy of this file to where the jobs run, so it imports nothing of aqepilot.
"""

from __future__ import annotations

import base64
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSION = "io.aqepilot.AqePilotExtension"
MARK = "aqepilot-probe:"


def is_connect(spark: SparkSession) -> bool:
    """Returns whether the session is a Spark Connect client's."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def gather(spark: SparkSession) -> dict[str, Any]:
    """Returns the facts by which one can tell whether aqepilot is live, and why not.

    Speaks SQL only, so that it works through Spark Connect as well.
    """
    facts: dict[str, Any] = {
        "spark_version": spark.version,
        "is_connect": is_connect(spark),
        "scala": _first(spark, "SELECT java_method('scala.util.Properties','versionNumberString')"),
        "conf": {row[0]: row[1] for row in spark.sql("SET").collect()},
        "is_class_found": _is_class_found(spark),
        "status": None,
        "error": None,
    }
    try:
        rows = spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
        facts["status"] = [list(row) for row in rows]
    except Exception as error:
        facts["error"] = str(error)
    return facts


def _is_class_found(spark: SparkSession) -> bool:
    """Asks the analyzer for a method that is not there: the error tells if the class is."""
    try:
        spark.sql(f"SELECT java_method('{EXTENSION}', 'noSuchMethod')").collect()
    except Exception as error:
        return "UNEXPECTED_STATIC_METHOD" in str(error)
    return True


def _first(spark: SparkSession, sql: str) -> str | None:
    try:
        return str(spark.sql(sql).collect()[0][0])
    except Exception:
        return None


if __name__ == "__main__":
    from pyspark.sql import SparkSession as _SparkSession

    _session = _SparkSession.builder.appName("aqepilot doctor").getOrCreate()
    _answer = MARK + json.dumps(gather(_session))
    print(_answer)
    sys.stdout.flush()
    for _folder in sys.argv[1:]:
        _text = base64.b64encode(_answer.encode()).decode()
        _session.sql(
            f"INSERT OVERWRITE DIRECTORY '{_folder}' USING text "
            f"SELECT decode(unbase64('{_text}'), 'UTF-8') AS value"
        )
    _session.stop()
