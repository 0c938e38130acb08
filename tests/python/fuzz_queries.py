"""Draws queries over small tables: every operator that adaptive execution treats in its own way.

What the promise of the same rows leaves out is not drawn: LIMIT without an order or within ties,
first, any_value, unsorted collect_list and collect_set, rand, uuid, monotonically_increasing_id,
spark_partition_id, TABLESAMPLE, row_number with ties, sums of floats that depend on their order.
Doubles here are multiples of 1/4, whose sums are exact; limits and row_number order by all columns,
so that ties are equal rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

T = TypeVar("T")

# Every relation has these columns, so that any two can be joined, united or nested.
COLUMNS = ("k", "j", "n", "d", "x", "day", "tags", "info")
ALL = ", ".join(COLUMNS)
KEYS = 41
MAX_ROWS = 3000


class Profile(NamedTuple):
    """About how many rows have key 0, key 1, null, and each of the other keys."""

    zero: float
    one: float
    null: float
    other: float

    @property
    def rows(self) -> float:
        return self.zero + self.one + self.null + (KEYS - 2) * self.other

    def times(self, other: Profile) -> Profile:
        return Profile(*(a * b for a, b in zip(self, other, strict=True)))

    def plus(self, other: Profile) -> Profile:
        return Profile(*(a + b for a, b in zip(self, other, strict=True)))

    def scaled(self, by: float) -> Profile:
        return Profile(*(a * by for a in self))


class Relation(NamedTuple):
    """What can stand after FROM.

    Attributes:
        sql: A name, or a query in parentheses.
        profile: How many rows a join on a key finds there; keeps joins of joins small.
    """

    sql: str
    profile: Profile


class Table(NamedTuple):
    rows: int
    files: int
    hot: int
    profile: Profile


TABLES = {
    "facts": Table(300, 4, 0, Profile(120, 5, 30, 4)),
    "more": Table(150, 3, 1, Profile(3, 60, 15, 2)),
    "dims": Table(40, 2, 7, Profile(1, 1, 4, 1)),
    "tiny": Table(5, 1, 1, Profile(1, 4, 1, 0.1)),
    "one": Table(1, 1, 0, Profile(1, 0, 0, 0.1)),
    "none": Table(0, 1, 0, Profile(0, 0, 0, 0.1)),
    "nulls": Table(12, 2, 0, Profile(0, 0, 12, 0.1)),
    "parted": Table(60, 2, 0, Profile(24, 9, 6, 0.6)),
    "bucketed": Table(80, 2, 1, Profile(2, 32, 8, 1)),
}


def write(spark: SparkSession, folder: Path) -> None:
    """Writes the tables as Parquet and makes a global temporary view of each."""
    for name, table in TABLES.items():
        df = spark.sql(_rows(name, table))
        if name == "bucketed":
            df.write.bucketBy(4, "k").sortBy("k").saveAsTable("fuzz_bucketed")
            df = spark.table("fuzz_bucketed")
        else:
            path = str(folder / name)
            by = ["k"] if name == "parted" else []
            df.write.partitionBy(*by).parquet(path)
            df = spark.read.parquet(path)
        df.select(*COLUMNS).createOrReplaceGlobalTempView(name)


def _rows(name: str, table: Table) -> str:
    keys = 5 if name == "parted" else KEYS
    key = (
        f"CASE WHEN id % 10 < 4 THEN {table.hot} WHEN id % 10 = 9 THEN NULL"
        f" ELSE CAST(id % {keys} AS INT) END"
    )
    if name == "nulls":
        key = "CAST(NULL AS INT)"
    return f"""
        SELECT k, if(id % 7 = 0, NULL, concat('s', if(id % 3 = 0, id % 37, k))) AS j, id AS n,
          CAST(id * 7 % 1000 / 10 AS DECIMAL(12, 2)) AS d,
          CASE WHEN id % 13 = 0 THEN double('NaN') WHEN id % 11 = 0 THEN -0.0D ELSE k / 4 END AS x,
          date_add(DATE'2024-01-01', CAST(id % 30 AS INT)) AS day,
          CASE id % 4 WHEN 0 THEN NULL WHEN 1 THEN array()
            ELSE array(concat('s', id % 5), concat('s', id % 41)) END AS tags,
          named_struct('a', CAST(id % 5 AS INT), 'b', substr(sha2(CAST(id AS STRING), 256), 1, 30))
            AS info
        FROM (SELECT id, {key} AS k FROM range(0, {table.rows}, 1, {table.files}))"""


class Query(NamedTuple):
    """A query as drawn.

    Attributes:
        sql: Its text.
        action: What is done with it: `collect`, `rdd`, `toLocalIterator`, or a `write` to files.
        cached: A query that it reads as `cached`, from the cache; null for none.
        is_ordered: Whether its rows come in an order that Spark defines.
    """

    sql: str
    action: str
    cached: str | None
    is_ordered: bool


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Draws a query."""
    sources = [
        Relation(f"global_temp.{name}", table.profile)
        for name, table in TABLES.items()
        for _ in range(1 if table.rows < 20 else 5)
    ]
    cached = None
    if _one_in(draw, 8):
        body = draw(_relations(sources, 1))
        cached = _unwrapped(body)
        sources.append(Relation("cached", body.profile))
    ctes = []
    for number in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        body = draw(_relations(sources, 1))
        ctes.append(f"c{number} AS ({_unwrapped(body)})")
        # Named more than once, so that it is likely to be read more than once.
        sources += [Relation(f"c{number}", body.profile)] * 4
    depth = draw(st.sampled_from([1, 2, 2, 3, 3, 4]))
    sql, is_ordered = draw(_tops(draw(_relations(sources, depth))))
    action = draw(st.sampled_from(["collect"] * 7 + ["rdd", "toLocalIterator", "write"]))
    with_ctes = f"WITH {', '.join(ctes)} " if ctes else ""
    return Query(with_ctes + sql, action, cached, is_ordered and action != "write")


