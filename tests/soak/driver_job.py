"""One driver of ``make soak ARGS="--by drivers"``: runs a query again and again, writes down how.

It is ready when it prints so, begins when the folder of all has a file ``go``, and ends with
``stop``. Each line that it writes is a query, some decisions, or at the end the status.
"""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

QUERY = "SELECT id % 3 AS k, count(*) AS n FROM range(30) GROUP BY 1"
ROWS = {0: 10, 1: 10, 2: 10}
DECISIONS = (
    "SELECT decision_id, execution_id, point, mode, applied, reason, "
    "get_json_object(facts, '$.query.description') AS query "
    "FROM aqepilot_decisions() WHERE decision_id > {last} AND policy IS NOT NULL"
)
STATUS = "SELECT kind, name, value FROM aqepilot_status() WHERE kind IN ('control', 'policy')"
# Queries between two looks at the record, whose ring holds more than so many have.
BETWEEN_LOOKS = 10


def ran(spark: SparkSession, number: int) -> dict[str, Any]:
    """Runs the query; says when, and what came of it."""
    spark.sparkContext.setJobDescription(str(number))
    plan, error, began = "", None, time.time()
    try:
        df = spark.sql(QUERY)
        rows = {row.k: row.n for row in df.collect()}
        ended = time.time()
        error = None if rows == ROWS else f"other rows: {rows}"
        plan = df._jdf.queryExecution().executedPlan().toString()
    except Exception as failed:
        ended, error = time.time(), f"{type(failed).__name__}: {failed}"[:500]
    numbers = re.findall(r"hashpartitioning\(.*, (\d+)\)", plan)
    return {
        "query": number,
        "began": began,
        "ended": ended,
        "error": error,
        "partitions": int(numbers[0]) if numbers else None,
    }


def main(common: Path, written: Path, every_s: float) -> None:
    spark = SparkSession.builder.getOrCreate()
    last, number = -1, 0

    def rows(sql: str) -> list[dict[str, Any]]:
        return [row.asDict() for row in spark.sql(sql).collect()]

    for _ in range(3):
        ran(spark, -1)
    rows(DECISIONS.format(last=last))
    print("ready", flush=True)
    while not (common / "go").exists():
        time.sleep(0.2)
    with written.open("w", encoding="utf-8") as out:

        def look() -> int:
            made = rows(DECISIONS.format(last=last))
            out.write(json.dumps({"decisions": made}) + "\n")
            return max((d["decision_id"] for d in made), default=last)

        last = look()
        time.sleep(time.time() * 7919 % every_s)  # not all at once
        while not (common / "stop").exists():
            result = ran(spark, number)
            out.write(json.dumps(result) + "\n")
            number += 1
            if number % BETWEEN_LOOKS == 0:
                last = look()
            time.sleep(max(0.05, result["began"] + every_s - time.time()))
        look()
        out.write(json.dumps({"status": rows(STATUS)}) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
