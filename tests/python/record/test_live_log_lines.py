"""Null is Spark to the line of its log; what Spark says of the user's hints, it says as often."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator

import pyspark

import parity
import plans
import tiers
from aqepilot import recipes
from conftest import Submit

# Each policy set runs the queries twice: the first time, things are compiled and read.
JOB = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
sets, queries = json.loads(sys.argv[1]), json.loads(sys.argv[2])
log4j = spark._jvm.org.apache.logging.log4j
log = log4j.LogManager.getLogger("mark")
told = "org.apache.spark.sql", "org.apache.spark.scheduler.DAGScheduler", "io.aqepilot", "mark"
for name in told:
    log4j.core.config.Configurator.setLevel(name, log4j.Level.INFO)
spark.range(0, 2000, 1, 4).selectExpr("id % 200 AS k", "id AS n").createOrReplaceTempView("a")
spark.range(0, 400, 1, 2).selectExpr("id % 200 AS k", "id % 30 AS j").createOrReplaceTempView("b")
spark.range(0, 30, 1, 2).selectExpr("id AS j", "id AS x").createOrReplaceTempView("c")
def run(texts, adaptive):
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    spark.conf.unset("spark.aqepilot.policies")
    for point, text in texts.items():
        spark.conf.set(f"spark.aqepilot.policy.test.{point}", text)
    if texts:
        spark.conf.set("spark.aqepilot.policies", "test")
    for query in queries:
        log.info(f"BEGIN {json.dumps(query)}")
        df = spark.sql(query)
        df.collect()
        spark._jsc.sc().listenerBus().waitUntilEmpty(60000)
    log.info("BEGIN null")
for name, texts in sets.items():
    for adaptive in False, True:
        run(texts, adaptive)
        log.info(f"SET {json.dumps([name, adaptive])}")
        run(texts, adaptive)
        log.info("SET null")
    if texts:
        asked = spark.sql("SELECT DISTINCT point FROM aqepilot_decisions()").collect()
        print("ASKED", json.dumps([name, [row.point for row in asked]]))
"""
# Hints that no join of the kind can follow, that contradict one another, that the sizes or Spark's
# own run-time rules overrule, on joins with stages beneath, and none at all.
QUERIES = (
    "SELECT /*+ SHUFFLE_HASH(b) */ count(*) FROM a JOIN b ON a.k < b.k - 198",
    "SELECT /*+ MERGE(b) */ count(*) FROM a LEFT JOIN b ON a.k < b.k - 198",
    "SELECT /*+ BROADCAST(a) */ count(n) FROM a LEFT JOIN b ON a.k = b.k",
    "SELECT /*+ BROADCAST(a) */ count(n) FROM a FULL JOIN b ON a.k = b.k",
    "SELECT /*+ SHUFFLE_HASH(b), SHUFFLE_REPLICATE_NL(b) */ count(*) FROM a FULL JOIN b USING (k)",
    "SELECT /*+ SHUFFLE_HASH(a) */ count(*) FROM a LEFT SEMI JOIN b ON a.k = b.k",
    "SELECT /*+ MERGE(a), BROADCAST(b) */ count(*) FROM a RIGHT JOIN b ON a.k = b.k",
    "SELECT /*+ BROADCAST(a), SHUFFLE_REPLICATE_NL(c) */ j, count(*) FROM a LEFT JOIN b USING (k) "
    "LEFT JOIN c USING (j) GROUP BY j",
    "SELECT /*+ BROADCAST(none) */ count(*) FROM a JOIN b USING (k)",
    "SELECT k, sum(x) FROM a JOIN b USING (k) JOIN c USING (j) WHERE k IN (SELECT j FROM c) "
    "GROUP BY k",
    "SELECT * FROM a WHERE k NOT IN (SELECT k FROM b WHERE j < 7)",
)
# Spark's own on what is compiled or dropped from memory, on which stages run at a moment, and on
# what a busy machine delays.
ELSEWHERE = re.compile(
    r"(CodeGenerator|ContextCleaner|BlockManager\w*|MemoryStore|mark): "
    r"|(AsyncEventQueue|HeartbeatReceiver|Executor: Issue communicating)"
    r"|DAGScheduler: (running|waiting|failed|looking)"
)
LINE = re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (INFO|WARN|ERROR) ([\w.$]+): (.*)$")


Lines = Counter[tuple[str, str, str, str]]


def lines(log: str) -> Iterator[tuple[tuple[str, bool], tuple[str, str, str, str]]]:
    """Yields each line's policy set, and query, level, logger and text, numbers as 0."""
    name = query = None
    for match in filter(None, map(LINE.match, log.splitlines())):
        level, logger, text = match.groups()
        if text.startswith("SET "):
            name = json.loads(text.removeprefix("SET "))
            name = name and tuple(name)
        elif text.startswith("BEGIN "):
            query = json.loads(text.removeprefix("BEGIN "))
        elif name and query and not ELSEWHERE.match(f"{logger}: {text}"):
            yield name, (query, level, logger, re.sub(r"\d+(\.\d+)?", "0", text))


@tiers.on("3.5")
def test_each_query_logs_what_plain_spark_logs(spark_submit: Submit) -> None:
    """Null logs each line of Spark's as often; recipes of Spark's rules do as to what warns."""
    texts = dict[str, str]()
    for name in parity.SPARKS_OWN:
        texts |= recipes.get(name, spark=pyspark.__version__).texts()
    null = dict.fromkeys(texts, "NULL")
    sets = {"plain": {}, "null": null, "recipes": texts}
    settings = plans.INTERPRETED | {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "4KB",
    }
    # One task at a time, so that stages end in the same order.
    done = spark_submit(
        JOB,
        conf=settings,
        job_words=[json.dumps(sets), json.dumps(QUERIES)],
        master="local[1]",
        timeout_s=400,
    )
    asked = dict(
        json.loads(line.removeprefix("ASKED "))
        for line in done.stdout.splitlines()
        if line.startswith("ASKED ")
    )
    assert set(asked["null"]) == set(asked["recipes"]) == set(texts), done.stderr[-3000:]

    logged = {(name, adaptive): Lines() for name in sets for adaptive in (False, True)}
    for which, line in lines(done.stderr):
        logged[which][line] += 1

    def some(pattern: str, which: Lines) -> Lines:
        return Lines(
            {line: n for line, n in which.items() if re.search(pattern, " ".join(line[1:]))}
        )

    plain = logged["plain", False]
    assert len({query for query, *_ in some("WARN.*[Hh]int", plain)}) >= 6
    assert logged["null", False] - plain == plain - logged["null", False] == Lines()
    assert some("^WARN", logged["recipes", False]) == some("^WARN", plain)
    # How often an adaptive query is planned depends on which stages end together: what was said
    # twice as often shows all the same.
    plain = some("WARN.*[Hh]int", logged["plain", True])
    assert sum(plain.values()) > len(plain) >= 6
    for name in "null", "recipes":
        hints = some("WARN.*[Hh]int", logged[name, True])
        assert set(hints) == set(plain)
        assert sum(hints.values()) < 1.5 * sum(plain.values()), name
    assert {line[1:] for line in logged["null", True]} == {
        line[1:] for line in logged["plain", True]
    }
