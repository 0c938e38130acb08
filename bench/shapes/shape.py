"""What a shape is: tables, queries over them, and three ways to run these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Table(NamedTuple):
    """A table to write as Parquet, and in how many files: each is one map task."""

    sql: str
    files: int


class Query(NamedTuple):
    """What is measured as one: its texts, by several clients at once or one after the other.

    Attributes:
        texts: Of SQL.
        clients: How many run them.
        writes: A table that they write, whose files are counted; empty for none.
    """

    texts: Sequence[str]
    clients: int = 1
    writes: str = ""


def one(text: str) -> Query:
    """Returns a query of one text."""
    return Query([text])


def _no_functions(_spark: SparkSession, _pace: float) -> None:
    """Registers nothing."""


class Shape(NamedTuple):
    """A trouble of production as data and queries.

    Attributes:
        master: Where it runs. Steps that wait need no core, so `local[16]` shows on any machine
            what sixteen slots gain; what computes runs at `local[2]`.
        tables: By name, of a size where 1 is what is measured.
        queries: What has the trouble.
        counters: What looks alike, and must not lose.
        recipes: What is to help, together.
        by_hand: What an expert would set for the session.
        conf: Settings of all sessions.
        start: Settings of the application.
        warm_up: Rounds that are not counted; 0 where a run takes minutes.
        functions: Registers Python functions in a session; their waiting times the pace.
    """

    master: str
    tables: Callable[[float], Mapping[str, Table]]
    queries: Mapping[str, Query]
    counters: Mapping[str, Query]
    recipes: Sequence[str]
    by_hand: Mapping[str, str]
    conf: Mapping[str, str] = {}
    start: Mapping[str, str] = {}
    warm_up: int = 1
    functions: Callable[[SparkSession, float], None] = _no_functions

    @property
    def slots(self) -> int:
        """Tasks that run at once."""
        return int(self.master.removeprefix("local[").removesuffix("]"))


def prepare(shape: Shape, spark: SparkSession, folder: str, size: float) -> None:
    """Writes the shape's tables into a folder."""
    for name, table in shape.tables(size).items():
        written = spark.sql(table.sql).repartition(table.files)
        written.write.mode("overwrite").parquet(f"{folder}/{name}")


def register(shape: Shape, spark: SparkSession, folder: str, pace: float = 1.0) -> None:
    """Makes the tables' views and the functions of a session."""
    for name in shape.tables(1):
        spark.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    shape.functions(spark, pace)
    for key, value in shape.conf.items():
        spark.conf.set(key, value)
