"""Draws relations: every operator that adaptive execution and its policies treat in their own way.

What the promise of the same rows leaves out is not drawn: LIMIT without an order or within ties,
first, any_value, unsorted collect_list and collect_set, spark_partition_id, TABLESAMPLE,
row_number with ties, sums of floats that depend on their order. Doubles here are multiples of 1/4,
whose sums are exact; limits and row_number order by all columns, so that ties are equal rows. Of
random numbers a query returns none, but whether readers see the same ones: two of a CTE
(`fuzz_queries`), or all rows of a join that a row of its side is in (`numbered`).
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fuzz_drawing import (
    HINTS,
    MAX_ROWS,
    Draw,
    Relation,
    Relations,
    fitting,
    in_order,
    kept,
    one_in,
    one_of,
    weighted,
)
from fuzz_joins import chains, joins, joins_on_key, laterals, numbered, whole_chains
from fuzz_tables import KEYS, Profile


def relations(sources: Sequence[Relation], depth: int) -> Relations:
    leaf = _leaves(sources)
    if depth == 0:
        return leaf
    below = st.deferred(lambda: relations(sources, depth - 1))
    return weighted(
        {
            joins(below, leaf): 9,
            joins(below, below): 3,
            joins_on_key(below, leaf): 3,
            chains(leaf, below): 18,
            laterals(below, leaf): 1,
            numbered(below, leaf): 2,
            _filters(below): 1,
            _subquery_filters(below, leaf): 3,
            _scalars(below, leaf): 1,
            _choices(below): 2,
            _aggregates(below): 3,
            _windows(below): 1,
            _set_operations(below): 2,
            _sorted_limits(below): 1,
            _exchanges(below): 1,
            _explodes(below): 1,
        }
    )


def statements(sources: Sequence[Relation], depth: int) -> st.SearchStrategy[str]:
    """Queries that return all columns of a chain of joins."""
    return whole_chains(_leaves(sources), relations(sources, depth))


def on_key(sources: Sequence[Relation]) -> Relations:
    """A join on k, and what may stand above it without a shuffle."""
    return joins_on_key(_leaves(sources), _leaves(sources))


@st.composite
def _leaves(draw: Draw, sources: Sequence[Relation]) -> Relation:
    """A source, now and then a few of its columns, or the keys alone, each once."""
    source = one_of(draw, sources)
    form = draw(st.integers(0, 7))
    if form > 1:
        return source
    columns = kept(draw, source.columns)
    text = ", ".join(columns)
    if form:
        return source._replace(sql=f"(SELECT {text} FROM {source.sql})", columns=columns)
    profile = Profile(1, 1, 1, 1) if columns == ("k",) else source.profile
    how = f"DISTINCT {text} FROM {source.sql}"
    if draw(st.booleans()):
        how = f"{text} FROM {source.sql} GROUP BY {text}"
    return Relation(f"(SELECT {how})", profile, columns)


# ---- filters, subqueries, projections

PREDICATES = ["a.d > 30", "a.k IS NOT NULL", "a.k < 9", "a.n % 5 <> 2", "a.tags IS NULL"]
PREDICATES += ["a.x > 1", "a.x = 'NaN'", "a.x = 0", "py(a.n) > 9", "a.j > 's2'", "false", "a.n < 7"]
# {r} is a relation; the first of each pair is a hint's place.
SUBQUERIES = [
    "a.k IN (SELECT {h}s.k FROM {r} s)",
    "a.n IN (SELECT {h}s.n FROM {r} s)",
    "a.k NOT IN (SELECT {h}s.k FROM {r} s)",
    "a.k NOT IN (SELECT {h}s.k FROM {r} s WHERE s.k IS NOT NULL)",
    "(a.k, a.j) IN (SELECT {h}s.k, s.j FROM {r} s)",
    "(a.k, a.n) NOT IN (SELECT {h}s.k, s.n FROM {r} s WHERE s.n < 9)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.d < a.d)",
    "EXISTS (SELECT {h}1 FROM {r} s WHERE s.j = 's3')",
    "NOT EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.n <> a.n)",
    "EXISTS (SELECT {h}1 FROM {r} s JOIN global_temp.keys t ON s.k = t.k WHERE t.n = a.n)",
    "a.k IN (SELECT {h}s.k FROM {r} s WHERE s.j = a.j)",
    "(a.d > 60 OR a.k IN (SELECT {h}s.k FROM {r} s))",
    "(a.n % 4 = 0 OR EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k AND s.n > a.n))",
    "(a.k = 1 OR EXISTS (SELECT {h}1 FROM {r} s WHERE s.k = a.k))",
    "(a.j = 's1' OR a.k NOT IN (SELECT {h}s.k FROM {r} s WHERE s.n < 5))",
    "a.n > (SELECT {h}min(s.n) + 2 FROM {r} s)",
    "a.k = (SELECT {h}max(s.k) - 1 FROM {r} s)",
    "a.d >= (SELECT {h}avg(s.d) FROM {r} s WHERE s.k = a.k)",
    "(SELECT {h}count(*) FROM {r} s WHERE s.k = a.k) < 6",
    "a.k IN (SELECT {h}s.k FROM {r} s GROUP BY s.k HAVING count(*) > 1)",
    "a.k IN (SELECT {h}s.k FROM {r} s JOIN global_temp.dims t ON s.k = t.k WHERE t.n > 5)",
]
SCALARS = [
    "(SELECT {h}max(s.n) FROM {r} s WHERE s.k = a.k)",
    "(SELECT {h}count(*) FROM {r} s WHERE s.k = a.k AND s.n > 3)",
    "(SELECT {h}sum(s.n) FROM {r} s WHERE s.j = a.j)",
    "(SELECT {h}CAST(max(s.k) AS BIGINT) FROM {r} s)",
    "(SELECT {h}min(s.n) FROM {r} s, global_temp.keys t WHERE s.k = t.k AND t.n = a.n)",
]


@st.composite
def _filters(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    where = one_of(draw, fitting(PREDICATES, a=source.columns))
    return source._replace(sql=f"(SELECT {source.all} FROM {source.sql} a WHERE {where})")


def _subquery(draw: Draw, texts: list[str], outer: Relation, inner: Relations) -> str | None:
    other = draw(inner)
    hint = f"/*+ {one_of(draw, HINTS[:3])}(s) */ " if one_in(draw, 8) else ""
    columns = fitting(texts, a=outer.columns, s=other.columns)
    return one_of(draw, columns).format(h=hint, r=other.sql) if columns else None


@st.composite
def _subquery_filters(draw: Draw, below: Relations, inner: Relations) -> Relation:
    source = draw(below)
    where = _subquery(draw, SUBQUERIES, source, inner) or "true"
    columns = kept(draw, source.columns)
    texts = ", ".join(columns)
    return source._replace(
        sql=f"(SELECT {texts} FROM {source.sql} a WHERE {where})", columns=columns
    )


@st.composite
def _scalars(draw: Draw, below: Relations, inner: Relations) -> Relation:
    source = draw(below)
    n = _subquery(draw, SCALARS, source, inner) or "7L"
    columns = in_order({*kept(draw, source.columns), "n"})
    texts = ", ".join(f"{n} AS n" if c == "n" else c for c in columns)
    return source._replace(sql=f"(SELECT {texts} FROM {source.sql} a)", columns=columns)


# What may be called by another column's name.
RENAMED = {
    "k": [
        *["a.k", "CAST(a.n AS INT) AS k", "a.k + 1 AS k", "coalesce(a.k, 2) AS k"] * 3,
        "py(a.k) AS k",
    ],
    "n": [*["a.n", "CAST(a.k AS BIGINT) AS n", "a.n * 2 AS n"] * 4, "pandas_py(a.n) AS n"],
    "j": ["a.j", "concat('s', a.k) AS j", "upper(a.j) AS j", "concat(a.j, a.n) AS j"],
    "x": ["a.x", "-a.x AS x", "CAST(a.k AS DOUBLE) AS x"],
}


@st.composite
def _choices(draw: Draw, below: Relations) -> Relation:
    """A projection: fewer columns, columns under other names, what Python or Spark computes."""
    source = draw(below)
    columns = kept(draw, source.columns)
    texts = [
        one_of(draw, fitting(RENAMED[c], a=source.columns)) if c in RENAMED else f"a.{c}"
        for c in columns
    ]
    return source._replace(sql=f"(SELECT {', '.join(texts)} FROM {source.sql} a)", columns=columns)


# ---- aggregates, windows, sets, sorts, exchanges

AGGREGATED = {
    "k": ["max(a.k) AS k", "min(a.k) AS k"],
    "j": ["min(a.j) AS j", "max(a.j) AS j"],
    "n": [
        "sum(a.n) AS n",
        "count(*) AS n",
        "count(DISTINCT a.k) AS n",
        "count(DISTINCT a.n, a.j) AS n",
    ],
    "d": ["CAST(sum(a.d) AS DECIMAL(12, 2)) AS d", "max(a.d) AS d", "avg(a.d) AS d"],
    "x": ["max(a.x) AS x", "sum(a.x) FILTER (WHERE a.k > 2) AS x", "count(DISTINCT a.j) / 4 AS x"],
    "day": ["max(a.day) AS day"],
    "tags": [
        "max(a.tags) AS tags",
        "sort_array(collect_set(a.j)) AS tags",
        "sort_array(collect_list(a.j)) AS tags",
    ],
    "info": ["max(a.info) AS info", "min(a.info) AS info"],
}
# By what is grouped, and which of the columns that is.
GROUPINGS = {
    "a.k": ("k",),
    "ROLLUP (a.k, a.day)": ("k",),
    "CUBE (a.k, a.d)": ("k",),
    "GROUPING SETS ((a.k, a.j), (a.j), ())": ("k", "j"),
    "a.k, a.j": ("k", "j"),
    "a.j": ("j",),
    "a.n": ("n",),
    "a.info": (),
    "a.x": ("x",),
}
WINDOWS = [
    "row_number() OVER (PARTITION BY a.k ORDER BY {all})",
    "rank() OVER (PARTITION BY a.k ORDER BY a.d DESC)",
    "sum(a.n) OVER (PARTITION BY a.k)",
    "count(*) OVER (PARTITION BY a.j ORDER BY a.n RANGE BETWEEN 5 PRECEDING AND CURRENT ROW)",
    "max(a.n) OVER ()",
    "count(*) OVER ()",
    "lag(a.n, 2) OVER (PARTITION BY a.k, a.j ORDER BY {all})",
    "dense_rank() OVER (ORDER BY a.d, a.n)",
]
EXCHANGES = [
    *("REPARTITION(3)", "REPARTITION(1)", "COALESCE(2)", "REBALANCE"),
    *("REPARTITION(3, a.k)", "REPARTITION(a.k)", "REPARTITION(a.j, a.k)", "REPARTITION(4, a.n)"),
    *("REPARTITION_BY_RANGE(3, a.n)", "REPARTITION_BY_RANGE(a.k)", "REBALANCE(a.k)"),
    *("REBALANCE(3, a.j)", "DISTRIBUTE BY a.k", "CLUSTER BY a.k, a.n", "SORT BY a.n"),
    "DISTRIBUTE BY a.k SORT BY a.n",
]


@st.composite
def _aggregates(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    if one_in(draw, 3):
        columns = kept(draw, source.columns)
        sql = f"(SELECT DISTINCT {', '.join(columns)} FROM {source.sql} a)"
        return source._replace(sql=sql, columns=columns)
    by = one_of(draw, fitting(GROUPINGS, a=source.columns))
    columns = in_order({*kept(draw, source.columns), *GROUPINGS[by]})
    texts = [
        f"a.{c}" if c in GROUPINGS[by] else one_of(draw, fitting(AGGREGATED[c], a=source.columns))
        for c in columns
    ]
    having = one_of(draw, ["", "", "", " HAVING count(*) > 1"])
    groups = 1 if by == "a.k" else 4
    profile = Profile(groups, groups, groups, groups)
    if source.profile.rows < KEYS:
        profile = source.profile.scaled(2)
    sql = f"(SELECT {', '.join(texts)} FROM {source.sql} a GROUP BY {by}{having})"
    return Relation(sql, profile, columns)


@st.composite
def _windows(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    window = one_of(draw, fitting(WINDOWS, a=source.columns)).format(all=source.all)
    columns = in_order({*source.columns, "n"})
    texts = ", ".join("CAST(w AS BIGINT) AS n" if c == "n" else c for c in columns)
    where = one_of(draw, ["", " WHERE w <= 3"])
    inner = f"(SELECT {source.all}, {window} AS w FROM {source.sql} a) a{where}"
    return source._replace(sql=f"(SELECT {texts} FROM {inner})", columns=columns)


WORDS = ["UNION ALL"] * 6 + ["UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL", "MINUS"]


@st.composite
def _set_operations(draw: Draw, below: Relations) -> Relation:
    word = one_of(draw, WORDS)
    left, right = draw(below), draw(below)
    profile = left.profile.plus(right.profile)
    columns = tuple(c for c in left.columns if c in right.columns)
    if not {"k", "j", "n"} & {*columns}:
        return left
    if profile.rows > MAX_ROWS:
        word, profile = "INTERSECT", left.profile
    names = ", ".join(columns)
    sql = f"(SELECT {names} FROM {left.sql} a {word} SELECT {names} FROM {right.sql} a)"
    return Relation(sql, profile, columns)


@st.composite
def _sorted_limits(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    limit = one_of(draw, ["LIMIT 40", "LIMIT 7 OFFSET 3", "LIMIT 1", ""])
    columns = kept(draw, source.columns)
    order = draw(st.permutations(columns).map(", ".join))
    sql = f"(SELECT {', '.join(columns)} FROM {source.sql} a ORDER BY {order} {limit})"
    return source._replace(sql=sql, columns=columns)


@st.composite
def _exchanges(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    how = one_of(draw, fitting(EXCHANGES, a=source.columns))
    if " BY " in how:
        return source._replace(sql=f"(SELECT {source.all} FROM {source.sql} a {how})")
    return source._replace(
        sql=f"(SELECT /*+ {how.replace('a.', '')} */ {source.all} FROM {source.sql} a)"
    )


@st.composite
def _explodes(draw: Draw, below: Relations) -> Relation:
    source = draw(below)
    exploded = one_of(
        draw, fitting(["a.tags", "split('s1,s2', ',')", "array(a.j, 's3')"], a=source.columns)
    )
    columns = in_order({*kept(draw, source.columns), "j"})
    texts = ", ".join("t AS j" if c == "j" else f"a.{c}" for c in columns)
    outer = one_of(draw, ["", "OUTER "])
    sql = f"(SELECT {texts} FROM {source.sql} a LATERAL VIEW {outer}explode({exploded}) e AS t)"
    return Relation(sql, source.profile.scaled(2), columns)
