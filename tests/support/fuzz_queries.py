"""Draws queries: named relations of several kinds first, then a query that reads them again."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

import fuzz_partitioned
import fuzz_partitions
from fuzz_drawing import Draw, Relation, fitting, one_in, one_of
from fuzz_frames import frames
from fuzz_relations import on_key, relations, statements
from fuzz_tables import TABLES

DEPTHS = [0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 3]
ACTIONS = [
    *["collect"] * 11,
    *["write"] * 4,
    *("rdd", "toLocalIterator", "table", "partitions", "partitions"),
    *fuzz_partitions.ACTIONS,
]
WRITES = ("write", "table")


class Query(NamedTuple):
    """A query as drawn.

    Attributes:
        steps: Python statements, which know `spark` and `F`; the last makes `result`.
        action: What is done with the result: `collect`, `rdd`, `toLocalIterator`, a `write` to
            files, a `table` made of it, a look at its `partitions`, which the query numbers, or one
            of `fuzz_partitions`.
        is_ordered: Whether its rows come in an order that Spark defines.
        partitions: In how many partitions, by the first column, the user asks for them; 0 for any.
        partition_columns: How many of its columns are partition columns of what is written.
    """

    steps: tuple[str, ...]
    action: str
    is_ordered: bool
    partitions: int = 0
    partition_columns: int = 0

    @property
    def is_cached(self) -> bool:
        return any("CACHE" in step or ".cache()" in step for step in self.steps)


@st.composite
def queries(draw: Draw) -> Query:
    """Draws a query."""
    tables = "tables" if one_in(draw, 6) else "global_temp"
    sources = [
        Relation(f"{tables}.{name}", table.profile)
        for name, table in TABLES.items()
        for _ in range(table.weight)
    ]
    if tables == "global_temp":
        sources = fuzz_partitioned.among(draw, sources)
    if one_in(draw, 2):
        # Few tables, so that they are read more than once.
        sources = [one_of(draw, sources) for _ in range(2)]
    steps: list[str] = []
    ctes: list[str] = []
    named: list[Relation] = []
    for number in range(one_of(draw, [0, 0, 0, 1, 1, 1, 1, 2, 2, 3])):
        defined = draw(_definitions(_mixed(sources, named), number, tables, ctes))
        steps += defined[0]
        named.append(defined[1])
    known = _mixed(sources, named)
    action = one_of(draw, ACTIONS)
    # As many as policies and settings say, so that Spark leaves out the user's own shuffle.
    partitions = one_of(draw, [3, 3, 2, 7, 5]) if action == "partitions" else 0
    if not ctes and one_in(draw, 4):
        frame = draw(frames(known, one_of(draw, [1, 1, 1, 2, 2, 3])))
        result, is_ordered = frame.sql, False
        if partitions:
            result += f'.repartition({partitions}, "{frame.columns[0]}")'
        elif one_in(draw, 5):
            names = ", ".join(f'"{c}"' for c in frame.columns)
            result, is_ordered = f"{result}.orderBy({names})", True
    else:
        frame = draw(relations(known, one_of(draw, DEPTHS)))
        if partitions and one_in(draw, 2):
            frame = draw(on_key(known))
        if not partitions and action not in WRITES and one_in(draw, 8):
            sql, is_ordered = draw(statements(known, one_of(draw, [0, 0, 1]))), False
        elif partitions:
            hint = f"/*+ REPARTITION({partitions}, {frame.columns[0]}) */"
            sql, is_ordered = f"SELECT {hint} {frame.all} FROM {frame.sql} a", False
        else:
            sql, is_ordered = draw(_tops(frame))
        with_ctes = f"WITH {', '.join(ctes)} " if ctes else ""
        result = f'spark.sql("{with_ctes}{sql}")'
    steps.append(f"result = {result}")
    is_written = action in WRITES
    by = one_of(draw, [1, 1, 1, 0, 2]) if is_written else 0
    return Query(tuple(steps), action, is_ordered and not is_written, partitions, by)


def _mixed(sources: list[Relation], named: list[Relation]) -> list[Relation]:
    """Half of what is read has a name, if anything has."""
    return sources + named * (len(sources) // len(named)) if named else sources


@st.composite
def _definitions(
    draw: Draw, sources: list[Relation], number: int, tables: str, ctes: list[str]
) -> tuple[list[str], Relation]:
    """Draws a named relation: the statements that make it, and what reads it."""
    kind = one_of(draw, ["cte", "cte", "view", "view", "frame", "frame", "frame", "cached", "kept"])
    if ctes:
        # What is no part of the statement cannot read them.
        kind = "cte"
    depth = one_of(draw, [0, 0, 1, 1, 1])
    if kind == "frame":
        frame = draw(frames(sources, depth))
        name = f"df{number}"
        cached = ".cache()" if one_in(draw, 8) else ""
        steps = [f"{name} = {frame.sql}{cached}", f'{name}.createOrReplaceTempView("{name}")']
        return steps, frame._replace(sql=name)
    if kind == "kept":
        # A view of the catalog reads no temporary one.
        lasting = [s for s in sources if s.sql.startswith("tables.")]
        if lasting:
            frame = draw(relations(lasting, depth))
            if "global_temp." not in frame.sql and "py(" not in frame.sql:
                name = f"tables.v{number}"
                return [
                    f'spark.sql("CREATE OR REPLACE VIEW {name} AS {frame.statement}")'
                ], frame._replace(sql=name)
        kind = "view"
    frame = draw(relations(sources, depth))
    name = f"{kind[0]}{number}"
    if kind == "cte":
        if one_in(draw, 5):
            return [], _read_twice(frame, name, ctes)
        ctes.append(f"{name} AS ({frame.statement})")
        return [], frame._replace(sql=name)
    if kind == "cached":
        return [f'spark.sql("CACHE LAZY TABLE {name} AS {frame.statement}")'], frame._replace(
            sql=name
        )
    return [
        f'spark.sql("CREATE OR REPLACE TEMPORARY VIEW {name} AS {frame.statement}")'
    ], frame._replace(sql=name)


def _read_twice(source: Relation, name: str, ctes: list[str]) -> Relation:
    """The relation's own rows, if both readers of random numbers beside them see the same ones."""
    ctes.append(f"{name} AS (SELECT {source.all}, rand() AS r FROM {source.sql})")
    same = " AND ".join(f"a.{c} <=> b.{c}" for c in source.columns)
    exists = f"EXISTS (SELECT 1 FROM {name} b WHERE a.r = b.r AND {same})"
    return source._replace(sql=f"(SELECT {source.all} FROM {name} a WHERE {exists})")


