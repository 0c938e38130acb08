"""Draws joins of tables of many shapes, settings for them, and policies that decide at random."""

from __future__ import annotations

import random
from typing import NamedTuple


class Shape(NamedTuple):
    """A table of files: `id` counts up from 0, and each key is there `copies` times.

    Attributes:
        rows: How many it has.
        copies: Rows of a key, but for the one that is skewed.
        columns: What else it has, as Spark SQL over `id`.
        skewed: Whether three of ten rows have the key 0.
    """

    rows: int
    copies: int
    columns: dict[str, str]
    skewed: bool = False


SHAPES = {
    "narrow": Shape(4_000_000, 1, {}),
    "dates": Shape(4_000_000, 4, {"a": "date_add(DATE'2000-01-01', cast(id % 9000 AS int))"}),
    "skewed": Shape(3_000_000, 1, {"a": "id * 7"}, skewed=True),
    "texts": Shape(1_000_000, 1, {"a": "sha1(string(id))"}),
    # Files hold almost nothing of it, and a hash table holds all.
    "constants": Shape(1_000_000, 2, {f"c{n}": "repeat('x', 90)" for n in range(5)}),
    "wide": Shape(300_000, 1, {f"c{n}": f"id * {n + 3}" for n in range(40)}),
    "nested": Shape(
        300_000,
        1,
        {"a": "transform(sequence(1, 6), i -> named_struct('n', id + i, 's', string(id * i)))"},
    ),
    "decimals": Shape(1_000_000, 2, {f"c{n}": f"cast(id AS decimal(38, {n}))" for n in range(4)}),
}
# More than that takes minutes to put out, which says nothing about memory.
MOST_ROWS_OUT = 12_000_000
MAYBE = {
    "spark.sql.autoBroadcastJoinThreshold": ["-1", "-1", "1MB", "10MB"],
    "spark.sql.adaptive.coalescePartitions.enabled": ["true", "true", "false"],
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": ["true", "false"],
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": ["256MB", "1MB"],
    "spark.sql.shuffle.partitions": ["1", "2", "4", "8", "40", "200"],
}
JOINS = ["JOIN"] * 4 + ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
HINTS = [""] * 6 + ["/*+ SHUFFLE_HASH(b) */", "/*+ MERGE(b) */"]
WORDS = ["BROADCAST", "BROADCAST", "SHUFFLE_HASH", "SHUFFLE_HASH", "PREFER_SHUFFLE_HASH"]


class Drawn(NamedTuple):
    """A query, its settings, and sets of policies under each of which it runs."""

    sql: str
    settings: dict[str, str]
    policies: list[dict[str, str]]


def draw(rng: random.Random, sets: int) -> Drawn:
    """Draws a query that plain Spark may well answer, and as many sets of policies."""
    settings = {key: rng.choice(values) for key, values in MAYBE.items() if rng.random() < 0.6}
    settings.setdefault("spark.sql.shuffle.partitions", "8")
    return Drawn(_query(rng), settings, [_policies(rng) for _ in range(sets)])


class _Side(NamedTuple):
    sql: str
    rows: float
    keys: float
    columns: list[str]


def _side(rng: random.Random) -> _Side:
    name, shape = rng.choice(list(SHAPES.items()))
    rows = int(shape.rows * 2 ** rng.uniform(-9, 0))
    keys = rows / shape.copies
    columns = [c for c in shape.columns if rng.random() < 0.8]
    where = f"FROM {name} WHERE id < {rows}"
    way = rng.choice(["files", "files", "distinct", "aggregated", "exploded"])
    if way == "distinct":
        return _Side(f"SELECT DISTINCT k {where}", keys, keys, [])
    if way == "aggregated":
        values = "".join(f", max(struct({c})) AS {c}" for c in columns)
        return _Side(
            f"SELECT k, count(*) AS n{values} {where} GROUP BY k", keys, keys, [*columns, "n"]
        )
    if way == "exploded" and rows < 500_000:
        selected = ", ".join(["k", *columns, "explode(sequence(1, 5)) AS e"])
        return _Side(f"SELECT {selected} {where}", rows * 5, keys, [*columns, "e"])
    return _Side(f"SELECT {', '.join(['k', 'id', *columns])} {where}", rows, keys, [*columns, "id"])


def _query(rng: random.Random) -> str:
    while True:
        a, b, c = (_side(rng) for _ in range(3))
        shared = max(a.keys, b.keys)
        out = max(a.rows * b.rows / shared, a.rows, b.rows)
        skewed = "skewed" in a.sql and "skewed" in b.sql and "id" in a.columns and "id" in b.columns
        if out <= MOST_ROWS_OUT and not skewed and a.rows + b.rows < 6_000_000:
            break
    join = rng.choice(JOINS)
    condition = "a.k = b.k" + rng.choice(["", "", " AND a.k % 7 <> b.k % 5"])
    read = [f"a.{column}" for column in ["k", *a.columns]]
    if "SEMI" not in join and "ANTI" not in join:
        read += [f"b.{column}" for column in ["k", *b.columns]]
    sql = (
        f"SELECT {rng.choice(HINTS)} count(*) AS n, bit_xor(xxhash64({', '.join(read)})) AS h"
        f" FROM ({a.sql}) a {join} ({b.sql}) b ON {condition}"
    )
    if rng.random() < 0.3 and join == "JOIN" and c.rows / c.keys < 2 and "skewed" not in c.sql:
        sql += f" JOIN ({c.sql}) c ON b.k = c.k"
    return sql


def _policies(rng: random.Random) -> dict[str, str]:
    """Texts by decision point, of some points."""

    def word() -> str:
        return f"'{rng.choice(WORDS)}'"

    strategy = rng.choice(["BROADCAST", "SHUFFLE_HASH"])
    side = rng.choice(["LEFT", "RIGHT"])
    target = rng.choice(["100kb", "64mb", "1g"])
    texts = {
        "dynamic_join_selection": f"IF(side.is_left, {word()}, {word()})",
        "join_selection": f"named_struct('strategy', '{strategy}', 'build_side', '{side}')",
        "join_reorder": f"double(pmod(hash(candidate.position, {rng.randrange(99)}), 97))",
        "partition_coalescing": f"named_struct('target_bytes', aqepilot_bytes('{target}'),"
        f" 'min_partitions', {rng.choice([1, 1, 2])})",
        "shuffle_partitions": str(rng.choice([1, 1, 2, 3, 50])),
        "skew_join": f"named_struct('{side.lower()}_splits', transform("
        f"{side.lower()}.bytes_by_partition_id, b -> {rng.choice([2, 5])}), 'force', true)",
        "cost_evaluation": f"IF(plan.is_current, {rng.choice([1, 9])}D, 5D)",
    }
    most = rng.choice([1, 2, 3, 7])
    return {point: texts[point] for point in rng.sample(sorted(texts), most)}
