"""Draws joins of two relations, chains of several, and lateral ones."""

from __future__ import annotations

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
    *["JOIN"] * 4,
    *["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"],
    *["LEFT SEMI JOIN", "LEFT ANTI JOIN"],
]


def equality(draw: Draw[int], left: Relation, right: Relation) -> tuple[str, Profile]:
    """Draws a condition that has keys, and about what it finds."""
    texts = fitting(EQUALITIES, a=left.columns, b=right.columns)
    rows = left.profile.times(right.profile)
    if not texts:
        one, other = one_of(draw, left.columns), one_of(draw, right.columns)
        on = f"pmod(hash(a.{one}), 7) = pmod(hash(b.{other}), 7)"
        return on, left.profile.scaled(right.profile.rows / 7)
    on = one_of(draw, texts)
    if "<=>" not in on:
        rows = rows._replace(null=0)
    further = THROWING if one_in(draw, 25) else CONDITIONS
    if not one_in(draw, 3):
        on += one_of(draw, fitting(["", *further], a=left.columns, b=right.columns))
    return on, rows


def _condition(draw: Draw[int], left: Relation, right: Relation) -> tuple[str, Profile]:
    """Draws a condition: now and then one without keys; what keeps the rows few if it must."""
    on, rows = equality(draw, left, right)
    if one_in(draw, 12) and left.profile.rows * right.profile.rows <= MAX_ROWS:
        on = one_of(draw, fitting(UNEQUAL, a=left.columns, b=right.columns))
        rows = left.profile.scaled(right.profile.rows)
    if rows.rows > MAX_ROWS:
        return selective(left, right), left.profile
    return on, rows


def selective(left: Relation, right: Relation) -> str:
    both = [c for c in ("k", "n", "j") if c in left.columns and c in right.columns]
    if len(both) > 1:
        return " AND ".join(f"a.{c} = b.{c}" for c in both)
    one, other = left.columns[-1], right.columns[-1]
    return f"a.{(both or [one])[0]} = b.{(both or [other])[0]} AND hash(a.{one}, b.{other}) % 9 = 0"


@st.composite
def joins(draw: Draw, one: Relations, other: Relations) -> Relation:
    left, right = draw(one), draw(other)
    if draw(st.booleans()):
        left, right = right, left
    kind = one_of(draw, TYPES)
    if one_in(draw, 8) and "k" in left.columns and "k" in right.columns:
        return _using(draw, left, right, kind)
    on, rows = _condition(draw, left, right)
    if "SEMI" in kind or "ANTI" in kind:
        names = {"a": left.columns}
        rows = left.profile
    else:
        names = {"a": left.columns, "b": right.columns}
        rows = rows if kind == "JOIN" else rows.plus(left.profile).plus(right.profile)
    hint = ""
    if one_in(draw, 8):
        hint = f"/*+ {one_of(draw, HINTS)}({one_of(draw, 'ab')}) */ "
    columns, texts = _output(draw, names)
    return Relation(
        f"(SELECT {hint}{texts} FROM {left.sql} a {kind} {right.sql} b ON {on})", rows, columns
    )


def _using(draw: Draw[int], left: Relation, right: Relation, kind: str) -> Relation:
    """A join whose key is one column of both sides, which hides theirs."""
    rows = left.profile.times(right.profile)._replace(null=0)
    key, more = "USING (k)", ""
    if rows.rows > MAX_ROWS:
        key, rows = f"ON {selective(left, right)}", left.profile
        more = "a."
    names = {"a": tuple(c for c in left.columns if c != "k")}
    if "SEMI" in kind or "ANTI" in kind:
        rows = left.profile
    else:
        names["b"] = tuple(c for c in right.columns if c != "k")
        rows = rows if kind == "JOIN" else rows.plus(left.profile).plus(right.profile)
    columns, texts = _output(draw, names) if any(names.values()) else ((), "")
    texts = f"{more}k, {texts}" if texts else f"{more}k"
    sql = f"(SELECT {texts} FROM {left.sql} a {kind} {right.sql} b {key})"
    return Relation(sql, rows, ("k", *columns))


def _output(draw: Draw[int], names: dict[str, tuple[str, ...]]) -> tuple[tuple[str, ...], str]:
    """Draws which columns a join returns, and of which side each; the key may be another's."""
    columns = kept(draw, in_order(c for of in names.values() for c in of))
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
    relations = [draw(one)] + [draw(leaf) for _ in range(one_of(draw, [2, 2, 2, 2, 2, 3, 4]))]
    names = "pqrst"[: len(relations)]
    rows = relations[0].profile
    conditions = []
    for i, (name, relation) in enumerate(zip(names[1:], relations[1:], strict=True)):
        to = draw(st.integers(0, i))
        joined = relations[to]._replace(profile=rows)
        on, rows = _condition(draw, joined, relation)
        conditions.append(on.replace("a.", f"{names[to]}.").replace("b.", f"{name}."))
    columns, texts = _output(
        draw, {name: relation.columns for name, relation in zip(names, relations, strict=True)}
    )
    listed = [f"{r.sql} {name}" for r, name in zip(relations, names, strict=True)]
    hint = f"/*+ {one_of(draw, HINTS)}(q) */ " if one_in(draw, 12) else ""
    if draw(st.booleans()):
        where = " AND ".join(f"({c})" for c in conditions)
        text = f"{', '.join(draw(st.permutations(listed)))} WHERE {where}"
    else:
        text = listed[0]
        for table, on in zip(listed[1:], conditions, strict=True):
            kind = one_of(draw, TYPES[4:7]) if one_in(draw, 7) else "JOIN"
            text += f" {kind} {table} ON {on}"
        rows = rows.plus(relations[0].profile)
    return Relation(f"(SELECT {hint}{texts} FROM {text})", rows, columns)


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
    of = f"{left.sql} a{kind} ({text.format(r=right.sql)}) b{on}{where}"
    sql = f"(SELECT {', '.join(texts)} FROM {of})"
    return Relation(sql, rows.plus(left.profile), columns)
