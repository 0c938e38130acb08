"""The job that runs on each imitated Spark: little queries, a policy at every decision point."""

from __future__ import annotations

import plans
import skewed

SETTINGS = plans.INTERPRETED | {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.default.parallelism": "2",
    "spark.buffer.pageSize": "256k",
    "spark.sql.planChangeValidation": "false",
    "spark.shuffle.file.buffer": "4k",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "8KB",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1KB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "4KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.5",
}
TABLES = {
    "l": "SELECT if(id % 10 < 4, 0, nullif(id % 50, 7)) AS k, sha2(cast(id AS string), 256) AS v"
    " FROM range(0, 600, 1, 3)",
    "r": "SELECT if(id % 10 < 4, 1, id % 45) AS k, sha2(cast(-id AS string), 256) AS w, id AS n"
    " FROM range(0, 150, 1, 2)",
    "d": "SELECT id AS k, id * 2 AS x FROM range(0, 50, 1, 2)",
}
POLICIES = {
    "join_reorder": "-double(candidate.position)",
    "join_selection": "CASE WHEN size(array_intersect(left.tables, array('d'))) > 0"
    " THEN 'SHUFFLE_HASH' ELSE 'SHUFFLE_MERGE' END",
    "shuffle_partitions": "CASE WHEN shuffles.feeds = array('AGGREGATE') THEN 3 ELSE 5 END",
    "dynamic_join_selection": "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END",
    "skew_join": skewed.struct(
        left_splits="transform(left.bytes_by_partition_id, (b, i) -> if(i = 1, 2, null))",
        force="true",
    ),
    "cost_evaluation": "spark.cost + plan.broadcast_hash_joins * 100",
    "partition_coalescing": "named_struct('target_bytes', 4096L, 'min_partitions', 1)",
    "write_distribution": "true",
}
QUERIES = {
    "skew": "SELECT r.n % 40 AS n, sum(hash(l.k, l.v, r.w)) AS s FROM l JOIN r ON l.k = r.k"
    " GROUP BY 1",
    "order": "SELECT count(*), sum(hash(l.v, r.w, d.x)) FROM l, r, d"
    " WHERE l.k = r.k AND r.k = d.k AND d.x < 1000",
    "sub": "SELECT k, count(*) AS c FROM l WHERE k IN (SELECT k FROM d WHERE x > 4)"
    " AND NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.n > 148)"
    " AND k < (SELECT max(k) FROM r) GROUP BY k",
    "repartition": "SELECT k, count(*) AS c FROM (SELECT /*+ REPARTITION(4, k) */ l.k, r.n"
    " FROM l LEFT JOIN r ON l.k = r.k) GROUP BY k UNION ALL SELECT k, x FROM d",
    "rebalance": "SELECT /*+ REBALANCE(k) */ k, v FROM l",
    "window": "CACHE TABLE c AS SELECT k, x FROM d;\n"
    "WITH t AS (SELECT k, rand(3) AS y FROM d) SELECT /*+ BROADCAST(c) */ c.x, count(*), sum(i)"
    " FROM (SELECT k, n, row_number() OVER (PARTITION BY k ORDER BY n) AS i FROM r) w"
    " JOIN c ON w.k = c.k JOIN t a ON a.k = c.k JOIN t b ON a.k = b.k GROUP BY 1 ORDER BY 1",
    "write": "INSERT OVERWRITE DIRECTORY 'written' USING parquet"
    " SELECT l.k, count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY 1",
}
TEXT = (
    "CASE WHEN query.app_name LIKE 'a%' AND query.app_name RLIKE 'a+'"
    " AND size(split(query.app_name, ',')) > pmod(side.max_bytes, 3)"
    " AND levenshtein(query.app_name, 'b') > 0 AND query.app_name IN ('a', 'a,b')"
    " AND aggregate(array_distinct(side.bytes_by_partition_id), 0L, (a, b) -> a + b) / 2 > 1"
    " AND regexp_replace(query.app_name, 'a', 'b') <> regexp_extract(query.app_name, '(a)', 1)"
    " THEN 'BROADCAST' END"
)
FACTS = '{"query": {"app_name": "a,b"}, "side": {"max_bytes": 9, "bytes_by_partition_id": [9, 8]}}'
FUNCTIONS = {
    "status": "SELECT kind, name, value, detail FROM aqepilot_status() WHERE kind IN"
    " ('point', 'problem') OR kind = 'policy' AND value = 'error'"
    " OR kind = 'counter' AND value > 0",
    "decisions": "SELECT point, reason, detail FROM aqepilot_decisions() WHERE NOT applied",
    "check": "SELECT message FROM aqepilot_check('dynamic_join_selection', 'side.max_byte < 1')",
    "decide": "SELECT decision, reason FROM aqepilot_decide('dynamic_join_selection',"
    f" \"{TEXT}\", '{FACTS}')",
}


def as_json() -> dict[str, dict[str, str]]:
    prefix = "spark.aqepilot.policy.all."
    return {
        "settings": SETTINGS,
        "tables": TABLES,
        "policies": {
            "spark.aqepilot.policies": "all",
            "spark.aqepilot.ask.deadline": "20s",
            **{prefix + point: text for point, text in POLICIES.items()},
        },
        "queries": QUERIES,
        "functions": FUNCTIONS,
    }
