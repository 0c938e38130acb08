"""In a small driver, decisions whose tables would not fit are refused, and the rows are Spark's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

import tiers

ROWS = 2_500_000
JOB = f"""
import json
from pyspark.sql import SparkSession


spark = SparkSession.builder.getOrCreate()
spark.range(0, {ROWS}, 1, 4).selectExpr("id AS k").createOrReplaceTempView("narrow")
spark.range(0, {ROWS}, 1, 4).selectExpr("id * 2 AS k").createOrReplaceTempView("other")
files = spark.range(0, 3 * {ROWS}, 1, 4).selectExpr("hash(id) & 4095 AS k")
files.write.mode("overwrite").parquet("files")
spark.read.parquet("files").createOrReplaceTempView("files")
spark.range(100).selectExpr("id AS k").createOrReplaceTempView("few")
# Only join partners that plain Spark joins by sorting, or whose table it spreads over many tasks.
BOTH = "SELECT {{}} count(*) AS n FROM other o JOIN narrow n ON o.k = n.k"
HINTED = BOTH.format("/*+ SHUFFLE_HASH(n) */")
MANY = {{
    "spark.sql.shuffle.partitions": "40",
    "spark.sql.adaptive.coalescePartitions.minPartitionNum": "40",
}}
RUNS = {{
    "dynamic_join_selection": (
        BOTH.format(""),
        "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END",
        {{"spark.sql.shuffle.partitions": "1"}},
    ),
    "join_selection": (
        "SELECT count(*) AS n FROM few JOIN files ON few.k = files.k",
        "named_struct('strategy', 'BROADCAST', 'build_side', 'RIGHT')",
        {{}},
    ),
    "partition_coalescing": (
        HINTED,
        "named_struct('target_bytes', aqepilot_bytes('1g'), 'min_partitions', 1)",
        MANY,
    ),
    "shuffle_partitions": (
        HINTED, "1", MANY | {{"spark.sql.adaptive.coalescePartitions.enabled": "false"}}
    ),
}}
found = {{}}
for point, (query, text, settings) in RUNS.items():
    counts = []
    for policies in ("", "test"):
        own = spark.newSession()
        for name in ("narrow", "other", "few", "files"):
            spark.table(name).createOrReplaceGlobalTempView(name)
            own.table("global_temp." + name).createOrReplaceTempView(name)
        for key, value in settings.items():
            own.conf.set(key, value)
        own.conf.set(f"spark.aqepilot.policy.test.{{point}}", text)
        own.conf.set("spark.aqepilot.policies", policies)
        counts += [row.n for row in own.sql(query).collect()]
    decided = own.sql("SELECT reason, detail FROM aqepilot_decisions()").collect()
    found[point] = [*counts, [list(d) for d in decided]]
print(json.dumps(found))
"""
REFUSED = {
    "dynamic_join_selection": "GUARD_HASH_BUILD_BYTES",
    "join_selection": "GUARD_BROADCAST_BYTES",
    "partition_coalescing": "GUARD_HASH_BUILD_BYTES",
    "shuffle_partitions": "GUARD_HASH_BUILD_BYTES",
}


# Joins of millions of rows, on a busy machine.
@pytest.mark.timeout(900)
@tiers.LONG
def test_what_does_not_fit_a_small_driver_is_refused(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    conf = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    done = spark_submit(JOB, conf=conf, memory="600m", timeout_s=800)
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    for point, (plain, with_policy, decided) in answer.items():
        assert plain == with_policy > 0, point
        assert REFUSED[point] in [reason for reason, _ in decided], (point, decided)
