"""Fingerprints of TPC-H and TPC-DS: all different, and the same for what is the same query."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import places
import tiers
import tpcds
import tpch

pytestmark = tiers.ON_ONE

# Set, it writes the signatures of the running Spark anew: for changes that are meant.
NEW = "AQEPILOT_NEW_SIGNATURES"
SIGNATURES = places.CASES / "signature.json"
KNOWN = json.loads((places.CASES / "fingerprint.json").read_text("utf-8"))
WORKLOADS = {"tpch": tpch, "tpcds": tpcds}


def fingerprint(spark: SparkSession, query: str) -> str:
    """Of a query that is analysed, and does not run."""
    plan = spark._jsparkSession.sql(query).queryExecution().analyzed()
    return str(spark._jvm.org.apache.spark.sql.aqepilot.facts.Fingerprint.of(plan))


@pytest.fixture(params=WORKLOADS)
def workload(spark: SparkSession, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with the tables of TPC-H or TPC-DS, without a row."""
    name: str = request.param
    spark.sql(f"CREATE DATABASE {name}")
    spark.sql(f"USE {name}")
    for path in sorted(WORKLOADS[name].files(0.01).glob("*.parquet")):
        schema = spark.read.parquet(str(path)).schema
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        spark.sql(f"CREATE TABLE {path.stem} ({columns}) USING parquet")
    yield name
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {name} CASCADE")


def test_all_queries_have_the_fingerprints_that_logs_know_them_by(
    spark: SparkSession, workload: str
) -> None:
    """Logs of months are compared by them: what changes one here loses a query's history."""
    queries = WORKLOADS[workload].queries()
    prints = {str(n): fingerprint(spark, query)[:12] for n, query in queries.items()}
    known = KNOWN[workload]
    assert prints == {
        n: known_print[tiers.MINOR] if isinstance(known_print, dict) else known_print
        for n, known_print in known.items()
    }
    assert len(set(prints.values())) == len(queries) == {"tpch": 22, "tpcds": 99}[workload]


def signature(spark: SparkSession, query: str) -> str:
    """The first half of the two forms, of a query that is optimised, and does not run."""
    plan = spark._jsparkSession.sql(query).queryExecution().optimizedPlan()
    made = spark._jvm.org.apache.spark.sql.aqepilot.facts.Signature.of(plan).get()
    return f"{made.sameText()[:8]} {made.shapeText()[:8]}"


def test_all_queries_have_the_signatures_that_history_knows_them_by(
    spark: SparkSession, workload: str
) -> None:
    """Where the two Sparks optimise a query alike, one signature holds for both."""
    made = {str(n): signature(spark, q) for n, q in WORKLOADS[workload].queries().items()}
    if NEW in os.environ:
        _write(workload, made)
    known = json.loads(SIGNATURES.read_text("utf-8"))[workload]
    assert made == {n: s[tiers.MINOR] if isinstance(s, dict) else s for n, s in known.items()}
    assert len(set(made.values())) == len(made)


def _write(workload: str, made: dict[str, str]) -> None:
    """Writes the signatures of one Spark beside those of the other."""
    known = json.loads(SIGNATURES.read_text("utf-8")) if SIGNATURES.is_file() else {}
    (other,) = {"3.5", "4.3"} - {tiers.MINOR}
    merged = {}
    for n, new in made.items():
        before = known.get(workload, {}).get(n, new)
        of_other = before[other] if isinstance(before, dict) else before
        both = {tiers.MINOR: new, other: of_other}
        merged[n] = new if new == of_other else dict(sorted(both.items()))
    SIGNATURES.write_text(json.dumps(known | {workload: merged}, indent=2) + "\n")


def test_the_share_of_signatures_that_are_equal_on_both_sparks_is_told() -> None:
    """As docs/reference/record.md has it."""
    known = json.loads(SIGNATURES.read_text("utf-8"))
    signatures = [s for of_workload in known.values() for s in of_workload.values()]
    equal = sum(isinstance(s, str) for s in signatures)
    docs = (places.ROOT / "docs/reference/record.md").read_text("utf-8")
    assert f"Of the {len(signatures)} queries" in docs
    assert f"{equal} have one signature" in docs


@tiers.EIGHTH
def test_other_literals_and_longer_lists_are_the_same_query(
    spark: SparkSession, workload: str
) -> None:
    changed = {
        n: (query, others)
        for n, query in WORKLOADS[workload].queries().items()
        if (others := other_literals(query)) != query
    }
    assert len(changed) > len(WORKLOADS[workload].queries()) * 0.9
    different = [n for n, both in changed.items() if len({fingerprint(spark, q) for q in both}) > 1]
    assert different == []


def other_literals(query: str) -> str:
    """Another number in each comparison, another word or year in each text, longer lists.

    >>> other_literals("WHERE a = 5 AND b IN (1, 2) AND c = 'x y' AND d > DATE '1995-01-01'")
    "WHERE a = 6 AND b IN (1, 71, 2) AND c = 'other x y' AND d > DATE '2025-01-01'"
    """
    query = re.sub(r"((?:[=<>]|\bbetween|\band)\s*)(\d+)(?![\d.]|\s*day)", _next, query, flags=re.I)
    query = re.sub(r"\bIN\s*\(\s*(\d+)\s*,", r"IN (\1, 7\1,", query, flags=re.I)
    query = re.sub(r"'\d{4}(-\d\d-\d\d)'", r"'2025\1'", query)
    return re.sub(r"'(%?[A-Za-z][A-Za-z %]+)'", r"'other \1'", query)


def _next(match: re.Match[str]) -> str:
    return f"{match[1]}{int(match[2]) + 1}"


def test_the_share_that_is_equal_on_both_sparks_is_told() -> None:
    """As docs/reference/record.md has it."""
    queries = [known_print for known in KNOWN.values() for known_print in known.values()]
    equal = sum(isinstance(known_print, str) for known_print in queries)
    docs = (places.ROOT / "docs/reference/record.md").read_text("utf-8")
    assert f"{equal} of the {len(queries)} queries" in docs


def test_a_day_s_partition_an_empty_one_and_policies_change_no_fingerprint(
    spark: SparkSession, tmp_path: Path
) -> None:
    sales = tmp_path / "sales"
    for day in ("2026-11-24", "2026-11-25"):
        spark.range(10).selectExpr("id AS item").write.parquet(str(sales / f"day={day}"))
    spark.range(0).selectExpr("id AS item").write.parquet(str(sales / "day=2026-11-26"))

    def of_day(day: str, session: SparkSession) -> str:
        path = sales / f"day={day}"
        session.read.parquet(str(path)).createOrReplaceTempView("of_day")
        return fingerprint(session, "SELECT item, count(*) FROM of_day GROUP BY item")

    one = of_day("2026-11-24", spark)
    assert of_day("2026-11-25", spark) == one
    assert of_day("2026-11-26", spark) == one
    other = spark.newSession()
    other.conf.set("spark.aqepilot.policies", "always")
    other.conf.set("spark.aqepilot.policy.always.shuffle_partitions", "3")
    other.conf.set("spark.aqepilot.policy.always.join_selection", "'SHUFFLE_HASH'")
    assert of_day("2026-11-25", other) == one
