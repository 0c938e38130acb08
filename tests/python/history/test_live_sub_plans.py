"""What a query's sub-plans came to is in its closing event, under names that last."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

import places
import submitting
import tpch

SCALE = 0.01
HERE = str(places.SUPPORT)
Q3 = """FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey
AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15'
AND l_shipdate > DATE '1995-03-15'"""
Q5 = """FROM customer, orders, lineitem, supplier, nation, region WHERE c_custkey = o_custkey
AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'"""
QUERIES = {
    "q3": f"SELECT l_orderkey, o_orderdate, sum(l_tax) {Q3} GROUP BY l_orderkey, o_orderdate",
    "q5": f"SELECT n_name, sum(l_extendedprice) {Q5} GROUP BY n_name",
    "q4": "SELECT o_orderpriority, count(*) FROM orders WHERE EXISTS (SELECT 1 FROM lineitem WHERE "
    "l_orderkey = o_orderkey AND l_commitdate < l_receiptdate) GROUP BY o_orderpriority",
}
# Sub-plans that each plan of the query has, by its name and their own.
PARTS = {
    ("q3", "customers"): "SELECT * FROM customer WHERE c_mktsegment = 'BUILDING'",
    ("q3", "orders"): "SELECT * FROM orders WHERE o_orderdate < DATE '1995-03-15'",
    ("q3", "items"): "SELECT * FROM lineitem WHERE l_shipdate > DATE '1995-03-15'",
    ("q3", "joined"): f"SELECT * {Q3}",
    ("q3", "grouped"): QUERIES["q3"],
    ("q5", "regions"): "SELECT * FROM region WHERE r_name = 'ASIA'",
    ("q5", "orders"): "SELECT * FROM orders WHERE o_orderdate >= DATE '1994-01-01' "
    "AND o_orderdate < DATE '1995-01-01'",
    ("q5", "joined"): f"SELECT * {Q5}",
    ("q5", "grouped"): QUERIES["q5"],
    ("q4", "late"): "SELECT * FROM lineitem WHERE l_commitdate < l_receiptdate",
    ("q4", "grouped"): QUERIES["q4"],
}
# And some that only some have.
OTHER_PARTS = {
    ("q5", "customers with orders"): "SELECT * FROM customer, orders WHERE c_custkey = o_custkey "
    "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'",
    ("q5", "nations of the region"): "SELECT * FROM nation, region WHERE n_regionkey = r_regionkey "
    "AND r_name = 'ASIA'",
}
MERGED = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


def policy(point: str, text: str) -> dict[str, str]:
    return {f"spark.aqepilot.policy.test.{point}": text}


RUNS: dict[str, dict[str, str]] = {
    "plain": {},
    "again": {},
    "merged": MERGED,
    "hashed": MERGED | policy("join_selection", "'SHUFFLE_HASH'"),
    "broadcast": MERGED | policy("join_selection", "'BROADCAST'"),
    "more partitions": MERGED | {"spark.sql.shuffle.partitions": "13"},
    "reordered": policy("join_reorder", "double(candidate.size_in_bytes)"),
    "reversed": MERGED | policy("join_reorder", "-double(candidate.size_in_bytes)"),
    "not adaptive": MERGED | {"spark.sql.adaptive.enabled": "false"},
}
CHANGES = {
    "another date": ("1995-03-15", "1995-04-15"),
    "another segment": ("BUILDING", "MACHINERY"),
}
JOB = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
wanted = json.loads(open(sys.argv[1]).read())
for name, path in wanted["tables"].items():
    spark.read.parquet(path).createOrReplaceTempView(name)
signatures = spark._jvm.org.apache.spark.sql.aqepilot.facts.Signature

def signature(query):
    plan = spark._jsparkSession.sql(query).queryExecution().optimizedPlan()
    made = signatures.of(plan).get()
    return [made.sameText(), made.shapeText()]

names = {name: signature(query) for name, query in wanted["parts"].items()}
spark.conf.set("spark.aqepilot.policies", "test")
for run, settings, name, query in wanted["runs"]:
    for key, value in settings.items():
        spark.conf.set(key, value)
    spark.sparkContext.setJobDescription(f"{run}|{name}")
    spark.sql(query).collect()
    for key in settings:
        spark.conf.unset(key)
