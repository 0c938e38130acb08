"""Draws joins of two relations, chains of several, and lateral ones."""

from __future__ import annotations

import math

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
)
from fuzz_tables import IS_SPARK_4, Profile

EQUALITIES = [
    *["a.k = b.k"] * 8,
    "a.j = b.j",
    "a.k = b.k AND a.j = b.j",
    "a.k <=> b.k",
    "a.n = b.n",
    "a.k = b.n",
    "a.n = b.k",
    "a.x = b.x",
    "a.x <=> b.x",
    "a.info = b.info",
    "a.k = b.k AND a.n = b.n",
    "coalesce(a.k, 3) = b.k",
    "a.k + 1 = b.k",
    "a.n % 5 = b.n % 5",
    "py(a.k) = b.k",
]
if IS_SPARK_4:
    EQUALITIES += [
        "a.j COLLATE UTF8_LCASE = b.j COLLATE UTF8_LCASE",
        "a.k = b.k AND a.j COLLATE UNICODE_CI = b.j COLLATE UNICODE_CI",
    ]
CONDITIONS = [
    *["", " AND a.d < b.d", " AND a.n <> b.n", " AND (a.day > b.day OR a.j IS NULL)"],
    *[" AND a.n % 3 = 0", " AND b.d > 20", " AND b.n < 9", " AND a.k > 1"],
]
# Under ANSI these throw on some rows, which Spark's order of joins may drop before.
THROWING = [" AND 60 / b.n >= a.n", " AND CAST(substr(b.j, 2) AS INT) < a.n", " AND a.n % b.k = 0"]
UNEQUAL = ["a.k < b.k", "a.n + 3 > b.n", "a.k = b.k OR a.j = b.j", "a.x <> b.x", "true"]
TYPES = [
    *["JOIN"] * 6,
    *["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"],
    *["LEFT SEMI JOIN", "LEFT ANTI JOIN"],
]


def condition(
    draw: Draw[int], left: Relation, right: Relation, *, has_keys: bool = False
) -> tuple[str, Profile]:
    """Draws what `a` and `b` are joined on, now and then without keys, and about what it finds.

    What would find too much finds a part of it, whatever the rows have in common.
    """
    texts = fitting(EQUALITIES, a=left.columns, b=right.columns)
    all_pairs = left.profile.scaled(right.profile.rows)
    if one_in(draw, 12) and all_pairs.rows <= MAX_ROWS and not has_keys:
        return one_of(draw, fitting(UNEQUAL, a=left.columns, b=right.columns)), all_pairs
    if texts:
        on = one_of(draw, texts)
        rows = left.profile.times(right.profile)
        if "<=>" not in on:
            rows = rows._replace(null=0)
        if "a.k = b.k" not in on and rows.rows < all_pairs.rows / 6:
            rows = all_pairs.scaled(1 / 6)
    else:
        one, other = one_of(draw, left.columns), one_of(draw, right.columns)
        on = f"pmod(hash(a.{one}), 7) = pmod(hash(b.{other}), 7)"
        rows = all_pairs.scaled(1 / 7)
    if rows.rows > MAX_ROWS:
        parts = math.ceil(4 * rows.rows / MAX_ROWS)
        return f"{on} AND {_part(left, right, parts)}", rows.scaled(1 / parts)
    if not one_in(draw, 3):
        further = THROWING if one_in(draw, 16) else CONDITIONS
        on += one_of(draw, fitting(["", *further], a=left.columns, b=right.columns))
    return on, rows


def _part(left: Relation, right: Relation, parts: int) -> str:
    """A condition that one of so many pairs of rows meets."""
    columns = [f"a.{c}" for c in left.columns[:3]] + [f"b.{c}" for c in right.columns[:3]]
    return f"pmod(hash({', '.join(columns)}), {parts}) = 0"


@st.composite
def joins(draw: Draw, one: Relations, other: Relations) -> Relation:
    left, right = draw(one), draw(other)
    if draw(st.booleans()):
        left, right = right, left
    kind = one_of(draw, TYPES)
    if one_in(draw, 8) and "k" in left.columns and "k" in right.columns:
        return _using(draw, left, right, kind)
    on, rows = condition(draw, left, right)
    if rows_of_both(kind):
        names = {"a": left.columns, "b": right.columns}
        rows = rows if kind == "JOIN" else rows.plus(left.profile).plus(right.profile)
    else:
        names = {"a": left.columns}
        rows = left.profile
    hint = ""
    if one_in(draw, 8):
        hint = f"/*+ {one_of(draw, HINTS)}({one_of(draw, 'ab')}) */ "
    columns, texts = _output(draw, names)
    return Relation(
        f"(SELECT {hint}{texts} FROM {left.sql} a {kind} {right.sql} b ON {on})", rows, columns
    )


