"""Runs queries plain and under sets of policies; prints what each run came to.

spark-submit job.py <JSON: workloads, sets, settings, rows, is_reference>

Where it is the reference, it keeps plain Spark's rows; else it compares with them.
"""

from __future__ import annotations

import json
import pickle
import re
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import generated
import rows
import tpcds
import tpch

WORKLOADS: dict[str, Any] = {"tpch": tpch, "tpcds": tpcds}
POLICY = "spark.aqepilot.policy.matrix."
POINTS = (
    *("join_reorder", "join_selection", "shuffle_partitions", "dynamic_join_selection"),
    *("skew_join", "partition_coalescing", "cost_evaluation", "write_distribution"),
)
NODE = re.compile(r"^[\s:|+*()\d-]*([A-Z]\w+)")


def final_plan(df: DataFrame) -> str:
    """Returns the text of the plan that ran."""
    return df._jdf.queryExecution().executedPlan().toString().partition("Initial Plan")[0]


def operators(plan: str) -> Counter[str]:
    """Returns how many operators of a plan's text are an engine's, and how many Spark's."""
    names = [node[1] for line in plan.splitlines() if (node := NODE.match(line))]
    return Counter("engine" if name.startswith("Comet") else "spark" for name in names)


def main() -> None:
    asked = json.loads(sys.argv[1])
    root = SparkSession.builder.getOrCreate()
    last = -1
    for workload, work in asked["workloads"].items():
        spark = root.newSession()
        generated.register(spark, Path(work["tables"]))
        for key, value in asked["settings"].items():
            spark.conf.set(key, value)
        numbered = WORKLOADS[workload].queries()
        for name, policies in asked["sets"].items():
            for point in POINTS:
                spark.conf.unset(POLICY + point)
            for point, text in policies.items():
                spark.conf.set(POLICY + point, text)
            spark.conf.set("spark.aqepilot.policies", "matrix" if policies else "")
            spark.conf.set("spark.aqepilot.mode", "enforce" if policies else "off")
            for number in work["numbers"]:
                one = {"workload": workload, "set": name, "query": number}
                path = Path(asked["rows"], f"{workload}-{number}.pickle")
                df = spark.sql(numbered[number])
                started = time.monotonic()
                try:
                    actual = [tuple(row) for row in df.collect()]
                except Exception as error:
                    one["error"] = str(error)[:600]
                    actual = None
                one["seconds"] = time.monotonic() - started
                if actual is not None:
                    one["operators"] = operators(final_plan(df))
                    if asked["is_reference"] and not policies:
                        path.write_bytes(pickle.dumps(actual))
                    try:
                        rows.assert_same_rows(actual, pickle.loads(path.read_bytes()), rel_tol=1e-9)
                    except AssertionError as difference:
                        one["differ"] = str(difference)[:1000]
                decided = spark.sql(
                    "SELECT decision_id, point, reason, fate FROM aqepilot_decisions()"
                    f" WHERE decision_id > {last}"
                ).collect()
                last = max((d.decision_id for d in decided), default=last)
                one["decisions"] = [list(d[1:]) for d in decided]
                print("FOUND " + json.dumps(one), flush=True)
        status = spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
        faults = [
            list(row)
            for row in status
            if row.kind == "problem" or (row.kind == "counter" and row.name.startswith("errors."))
        ]
        print("FOUND " + json.dumps({"workload": workload, "faults": faults}), flush=True)


if __name__ == "__main__":
    main()
