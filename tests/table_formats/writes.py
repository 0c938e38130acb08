"""Tables that are written to in each way, for the job: what each requires, and each way."""

_ICE = "USING iceberg {0} TBLPROPERTIES ('write.distribution-mode' = '{1}'{2})"
_CLUSTERED = ", 'write.spark.fanout.enabled' = 'false'"
_BY_P = "PARTITIONED BY (p)"
# The words of CREATE TABLE, and of an ALTER TABLE after it.
ICEBERG = {
    "unpartitioned": ("USING iceberg", ""),
    "by default": (f"USING iceberg {_BY_P}", ""),
    "none": (_ICE.format(_BY_P, "none", ""), ""),
    "none, clustered writer": (_ICE.format(_BY_P, "none", _CLUSTERED), ""),
    "hash, clustered writer": (_ICE.format(_BY_P, "hash", _CLUSTERED), ""),
    "range": (_ICE.format(_BY_P, "range", ""), ""),
    "by functions": (_ICE.format("PARTITIONED BY (bucket(4, k), days(ts))", "none", ""), ""),
    "by functions, clustered writer": (
        _ICE.format("PARTITIONED BY (days(ts), bucket(2, k), p)", "none", _CLUSTERED),
        "",
    ),
    "sorted in each task": (f"USING iceberg {_BY_P}", "WRITE LOCALLY ORDERED BY v"),
    "sorted": (f"USING iceberg {_BY_P}", "WRITE ORDERED BY v"),
    "distributed, sorted in each task": (
        f"USING iceberg {_BY_P}",
        "WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY v DESC",
    ),
}
DELTA = {
    "unpartitioned": ("USING delta", ""),
    "partitioned": (f"USING delta {_BY_P}", ""),
    "optimised writes": (
        f"USING delta {_BY_P} TBLPROPERTIES ('delta.autoOptimize.optimizeWrite' = 'true')",
        "",
    ),
}
COLUMNS = "k BIGINT, p INT, v BIGINT, s STRING, ts TIMESTAMP"
ROWS = """SELECT id % 97 AS k, CAST(id % 5 AS INT) AS p, {} + id * 7 % 1000 AS v,
    concat(chr(97 + id % 26), id % 3) AS s,
    TIMESTAMP '2024-03-01 12:00:00' + make_dt_interval(id % 4) AS ts
    FROM range(0, 1200, 1, 6)"""
_FIRST, _MORE = ROWS.format(0), ROWS.format(5000)


def make(spark, table, words):
    """Makes a table with rows of each partition."""
    create, alter = words
    spark.sql(f"CREATE TABLE {table} ({COLUMNS}) {create}")
    if alter:
        spark.sql(f"ALTER TABLE {table} {alter}")
    spark.sql(f"INSERT INTO {table} {_FIRST}")


def files(spark, table):
    """Returns how many files a table of Iceberg has."""
    return spark.sql(f"SELECT count(*) FROM {table}.files").first()[0]


def _sql(text):
    def run(spark, table, words):
        return spark.sql(text.format(t=table, rows=_MORE, words=words[0])).collect()

    return run


def _to(act, query=_MORE, **options):
    def run(spark, table, words):
        writer = spark.sql(query).writeTo(table)
        for key, value in options.items():
            writer = writer.option(key.replace("_", "-"), value)
        act(writer)

    return run


def _append(writer):
    writer.append()


def _partitions(writer):
    writer.overwritePartitions()


_SORTED = f"SELECT * FROM ({_MORE}) SORT BY p, date(ts), s, k"
_WAYS = {
    "insert": _sql("INSERT INTO {t} {rows}"),
    "static partition": _sql("INSERT INTO {t} PARTITION (p = 3) SELECT k, v, s, ts FROM ({rows})"),
    "aggregated": _sql(
        "INSERT INTO {t} SELECT k, p, sum(v), max(s), max(ts) FROM ({rows}) GROUP BY k, p"
    ),
    "joined": _sql(
        "INSERT INTO {t} SELECT a.k, a.p, a.v, a.s, a.ts FROM ({rows}) a"
        " JOIN (SELECT id AS k FROM range(60)) b ON a.k = b.k"
    ),
    "of itself": _sql("INSERT INTO {t} SELECT k, p, v + 1, s, ts FROM {t} WHERE k < 9"),
    "limited": _sql(
        "INSERT INTO {t} SELECT 1L, 1, 1L, 'a', TIMESTAMP '2024-03-01 00:00:00'"
        " FROM (SELECT * FROM {t} LIMIT 7)"
    ),
    "sorted": _sql(f"INSERT INTO {{t}} {_SORTED}"),
    "repartitioned": _sql("INSERT INTO {t} SELECT /*+ REPARTITION(3) */ * FROM ({rows})"),
    "overwrite partitions": _sql("INSERT OVERWRITE {t} SELECT * FROM ({rows}) WHERE p IN (1, 2)"),
    "overwrite a partition": _sql(
        "INSERT OVERWRITE {t} PARTITION (p = 3) SELECT k, v, s, ts FROM ({rows}) WHERE k < 50"
    ),
    "append": _to(_append),
    "overwritePartitions": _to(_partitions, f"SELECT * FROM ({_MORE}) WHERE p = 4"),
    "create": _sql("CREATE TABLE {t}_c {words} AS {rows}"),
    "created": _sql("SELECT * FROM {t}_c"),
    "delete": _sql("DELETE FROM {t} WHERE k IN (SELECT id FROM range(20))"),
    "update": _sql("UPDATE {t} SET v = v + 1 WHERE k > 80"),
    "merge": _sql(
        "MERGE INTO {t} t USING (SELECT id AS k FROM range(50, 55)) s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET v = 0"
    ),
    "replace": _sql("CREATE OR REPLACE TABLE {t} {words} AS {rows}"),
    "created then": _sql("INSERT INTO {t} {rows}"),
}
_AS_IS = {"use_table_distribution_and_ordering": "false", "fanout_enabled": "false"}
_OF_ICEBERG = {
    "mode none": _to(_append, distribution_mode="none"),
    "mode hash": _to(_append, distribution_mode="hash"),
    "mode range": _to(_append, distribution_mode="range"),
    "no fanout": _to(_append, distribution_mode="none", fanout_enabled="false"),
    "fanout": _to(_append, distribution_mode="none", fanout_enabled="true"),
    "as it is, sorted": _to(_append, _SORTED, **_AS_IS),
    "as it is": _to(_append, **_AS_IS),
    "rewrite": lambda spark, table, words: (
        spark.sql(
            f"CALL ice.system.rewrite_data_files(table => '{table}',"
            " options => map('rewrite-all', 'true'))"
        ).collect()
        and None
    ),
}


def ways(is_delta):
    """Returns each way to write, by its name."""
    return _WAYS if is_delta else {**_OF_ICEBERG, **_WAYS}
