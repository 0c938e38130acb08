"""Runs queries with plain Spark and with policies; prints what each run came to.

spark-submit parity_job.py <JSON of `parity.Work`>

Which of two small sides is broadcast is a race in plain Spark already: AQE looks at the stages that
have finished when it wakes. On ``local[1]`` they finish one after the other, and a query whose plan
differs is run again, plain and not, until plain Spark has made that plan too or `ATTEMPTS` are up.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import generated
import plans
import rows
import tpcds
import tpch

POLICY = "spark.aqepilot.policy.parity."
STATISTICS = "spark.sql.cbo.enabled"
ATTEMPTS = 12
READ = "AQEShuffleRead"
FINAL = "== Final =="
WORKLOADS = {"tpch": tpch, "tpcds": tpcds}


def did(plan: str) -> Counter[str]:
    """How often Spark's own rules changed a query, by its final plan."""
    done: Counter[str] = Counter()
    lines = [line.strip() for line in plan.splitlines()]
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        done["joins split"] += "Join(skew=true)" in line
        if line.startswith(READ):
            kind = line.removeprefix(READ).partition("PartitionSpec(")[0].rpartition(" ")[0].strip()
            done[f"reads {kind or 'as they are'}"] += 1
            done["rebalances split"] += "skewed" in kind and "REBALANCE" in below
    return done


def rules_fired(spark: SparkSession, since: int) -> tuple[Counter[str], int]:
    """What Spark's own rules said by the record since a decision, and the last decision."""
    reasons: Counter[str] = Counter()
    recorded = spark.sql(f"SELECT * FROM aqepilot_decisions() WHERE decision_id > {since}")
    for row in recorded.collect():
        since = max(since, row.decision_id)
        if row.point == "dynamic_join_selection" and row.facts:
            conversion = json.loads(row.facts)["spark"].get("conversion")
            reasons[row.spark_answer or "nothing"] += 1
            reasons["convert"] += conversion in ("LEFT", "RIGHT")
        elif row.point == "join_selection" and row.spark_answer:
            reasons[f"selects {json.loads(row.spark_answer)['strategy']}"] += 1
        elif row.point == "join_reorder" and row.applied:
            reasons["orders chains"] += 1
        elif row.point == "cost_evaluation" and row.subject.endswith("re-plan") and row.applied:
            reasons[f"goes on with {row.final_strategy}"] += 1
    return reasons, since


def compared(spark: SparkSession, sql: str, policies: dict[str, dict[str, str]]) -> dict[str, Any]:
    """One query: for each policy whether its plan is one that plain Spark makes, else all plans."""

    def run(mode: str) -> plans.Executed:
        spark.conf.set("spark.aqepilot.mode", mode)
        df = spark.sql(sql)
        executed = plans.execute(df)
        return executed._replace(plan=f"{plans.initial_plan(df)}\n{FINAL}\n{executed.plan}")

    first = run("off")
    plain = {first.plan: first.rows}
    differ = {}
    for name, texts in policies.items():
        for point, text in texts.items():
            spark.conf.set(POLICY + point, text)
        for _ in range(ATTEMPTS):
            after = run("enforce")
            if after.plan in plain:
                break
            again = run("off")
            plain.setdefault(again.plan, again.rows)
        if after.plan not in plain:
            differ[name] = [after.plan, *sorted(plain)]
        rows.assert_same_rows(after.rows, plain.get(after.plan, first.rows))
    return {"first": first, "differ": differ, "plain_plans": len(plain)}


def main() -> None:
    work = json.loads(sys.argv[1])
    workload = WORKLOADS[work["workload"]]
    numbered = workload.queries()
    queries = {str(number): numbered[number] for number in work["numbers"]} | work["further"]
    root = SparkSession.builder.getOrCreate()
    for setting, conf in work["settings"].items():
        spark = root.newSession()
        has_statistics = conf.get(STATISTICS) == "true"
        (generated.analyse if has_statistics else generated.register)(spark, Path(work["tables"]))
        for key, value in {**conf, "spark.aqepilot.policies": "parity"}.items():
            spark.conf.set(key, value)
        last = -1
        for query, text in queries.items():
            if setting in work["rebalanced"]:
                text = f"SELECT /*+ REBALANCE */ * FROM (\n{text}\n)"
            result = compared(spark, text, work["policies"])
            first = result.pop("first")
            if query not in work["further"]:
                answer = workload.answer(int(query), work["scale"])
                rows.assert_same_rows(first.rows, answer, rel_tol=1e-5, numbers_alike=True)
            fired, last = rules_fired(spark, last)
            result["fired"] = fired + did(first.plan.partition(FINAL)[2])
            print("RESULT", json.dumps([setting, query, result]), flush=True)


if __name__ == "__main__":
    main()