@st.composite
def numbered(draw: Draw, one: Relations, other: Relations) -> Relation:
    """The distinct rows of a join's side that have one random number in all rows of the join.

    All have, unless the side is run again for a part of the other.
    """
    left, right = draw(one), draw(other)
    # Plain Spark makes a Cartesian product of a join without keys, and runs a side again itself.
    on, _ = condition(draw, left, right, has_keys=True)
    kind = one_of(draw, TYPES)
    target = one_of(draw, "ab" if rows_of_both(kind) else "a")
    side = left if target == "a" else right
    numbers = one_of(draw, ["rand()", "rand()", "uuid()", "monotonically_increasing_id()"])
    distinct = f"(SELECT *, {numbers} AS r FROM (SELECT DISTINCT {side.all} FROM {side.sql}))"
    a, b = (distinct, right.sql) if target == "a" else (left.sql, distinct)
    names = ", ".join(f"{target}.{c}" for c in side.columns)
    sql = (
        f"(SELECT {names} FROM {a} a {kind} {b} b ON {on}"
        f" GROUP BY {names} HAVING count(DISTINCT {target}.r) = 1)"
    )
    return side._replace(sql=sql)


def rows_of_both(kind: str) -> bool:
    """Whether a join of this type returns the columns of both sides."""
    return "SEMI" not in kind and "ANTI" not in kind


def _using(draw: Draw[int], left: Relation, right: Relation, kind: str) -> Relation:
    """A join whose key is one column of both sides, which hides theirs."""
    rows = left.profile.times(right.profile)._replace(null=0)
    key, more = "USING (k)", ""
    if rows.rows > MAX_ROWS:
        parts = math.ceil(4 * rows.rows / MAX_ROWS)
        key, more = f"ON a.k = b.k AND {_part(left, right, parts)}", "a."
        rows = rows.scaled(1 / parts)
    names = {"a": tuple(c for c in left.columns if c != "k")}
    if rows_of_both(kind):
        names["b"] = tuple(c for c in right.columns if c != "k")
        rows = rows if kind == "JOIN" else rows.plus(left.profile).plus(right.profile)
    else:
        rows = left.profile
    columns, texts = _output(draw, names) if any(names.values()) else ((), "")
    texts = f"{more}k, {texts}" if texts else f"{more}k"
    sql = f"(SELECT {texts} FROM {left.sql} a {kind} {right.sql} b {key})"
    return Relation(sql, rows, ("k", *columns))


def _output(draw: Draw[int], names: dict[str, tuple[str, ...]]) -> tuple[tuple[str, ...], str]:
    """Draws which columns a join returns, and of which side each; the key may be another's."""
    columns = kept(draw, in_order(c for column in names.values() for c in column))
    most = one_of(draw, list(names))
    texts = []
    for c in columns:
        having = [name for name in names if c in names[name]]
        name = most if most in having and not one_in(draw, 3) else one_of(draw, having)
        if len(having) == 2 and one_in(draw, 6):
            texts.append(f"coalesce({having[0]}.{c}, {having[1]}.{c}) AS {c}")
        else:
            texts.append(f"{name}.{c}")
    return columns, ", ".join(texts)


@st.composite
def chains(draw: Draw, leaf: Relations, one: Relations) -> Relation:
    """Three to five relations joined in one FROM, in any order; now and then by an outer join."""
    relations, text, rows = _chain(draw, leaf, one)
    columns, texts = _output(draw, {name: r.columns for name, r in relations.items()})
    hint = f"/*+ {one_of(draw, HINTS)}(q) */ " if one_in(draw, 12) else ""
    return Relation(f"(SELECT {hint}{texts} FROM {text})", rows, columns)


@st.composite
def whole_chains(draw: Draw, leaf: Relations, one: Relations) -> str:
    """A chain with all columns in the order of its relations: a statement."""
    return f"SELECT * FROM {_chain(draw, leaf, one)[1]}"


