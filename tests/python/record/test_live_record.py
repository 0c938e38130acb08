"""What is left behind: Spark's event log, its metrics sinks, and the bounded live view."""

from __future__ import annotations

import csv
import getpass
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import little
import places
import policies
import submitting
import tiers
from conftest import Submit

pytestmark = tiers.on("3.5")

HERE = str(places.SUPPORT)
TEXT = """-- only what is measured exactly
CASE WHEN NOT side.is_left AND side.bytes_are_exact THEN 'SHUFFLE_HASH' END"""
WHEN = "query.description LIKE 'load%'"

JOB = """
import sys
sys.path.insert(0, sys.argv[1])
import json
import policies
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print("app", spark.sparkContext.applicationId)
spark.range(20000).selectExpr("id % 1000 AS k", "id AS v").write.parquet("orders")
spark.range(1000).selectExpr("id AS k", "id * 2 AS w").write.parquet("private_items")
spark.read.parquet("orders").createOrReplaceTempView("orders")
spark.read.parquet("private_items").createOrReplaceTempView("items")
sql = "SELECT count(*) AS n, sum(i.w) AS w FROM orders o JOIN items i ON o.k = i.k"
for i in range(int(sys.argv[2])):
    spark.sparkContext.setJobDescription(f"load {i}")
    print("rows", *spark.sql(sql).first())
spark.sparkContext.setJobDescription("load that fails")
try:
    spark.sql(f"SELECT raise_error(concat('no ', 'private_value')) FROM ({sql})").collect()
except Exception as e:
    print("failed", "no private_value" in str(e))
for d in policies.decisions(spark):
    print("decision", json.dumps(d.asDict(), default=str))
for c in policies.status(spark, "counter"):
    print("counter", c.name, c.value)
"""


class Ran(NamedTuple):
    """A submitted run: what it printed by the first word of a line, and what it left behind.

    `events` are our lines of its event log, by the event's name.
    """

    printed: dict[str, list[str]]
    events: dict[str, list[dict[str, Any]]]
    lines: list[str]
    log_folder: Path
    metrics_folder: Path

    @property
    def decisions(self) -> list[dict[str, Any]]:
        return [json.loads(d) for d in self.printed["decision"]]

    @property
    def counters(self) -> dict[str, int]:
        return {name: int(n) for name, n in (c.split() for c in self.printed["counter"])}


def ran(folder: Path, queries: int, conf: dict[str, str]) -> Ran:
    log, metrics = folder / "events", folder / "metrics"
    log.mkdir()
    metrics.mkdir()
    properties = folder / "metrics.properties"
    properties.write_text(
        "driver.sink.csv.class=org.apache.spark.metrics.sink.CsvSink\n"
        f"driver.sink.csv.directory={metrics}\n"
    )
    settings = little.SORT_MERGE | policies.conf(TEXT, "loads", when=WHEN)
    run = submitting.submit(
        folder / "job",
        JOB,
        conf={
            **settings,
            "spark.sql.shuffle.partitions": "4",
            "spark.aqepilot.policy.broken.dynamic_join_selection": "nothing.known",
            "spark.aqepilot.policies": "loads,broken",
            "spark.aqepilot.history.learn": "false",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": log.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.metrics.conf": str(properties),
            **conf,
        },
        job_words=[HERE, str(queries)],
        own_jvm=tiers.OWN_JVM,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    printed: dict[str, list[str]] = {}
    for line in run.stdout.splitlines():
        word, _, rest = line.partition(" ")
        printed.setdefault(word, []).append(rest)
    assert printed["failed"] == ["True"]
    assert printed["rows"] == ["20000 19980000"] * queries
    files = sorted(f for f in log.rglob("*") if f.is_file() and not f.name.startswith("."))
    lines = [line for f in files for line in f.read_text().splitlines() if "io.aqepilot" in line]
    events: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        event = json.loads(line)
        name = event.get("Event", "")
        if name.startswith("io.aqepilot.log."):
            events.setdefault(name.removeprefix("io.aqepilot.log.AqePilot"), []).append(event)
    return Ran(printed, events, lines, log, metrics)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("record"), 2, {})


