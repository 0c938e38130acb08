"""SQL's `java_method` and `reflect` reach nothing of ours, so that Python stays forbidden."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession

TEXT = "python:evil:f"
CALLS = (
    "{}('org.apache.spark.sql.aqepilot.python.SessionFunctions{}', 'allow', "
    "'{text}', '{path}', '{python}')",
    "{}('org.apache.spark.sql.aqepilot.python.WorkerProcess{}', 'start', '{python}', '{path}', 1L)",
    "{}('org.apache.spark.sql.aqepilot.settings.AqePilotConf{}', 'register')",
    "{}('org.apache.spark.sql.aqepilot.plans.JoinState{}', 'anyOverridden_$eq', true)",
)


def is_reached(spark: SparkSession, call: str) -> bool:
    """Calls a method: one without a result gives 'null', and try_reflect NULL for what fails."""
    try:
        return spark.sql(f"SELECT {call} FROM VALUES (1)").collect()[0][0] is not None
    except Exception:
        return False


def test_python_stays_forbidden(spark: SparkSession, tmp_path: Path) -> None:
    """A client that has only SQL cannot allow a function, nor import a module in the driver."""
    imported = tmp_path / "imported"
    Path(tmp_path, "evil.py").write_text(
        f"open({str(imported)!r}, 'w').close()\ndef f(facts):\n    return None\n", encoding="utf-8"
    )
    reflecting = ["java_method", "reflect"]
    if not spark.version.startswith("3."):
        reflecting.append("try_reflect")
    # An object's own methods, of the class whose name ends in $, are not static.
    calls = [
        call.format(function, suffix, text=TEXT, path=tmp_path, python=sys.executable)
        for function in reflecting
        for call in CALLS
        for suffix in ("", "$")
    ]
    assert [call for call in calls if is_reached(spark, call)] == []
    assert all(is_reached(spark, f"{f}('java.lang.Math', 'abs', -3)") for f in reflecting)
    checked = spark.sql(f"SELECT code FROM aqepilot_check('skew_join', '{TEXT}')").collect()
    assert [row.code for row in checked] == ["PYTHON_NOT_ALLOWED"]
    assert not imported.exists()
