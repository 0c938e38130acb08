"""A live UI and a history server of this Python's Spark, for a browser to open.

Run by a Python that has Spark: `python spark_uis.py FOLDER planned|injected`. Prints one line of
JSON: the addresses of the two, and the queries with decisions. Ends with its input.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import aqepilot
import history_servers
import injections
import submitting
from aqepilot import control

SPLIT = "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> int(2)))"
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "6",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    "spark.sql.adaptive.forceOptimizeSkewedJoin": "true",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.aqepilot.policies": "sales,careless",
    "spark.aqepilot.policy.sales.skew_join": SPLIT,
    "spark.aqepilot.policy.sales.when": "query.description LIKE 'a skewed join%'",
    "spark.aqepilot.policy.careless.dynamic_join_selection": "'BROADCAST'",
    "spark.aqepilot.policy.careless.mode": "shadow",
    "spark.aqepilot.policy.faulty.join_selection": "left.misspelt > 1",
    "spark.aqepilot.experiment.name": "split_sales",
    "spark.aqepilot.experiment.arms": "careless:1,sales+careless:99",
    "spark.aqepilot.job": "daily.sales",
    "spark.aqepilot.ask.deadline": "20s",
}
_ALL = " ".join(injections.STRINGS)


def main() -> None:
    folder, content = Path(sys.argv[1]), sys.argv[2]
    events, logs = folder / "events", folder / "logs"
    for each in (events, logs):
        each.mkdir(parents=True)
    is_injected = content == "injected"
    own = injected(folder) if is_injected else {}
    builder = SparkSession.builder.master("local[2]").appName(_ALL if is_injected else "sales")
    settings = SETTINGS | own | {"spark.eventLog.dir": events.as_uri()}
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = aqepilot.configure(builder).getOrCreate()
    planned(spark)
    if is_injected:
        for number, text in enumerate(injections.STRINGS):
            named(spark, number, text)
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    rows = spark.sql(
        "SELECT DISTINCT execution_id FROM aqepilot_decisions() WHERE execution_id IS NOT NULL"
    ).collect()
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60_000)
    app_id = spark.sparkContext.applicationId
    (log,) = (file for file in events.iterdir() if not file.name.startswith("."))
    shutil.copy(log, logs / app_id)
    with history_servers.running(logs, folder / "log", jar=submitting.spark_jar()) as server:
        addresses = {
            "live": spark.sparkContext.uiWebUrl,
            "history": f"{server.url}/history/{app_id}",
            "queries": sorted(row.execution_id for row in rows),
        }
        print(json.dumps(addresses), flush=True)
        sys.stdin.read()
    spark.stop()


def planned(spark: SparkSession) -> None:
    """A join that a policy splits, one that is left alone, and a group."""
    rows = spark.range(20_000).repartition(6).selectExpr("id AS n", "if(id < 9000, 1, id) AS k")
    rows.createOrReplaceTempView("rows")
    for description, statement in {
        "a skewed join": "SELECT a.n FROM rows a JOIN rows b ON a.k = b.n",
        "a join that is left alone": "SELECT a.n FROM rows a JOIN rows b ON a.n = b.n",
        "a group": "SELECT k, count(*) FROM rows GROUP BY k",
    }.items():
        spark.sparkContext.setJobDescription(description)
        spark.sql(statement).write.format("noop").mode("overwrite").save()


def injected(folder: Path) -> dict[str, str]:
    """Settings and a control file whose names, values and reasons are texts of users."""
    path = folder / "control.json"
    for number, text in enumerate(injections.STRINGS):
        control.lower(str(path), "shadow", {"policy": f"p{number}"}, reason=text, by=text)
    settings = {"spark.aqepilot.control": str(path)}
    for number, text in enumerate(injections.STRINGS):
        prefix = f"spark.aqepilot.policy.w{number}"
        settings |= {f"{prefix}.mode": text, f"{prefix}.when": text, f"{prefix}.skew_join": text}
        settings[f"spark.aqepilot.{text.replace('=', '')}"] = text
    names = ",".join(f"w{number}" for number in range(len(injections.STRINGS)))
    return settings | {
        "spark.aqepilot.policies": f"sales,careless,{names}",
        "spark.aqepilot.experiment.name": _ALL,
        "spark.aqepilot.experiment.arms": f"sales:50,{_ALL}:50",
    }


def named(spark: SparkSession, number: int, text: str) -> None:
    """A query whose description, job, policy, columns and tables have a text of a user's."""
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    policy = f"CASE WHEN query.description = '{quoted}' THEN 'SHUFFLE_HASH' END"
    spark.conf.set("spark.aqepilot.policies", "p")
    spark.conf.set("spark.aqepilot.policy.p.join_selection", policy)
    spark.conf.set("spark.aqepilot.job", text)
    spark.conf.set("spark.aqepilot.run", text)
    spark.sparkContext.setJobDescription(text)
    column = f"c{number} {text}"
    one = spark.range(9).toDF(column).alias(text)
    other = spark.range(9).toDF("b")
    on = one[f"`{column.replace('`', '``')}`"] == other["b"]
    one.join(other, on).count()


if __name__ == "__main__":
    main()
