"""Runs commands on tables of Delta Lake and Iceberg, plain and under policies."""

import itertools
import json
import sys

import partly
import writes
from pyspark.sql import SparkSession

SHAPES = {
    "delta": "USING delta PARTITIONED BY (p)"
    " TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    "delta, deletion vectors": "USING delta PARTITIONED BY (p)"
    " TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "iceberg, copy-on-write": "USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({}, {})",
    "iceberg, merge-on-read": "USING iceberg PARTITIONED BY (p) TBLPROPERTIES ({}, {})",
    "iceberg, bucketed": "USING iceberg PARTITIONED BY (bucket(4, k)) TBLPROPERTIES ({}, {})",
}
# A task for each file: splits are made of whole map tasks' outputs.
APART = "'read.split.open-file-cost' = '134217728'"
MODES = "'write.{0}.mode' = '{1}', 'write.{0}.distribution-mode' = 'hash'"


def shape(name):
    """Returns the words of CREATE TABLE after the name."""
    mode = "copy-on-write" if "copy" in name else "merge-on-read"
    modes = ", ".join(MODES.format(word, mode) for word in ("delete", "update", "merge"))
    return SHAPES[name].format(modes, APART)


# Some keys are of many rows, some of none, some null. `changes` has each key that the target has
# at most once; one that it has not, a third of its rows have.
TARGET = """
    SELECT CAST(id AS INT) AS id, CAST(CASE WHEN id % 50 = 0 THEN NULL
      WHEN id % 10 < 3 THEN 0 ELSE id div 2 END AS INT) AS k,
      CAST(id % 4 AS INT) AS p, id * 7 % 1000 AS v, repeat(chr(97 + id % 26), 20) AS s
    FROM range(0, 3000, 1, 4)"""
CHANGES = """
    SELECT CAST(CASE WHEN id % 3 = 1 THEN -1 WHEN id % 100 = 3 THEN NULL
      ELSE id * 2 END AS INT) AS k, CAST(10000 + id AS INT) AS id,
      CAST(id % 40 AS INT) AS g, id AS v,
      CASE WHEN id % 5 = 0 THEN 'd' ELSE 'u' END AS op, repeat('c', 20) AS s
    FROM range(0, 1200, 1, 4)"""
GROUPS = "SELECT CAST(id % 60 AS INT) AS g, id AS w FROM range(0, 50, 1, 2)"
# Two rows of one key, written by different tasks.
AMBIGUOUS = """
    SELECT CAST(IF(id IN (0, 399), 8, -1 - id) AS INT) AS k, CAST(id AS INT) AS id, id AS v
    FROM range(0, 400, 1, 4)"""
