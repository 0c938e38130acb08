"""Draws DataFrames that are built by calls: one that is used again shares its expression ids."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from fuzz_drawing import MAX_ROWS, Draw, Relation, kept, one_in, one_of
from fuzz_joins import condition
from fuzz_relations import relations
from fuzz_tables import Profile

HOW = ["inner"] * 5 + ["left", "right", "full", "left_semi", "left_anti"]
# Methods that leave the columns as they are; the first {c} is a column.
CALLS = [
    '.where("{c} IS NOT NULL")',
    '.where("hash({c}) % 5 <> 1")',
    ".distinct()",
    '.repartition(3, "{c}")',
    ".repartition(2)",
    '.sortWithinPartitions("{c}")',
    ".coalesce(1)",
    '.hint("broadcast")',
    '.hint("shuffle_hash")',
    '.hint("merge")',
    ".orderBy({all}).limit(9)",
    ".alias('z')",
]
SETS = [".union({0})"] * 3 + [".unionByName({0})", ".intersect({0})", ".subtract({0})"]


@st.composite
def frames(draw: Draw, sources: Sequence[Relation], depth: int) -> Relation:
    """A DataFrame as a Python expression, in place of the relation's SQL."""
    source = draw(_leaves(sources))
    for _ in range(depth):
        source = draw(_calls(source) if one_in(draw, 3) else _joins(source, sources))
    return source


@st.composite
def _leaves(draw: Draw, sources: Sequence[Relation]) -> Relation:
    built = [source for source in sources if _is_variable(source.sql)]
    if built and not one_in(draw, 3):
        return one_of(draw, built)
    relation = draw(relations(sources, one_of(draw, [0, 0, 1])))
    if relation.sql.startswith("("):
        return relation._replace(sql=f'spark.sql("{relation.statement}")')
    text = relation.sql if _is_variable(relation.sql) else f'spark.table("{relation.sql}")'
    return relation._replace(sql=text)


def _is_variable(sql: str) -> bool:
    return sql.startswith("df")


@st.composite
def _calls(draw: Draw, source: Relation) -> Relation:
    form = draw(st.integers(0, 4))
    if form == 4:
        # Who reads a frame with random numbers twice has to see the same ones.
        names = _quoted(source.columns)
        both = f'd.join(d, [{names}, "r"], "left_semi").select({names})'
        return source._replace(sql=f'(lambda d: {both})({source.sql}.withColumn("r", F.rand()))')
    if form == 0:
        columns = kept(draw, source.columns)
        profile = source.profile
        sql = f"{source.sql}.select({_quoted(columns)})"
        if one_in(draw, 3):
            sql += ".distinct()"
            profile = Profile(1, 1, 1, 1) if columns == ("k",) else profile
        return Relation(sql, profile, columns)
    if form == 1 and {"k", "n"} <= {*source.columns}:
        call = one_of(
            draw,
            [
                '.groupBy("k").agg(F.expr("sum(n) AS n"))',
                '.groupBy("k").agg(F.expr("count(*) AS n"))',
                '.select("k", F.expr("count(*) OVER (PARTITION BY k)").alias("n"))',
                '.select(F.col("n").alias("k"), F.col("k").cast("long").alias("n"))',
                '.withColumnRenamed("k", "m").select(F.col("m").alias("k"), "n")',
            ],
        )
        return Relation(source.sql + call, source.profile, ("k", "n"))
    call = one_of(draw, CALLS).format(c=one_of(draw, source.columns), all=_quoted(source.columns))
    return source._replace(sql=source.sql + call)


@st.composite
def _joins(draw: Draw, left: Relation, sources: Sequence[Relation]) -> Relation:
    right = draw(_leaves(sources))
    if one_in(draw, 3):
        # The same DataFrame again, or a part of it.
        right = left
    if one_in(draw, 2):
        columns = kept(draw, right.columns)
        text = f"{right.sql}.select({_quoted(columns)})"
        right = right._replace(sql=text, columns=columns)
        if one_in(draw, 2):
            right = right._replace(sql=f"{text}.distinct()")
    both = tuple(c for c in left.columns if c in right.columns)
    if one_in(draw, 6) and both and {"k", "j", "n"} & {*both}:
        names = _quoted(both)
        text = one_of(draw, SETS).format(f"{right.sql}.select({names})")
        profile = left.profile.plus(right.profile)
        if profile.rows > MAX_ROWS:
            text, profile = "", left.profile
        return Relation(f"{left.sql}.select({names}){text}", profile, both)
    how = one_of(draw, HOW)
    on, rows = condition(draw, left, right, has_keys=True)
    if "k" in both and on.startswith("a.k = b.k") and "hash" not in on and one_in(draw, 2):
        return _using(left, right, how, rows)
    names = dict.fromkeys(left.columns, "a")
    if "semi" in how or "anti" in how:
        rows = left.profile
    else:
        names |= {c: "b" for c in right.columns if c not in names or draw(st.booleans())}
        rows = rows if how == "inner" else rows.plus(left.profile).plus(right.profile)
    columns = kept(draw, tuple(names))
    chosen = _quoted(f"{names[c]}.{c}" for c in columns)
    joined = f'{left.sql}.alias("a").join({right.sql}.alias("b"), F.expr("{on}"), "{how}")'
    return Relation(f"{joined}.select({chosen})", rows, columns)


def _using(left: Relation, right: Relation, how: str, rows: Profile) -> Relation:
    """A join by the key's name; of what both have beside it, the left side's."""
    further = tuple(c for c in right.columns if c not in left.columns)
    text = f"{right.sql}.select({_quoted(('k', *further))})"
    if "semi" in how or "anti" in how:
        further, rows = (), left.profile
    elif how != "inner":
        rows = rows.plus(left.profile).plus(right.profile)
    columns = tuple(c for c in left.columns if c != "k")
    sql = f'{left.sql}.join({text}, "k", "{how}").select({_quoted(("k", *columns, *further))})'
    return Relation(sql, rows, ("k", *columns, *further))


def _quoted(names: Sequence[str] | object) -> str:
    return ", ".join(f'"{name}"' for name in names)  # type: ignore[attr-defined]
