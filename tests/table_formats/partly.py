"""Joins of Iceberg tables by their own partitions, partly clustered, beside a split join."""

# Each split of one side is read by itself, and those of the other side once for each.
SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": "true",
    "spark.sql.iceberg.planning.preserve-data-grouping": "true",
    "spark.sql.requireAllClusterKeysForCoPartition": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "5",
}
NAME = "iceberg, partly clustered"
# A split for each file.
SPLITS = "TBLPROPERTIES ('read.split.target-size' = '1024', 'read.split.open-file-cost' = '1')"
ROWS = "SELECT CAST(IF(id % 3 = 0, 0, id % 5) AS INT) AS k, id + {0} AS v FROM range(0, {1}, 1, 1)"
HOT = "SELECT IF(id % 10 < 8, 1, id % 7) AS j, id AS u FROM range(0, 4000, 1, 4)"
FEW = "SELECT id % 7 AS j FROM range(0, 70, 1, 2)"
SPLIT = f"(SELECT c.j, count(*) AS n FROM ({HOT}) c JOIN ({FEW}) d ON c.j = d.j GROUP BY c.j)"
JOINS = {
    "inner": "ice.db.many a JOIN ice.db.few b ON a.k = b.k",
    "left": "ice.db.many a LEFT JOIN ice.db.few b ON a.k = b.k AND b.v < 30",
    "right": "ice.db.few b RIGHT JOIN ice.db.many a ON a.k = b.k AND b.v < 30",
    "semi": "ice.db.many a LEFT SEMI JOIN ice.db.few b ON a.k = b.k",
}


def queries(plain, session, _):
    """Yields each query; it leaves nothing behind."""
    for table, files, rows in (("many", 4, 500), ("few", 1, 50)):
        plain.sql(f"DROP TABLE IF EXISTS ice.db.{table}")
        plain.sql(
            f"CREATE TABLE ice.db.{table} (k INT, v BIGINT) USING iceberg"
            f" PARTITIONED BY (k) {SPLITS}"
        )
        for file in range(files):
            text = ROWS.format(file * 10000, rows)
            plain.sql(f"INSERT INTO ice.db.{table} {text}")
    for name, joined in JOINS.items():
        sql = f"""SELECT /*+ BROADCAST(x) */ count(*), sum(a.v), sum(x.n) FROM {joined}
            JOIN {SPLIT} x ON a.v % 7 = x.j"""
        yield name, lambda sql=sql: session.sql(sql).collect(), lambda: ([], {})