@pytest.fixture(scope="module")
def careful(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Texts are redacted, and the live view is small."""
    conf = {
        "spark.sql.redaction.string.regex": "private_[a-z]+",
        "spark.aqepilot.decisions.ring_bytes": "24k",
        "spark.aqepilot.policy.loads.when": f"{WHEN} OR query.user = 'private_user'",
    }
    return ran(tmp_path_factory.mktemp("record"), 12, conf)


def test_each_policy_is_loaded_once(run: Ran) -> None:
    loads, broken = sorted(run.events["PolicyLoaded"], key=lambda e: e["policy"], reverse=True)
    assert (loads["policy"], loads["point"]) == ("loads", policies.POINT)
    assert (loads["text"], loads["when"]) == (TEXT, WHEN)
    sha = hashlib.sha256(f"{TEXT}\0{WHEN}".encode()).hexdigest()
    assert loads["revision"] == sha[:12]
    assert (loads["mode"], loads["source"]) == ("enforce", "submitted")
    assert loads["user"] == getpass.getuser()
    assert loads.get("error") is None
    assert broken["policy"] == "broken"
    assert "nothing.known" in broken["error"]


def test_each_decision_is_in_the_event_log(run: Ran) -> None:
    logged = run.events["Decision"]
    assert [e["decisionId"] for e in logged] == [d["decision_id"] for d in run.decisions]
    revision = run.events["PolicyLoaded"][0]["revision"]
    for event, row in zip(logged, run.decisions, strict=True):
        for field in ("reason", "side", "applied", "answer", "fingerprint", "tables", "policy"):
            assert event.get(field) == row[field]
        assert event["executionId"] == row["execution_id"]
        assert event["tables"] == "orders ⋈ private_items"
        assert row["asked_us"] > 0
        if event["applied"]:
            assert (event["revision"], event["answer"]) == (revision, "SHUFFLE_HASH")
            assert event["sparkStrategy"] == "SortMergeJoin"
    with_facts = {(e["executionId"], e["factsId"]) for e in logged if e.get("facts")}
    assert with_facts == {(e["executionId"], e["factsId"]) for e in logged}
    common = {(e["executionId"], e["commonFactsId"]) for e in logged if e.get("commonFacts")}
    assert common == {(e["executionId"], e["commonFactsId"]) for e in logged if e.get("facts")}
    assert len(common) < len(with_facts)
    first = next(e for e in logged if e["applied"])
    of_all = next(
        json.loads(e["commonFacts"])
        for e in logged
        if e.get("commonFacts") and e["commonFactsId"] == first["commonFactsId"]
    )
    assert set(of_all) == {"query", "conf", "cluster"}
    assert of_all["query"]["description"] == "load 0"
    facts = json.loads(first["facts"])
    assert facts["side"]["tables"] == ["private_items"]
    assert len(facts["side"]["bytes_by_partition_id"]) == 4


def test_each_query_with_a_decision_is_closed(run: Ran) -> None:
    closed = run.events["QueryClosed"]
    assert [c["succeeded"] for c in closed] == [True, True, False]
    made = {d["decision_id"]: d for d in run.decisions}
    for one in closed[:2]:
        assert one.get("error") is None
        assert one["planningMillis"] > 0
        assert one["droppedEvents"] == 0
        last = max(one["fates"], key=lambda f: f["decisionId"])
        assert last["fate"] == "adopted"
        assert last["finalStrategy"] == "ShuffledHashJoin BuildRight"
        for fate in one["fates"]:
            row = made[fate["decisionId"]]
            assert (row["fate"], row["execution_id"]) == (fate["fate"], one["executionId"])
    assert len({c["fingerprint"] for c in closed}) == 2
    failed = closed[2]
    assert "no private_value" in failed["error"]
    assert failed["fates"] == []
    of_failed = [d for d in run.decisions if d["execution_id"] == failed["executionId"]]
    assert of_failed
    assert {d["fate"] for d in of_failed} == {None}


HISTORY = """
import sys, time
from pyspark import SparkConf
from pyspark.java_gateway import launch_gateway
jvm = launch_gateway(SparkConf()).jvm
try:
    jvm.java.lang.Class.forName("io.aqepilot.log.AqePilotDecision")
    print("our jar is here")
except Exception:
    pass
conf = jvm.org.apache.spark.SparkConf().set("spark.history.fs.logDirectory", sys.argv[1])
provider = jvm.org.apache.spark.deploy.history.FsHistoryProvider(conf)
provider.start()
for _ in range(300):
    provider.checkForLogs()
    if provider.getListing().hasNext():
        break
    time.sleep(0.2)
app = provider.getListing().next()
print("app", app.id(), app.attempts().head().completed())
ui = provider.getAppUI(app.id(), app.attempts().head().attemptId()).get().ui()
print("jobs", ui.store().jobsList(None).size())
provider.stop()
"""


def test_a_history_server_without_our_jar_reads_the_log(run: Ran, spark_submit: Submit) -> None:
    done = spark_submit(HISTORY, extension=False, job_words=[run.log_folder.as_uri()])
    assert done.returncode == 0, done.stderr[-5000:]
    app, jobs = done.stdout.splitlines()
    assert app == f"app {run.printed['app'][0]} True"
    assert int(jobs.split()[1]) > 5


def test_counters_are_metrics_of_sparks_sinks(run: Ran) -> None:
    prefix = f"{run.printed['app'][0]}.driver.aqepilot."
    last = {}
    for file in run.metrics_folder.glob(f"{prefix}*.csv"):
        with file.open() as rows:
            last[file.stem.removeprefix(prefix)] = list(csv.DictReader(rows))[-1]
    reasons = [e["reason"] for e in run.events["Decision"]]
    assert set(reasons) == {"APPLIED", "NULL_ANSWER"}
    for reason in set(reasons):
        name = f"decisions.{policies.POINT}.{reason}"
        assert int(last[name]["count"]) == reasons.count(reason) == run.counters[name]
    assert int(last["asked_us"]["count"]) == len(reasons)
    assert float(last["asked_us"]["p50"]) > 0
    assert int(last["errors"]["count"]) == run.counters["errors"] == 0


def test_the_live_view_is_bounded_and_says_what_it_dropped(careful: Ran, run: Ran) -> None:
    assert "dropped.ring" in run.counters
    assert run.counters["dropped.ring"] == 0
    logged = [e["decisionId"] for e in careful.events["Decision"]]
    kept = [d["decision_id"] for d in careful.decisions]
    assert 1 <= len(kept) < len(logged)
    assert logged[-len(kept) :] == kept
    assert careful.counters["dropped.ring"] == len(logged) - len(kept)
    assert all(d["facts"] for d in careful.decisions)
    assert len(careful.events["QueryClosed"]) == 13


def test_sparks_redaction_pattern_is_honoured(careful: Ran) -> None:
    ours = [line for line in careful.lines if line.startswith('{"Event":"io.aqepilot')]
    assert len(ours) == sum(map(len, careful.events.values()))
    assert not [line for line in ours if "private_" in line]
    assert "private_" not in "".join(careful.printed["decision"])
    hidden = "*********(redacted)"
    assert {e["tables"] for e in careful.events["Decision"]} == {f"orders ⋈ {hidden}"}
    loads = next(e for e in careful.events["PolicyLoaded"] if e["policy"] == "loads")
    assert loads["when"] == f"{WHEN} OR query.user = '{hidden}'"
    facts = json.loads(next(e["facts"] for e in careful.events["Decision"] if e["applied"]))
    assert facts["side"]["tables"] == [hidden]
    assert [hidden in c["error"] for c in careful.events["QueryClosed"] if c.get("error")] == [True]