print(json.dumps(names))
spark.stop()
"""

SubPlans = list[dict[str, Any]]


@dataclass(frozen=True)
class Ran:
    """Signatures, same and shape, of the parts, and what each run measured of each query."""

    signatures: dict[tuple[str, str], tuple[str, str]]
    measured: dict[tuple[str, str], SubPlans]

    def plan(self, run: str, query: str, same: str) -> dict[str, Any] | None:
        plans = [s for s in self.measured[run, query] if s["kind"] == "PLAN" and s["same"] == same]
        assert len(plans) <= 1
        return plans[0] if plans else None


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("history")
    (folder / "log").mkdir()
    runs = [
        (run, conf, name, query) for run, conf in RUNS.items() for name, query in QUERIES.items()
    ]
    runs += [(run, {}, "q3", QUERIES["q3"].replace(*change)) for run, change in CHANGES.items()]
    parts = PARTS | OTHER_PARTS
    (folder / "words.json").write_text(
        json.dumps(
            {
                "tables": {t: str(tpch.files(SCALE) / f"{t}.parquet") for t in tpch.TABLES},
                "parts": {"|".join(name): query for name, query in parts.items()},
                "runs": runs,
            }
        )
    )
    done = submitting.submit(
        folder / "job",
        JOB,
        conf={
            "spark.aqepilot.history.learn": "true",
            "spark.aqepilot.ask.deadline": "20s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": (folder / "log").as_uri(),
        },
        env={"PYTHONPATH": HERE},
        job_words=[str(folder / "words.json")],
    )
    assert done.returncode == 0, done.stderr[-5000:]
    (log,) = (folder / "log").iterdir()
    described: dict[int, str] = {}
    measured: dict[tuple[str, str], SubPlans] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"].endswith("SparkListenerSQLExecutionStart"):
            described[event["executionId"]] = event["description"]
        elif event["Event"].endswith("AqePilotQueryClosed"):
            run, _, name = described[event["executionId"]].partition("|")
            if name:
                measured[run, name] = event["subPlans"]
    names = json.loads(done.stdout.strip().splitlines()[-1])
    signatures = {
        (query, part): (same, shape)
        for (query, _, part), (same, shape) in ((n.partition("|"), s) for n, s in names.items())
    }
    return Ran(signatures, measured)


@pytest.fixture(scope="module")
def counts() -> dict[tuple[str, str], int]:
    """DuckDB's."""
    import duckdb

    connection = duckdb.connect()
    for table in tpch.TABLES:
        path = tpch.files(SCALE) / f"{table}.parquet"
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM '{path}'")
    return {
        name: len(connection.execute(query).fetchall())
        for name, query in (PARTS | OTHER_PARTS).items()
    }


@pytest.mark.parametrize("run", RUNS)
def test_rows_of_each_part_are_duckdbs_whatever_the_plan(
    ran: Ran, counts: dict[tuple[str, str], int], run: str
) -> None:
    for (query, part), (same, shape) in ran.signatures.items():
        plan = ran.plan(run, query, same)
        if (query, part) in PARTS:
            assert plan, (query, part, ran.measured[run, query])
        if plan:
            assert (plan["rows"], plan["shape"]) == (counts[query, part], shape), (query, part)


def test_a_part_of_one_order_of_joins_is_measured_there(ran: Ran) -> None:
    for name in OTHER_PARTS:
        assert any(ran.plan(run, name[0], ran.signatures[name][0]) for run in RUNS), name


def names(subplans: SubPlans) -> set[tuple[str, str]]:
    return {(s["kind"], s["same"]) for s in subplans}


def test_the_second_run_gives_the_same_names(ran: Ran) -> None:
    for query in QUERIES:
        assert names(ran.measured["plain", query]) == names(ran.measured["again", query])


def test_another_order_of_joins_has_other_parts_between(ran: Ran) -> None:
    assert names(ran.measured["plain", "q5"]) != names(ran.measured["reordered", "q5"])


def test_partitions_and_hash_joins_change_no_name(ran: Ran) -> None:
    for query in QUERIES:
        merged = names(ran.measured["merged", query])
        for run in ("hashed", "more partitions"):
            assert merged == names(ran.measured[run, query]), (run, query)


def test_another_date_is_the_same_and_another_literal_the_same_shape(ran: Ran) -> None:
    plain = ran.measured["plain", "q3"]
    assert names(plain) == names(ran.measured["another date", "q3"])
    other = ran.measured["another segment", "q3"]
    assert names(plain) != names(other)
    joined = ran.signatures["q3", "joined"]
    assert not ran.plan("another segment", "q3", joined[0])
    assert joined[1] in {s["shape"] for s in other if s["kind"] == "PLAN"}
    shapes = [{(s["kind"], s["shape"]) for s in all_of} for all_of in (plain, other)]
    assert shapes[0] == shapes[1]


def test_a_shuffle_has_the_figures_of_what_read_it(ran: Ran) -> None:
    shuffles = [s for s in ran.measured["merged", "q5"] if s["kind"] == "SHUFFLE"]
    assert len(shuffles) >= 7
    for s in shuffles:
        assert s["partitions"] == 8
        assert 0 <= s["medianPartitionBytes"] - 1 <= s["maxPartitionBytes"] <= s["shuffleBytes"]
        assert s["rows"] <= s["readRows"]
        assert s["taskMillis"] >= 0
        assert s["failures"] == s["spilledBytes"] == 0


def test_a_query_has_its_fingerprint_and_its_task_time(ran: Ran) -> None:
    for (run, query), subplans in ran.measured.items():
        first, *others = subplans
        assert first["kind"] == "QUERY", (run, query)
        assert first["same"] == first["shape"] == ran.measured["plain", query][0]["same"]
        assert first["taskMillis"] > 0
        assert first["inputBytes"] > 0
        assert not any(s["kind"] == "QUERY" for s in others)
