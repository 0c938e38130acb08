"""Event logs as Spark writes them, in all their forms."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

# Queries of several shapes, with what Spark's own status store says of them at the end.
JOB = """
import json, sys, time, urllib.request
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(60000).selectExpr("id", "id % 100 AS k").createOrReplaceTempView("a")
spark.range(30000).selectExpr("id", "id % 77 AS k").createOrReplaceTempView("b")
joined = "SELECT a.k, count(*) FROM a {} JOIN b ON a.id = b.id GROUP BY a.k"
for kind in ("", "LEFT", "RIGHT", "FULL", "LEFT SEMI"):
    k = "b.k" if kind == "RIGHT" else "a.k"
    spark.sql(joined.format(kind).replace("a.k", k)).collect()
for n in range(4):
    spark.sql(f"SELECT k, count(*) FROM a WHERE id > {n} GROUP BY k").collect()
    spark.sql(f"SELECT * FROM a ORDER BY k, id DESC LIMIT {n + 1}").collect()
    spark.sql("SELECT max(n) FROM (SELECT row_number() OVER (PARTITION BY k ORDER BY id) n FROM b)"
        ).collect()
spark.table("a").write.mode("overwrite").parquet(sys.argv[1])
spark.read.parquet(sys.argv[1]).groupBy("k").count().collect()
planned = spark.sql("SELECT a.k FROM a JOIN b ON a.id = b.id WHERE b.k = 3")
planned.explain()
planned.collect()
try:
    spark.sql("SELECT assert_true(id < 10) FROM a").collect()
except Exception:
    pass
url = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}/"
def rest(path):
    with urllib.request.urlopen(url + path) as found:
        return json.load(found)
def runs():  # what is killed ends after its query
    return any(stage["status"] == "ACTIVE" or stage["numActiveTasks"] for stage in rest("stages")
        ) or any(one["status"] == "RUNNING" for one in rest("sql?length=1000&details=false"))
end = time.monotonic() + 60
while True:
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
    if not runs() or time.monotonic() > end:
        break
    time.sleep(0.1)
print("store", json.dumps({
    "sql": rest("sql?length=1000&details=false"), "stages": rest("stages"), "jobs": rest("jobs")
}))
spark.sparkContext.parallelize(range(4), 4).count()
decided = spark.sql("SELECT decision_id, execution_id, fingerprint, point, join_id, side, tables, "
                     "facts_id, facts, policy, revision, mode, answer, spark_answer, "
                     "spark_strategy, applied, reason, detail, asked_us, fate, final_strategy, "
                     "subject FROM aqepilot_decisions()")
for row in decided.toJSON().collect():
    print("decision", row)
spark.stop()
"""
SETTINGS = {
    "spark.ui.enabled": "true",
    "spark.ui.port": "0",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
}


# Fields of closing events by the column that Spark's own events give.
CLOSED = {
    "fingerprint": "fingerprint",
    "dropped_events": "droppedEvents",
    "planning_ms": "planningMillis",
    "asked_us": "askedMicros",
}


def closed(lines: Iterable[str]) -> dict[int, dict[str, Any]]:
    """What closing events say, by query, under the names of columns."""
    events = (json.loads(line) for line in lines if "AqePilotQueryClosed" in line[:80])
    return {
        e["executionId"]: {name: e.get(field) for name, field in CLOSED.items()} for e in events
    }


def written(
    spark: SparkSession, lines: Iterable[str], path: Path, codec: str | None = None
) -> Path:
    """Writes lines as a log; by one of Spark's own codecs, as its event log writer does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines)
    if codec is None:
        path.write_text(text)
        return path
    jvm: Any = spark._jvm
    compression = getattr(jvm.org.apache.spark.io, "CompressionCodec$")
    stream = getattr(compression, "MODULE$").createCodec(jvm.org.apache.spark.SparkConf(), codec)
    out = stream.compressedContinuousOutputStream(jvm.java.io.FileOutputStream(str(path)))
    half = len(text) // 2
    for part in (text[:half], text[half:]):
        out.write(part.encode())
        out.flush()
    out.close()
    return path


def rolled(
    spark: SparkSession, lines: list[str], folder: Path, app: str, codec: str | None = None
) -> Path:
    """Writes lines as a rolling log of three files."""
    log = folder / f"eventlog_v2_{app}"
    size = len(lines) // 3 + 1
    suffix = f".{codec}" if codec else ""
    for n in range(3):
        part = lines[n * size : (n + 1) * size]
        written(spark, part, log / f"events_{n + 1}_{app}{suffix}", codec)
    (log / f"appstatus_{app}").touch()
    return log


def renamed(lines: Iterable[str], before: str, after: str) -> list[str]:
    """The same log, of another application."""
    return [line.replace(before, after) for line in lines]


def event(name: str, **fields: Any) -> str:
    """A line of a log."""
    return json.dumps({"Event": name, **fields}, separators=(",", ":"))