@st.composite
def _tops(draw: st.DrawFn, of: Relation) -> tuple[str, bool]:
    """Draws what the query returns of a relation, and whether in a defined order."""
    sort = f"ORDER BY {draw(st.permutations(COLUMNS).map(', '.join))}"
    return draw(
        st.sampled_from(
            [
                (f"SELECT {ALL} FROM {of.sql} a", False),
                (f"SELECT k, n FROM {of.sql} a", False),
                (
                    f"SELECT count(*) c, sum(n) n, count(DISTINCT j) j, max(k) k FROM {of.sql} a",
                    False,
                ),
                (f"SELECT k, count(*) c, sum(d) d, min(j) j FROM {of.sql} a GROUP BY k", False),
                (f"SELECT {ALL} FROM {of.sql} a {sort}", True),
                (f"SELECT {ALL} FROM {of.sql} a {sort} LIMIT 20", True),
                (f"SELECT {ALL} FROM {of.sql} a {sort} LIMIT 30 OFFSET 7", True),
                (f"SELECT {ALL} FROM {of.sql} a ORDER BY k DESC NULLS LAST", False),
            ]
        )
    )


def _relations(sources: list[Relation], depth: int) -> st.SearchStrategy[Relation]:
    leaf = st.sampled_from(sources)
    if depth == 0:
        return leaf
    below = st.deferred(lambda: _relations(sources, depth - 1))
    return weighted(
        {
            _joins(below, leaf): 8,
            _joins(below, below): 2,
            _chains(leaf, below): 4,
            _filters(below): 1,
            _subquery_filters(below, leaf): 3,
            _aggregates(below): 2,
            _windows(below): 1,
            _set_operations(below): 2,
            _sorted_limits(below): 1,
            _exchanges(below): 1,
            _explodes(below): 1,
        }
    )


def weighted(weights: dict[st.SearchStrategy[T], int]) -> st.SearchStrategy[T]:
    """Draws from one of the strategies; `st.one_of` counts a repeated one once."""
    chances = [strategy for strategy, weight in weights.items() for _ in range(weight)]
    return st.sampled_from(chances).flatmap(lambda strategy: strategy)


# ---- joins

