"""Spark's own checks of optimiser rules hold with policies at all points.

With `spark.testing`, as the tests of Delta, of Iceberg and of many teams have it, Spark applies
each batch of rules that is to run once a second time and fails where the plan changes then, and
looks at the whole plan after each batch.
"""

from __future__ import annotations

import json

import pyspark

import parity
import python_policies
import tiers
from aqepilot import recipes
from conftest import Submit
from submitting import QUICK

JOB = """
import json, sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
sets, queries, views = map(json.loads, sys.argv[1:])
assert spark._jvm.org.apache.spark.util.Utils.isTesting()
spark.range(0, 6000, 1, 4).selectExpr(
    "if(id < 3000, 7, id % 200) AS k", "id AS n", "id % 30 AS j").write.saveAsTable("a")
spark.range(0, 400, 1, 2).selectExpr("id % 200 AS k", "id % 30 AS j").write.saveAsTable("b")
spark.range(0, 30, 1, 2).selectExpr("id AS j", "id AS x").write.saveAsTable("c")
spark.sql(
    "CREATE TABLE written (n BIGINT, k BIGINT, j BIGINT) USING parquet PARTITIONED BY (j)")
for view, columns in views.items():
    spark.range(10).selectExpr(*columns).createOrReplaceTempView(view)
# A DataSource V2, which says nothing of its rows before the order of joins is decided.
spark.conf.set("spark.sql.sources.useV1SourceList", "")
spark.read.parquet("spark-warehouse/b").createOrReplaceTempView("f")
spark.conf.unset("spark.sql.sources.useV1SourceList")
for table in "abc":
    spark.sql(f"ANALYZE TABLE {table} COMPUTE STATISTICS FOR ALL COLUMNS")
def run(query):
    try:
        return sorted(str(row) for row in spark.sql(query).collect())
    except Exception as e:
        return f"{type(e).__name__}: {str(e)[:1500]}"
plain = [run(query) for query in queries]
found = {"plain": [rows for rows in plain if isinstance(rows, str)]}
for name, texts in sets.items():
    for point, text in texts.items():
        spark.conf.set(f"spark.aqepilot.policy.{name}.{point}", text)
    spark.conf.set("spark.aqepilot.policies", name)
    spark.conf.set("spark.sql.cbo.enabled", "false")
    got = [run(query) for query in queries]
    spark.conf.set("spark.sql.cbo.enabled", "true")
    got += [run(query) for query in queries]
    found[name] = [[q, g] for q, g, p in zip(queries * 2, got, plain * 2) if g != p]
decided = spark.sql(
    "SELECT policy, point, count_if(applied) FROM aqepilot_decisions() GROUP BY 1, 2").collect()
log = getattr(spark._jvm.org.apache.spark.sql.aqepilot.record, "DecisionLog$")
counters = getattr(log, "MODULE$").getActive().get().counters()
found["faults"] = [str(counters.apply(i)) for i in range(counters.size())
                   if counters.apply(i)._1().startswith("errors.")]
print("FOUND", json.dumps([found, [list(row) for row in decided]]))
"""
VIEWS = {
    "v": ["id % 3 AS k", "id AS n", "id % 5 AS j"],
    "w": ["id AS j", "id AS x"],
    "u": ["id AS k", "id AS j"],
}
QUERIES = (
    "SELECT c.x, count(*), sum(n) FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j GROUP BY c.x",
    "SELECT count(*), sum(n) FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND a.j < c.x",
    "SELECT count(*), sum(s.x) FROM (SELECT a.k, c.x FROM a JOIN c USING (j) WHERE n % 3 = 0) s "
    "JOIN b USING (k) JOIN c t ON t.x = s.x",
    "SELECT k, sum(n) FROM a WHERE j IN (SELECT j FROM b JOIN c USING (j) WHERE x > 3) GROUP BY k",
    "SELECT count(*) FROM a LEFT JOIN b ON a.k = b.k AND a.n > 100 LEFT JOIN c ON b.j = c.j",
    "SELECT count(*) FROM a FULL JOIN b USING (k) WHERE EXISTS (SELECT 1 FROM c WHERE c.j = a.j)",
    "SELECT count(*) FROM a WHERE k NOT IN (SELECT k FROM b WHERE j < 7)",
    "SELECT /*+ SHUFFLE_HASH(b) */ a.k, (SELECT max(x) FROM c WHERE c.j = a.j) m FROM a "
    "JOIN b ON a.k = b.k WHERE n % 17 = 0 ORDER BY 1, 2 LIMIT 40",
    "SELECT k, count(*) FROM a JOIN b USING (k) GROUP BY k "
    "UNION ALL SELECT j, sum(x) FROM c GROUP BY j",
    "SELECT /*+ REPARTITION(5, k) */ a.k, b.j, "
    "row_number() OVER (PARTITION BY a.k ORDER BY n, b.j) AS r "
    "FROM a JOIN b USING (k) JOIN c ON c.j = b.j WHERE n % 11 = 0",
    "SELECT count(*) FROM b JOIN c JOIN (SELECT * FROM range(3)) r",
    "SELECT count(*), sum(z.j) FROM (SELECT * FROM f WHERE j > 20) x JOIN f y ON x.k = y.k "
    "JOIN f z ON z.k = y.k",
    # 3.5 gives both uses of a view the same ids: the first chain is opaque once it is ordered,
    # and the second projection then hides nothing that another relation has.
    "SELECT count(*), sum(l.k) FROM "
    "(SELECT v.k FROM v JOIN w ON v.j = w.j JOIN u ON w.j = u.j WHERE u.k < 20) l "
    "JOIN (SELECT w.x FROM v JOIN w ON v.j = w.j WHERE n % 10 = 0) r ON l.k = r.x",
    "INSERT OVERWRITE TABLE written SELECT n, k, j FROM a",
    "SELECT * FROM written",
)


@tiers.on("3.5")
def test_rules_change_nothing_the_second_time(spark_submit: Submit) -> None:
    """Recipes of Spark's own rules and texts that change much, with and without CBO: equal rows."""
    texts = dict[str, str]()
    for name in parity.SPARKS_OWN:
        texts |= recipes.get(name, spark=pyspark.__version__).texts()
    settings = {
        "spark.driver.extraJavaOptions": QUICK["spark.driver.extraJavaOptions"]
        + " -Dspark.testing=true",
        "spark.sql.autoBroadcastJoinThreshold": "2KB",
        "spark.sql.adaptive.autoBroadcastJoinThreshold": "8KB",
        "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "8KB",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": "8KB",
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.cbo.joinReorder.enabled": "true",
        "spark.sql.crossJoin.enabled": "true",
    }
    sets = {"recipes": texts, "other": python_policies.SQL}
    done = spark_submit(
        JOB,
        conf=settings,
        job_words=[json.dumps(words) for words in (sets, QUERIES, VIEWS)],
        timeout_s=400,
        own_jvm=True,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, done.stderr[-3000:]
    changes, decided = json.loads(lines[0].removeprefix("FOUND "))
    assert changes == {"plain": [], "recipes": [], "other": [], "faults": []}
    applied = {point for policy, point, count in decided if policy == "other" and count}
    # Spark has no rule of its own for writes.
    assert applied == set(texts) | {"write_distribution"} == set(python_policies.SQL)
    assert {point for policy, point, _ in decided if policy == "recipes"} >= set(texts) - {
        "dynamic_join_selection"  # Spark's own rule has nothing to say to these joins
    }
