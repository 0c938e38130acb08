"""Makes decisions, then opens pages of the live UI; prints what was decided and seconds of each.

One query makes some. Its events are posted again as those of further queries, and its decisions as
those of one more query, so that it has half of them all.

spark-submit ui.py <decisions> <joins of the query> <rounds>
"""

import json
import sys
import time
import urllib.request
from pathlib import Path

from pyspark.sql import SparkSession

DECISION = "AqePilotDecision"
# Of queries that are posted.
FIRST_ID = 1_000_000

decisions, joins, rounds = map(int, sys.argv[1:4])
spark = SparkSession.builder.appName("bench-ui").getOrCreate()
bus = spark.sparkContext._jsc.sc().listenerBus()
read = spark._jvm.org.apache.spark.util.JsonProtocol.sparkEventFromJson
app_id = spark.sparkContext.applicationId


def run():
    """Runs the query; returns its events, as the log has them."""
    spark.range(600).selectExpr("id AS n", "id % 7 AS k").createOrReplaceTempView("rows")
    one = "(SELECT a.k, count(*) AS n FROM rows a JOIN rows b ON a.n = b.n + {} GROUP BY a.k)"
    parts = " UNION ALL ".join(f"SELECT * FROM {one.format(i)}" for i in range(joins))
    spark.sql(f"SELECT k, sum(n) FROM ({parts}) GROUP BY k").collect()
    bus.waitUntilEmpty()
    folder = Path(spark.conf.get("spark.eventLog.dir").removeprefix("file://"))
    (log,) = folder.glob(f"{app_id}*")
    events = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    query = max(event.get("executionId") or 0 for event in events if DECISION in event["Event"])
    return [event for event in events if event.get("executionId") == query]


def moved(value, query, by):
    """The same of another query, with other decisions."""
    if isinstance(value, list):
        return [moved(each, query, by) for each in value]
    if not isinstance(value, dict):
        return value
    of_query = {"executionId": query, "rootExecutionId": query}
    return {
        key: of_query[key]
        if key in of_query
        else each + by
        if key == "decisionId"
        else [number + by for number in each]
        if key == "claimed"
        else moved(each, query, by)
        for key, each in value.items()
    }


def post(event, query, by):
    bus.post(read(json.dumps(moved(event, query, by))))


def opened(path):
    began = time.monotonic()
    with urllib.request.urlopen(spark.sparkContext.uiWebUrl + path) as page:
        size = len(page.read())
    return time.monotonic() - began, size


events = run()
own = [event for event in events if DECISION in event["Event"]]
number, query = len(own), FIRST_ID
while number < decisions // 2:
    query += 1
    for event in events:
        post(event, query, FIRST_ID + number)
    number += len(own)
query += 1
before = number
for event in events:
    if DECISION not in event["Event"]:
        post(event, query, FIRST_ID + before)
        continue
    if event is own[0]:
        while number < decisions:
            for each in own:
                post(each, query, FIRST_ID + number)
            number += len(own)
bus.waitUntilEmpty()
pages = {
    "Spark's list of queries": "/SQL/",
    "the tab": "/aqepilot/",
    "its page of the query": f"/aqepilot/query/?id={query}",
    "Spark's page of the query": f"/SQL/execution/?id={query}",
}
seconds, sizes = {name: [] for name in pages}, {}
for _ in range(rounds):
    for name, path in pages.items():
        took, sizes[name] = opened(path)
        seconds[name].append(took)
print(
    json.dumps(
        {
            "id": app_id,
            "decisions": number,
            "decisions_of_the_query": number - before,
            "pages": pages,
            "seconds": seconds,
            "bytes": sizes,
        }
    )
)
spark.stop()
