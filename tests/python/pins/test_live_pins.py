"""A pinned query keeps its plan where Spark would change it; an unfit pin does nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import date, timedelta

import pytest
from pyspark.sql import SparkSession

import aqepilot
import places
import plans
from aqepilot import recipes
from aqepilot.analysis.pins.chosen import Chosen, chosen
from aqepilot.analysis.upgrade.settings import all_changes
from aqepilot.pins import Pin, policy_text
from rows import assert_same_rows

QUERY = """SELECT f.g, count(*) AS n, sum(f.v + d.w + e.x) AS s
  FROM facts f, dims d, extras e WHERE f.k = d.k AND d.w < 90 AND f.e = e.e GROUP BY f.g"""
THRESHOLD = "spark.sql.autoBroadcastJoinThreshold"
TABLES = {
    "facts": "SELECT id % 50 AS k, id % 7 AS e, id % 10 AS g, id AS v FROM range(3000)",
    "dims": "SELECT id AS k, id * 2 AS w FROM range(50)",
    "extras": "SELECT id AS e, id AS x FROM range(7)",
}
# The file that the pins of this query are, on each Spark.
CASE = places.CASES / "pin.toml"
# Set, it writes the file anew: for changes of signatures that are meant.
NEW = "AQEPILOT_NEW_PINS"


@pytest.fixture
def tables(spark: SparkSession) -> Iterator[SparkSession]:
    for name, sql in TABLES.items():
        spark.sql(f"CREATE TABLE {name} USING parquet AS {sql}")
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    spark.conf.set("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1")
    yield spark
    aqepilot.use(spark)


def recorded(spark: SparkSession, threshold: str) -> tuple[str, Chosen]:
    """The fingerprint of the query, and what a run under a threshold for broadcasts decided."""
    aqepilot.use(spark, recipes.get("watch"))
    spark.conf.set(THRESHOLD, threshold)
    spark.sql(QUERY).collect()
    aqepilot.use(spark)
    decisions = aqepilot.decisions(spark)
    last = max(d.execution_id for d in decisions if d.execution_id is not None)
    own = [d for d in decisions if d.execution_id == last]
    fingerprint = own[0].fingerprint
    assert fingerprint
    return fingerprint, chosen(own)


def strategies(spark: SparkSession, query: str = QUERY) -> list[str]:
    df = spark.sql(query)
    df.collect()
    return sorted(join.strategy for join in plans.joins(df))


def pin(
    spark: SparkSession, fingerprint: str, pins: tuple[Pin, ...], expires: date | None = None
) -> None:
    text = policy_text("pin_it", fingerprint, pins, expires=expires)
    aqepilot.use(spark, aqepilot.Policy.from_toml(text))


def test_a_pinned_query_keeps_the_plan_that_spark_would_change(tables: SparkSession) -> None:
    fingerprint, merged = recorded(tables, "-1")
    before = strategies(tables)
    rows = tables.sql(QUERY).collect()
    tables.conf.set(THRESHOLD, "10MB")
    by_spark = strategies(tables)
    assert before != by_spark
    pin(tables, fingerprint, merged.pins)
    assert merged.unpinned == ()
    assert strategies(tables) == before
    assert_same_rows(tables.sql(QUERY).collect(), rows)


def test_broadcasts_and_numbers_are_kept_too(tables: SparkSession) -> None:
    fingerprint, broadcast = recorded(tables, "10MB")
    before = strategies(tables)
    tables.conf.set(THRESHOLD, "-1")
    tables.conf.set("spark.sql.shuffle.partitions", "9")
    pin(tables, fingerprint, broadcast.pins)
    df = tables.sql(QUERY)
    df.collect()
    assert sorted(join.strategy for join in plans.joins(df)) == before
    assert ", 5), ENSURE_REQUIREMENTS" in plans.canonical_plan(df)


@pytest.mark.parametrize(
    "other",
    [
        QUERY.replace("d.w < 90", "d.w < 80"),
        QUERY.replace("f.k = d.k", "f.k = d.k AND f.v > 3"),
        QUERY.replace("extras e", "(SELECT * FROM extras WHERE x > 0) e"),
    ],
    ids=["literal", "condition", "table"],
)
def test_a_query_that_changed_is_spark_s_own(tables: SparkSession, other: str) -> None:
    fingerprint, merged = recorded(tables, "-1")
    tables.conf.set(THRESHOLD, "10MB")
    by_spark = strategies(tables, other)
    rows = tables.sql(other).collect()
    pin(tables, fingerprint, merged.pins)
    # The join that lost nothing is still the pinned one where the fingerprint is the same.
    assert len(strategies(tables, other)) == len(by_spark)
    assert_same_rows(tables.sql(other).collect(), rows)


def test_a_pin_of_a_past_day_answers_nothing_and_says_so(tables: SparkSession) -> None:
    fingerprint, merged = recorded(tables, "-1")
    tables.conf.set(THRESHOLD, "10MB")
    by_spark = strategies(tables)
    pin(tables, fingerprint, merged.pins, expires=date.today() - timedelta(days=1))
    assert strategies(tables) == by_spark
    problems = [one for one in aqepilot.status(tables) if one.name == "POLICY_EXPIRED"]
    assert len(problems) == 1


def test_the_pins_of_a_query_are_the_same_on_each_spark(tables: SparkSession) -> None:
    """So that a run on one is kept on the other: the file was made on Spark 3.5."""
    fingerprint, merged = recorded(tables, "-1")
    text = policy_text("pin_it", fingerprint, merged.pins)
    if NEW in os.environ:
        CASE.write_text(text, "utf-8")
    assert text == CASE.read_text("utf-8")


def test_what_changed_between_sparks_is_as_the_running_one_has_it(spark: SparkSession) -> None:
    minor = tuple(map(int, spark.version.split(".")[:2]))
    jvm = spark._jvm
    assert jvm is not None
    entries = getattr(getattr(jvm.org.apache.spark.sql.internal, "SQLConf$"), "MODULE$")

    def default(name: str) -> str | None:
        entry = entries.getConfigEntry(name)
        return entry and entry.defaultValueString()

    for change in all_changes():
        is_after = tuple(map(int, change.since.split("."))) <= minor
        if change.kind == "rule":
            loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            there = loader.getResource(f"{change.name.replace('.', '/')}.class") is not None
            assert not (there and is_after), change
        elif is_after:
            assert default(change.name) == change.after, change
        else:
            assert default(change.name) in (None, change.before), change
