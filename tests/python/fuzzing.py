"""Runs a drawn query without and with drawn policies, compares, and counts what was decided."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

import fuzz_policies
import fuzz_queries
from fuzz_queries import Query
from rows import assert_same_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


# How many sets of policies an example has; one is what a failing example shrinks to.
SETS = [1, *[4] * 9]


class Example(NamedTuple):
    """A query, the session settings under which it runs, and sets of policies, run one by one."""

    query: Query
    settings: dict[str, str]
    policies: list[dict[str, str]]

    def __repr__(self) -> str:
        """The example as statements for spark-sql; the query is in plain Spark without policies."""
        lines = [f"SET {key}={value};" for key, value in sorted(self.settings.items())]
        for number, policies in enumerate(self.policies, 1):
            lines.append(f"-- policies {number} of {len(self.policies)}")
            lines += [f"SET {key}={value};" for key, value in sorted(policies.items())]
        if self.query.cached:
            lines.append(f"CACHE LAZY TABLE cached AS {self.query.cached};")
        lines.append(f"-- {self.query.action}")
        return "\n".join(["", *lines, f"{self.query.sql};", ""])


@st.composite
def examples(draw: st.DrawFn) -> Example:
    """Draws an example."""
    sets = draw(st.sampled_from(SETS))
    return Example(
        draw(fuzz_queries.queries()),
        draw(fuzz_policies.settings()),
        [draw(fuzz_policies.policies()) for _ in range(sets)],
    )


class Anew(HypothesisProvider):
    """Draws each example by itself.

    Hypothesis' own way makes five of six examples by copying a part of another over it: queries
    alike, each of which takes as long as a new one.
    """


AVAILABLE_PROVIDERS["anew"] = f"{__name__}.Anew"


class Tally:
    """What happened over all examples.

    Attributes:
        examples: Runs with policies that were compared.
        queries: How many queries they are runs of.
        rejected: Those that plain Spark could not run, by its error, or whose rows it does not
            define.
        decisions: By decision point and reason.
        fates: Of the applied decisions, by decision point and fate.
    """

    def __init__(self) -> None:
        self.examples = 0
        self.queries = 0
        self.rejected: Counter[str] = Counter()
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.fates: Counter[tuple[str, str | None]] = Counter()
        self.rows = 0

    def add(self, run: Decided) -> None:
        self.examples += 1
        self.rows += run.rows
        self.decisions.update((d.point, d.reason) for d in run.decisions)
        self.fates.update((d.point, d.fate) for d in run.decisions if d.applied)

    def asked(self, point: str) -> int:
        return sum(count for (of, _), count in self.decisions.items() if of == point)

    def applied(self, point: str) -> int:
        return self.decisions[point, "APPLIED"]

    def adopted(self, point: str) -> int:
        return self.fates[point, "adopted"]

    def __str__(self) -> str:
        rejected = sum(self.rejected.values())
        lines = [
            f"{self.examples} examples of {self.queries} queries, {self.rows} rows;"
            f" {rejected} queries left out",
            *(f"  {count} x {error}" for error, count in self.rejected.most_common()),
        ]
        for point in fuzz_policies.POINTS:
            lines.append(
                f"{point}: {self.asked(point)} decisions asked, {self.applied(point)} applied,"
                f" {self.adopted(point)} adopted"
            )
            for counts in (self.decisions, self.fates):
                of_point = ((k[1], n) for k, n in counts.most_common() if k[0] == point)
                lines.append("  " + ", ".join(f"{name} {n}" for name, n in of_point))
        return "\n".join(lines)


class Decided(NamedTuple):
    """The decisions of a run, and how many rows it gave."""

    decisions: list[Row]
    rows: int


class UndefinedError(Exception):
    """Plain Spark fails on the example, or gives other rows each time."""


def check(new_session: Callable[[], SparkSession], example: Example) -> Iterator[Decided]:
    """Fails unless the example's rows are the same without and with each set of policies.

    Yields:
        For each set, what was decided.

    Raises:
        UndefinedError: The example says nothing.
    """
    spark = _session(new_session, example.settings)
    try:
        expected = _plain(spark, example)
    except Exception as error:
        raise UndefinedError(_shortly(error)) from error
    before = _problems(spark)
    for policies in example.policies:
        spark = _session(new_session, example.settings | policies)
        actual = _rows(spark, example.query)
        try:
            assert_same_rows(actual, expected, ordered=example.query.is_ordered)
        except AssertionError as error:
            if _is_undefined(spark, example, expected):
                raise UndefinedError("plain Spark gives other rows, too") from error
            raise
        decisions = spark.sql("SELECT * FROM aqepilot_decisions()").collect()
        faults = [d for d in decisions if d.reason == "INTERNAL_ERROR"]
        assert not faults, [(d.point, d.detail) for d in faults]
        assert _problems(spark) == before
        yield Decided(decisions, len(actual))


def _session(new_session: Callable[[], SparkSession], settings: dict[str, str]) -> SparkSession:
    spark = new_session()
    for key, value in settings.items():
        spark.conf.set(key, value)
    return spark


def _plain(spark: SparkSession, example: Example) -> list[Row]:
    spark.conf.set("spark.aqepilot.mode", "off")
    try:
        return _rows(spark, example.query)
    finally:
        spark.conf.unset("spark.aqepilot.mode")


def _problems(spark: SparkSession) -> list[tuple[str, str]]:
    """What is wrong with the settings, and how often we failed in this driver."""
    return [
        (row.name, row.detail or row.value)
        for row in spark.sql("SELECT * FROM aqepilot_status()").collect()
        if row.kind == "problem" or (row.kind == "counter" and row.name.startswith("errors"))
    ]


def _is_undefined(spark: SparkSession, example: Example, expected: list[Row]) -> bool:
    """Whether plain Spark gives other rows, too: now and then, not adaptive, or by other joins.

    3.5's re-plans lose the order of a query that joins the first rows of another order, unless the
    join is a broadcast.
    """

    def differs(settings: dict[str, str]) -> bool:
        plain = _session(spark.newSession, example.settings | settings)
        try:
            assert_same_rows(_plain(plain, example), expected, ordered=example.query.is_ordered)
        except AssertionError:
            return True
        return False

    return any(
        differs(settings)
        for settings in (
            *[{}] * 3,
            {"spark.sql.adaptive.enabled": "false"},
            {"spark.sql.autoBroadcastJoinThreshold": "-1"},
        )
    )


def _rows(spark: SparkSession, query: Query) -> list[Row]:
    if query.cached:
        spark.sql(f"CACHE LAZY TABLE cached AS {query.cached}")
    try:
        return _acted(spark, spark.sql(query.sql), query.action)
    finally:
        if query.cached:
            spark.sql("UNCACHE TABLE cached")
            spark.sql("DROP VIEW cached")


def _acted(spark: SparkSession, df: DataFrame, action: str) -> list[Row]:
    if action == "write":
        with tempfile.TemporaryDirectory() as folder:
            df.write.mode("overwrite").parquet(folder)
            return spark.read.parquet(folder).collect()
    if action == "rdd":
        return df.rdd.collect()
    return list(df.toLocalIterator()) if action == "toLocalIterator" else df.collect()


def _shortly(error: Exception) -> str:
    text = str(error).splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:160]