EQUALITIES = [
    *["a.k = b.k"] * 6,
    "a.j = b.j",
    "a.k = b.k AND a.j = b.j",
    "a.k <=> b.k",
    "a.n = b.n",
    "a.k = b.n",
    "a.x = b.x",
    "a.info = b.info",
    "a.k = b.k AND a.n = b.n",
    "coalesce(a.k, 3) = b.k",
    "a.k + 1 = b.k",
]
CONDITIONS = [
    *[""] * 6,
    " AND a.d < b.d",
    " AND a.n <> b.n",
    " AND (a.day > b.day OR a.j IS NULL)",
    " AND a.n % 3 = 0",
    " AND b.d > 20",
]
HINTS = ["BROADCAST", "MERGE", "SHUFFLE_HASH", "SHUFFLE_REPLICATE_NL"]
TYPES = [
    "JOIN",
    "JOIN",
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN",
]
# What a join returns in each column, of both sides.
MIXES = [
    "{0}a.{1}",
    "{0}b.{1}",
    "coalesce(a.{1}, b.{1})",
]


@st.composite
def _joins(
    draw: st.DrawFn, one: st.SearchStrategy[Relation], other: st.SearchStrategy[Relation]
) -> Relation:
    left, right = draw(one), draw(other)
    if draw(st.booleans()):
        left, right = right, left
    kind = draw(st.sampled_from(TYPES))
    on = draw(st.sampled_from(EQUALITIES)) + draw(st.sampled_from(CONDITIONS))
    rows = left.profile.times(right.profile)
    if _one_in(draw, 12) and left.profile.rows * right.profile.rows <= MAX_ROWS:
        on = draw(st.sampled_from(["a.k < b.k", "a.n + 3 > b.n", "a.k = b.k OR a.j = b.j", "true"]))
        rows = left.profile.scaled(right.profile.rows)
    elif "<=>" not in on:
        rows = rows._replace(null=0)
    if rows.rows > MAX_ROWS and "SEMI" not in kind:
        on, rows = "a.k = b.k AND a.n = b.n", left.profile
    if "SEMI" in kind or "ANTI" in kind:
        columns, rows = ", ".join(f"a.{c}" for c in COLUMNS), left.profile
    else:
        columns = draw(_mixed())
        rows = rows.plus(left.profile).plus(right.profile)
    hint = ""
    if _one_in(draw, 6):
        hint = f"/*+ {draw(st.sampled_from(HINTS))}({draw(st.sampled_from('ab'))}) */ "
    return Relation(
        f"(SELECT {hint}{columns} FROM {left.sql} a {kind} {right.sql} b ON {on})", rows
    )


@st.composite
def _mixed(draw: st.DrawFn) -> str:
    """Draws which side's columns a join returns; the key may be the other side's."""
    most, key = draw(st.sampled_from(MIXES)), draw(st.sampled_from(MIXES))
    texts = [(key if c == "k" else most).format("", c) for c in COLUMNS]
    return ", ".join(f"{text} AS {c}" for text, c in zip(texts, COLUMNS, strict=True))


@st.composite
def _chains(
    draw: st.DrawFn, leaf: st.SearchStrategy[Relation], one: st.SearchStrategy[Relation]
) -> Relation:
    """Three to five relations joined in one FROM, in any order; now and then by an outer join."""
    relations = [draw(one), *draw(st.lists(leaf, min_size=2, max_size=4))]
    names = "pqrst"[: len(relations)]
    rows = relations[0].profile
    conditions = []
    for i, (name, relation) in enumerate(zip(names[1:], relations[1:], strict=True)):
        to = draw(st.sampled_from(names[: i + 1]))
        on = draw(st.sampled_from(EQUALITIES)) + draw(st.sampled_from(CONDITIONS))
        now = rows.times(relation.profile)
        if _one_in(draw, 10) and rows.rows * relation.profile.rows <= MAX_ROWS:
            on = draw(st.sampled_from(["a.k < b.k", "true", "a.k = b.k OR a.j = b.j"]))
            now = rows.scaled(relation.profile.rows)
        if now.rows > MAX_ROWS:
            on, now = "a.k = b.k AND a.n = b.n", rows
        rows = now
        conditions.append(on.replace("a.", f"{to}.").replace("b.", f"{name}."))
    columns = ", ".join(f"{draw(st.sampled_from(names))}.{c} AS {c}" for c in COLUMNS)
    listed = [f"{r.sql} {name}" for r, name in zip(relations, names, strict=True)]
    hint = f"/*+ {draw(st.sampled_from(HINTS))}(q) */ " if _one_in(draw, 8) else ""
    if draw(st.booleans()):
        where = " AND ".join(f"({c})" for c in conditions)
        text = f"{', '.join(draw(st.permutations(listed)))} WHERE {where}"
    else:
        text = listed[0]
        for table, on in zip(listed[1:], conditions, strict=True):
            kind = "LEFT JOIN" if _one_in(draw, 6) else "JOIN"
            text += f" {kind} {table} ON {on}"
    return Relation(f"(SELECT {hint}{columns} FROM {text})", rows.plus(relations[0].profile))


