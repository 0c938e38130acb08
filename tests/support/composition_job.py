"""Runs queries beside the rules of `other_extension.scala`; prints what each came to.

spark-submit composition_job.py <JSON: the tables' folder, and what to run in each order of the
extensions, a SparkContext each>
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import plans
import skewed

KINDS = (
    *("hint", "resolution", "post-hoc resolution", "check", "plan normalization"),
    *("pre-operator optimization", "optimizer", "pre-CBO", "join"),
)


def run(session: SparkSession, sql: str, name: str, texts: dict[str, str]) -> dict[str, Any]:
    """One query under one policy."""
    for point, text in texts.items():
        session.conf.set(f"spark.aqepilot.policy.{name}.{point}", text)
    if texts:
        session.conf.set("spark.aqepilot.policies", name)
    did: Any = session._jvm.platform.Did
    for kind in KINDS:
        did.take(kind)
    df = session.sql(sql)
    rows = df.collect()
    counts = {kind: did.take(kind) for kind in KINDS}
    return {
        "rows": [len(rows), sum(zlib.crc32(str(row).encode()) for row in rows)],
        "plan": plans.canonical_plan(df),
        "did": counts,
        "reasons": reasons(session, name) if texts else [],
    }


def reasons(session: SparkSession, policy: str) -> list[list[str]]:
    """By point, of the decisions that one policy's answers led to."""
    recorded = session.sql("SELECT DISTINCT point, policy, reason FROM aqepilot_decisions()")
    return sorted([row.point, row.reason] for row in recorded.collect() if row.policy == policy)


def run_all(spark: SparkSession, order: str, work: dict[str, Any], folder: Path) -> None:
    if not folder.exists():
        skewed.write(spark, folder)
    for case in work["cases"]:
        session = spark.newSession()
        skewed.register(session, folder)
        skewed.settings(session, {"platform.does": case["does"], **case["settings"]})
        for name, texts in (work["policies"] | case["policies"]).items():
            answer = run(session, case["sql"], name, texts)
            print("RESULT", json.dumps([order, case["name"], name, answer]), flush=True)


def main() -> None:
    task = json.loads(sys.argv[1])
    for order, work in task["orders"].items():
        builder = SparkSession.builder.config("spark.sql.extensions", work["extensions"])
        spark = builder.getOrCreate()
        run_all(spark, order, work, Path(task["folder"]))
        spark.stop()


if __name__ == "__main__":
    main()