COMMANDS = {
    "update": "UPDATE {t} SET v = v + 1, s = concat(s, 'u') WHERE k = 0 AND p < 3",
    "merge": """
        MERGE INTO {t} t USING (SELECT c.*, g.w FROM {c} c LEFT JOIN {g} g ON c.g = g.g) c
        ON t.k = c.k
        WHEN MATCHED AND c.op = 'd' THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = c.v + coalesce(c.w, 0), s = c.s
        WHEN NOT MATCHED AND c.op <> 'd' THEN
          INSERT (id, k, p, v, s) VALUES (c.id, c.k, c.g % 4, c.v, c.s)
        WHEN NOT MATCHED BY SOURCE AND t.p = 1 THEN UPDATE SET v = t.v + 1
        WHEN NOT MATCHED BY SOURCE AND t.v % 7 = 0 THEN DELETE""",
    "merge_upsert": """
        MERGE INTO {t} t USING (SELECT * FROM {c} WHERE k IS NULL OR k < 0 OR k % 3 = 0) c
        ON t.k = c.k AND t.p <> 3 AND t.id < 10000
        WHEN MATCHED THEN UPDATE SET v = t.v + c.v
        WHEN NOT MATCHED THEN INSERT (id, k, p, v, s) VALUES (c.id, c.k, c.g % 4, c.v, c.s)""",
    "merge_matched": """
        MERGE INTO {t} t USING (SELECT k, max(v) AS v, count(*) AS n FROM {c} GROUP BY k) c
        ON t.k = c.k WHEN MATCHED AND n > 1 THEN DELETE
        WHEN MATCHED THEN UPDATE SET v = c.v - 3""",
    "merge_delete": """
        MERGE INTO {t} t USING {c} c ON t.k = c.k AND c.v % 4 = 1 WHEN MATCHED THEN DELETE""",
    "merge_insert": """
        MERGE INTO {t} t USING {c} c ON t.k = c.k AND t.v > 100
        WHEN NOT MATCHED THEN INSERT (id, k, p, v, s) VALUES (c.id, c.k, 2, c.v, c.s)""",
    "merge_not_by_source": """
        MERGE INTO {t} t USING (SELECT DISTINCT k FROM {c} WHERE g > 3) c ON t.k <=> c.k
        WHEN NOT MATCHED BY SOURCE AND t.p = 0 THEN DELETE""",
    "update_subquery": """
        UPDATE {t} SET v = v + 1000
        WHERE k IN (SELECT c.k FROM {c} c JOIN {g} g ON c.g = g.g WHERE g.w > 10)""",
    "delete_in": "DELETE FROM {t} WHERE k IN (SELECT k FROM {c} WHERE op = 'd') AND p <> 1",
    "delete_not_exists": """
        DELETE FROM {t} t WHERE p = 2 AND NOT EXISTS (
          SELECT 1 FROM {c} c JOIN {g} g ON c.g = g.g WHERE c.k = t.k)""",
    "delete": "DELETE FROM {t} WHERE v % 11 = 5",
    "overwrite": """
        INSERT OVERWRITE {t} SELECT t.id, t.k, t.p, t.v + coalesce(c.n, 0), t.s FROM {t} t
        LEFT JOIN (SELECT k, count(*) AS n FROM {c} GROUP BY k) c ON t.k = c.k WHERE t.p = 2""",
    "insert": """
        INSERT INTO {t} SELECT c.id, c.k, c.g % 4, g.w, c.s FROM {c} c JOIN {g} g ON c.g = g.g
        WHERE c.k < 0""",
}
READS = {
    "time_travel": """
        SELECT t.p, count(*), sum(t.v), sum(o.v), sum(hash(t.id, o.s)) FROM {t} t
        JOIN {t} VERSION AS OF {first} o ON t.id = o.id GROUP BY t.p""",
}
# These fail, and change nothing.
REFUSED = {
    "merge_ambiguous": """
        MERGE INTO {t} t USING {a} c ON t.k = c.k
        WHEN MATCHED THEN UPDATE SET v = c.v
        WHEN NOT MATCHED THEN INSERT (id, k, p, v, s) VALUES (c.id, c.k, 1, c.v, 'a')""",
    "merge_ambiguous_matched": """
        MERGE INTO {t} t USING {a} c ON t.k = c.k WHEN MATCHED THEN UPDATE SET v = c.v""",
}
# What does not depend on which rows share a file.
COUNTS = (
    *("numSourceRows", "numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"),
    *("numTargetRowsMatchedUpdated", "numTargetRowsMatchedDeleted", "numUpdatedRows"),
    *("numTargetRowsNotMatchedBySourceUpdated", "numTargetRowsNotMatchedBySourceDeleted"),
)
SETTINGS = {
    "spark.sql.files.minPartitionNum": "4",
    "spark.sql.sources.partitionOverwriteMode": "dynamic",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "6k",
    "spark.sql.autoBroadcastJoinThreshold": "1k",
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.databricks.delta.snapshotPartitions": "3",
}
_numbers = itertools.count()


class Tables:
    """The tables of one shape and one set of policies, all new."""

    def __init__(self, spark, name):
        self.name = name
        self.is_delta = name.startswith("delta")
        place = "spark_catalog.default" if self.is_delta else "ice.db"
        number = next(_numbers)
        self.names = {key: f"{place}.{key}{number}" for key in "tcga"}
        for key, rows in zip("tcga", (TARGET, CHANGES, GROUPS, AMBIGUOUS), strict=True):
            words = shape(name) if key == "t" else self._plain(key)
            spark.sql(f"CREATE TABLE {self.names[key]} {words} AS {rows}")
        self.first = 0 if self.is_delta else self._snapshots(spark)[0].snapshot_id

    def _plain(self, key):
        if self.is_delta:
            return "USING delta"
        spread = " PARTITIONED BY (bucket(4, k))" if "bucketed" in self.name and key == "c" else ""
        return f"USING iceberg{spread} TBLPROPERTIES ('write.distribution-mode' = 'none', {APART})"

    def _snapshots(self, spark):
        sql = f"SELECT * FROM {self.names['t']}.snapshots ORDER BY committed_at"
        return spark.sql(sql).collect()

    def text(self, command):
        return command.format(first=self.first, **self.names)

    def counts(self, spark):
        """Returns what the table says of its last change, as far as it is about rows."""
        if self.is_delta:
            last = spark.sql(f"DESCRIBE HISTORY {self.names['t']} LIMIT 1").first()
            metrics = {k: v for k, v in last.operationMetrics.items() if k in COUNTS}
            return {"operation": last.operation, **metrics}
        last = self._snapshots(spark)[-1]
        if "merge-on-read" not in self.name:
            return {"operation": last.operation}
        words = ("added-records", "added-position-deletes", "total-records")
        return {"operation": last.operation, **{k: last.summary.get(k) for k in words}}