# ---- filters and subqueries

PREDICATES = ["a.d > 30", "a.k IS NOT NULL", "a.k < 9", "a.n % 5 <> 2", "a.tags IS NULL"]
# {r} is a relation; the first of each pair is a hint's place.
SUBQUERIES = [
    "a.k IN (SELECT {h}k FROM {r} s)",
    "a.k NOT IN (SELECT {h}k FROM {r} s)",
    "a.k NOT IN (SELECT {h}k FROM {r} s WHERE s.k IS NOT NULL)",
    "(a.k, a.j) IN (SELECT {h}k, j FROM {r} s)",
    "(a.k, a.n) NOT IN (SELECT {h}k, n FROM {r} s WHERE s.n < 9)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.d < a.d)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.j = 's3')",
    "NOT EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.n <> a.n)",
    "a.k IN (SELECT {h}s.k FROM {r} s WHERE s.j = a.j)",
    "(a.d > 60 OR a.k IN (SELECT {h}k FROM {r} s))",
    "(a.n % 4 = 0 OR EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.n > a.n))",
    "(a.j = 's1' OR a.k NOT IN (SELECT {h}k FROM {r} s WHERE s.n < 5))",
    "a.n > (SELECT {h}min(n) + 2 FROM {r} s)",
    "a.k = (SELECT {h}max(k) - 1 FROM {r} s)",
    "a.d >= (SELECT {h}avg(s.d) FROM {r} s WHERE s.k = a.k)",
    "(SELECT {h}count(*) FROM {r} s WHERE s.k = a.k) < 6",
    "a.k IN (SELECT {h}k FROM {r} s GROUP BY k HAVING count(*) > 1)",
]