def _chain(draw: Draw, leaf: Relations, one: Relations) -> tuple[dict[str, Relation], str, Profile]:
    """Relations by their names, what stands after FROM, and about what is found there."""
    drawn = [draw(one)] + [draw(leaf) for _ in range(one_of(draw, [2, 2, 2, 2, 2, 3, 4]))]
    names = "pqrst"[: len(drawn)]
    rows = drawn[0].profile
    conditions = []
    for i, (name, relation) in enumerate(zip(names[1:], drawn[1:], strict=True)):
        to = draw(st.integers(0, i))
        joined = drawn[to]._replace(profile=rows)
        on, rows = condition(draw, joined, relation)
        conditions.append(on.replace("a.", f"{names[to]}.").replace("b.", f"{name}."))
    listed = [f"{r.sql} {name}" for r, name in zip(drawn, names, strict=True)]
    if draw(st.booleans()):
        where = " AND ".join(f"({c})" for c in conditions)
        text = f"{', '.join(draw(st.permutations(listed)))} WHERE {where}"
    else:
        text = listed[0]
        for table, on in zip(listed[1:], conditions, strict=True):
            kind = one_of(draw, TYPES[6:9]) if one_in(draw, 7) else "JOIN"
            text += f" {kind} {table} ON {on}"
        rows = rows.plus(drawn[0].profile)
    return dict(zip(names, drawn, strict=True)), text, rows


# What needs no shuffle above a join on k, which brought the rows of a key together.
ON_KEY = [
    ("SELECT a.k FROM {join}", ("k",)),
    ("SELECT a.k, count(*) AS n FROM {join} GROUP BY a.k", ("k", "n")),
    ("SELECT a.k, max(b.k) + count(*) AS n FROM {join} GROUP BY a.k", ("k", "n")),
    ("SELECT DISTINCT a.k FROM {join}", ("k",)),
    ("SELECT a.k, count(*) OVER (PARTITION BY a.k) AS n FROM {join}", ("k", "n")),
]


@st.composite
def joins_on_key(draw: Draw, one: Relations, other: Relations) -> Relation:
    """Two relations joined on k alone, and an operator above that is distributed by k, too."""
    left, right = draw(one), draw(other)
    rows = left.profile.times(right.profile)._replace(null=0).plus(left.profile)
    if "k" not in left.columns or "k" not in right.columns or rows.rows > 4 * MAX_ROWS:
        return left
    text, columns = one_of(draw, ON_KEY)
    kind = one_of(draw, [*["JOIN"] * 3, "LEFT JOIN", "RIGHT JOIN"])
    sql = text.format(join=f"{left.sql} a {kind} {right.sql} b ON a.k = b.k")
    is_grouped = "GROUP BY" in sql or "DISTINCT" in sql
    return Relation(f"({sql})", left.profile if is_grouped else rows, columns)


# What a lateral join finds for each row of `a`, in the column `m`; {r} is a relation.
LATERALS = [
    "SELECT s.n AS m FROM {r} s WHERE s.k = a.k",
    "SELECT s.k AS m FROM {r} s WHERE s.k = a.k AND s.n <> a.n",
    "SELECT count(*) AS m FROM {r} s WHERE s.k = a.k",
    "SELECT count(*) AS m FROM {r} s WHERE s.k = a.k HAVING count(*) > 1",
    "SELECT max(s.n) AS m FROM {r} s WHERE s.j = a.j",
    "SELECT sum(s.n) AS m FROM {r} s, global_temp.keys t WHERE s.k = t.k AND t.n = a.n",
    "SELECT DISTINCT s.k AS m FROM {r} s WHERE s.k = a.k",
    "SELECT a.k + 1 AS m",
]


@st.composite
def laterals(draw: Draw, one: Relations, inner: Relations) -> Relation:
    left, right = draw(one), draw(inner)
    text = one_of(draw, fitting(LATERALS, a=left.columns, s=right.columns) or ["SELECT 3 AS m"])
    rows = left.profile.times(right.profile)
    if rows.rows > MAX_ROWS or "SELECT s." not in text:
        rows = left.profile
        text = "SELECT 5 AS m" if "SELECT s." in text else text
    kind = one_of(draw, [", LATERAL", " JOIN LATERAL", " LEFT JOIN LATERAL"])
    on = " ON true" if "LEFT" in kind else ""
    columns = kept(draw, left.columns)
    texts = [f"a.{c}" if c != "n" else "CAST(b.m AS BIGINT) AS n" for c in columns]
    where = one_of(draw, ["", "", " WHERE b.m > 2"])
    side_text = f"{left.sql} a{kind} ({text.format(r=right.sql)}) b{on}{where}"
    sql = f"(SELECT {', '.join(texts)} FROM {side_text})"
    return Relation(sql, rows.plus(left.profile), columns)
