"""Runs the TPC-H queries with plain Spark and with policies; prints what each run came to.

Which of two small sides is broadcast is a race in plain Spark already: AQE looks at the stages that
have finished when it wakes. On ``local[1]`` they finish one after the other, and a query whose plan
differs is run again, plain and not, until plain Spark has made that plan too or `ATTEMPTS` are up.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import Any

from pyspark.sql import SparkSession

import plans
import rows
import tpch

KEY = "spark.aqepilot.policy.parity.dynamic_join_selection"
ATTEMPTS = 12


def fired(spark: SparkSession) -> Counter[str]:
    """How often Spark's own rules had something to say, by what they said."""
    said: Counter[str] = Counter()
    for row in spark.sql("SELECT spark_answer, facts FROM aqepilot_decisions()").collect():
        conversion = json.loads(row.facts)["spark"].get("conversion")
        said[row.spark_answer or "nothing"] += 1
        said["convert"] += conversion in ("LEFT", "RIGHT")
    return said


def compared(spark: SparkSession, sql: str, texts: dict[str, str]) -> dict[str, Any]:
    """One query: for each policy whether its plan is one that plain Spark makes, else both."""

    def run(mode: str) -> plans.Executed:
        spark.conf.set("spark.aqepilot.mode", mode)
        return plans.execute(spark.sql(sql))

    first = run("off")
    plain = {first.plan}
    differ = {}
    for name, text in texts.items():
        spark.conf.set(KEY, text)
        for _ in range(ATTEMPTS):
            after = run("enforce")
            rows.assert_same_rows(after.rows, first.rows)
            if after.plan in plain:
                break
            plain.add(run("off").plan)
        if after.plan not in plain:
            differ[name] = [after.plan, *sorted(plain)]
    return {"differ": differ, "rows": first.rows}


def main() -> None:
    scale, settings, texts = float(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
    root = SparkSession.builder.getOrCreate()
    for name, conf in settings.items():
        said: Counter[str] = Counter()
        for number, sql in tpch.queries().items():
            spark = root.newSession()
            tpch.register(spark, scale)
            for key, value in {**conf, "spark.aqepilot.policies": "parity"}.items():
                spark.conf.set(key, value)
            result = compared(spark, sql, texts)
            rows.assert_same_rows(
                result["rows"], tpch.answer(number, scale), rel_tol=1e-6, numbers_alike=True
            )
            said += fired(spark)
            print("RESULT", json.dumps([name, number, result["differ"]]), flush=True)
        print("FIRED", json.dumps([name, said]), flush=True)


if __name__ == "__main__":
    main()