@st.composite
def _filters(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of = draw(below)
    return of._replace(
        sql=f"(SELECT {ALL} FROM {of.sql} a WHERE {draw(st.sampled_from(PREDICATES))})"
    )


@st.composite
def _subquery_filters(
    draw: st.DrawFn, below: st.SearchStrategy[Relation], inner: st.SearchStrategy[Relation]
) -> Relation:
    of, other = draw(below), draw(inner)
    hint = ""
    if _one_in(draw, 8):
        hint = f"/*+ {draw(st.sampled_from(HINTS[:3]))}(s) */ "
    where = draw(st.sampled_from(SUBQUERIES)).format(h=hint, r=other.sql)
    return of._replace(sql=f"(SELECT {ALL} FROM {of.sql} a WHERE {where})")


# ---- aggregates, windows, sets, sorts, exchanges

_AGGREGATED = (
    "min(a.j) AS j, sum(a.n) AS n, CAST(sum(a.d) AS DECIMAL(12, 2)) AS d, {x} AS x,"
    " max(a.day) AS day, {tags} AS tags, max(a.info) AS info"
)
AGGREGATES = [
    _AGGREGATED.format(x="max(a.x)", tags="max(a.tags)"),
    _AGGREGATED.format(x="sum(a.x) FILTER (WHERE a.k > 2)", tags="sort_array(collect_set(a.j))"),
    _AGGREGATED.format(x="count(DISTINCT a.j) / 4", tags="sort_array(collect_list(a.j))"),
    "min(a.j) AS j, count(DISTINCT a.n, a.j) AS n, max(a.d) AS d, min(a.x) AS x,"
    " max(a.day) AS day, max(a.tags) AS tags, min(a.info) AS info",
]
GROUPINGS = [
    *[("k", "k")] * 3,
    ("k", "ROLLUP (k, day)"),
    ("k", "CUBE (k, d)"),
    ("k", "k, j"),
    ("k % 5 AS k", "k % 5"),
    ("max(k) AS k", "j"),
    ("max(k) AS k", "info"),
    ("max(k) AS k", "x"),
]
WINDOWS = [
    f"row_number() OVER (PARTITION BY k ORDER BY {ALL})",
    "rank() OVER (PARTITION BY k ORDER BY d DESC)",
    "sum(n) OVER (PARTITION BY k)",
    "count(*) OVER (PARTITION BY j ORDER BY n RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "max(n) OVER ()",
    f"lag(n, 2) OVER (PARTITION BY k, j ORDER BY {ALL})",
    "dense_rank() OVER (ORDER BY d, n)",
]
EXCHANGES = [
    "REPARTITION(5)",
    "REPARTITION(3, k)",
    "REPARTITION(k)",
    "REPARTITION(j, k)",
    "REPARTITION(7, n)",
    "REPARTITION_BY_RANGE(4, n)",
    "REPARTITION_BY_RANGE(k)",
    "REBALANCE",
    "REBALANCE(k)",
    "REBALANCE(3, j)",
    "COALESCE(2)",
    "REPARTITION(1)",
    "SHUFFLE PARTITIONS",
]


@st.composite
def _aggregates(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of = draw(below)
    groups = min(of.profile.rows, KEYS)
    if _one_in(draw, 4):
        return of._replace(sql=f"(SELECT DISTINCT {ALL} FROM {of.sql} a)")
    key, by = draw(st.sampled_from(GROUPINGS))
    aggregated = draw(st.sampled_from(AGGREGATES))
    having = draw(st.sampled_from(["", "", "", " HAVING count(*) > 1"]))
    by = by.replace("k", "a.k").replace("j", "a.j") if by.isalpha() else by
    wide = 10 if "(" in by or "," in by else 1
    profile = Profile(wide, wide, wide, wide if groups > 10 else wide * groups / KEYS)
    return Relation(f"(SELECT {key}, {aggregated} FROM {of.sql} a GROUP BY {by}{having})", profile)


@st.composite
def _windows(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of, window = draw(below), draw(st.sampled_from(WINDOWS))
    columns = ALL.replace("n,", "CAST(w AS BIGINT) AS n,", 1)
    where = draw(st.sampled_from(["", " WHERE w <= 3"]))
    return of._replace(
        sql=f"(SELECT {columns} FROM (SELECT {ALL}, {window} AS w FROM {of.sql} a) a{where})"
    )


@st.composite
def _set_operations(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    word = draw(
        st.sampled_from(
            ["UNION ALL"] * 6
            + ["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS"]
        )
    )
    left, right = draw(below), draw(below)
    profile = left.profile.plus(right.profile)
    if profile.rows > MAX_ROWS:
        word, profile = "INTERSECT", left.profile
    return Relation(
        f"(SELECT {ALL} FROM {left.sql} a {word} SELECT {ALL} FROM {right.sql} a)", profile
    )


@st.composite
def _sorted_limits(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of = draw(below)
    limit = draw(st.sampled_from(["LIMIT 40", "LIMIT 7 OFFSET 3", "LIMIT 1", ""]))
    order = draw(st.permutations(COLUMNS).map(", ".join))
    return of._replace(sql=f"(SELECT {ALL} FROM {of.sql} a ORDER BY {order} {limit})")


@st.composite
def _exchanges(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of, how = draw(below), draw(st.sampled_from(EXCHANGES))
    if how == "SHUFFLE PARTITIONS":
        how = draw(st.sampled_from(["DISTRIBUTE BY k", "CLUSTER BY k, n", "SORT BY n"]))
        return of._replace(sql=f"(SELECT {ALL} FROM {of.sql} a {how})")
    return of._replace(sql=f"(SELECT /*+ {how} */ {ALL} FROM {of.sql} a)")


@st.composite
def _explodes(draw: st.DrawFn, below: st.SearchStrategy[Relation]) -> Relation:
    of = draw(below)
    outer = draw(st.sampled_from(["", "OUTER "]))
    columns = ALL.replace("j,", "t AS j,", 1)
    sql = f"(SELECT {columns} FROM {of.sql} a LATERAL VIEW {outer}explode(tags) e AS t)"
    return Relation(sql, of.profile.scaled(2))


def _unwrapped(relation: Relation) -> str:
    """The relation as a statement."""
    sql = relation.sql
    return sql[1:-1] if sql.startswith("(") else f"SELECT {ALL} FROM {sql}"


def _one_in(draw: Callable[[st.SearchStrategy[int]], int], n: int) -> bool:
    return draw(st.integers(0, n - 1)) == n - 1
