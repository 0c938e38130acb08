"""Draws queries of which Spark prunes partitions by a broadcast, one of them with a bad value.

Under ANSI who reads that partition fails. Whether Spark prunes hangs on the broadcast, so that the
settings leave it to Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from fuzz_drawing import Draw, Relation, one_in, one_of
from fuzz_relations import relations
from fuzz_tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from fuzz_queries import Query

TABLE = "tables.dated"
BAD = 4
SETTINGS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.autoBroadcastJoinThreshold": "10MB",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10MB",
}
# Of a relation with every key once, none of which is the bad partition's.
FEW = ["b.n = 1", "b.n IN (0, 2)", "b.n < 2", "b.j = 's1'", "b.k = 3 AND b.n > 1"]
SIDES = [
    *["(SELECT b.k FROM global_temp.keys b WHERE {few})"] * 4,
    "(SELECT b.k, max(b.n) AS m FROM global_temp.keys b WHERE {few} GROUP BY b.k)",
    "(SELECT b.k FROM global_temp.keys b JOIN global_temp.dims c ON b.k = c.k WHERE {few})",
]
COLUMNS = ("k", "j", "n")
READ = "a.k, a.j, CAST(substr(a.j, 2) AS BIGINT) AS n"
CAST = "CAST(substr(a.j, 2) AS INT)"
# {side} prunes the table, {r} is another relation.
FORMS = [
    f"SELECT {READ} FROM {TABLE} a JOIN {{side}} d ON a.p = d.k",
    f"SELECT a.k, a.j, a.n FROM {TABLE} a JOIN {{side}} d ON a.p = d.k WHERE {CAST} < 9",
    f"SELECT a.k, a.j, a.n FROM {TABLE} a WHERE a.p IN (SELECT d.k FROM {{side}} d) AND {CAST} < 9",
    f"SELECT a.k, a.j, r.n FROM {TABLE} a, {{side}} d, {{r}} r WHERE a.p = d.k AND {CAST} = r.k",
    f"SELECT {READ} FROM {{r}} r, {TABLE} a, {{side}} d WHERE a.p = d.k AND a.k = r.k",
    f"SELECT {READ} FROM {{side}} d JOIN {TABLE} a ON a.p = d.k LEFT JOIN {{r}} r ON a.k = r.k",
    f"SELECT {READ} FROM {TABLE} a RIGHT JOIN {{side}} d ON a.p = d.k",
]


def write(spark: SparkSession) -> None:
    """Makes the table of the rows of another."""
    rows = f"SELECT *, CAST(n % {BAD + 1} AS INT) AS p FROM tables.facts"
    bad = f"CASE WHEN p = {BAD} THEN 'none' ELSE j END"
    df = spark.sql(f"SELECT k, {bad} AS j, n, p FROM ({rows})").repartition(1)
    df.write.partitionBy("p").saveAsTable(TABLE)


@st.composite
def pruned(draw: Draw[int]) -> Relation:
    """A relation that reads some partitions of the table."""
    side = one_of(draw, SIDES).format(few=one_of(draw, FEW))
    other = f"global_temp.{one_of(draw, ['keys', 'keys', 'dims', 'filed'])}"
    sql = one_of(draw, FORMS).format(side=side, r=other)
    return Relation(f"({sql})", TABLES["facts"].profile, COLUMNS)


@st.composite
def statements(draw: Draw[int]) -> str:
    """A query of such relations and others."""
    sources = [draw(pruned()) for _ in range(one_of(draw, [1, 1, 2]))]
    if one_in(draw, 2):
        sources += [Relation("global_temp.keys", TABLES["keys"].profile)]
    source: Relation = draw(relations(sources, one_of(draw, [0, 1, 1])))
    return source.statement


def is_pruned(query: Query) -> bool:
    return any(TABLE in step for step in query.steps)
