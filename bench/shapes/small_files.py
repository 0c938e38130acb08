"""Small files: a partitioned write makes a file for each task and partition.

What is seen in Spark's UI: the stage that writes has thousands of tasks, each of which takes a
fraction of a second, most of it to open and close files; the SQL tab shows *number of written
files* in the ten thousands, and queries that read the table list files for longer than they read
them. On a skewed day some files are large and thousands are tiny.

This computes, so it runs at `local[2]`. Each query drops its table, writes it anew and reads it
back; what counts is their time together, and the number and the size of the files.

Counter-shapes: a write whose author repartitions it by the day, and one without partitions.
"""

from __future__ import annotations

from bench.shapes.shape import Query, Shape, Table


def _tables(size: float) -> dict[str, Table]:
    rows = int(2_000_000 * size)
    row = "id, sha2(CAST(id AS STRING), 256) AS page, id % 97 AS amount"
    return {
        "clicks": Table(f"SELECT {row}, id % 10 AS day FROM range({rows})", int(2000 * size)),
        # Nine rows in ten are of one day.
        "skewed": Table(
            f"SELECT {row}, if(id % 10 < 9, 0, id % 30) AS day FROM range({rows})", int(400 * size)
        ),
    }


def _written(name: str, select: str, partitioned: str = "PARTITIONED BY (day)") -> Query:
    """Returns the write of a table, and a query that reads all of it."""
    return Query(
        [
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} USING parquet {partitioned} AS {select}",
            f"SELECT day, count(*), sum(amount), max(page) FROM {name} GROUP BY day ORDER BY day",
        ],
        writes=name,
    )


SHAPE = Shape(
    master="local[2]",
    tables=_tables,
    queries={
        "2000 small tasks": _written("small_tasks", "SELECT id, page, amount, day FROM clicks"),
        "a skewed day": _written("skewed_day", "SELECT id, page, amount, day FROM skewed"),
    },
    counters={
        "repartitioned by its author": _written(
            "by_author", "SELECT /*+ REPARTITION(8, day) */ id, page, amount, day FROM skewed"
        ),
        "without partitions": _written(
            "flat", "SELECT id, page, amount, day FROM skewed", partitioned=""
        ),
    },
    recipes=["compact_files"],
    warm_up=0,
    # Fewer tasks that read more, as far as the source lets them.
    by_hand={
        "spark.sql.files.maxPartitionBytes": "128MB",
        "spark.sql.files.openCostInBytes": "0",
    },
    # A task for each file.
    conf={"spark.sql.files.maxPartitionBytes": "1MB", "spark.sql.files.openCostInBytes": "1MB"},
)
