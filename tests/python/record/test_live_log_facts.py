"""`spark.aqepilot.log.facts` says how much of the facts an event log gets; replay, what lacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import submitting
import tiers
from aqepilot import Log, read_log
from aqepilot.analysis.report import data, outcomes, skew

pytestmark = [tiers.on("3.5"), tiers.READS_LOGS]

JOB = """
import json, sys
import aqepilot
from pyspark.sql import SparkSession

for value, folder in json.loads(sys.argv[1]).items():
    builder = SparkSession.builder.config("spark.aqepilot.log.facts", value)
    spark = builder.config("spark.eventLog.dir", folder).getOrCreate()
    rows = spark.range(2000).selectExpr("id AS n", "if(id < 1000, 1, id) AS k")
    rows.createOrReplaceTempView("rows")
    spark.sql("SELECT a.n FROM rows a JOIN rows b ON a.k = b.n").count()
    facts = [d.facts for d in aqepilot.decisions(spark) if d.point == "skew_join"]
    print("live", sorted({len(of["left"]["bytes_by_partition_id"]) for of in facts}))
    spark.stop()
"""
OF_SIZES = "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> 2))"
OF_FIGURES = "named_struct('skew_factor', double(left.num_partitions))"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log for each value, in a folder of its name."""
    folder = tmp_path_factory.mktemp("log-facts")
    events = {value: folder / value for value in ("full", "summary", "none")}
    for own in events.values():
        own.mkdir()
    run = submitting.submit(
        folder / "job",
        JOB,
        conf={
            "spark.aqepilot.policies": "p",
            "spark.aqepilot.policy.p.skew_join": OF_FIGURES,
            "spark.aqepilot.ask.deadline": "20s",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.shuffle.partitions": "100",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
        },
        job_words=[json.dumps({value: own.as_uri() for value, own in events.items()})],
        own_jvm=tiers.OWN_JVM,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    assert run.stdout.splitlines() == ["live [100]"] * 3
    return folder


@pytest.fixture
def read(spark: SparkSession, logs: Path) -> Callable[[str], Log]:
    return lambda value: read_log(spark, logs / value)


def unknown(log: Log, text: str) -> set[str | None]:
    return {row.unknown for row in log.replay({"name": "p", "skew_join": text}).asked.collect()}


def test_all_facts_are_logged_by_default_value(read: Callable[[str], Log]) -> None:
    log = read("full")
    facts = [json.loads(row.facts) for row in log.decisions.collect()]
    assert all("packed" in facts_of_one["left"]["bytes_by_partition_id"] for facts_of_one in facts)
    assert unknown(log, OF_SIZES) == {None}


def test_a_summary_has_the_lengths_of_arrays(read: Callable[[str], Log]) -> None:
    facts = [json.loads(row.facts) for row in read("summary").decisions.collect()]
    assert facts
    assert all(
        facts_of_one["left"]["bytes_by_partition_id"] == {"left_out": 100} for facts_of_one in facts
    )
    assert all(facts_of_one["left"]["max_bytes"] > 0 for facts_of_one in facts)


def test_replay_answers_what_a_summary_tells_and_says_what_it_does_not(
    read: Callable[[str], Log],
) -> None:
    log = read("summary")
    asked = log.replay({"name": "p", "skew_join": OF_FIGURES}).asked.collect()
    assert {(row.unknown, row.changed) for row in asked} == {(None, False)}
    assert {json.loads(row.after)["skew_factor"] for row in asked} == {100.0}
    assert unknown(log, OF_SIZES) == {"FACTS_LEFT_OUT"}
    assert unknown(log, "python:math:sqrt") == {"FACTS_LEFT_OUT"}


def test_without_facts_nothing_is_known(read: Callable[[str], Log]) -> None:
    log = read("none")
    rows = log.decisions.collect()
    assert {row.facts for row in rows} == {None}
    assert {(row.point, row.reason) for row in rows} == {("skew_join", "APPLIED")}
    assert unknown(log, OF_FIGURES) == {"FACTS_MISSING"}


@pytest.mark.parametrize(("value", "lengths"), [("full", {100}), ("summary", {0})])
def test_a_report_has_the_figures_of_shuffles_whose_partitions_it_does_not_know(
    read: Callable[[str], Log], value: str, lengths: set[int]
) -> None:
    log = read(value)
    shuffles = skew.shuffles(outcomes.narrowed(log.decisions), data._queries(log.queries))
    assert {len(shuffle.bytes_by_partition_id) for shuffle in shuffles} == lengths
    assert all(shuffle.max_bytes > 2 * shuffle.median_bytes for shuffle in shuffles)


def test_the_facts_get_smaller(read: Callable[[str], Log]) -> None:
    sizes = [
        sum(len(row.facts or "") for row in read(value).decisions.collect())
        for value in ("full", "summary", "none")
    ]
    assert sizes == sorted(set(sizes), reverse=True)
