"""Runs what was drawn, in a driver with little memory; writes an outcome for each run."""

import json
import os
import signal
import sys

from pyspark.sql import SparkSession

# Longer than any run takes that does not hang, on a busy machine, too.
MOST_SECONDS = 300


def outcome(spark, drawn, policies):
    """Returns how one run went, as a mapping."""
    session = spark.newSession()
    for view in sys.argv[2:]:
        session.read.parquet(f"{sys.argv[1]}/{view}").createOrReplaceTempView(view)
    for key, value in drawn["settings"].items():
        session.conf.set(key, value)
    for point, text in policies.items():
        session.conf.set(f"spark.aqepilot.policy.drawn.{point}", text)
    session.conf.set("spark.aqepilot.policies", "drawn" if policies else "")
    signal.alarm(MOST_SECONDS)
    results = {}
    try:
        (row,) = session.sql(drawn["sql"]).collect()
        results["rows"] = [row.n, row.h]
    except Exception as error:
        lines = [line for line in str(error).splitlines() if "rror" in line or "xception" in line]
        results["error"] = " | ".join(lines[:3])[:600] or repr(error)[:600]
    finally:
        signal.alarm(0)
    sql = "SELECT point, reason, applied, fate FROM aqepilot_decisions()"
    results["decisions"] = [list(row) for row in session.sql(sql).collect()]
    status = session.sql("SELECT kind, name, value FROM aqepilot_status()").collect()
    results["problems"] = [row.name for row in status if row.kind == "problem"]
    return results


def main():
    """Reads lines of runs from standard input; answers each with a line on standard output."""
    # Spark's JVM outlives this process a while, and would hold its standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    spark = SparkSession.builder.getOrCreate()
    print(json.dumps({"ready": spark.version}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        results = outcome(spark, asked, asked["policies"])
        spark._jvm.System.gc()
        print(json.dumps(results), file=answers, flush=True)


main()
