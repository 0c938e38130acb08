"""Two days of a job, a pack of their logs, and a third day whose policies know it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import submitting
import tiers
from aqepilot import Log, read_log

pytestmark = tiers.on("4.3")

# Each day has another date, and the same rows.
JOB = """
import json, sys
from pyspark.sql import SparkSession

folder, day = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
if day == "1":
    days = "date_add(date'2026-10-20', CAST(id % 3 AS int)) AS d"
    big = spark.range(0, 20000, 1, 4).selectExpr("id % 100 AS k", "id AS v", days)
    big.write.parquet(f"{folder}/big")
    spark.range(100).selectExpr("id AS k", "id % 7 AS w").write.parquet(f"{folder}/small")
for name in ("big", "small"):
    spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
rows = spark.sql(
    "SELECT w, count(*) AS n FROM big JOIN small USING (k) "
    f"WHERE w < 5 AND d < date'2026-11-0{day}' GROUP BY w").collect()
print("rows", json.dumps(sorted(map(list, rows))))
decided = spark.sql("SELECT answer FROM aqepilot_decisions()").collect()
print("answers", json.dumps([row.answer for row in decided]))
spark.stop()
"""
LEARNED = "CASE WHEN right.history.runs >= 2 THEN 'BROADCAST' END"
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.aqepilot.policies": "learned",
    "spark.aqepilot.policy.learned.join_selection": LEARNED,
    "spark.aqepilot.job": "daily.sales",
}


def run(tmp_path: Path, day: int, **more: str) -> dict[str, Any]:
    events = tmp_path / "logs" / str(day)
    events.mkdir(parents=True)
    done = submitting.submit(
        tmp_path / f"job-{day}",
        JOB,
        conf={**SETTINGS, "spark.eventLog.dir": events.as_uri(), **more},
        job_words=[str(tmp_path), str(day)],
        own_jvm=tiers.OWN_JVM,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    words = (line.partition(" ") for line in done.stdout.splitlines())
    return {word: json.loads(text) for word, _, text in words if text[:1] == "["}


def histories(log: Log) -> list[dict[str, Any]]:
    """The history of right sides, as the log's decisions have it."""
    facts = log.decisions.where("point = 'join_selection'").select("facts").collect()
    return [json.loads(row.facts)["right"].get("history") for row in facts]


def test_the_third_day_knows_the_first_two(spark: SparkSession, tmp_path: Path) -> None:
    first, second = run(tmp_path, 1), run(tmp_path, 2)
    to = tmp_path / "history.parquet"
    pack = read_log(spark, tmp_path / "logs").history(to, jobs=["daily.*"])
    assert {kind.kind for kind in pack.kinds} == {"PLAN", "SHUFFLE", "QUERY"}
    third = run(tmp_path, 3, **{"spark.aqepilot.history": to.as_uri()})
    assert first["rows"] == second["rows"] == third["rows"]
    broadcast = '{"strategy":"BROADCAST"}'
    assert broadcast not in first["answers"] + second["answers"]
    assert broadcast in third["answers"]
    known = [one for one in histories(read_log(spark, tmp_path / "logs" / "3")) if one]
    assert {(one["runs"], one["match"]) for one in known} == {(2, "SAME")}
    assert read_log(spark, tmp_path / "logs").history(to).held == ()
    measured = spark.read.parquet(str(to)).where("kind = 'QUERY'").orderBy("run_ms").collect()
    joins = [row for row in measured if row.signature == measured[-1].signature]
    assert [row.decided for row in joins] == [False, False, True]