@st.composite
def _tops(draw: Draw, source: Relation) -> tuple[str, bool]:
    """Draws what the query returns of a relation, and whether in a defined order."""
    if one_in(draw, 2):
        return source.statement, False
    sort = f"ORDER BY {', '.join(draw(st.permutations(source.columns)))}"
    from_ = f"FROM {source.sql} a"
    columns = ", ".join(f"a.{c}" for c in source.columns)
    return one_of(
        draw,
        [
            (f"SELECT {source.columns[0]} {from_}", False),
            *[
                (f"SELECT {text} {from_}", False)
                for text in fitting(
                    [
                        "count(*) c, sum(a.k) k, max(a.k) m",
                        "count(*) c, sum(a.n) n, count(DISTINCT a.k) k",
                        "count(*) c, max(a.j) j, count(DISTINCT a.j) m",
                    ],
                    a=source.columns,
                )
            ],
            (f"SELECT {columns}, count(*) c {from_} GROUP BY {columns}", False),
            (f"SELECT {source.all} {from_} {sort}", True),
            (f"SELECT {source.all} {from_} {sort} LIMIT 20", True),
            (f"SELECT {source.all} {from_} {sort} LIMIT 30 OFFSET 7", True),
            (f"SELECT {source.all} {from_} ORDER BY {source.columns[0]} DESC NULLS LAST", False),
        ],
    )