def error_of(error):
    """Returns the class of an error, as Spark or the table's format names it."""
    text = str(error)
    known = ("MERGE_CARDINALITY_VIOLATION", "MULTIPLE_SOURCE_ROW", "UNSUPPORTED_SUBQUERY")
    known = (*known, "Incoming records violate the writer assumption")
    return next((name for name in known if name in text), text[:300])


def writings(plain, session, name):
    """Yields each way to write: its name, what runs it, and what says what it has left there."""
    is_delta = name.startswith("delta")
    place = "spark_catalog.default" if is_delta else "ice.db"
    words = writes.DELTA if is_delta else writes.ICEBERG
    for kind, made in words.items():
        table = f"{place}.w{next(_numbers)}"
        writes.make(plain, table, made)
        for way, write in writes.ways(is_delta).items():

            def left(table=table):
                if not is_delta:
                    plain.sql(f"REFRESH TABLE {table}")
                files = (
                    len(plain.table(table).inputFiles()) if is_delta else writes.files(plain, table)
                )
                return plain.table(table).collect(), {"files": files}

            yield f"{kind}: {way}", lambda w=write, t=table, m=made: w(session, t, m), left


def commands(plain, session, name):
    """Yields each command that changes or reads a table, the same way."""
    tables = Tables(plain, name)

    def left():
        if not tables.is_delta:
            plain.sql(tables.text("REFRESH TABLE {t}"))
        rows = plain.sql(tables.text("SELECT id, k, p, v, s FROM {t}")).collect()
        return rows, {"counts": tables.counts(plain)}

    for command, text in {**COMMANDS, **READS, **REFUSED}.items():
        if name != "iceberg, bucketed" or command != "overwrite":
            yield command, lambda text=text: session.sql(tables.text(text)).collect(), left


def run(spark, results, policies):
    """Runs all commands on new tables; returns what came of each."""
    plain = spark.newSession()
    session = spark.newSession()
    is_partly = results["shape"] == partly.NAME
    for key, value in (partly.SETTINGS if is_partly else SETTINGS).items():
        plain.conf.set(key, value)
        session.conf.set(key, value)
    plain.conf.set("spark.aqepilot.mode", "off")
    for point, text in policies.items():
        session.conf.set(f"spark.aqepilot.policy.drawn.{point}", text)
    session.conf.set("spark.aqepilot.policies", "drawn" if policies else "")
    if not policies:
        session.conf.set("spark.aqepilot.mode", "off")
    seen = 0
    steps = writings if results["shape"].endswith("writes") else commands
    if is_partly:
        steps = partly.queries
    for name, act, left in steps(plain, session, results["shape"]):
        one = {**results, "command": name}
        try:
            one["answer"] = sorted(map(str, act() or ()))
        except Exception as error:
            one["error"] = error_of(error)
        rows, more = left()
        one["rows"] = len(rows)
        one["hash"] = hash(tuple(sorted(map(repr, rows))))
        one.update(more)
        decisions = session.sql(
            "SELECT point, reason, fate FROM aqepilot_decisions() ORDER BY decision_id"
        ).collect()
        one["decisions"] = [list(row) for row in decisions[seen:]]
        seen = len(decisions)
        print("FOUND " + json.dumps(one), flush=True)
    status = session.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
    faults = [
        list(row)
        for row in status
        if row.kind == "problem" or (row.kind == "counter" and row.name.startswith("errors."))
    ]
    print("FOUND " + json.dumps({**results, "command": "status", "faults": faults}), flush=True)


def main():
    """Runs each shape of table under each set of policies, plain first."""
    asked = json.loads(sys.argv[1])
    spark = SparkSession.builder.getOrCreate()
    if any(name.startswith("iceberg") for name in asked["shapes"]):
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.db")
    for name in asked["shapes"]:
        for policies, texts in asked["sets"].items():
            if set(texts) == {"write_distribution"} and not name.endswith("writes"):
                continue
            run(spark, {"shape": name, "set": policies}, texts)


main()
