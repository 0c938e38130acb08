"""A job under spark-submit with a policy at every decision point; prints rows and the status.

Its words: the folder of the tables, and `write` to write them or `status` to show the status.
"""

import json
import sys

from pyspark.sql import SparkSession

TABLES = {
    "l": "SELECT if(id % 10 < 4, 0, nullif(id % 50, 7)) AS k, sha2(cast(id AS string), 256) AS v"
    " FROM range(0, 600, 1, 3)",
    "r": "SELECT if(id % 10 < 4, 1, id % 45) AS k, sha2(cast(-id AS string), 256) AS w, id AS n"
    " FROM range(0, 150, 1, 2)",
    "d": "SELECT id AS k, id * 2 AS x FROM range(0, 50, 1, 2)",
}
QUERIES = {
    "skew": "SELECT r.n % 40 AS n, sum(hash(l.k, l.v, r.w)) AS s FROM l JOIN r ON l.k = r.k"
    " GROUP BY 1 ORDER BY 1",
    "order": "SELECT count(*), sum(hash(l.v, r.w, d.x)) FROM l, r, d"
    " WHERE l.k = r.k AND r.k = d.k AND d.x < 1000",
    "write": "INSERT OVERWRITE DIRECTORY 'written' USING parquet"
    " SELECT l.k, count(*) AS n FROM l JOIN r ON l.k = r.k GROUP BY 1",
    "written": "SELECT * FROM parquet.written ORDER BY k",
}
STATUS = "SELECT kind, name, value, detail FROM aqepilot_status()"


def main() -> None:
    spark = SparkSession.builder.getOrCreate()
    folder, what = sys.argv[1:]
    for name, text in TABLES.items():
        if what == "write":
            spark.sql(text).write.parquet(f"{folder}/{name}")
        spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    rows = {
        name: [list(row) for row in spark.sql(text).collect()] for name, text in QUERIES.items()
    }
    status = [list(row) for row in spark.sql(STATUS).collect()] if what == "status" else []
    print("FOUND " + json.dumps({"rows": rows, "status": status}, default=str))


if __name__ == "__main__":
    main()
