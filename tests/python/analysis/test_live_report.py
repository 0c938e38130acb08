"""The report of real logs: its figures are those of the DataFrames and of Spark's own events."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

import submitting
import tiers
from aqepilot import read_log
from aqepilot.analysis.report import data
from aqepilot.analysis.report.values import Data
from aqepilot.eventlog.collect.tables import collect
from conftest import CommandLine, reads_logs

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

EVIL = "sales <script>alert(1)</script>"
JOB = f"""
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
key = "CASE WHEN id % 10 < 4 THEN 7 ELSE id % 500 END AS k"
spark.range(0, 60000, 1, 4).selectExpr(key, "id AS n").createOrReplaceTempView("l")
spark.range(0, 3000, 1, 2).selectExpr("id % 500 AS k", "id AS m").createOrReplaceTempView("r")
joined = "SELECT count(*), max(n), max(m) FROM l JOIN r ON l.k = r.k"
for n in range(3):
    spark.sparkContext.setJobDescription({EVIL!r})
    spark.sql(joined).collect()
spark.sparkContext.setJobDescription("groups")
spark.sql("SELECT k, count(*) FROM l GROUP BY k").collect()
try:
    spark.sql("SELECT assert_true(n < 10), l.k FROM l JOIN r ON l.k = r.k").collect()
except Exception:
    pass
spark.stop()
"""
POLICIES = {
    "hash.dynamic_join_selection": "CASE WHEN side.is_left THEN 'SHUFFLE_HASH' END",
    "split.skew_join": "named_struct('skew_factor', 2.0, 'left_threshold_bytes', 1000L, "
    "'left_target_bytes', 1000L)",
    "few.partition_coalescing": "named_struct('min_partitions', 1)",
    "huge.shuffle_partitions": "CASE WHEN array_contains(shuffles.feeds, 'AGGREGATE') "
    "THEN 100000000 END",
    "faulty.cost_evaluation": "1 / (plan.shuffles - plan.shuffles)",
}


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "events").mkdir()
    texts = {f"spark.aqepilot.policy.{key}": text for key, text in POLICIES.items()}
    conf = {
        "spark.aqepilot.policies": ",".join(key.split(".")[0] for key in POLICIES),
        "spark.aqepilot.ask.deadline": "20s",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.shuffle.partitions": "80",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    run = submitting.submit(folder / "job", JOB, conf=texts | conf, own_jvm=tiers.OWN_JVM)
    assert run.returncode == 0, run.stderr[-3000:]
    return folder / "events"


@pytest.fixture(scope="module")
def events(log_folder: Path) -> list[dict[str, Any]]:
    (log,) = (path for path in log_folder.iterdir() if path.is_file())
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def report(_spark_context: SparkSession, log_folder: Path) -> Data:
    session = _spark_context.newSession()
    reads_logs(session)
    return data.gather(session, read_log(session, log_folder), 200)


def named(events: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [event for event in events if event["Event"].endswith(name)]


def test_the_heading_is_what_sparks_events_say(report: Data, events: list[dict[str, Any]]) -> None:
    heading = report.heading
    tasks = named(events, "SparkListenerTaskEnd")
    # Spark gives none for a task that was killed before it ran.
    measured = [task["Task Metrics"] for task in tasks if "Task Metrics" in task]
    assert heading.task_ms == sum(m["Executor Run Time"] for m in measured) > 0
    starts = named(events, "SQLExecutionStart")
    ends = named(events, "SQLExecutionEnd")
    assert heading.queries == len(starts)
    assert heading.failed_queries == sum(bool(e["errorMessage"]) for e in ends) == 1
    assert heading.unfinished_queries == 0
    (added,) = named(events, "SparkListenerExecutorAdded")
    (end,) = named(events, "SparkListenerApplicationEnd")
    lasted = end["Timestamp"] - added["Timestamp"]
    assert heading.core_ms == added["Executor Info"]["Total Cores"] * lasted
    decided = named(events, "AqePilotDecision")
    assert heading.decisions == len(decided)
    assert heading.applied == sum(e["applied"] for e in decided) > 0
    assert (heading.applications, heading.unreadable_lines) == (1, 0)
    assert heading.lines == len(events)


def test_queries_are_put_together_by_fingerprint(
    report: Data, spark: SparkSession, log_folder: Path
) -> None:
    queries = read_log(spark, log_folder).queries.collect()
    assert report.fingerprints.task_ms == sum(q.task_ms for q in queries)
    assert [f.task_ms for f in report.fingerprints.top] == sorted(
        (f.task_ms for f in report.fingerprints.top), reverse=True
    )
    (sales,) = (f for f in report.fingerprints.top if f.description == EVIL)
    own = [q for q in queries if q.fingerprint == sales.fingerprint]
    assert sales.runs == len(own) == 3
    assert sales.task_ms == sum(q.task_ms for q in own)
    assert sales.slot_ms == sum(q.slot_ms for q in own)
    assert sales.shuffle_bytes == sum(q.shuffle_read_bytes for q in own) > 0
    assert sales.spill_bytes == sum(q.disk_spill_bytes for q in own)
    assert sales.wall_ms == statistics.median(q.wall_ms for q in own)
    assert sales.decisions == sum(q.decisions for q in own)
    runs = [run for run in report.runs if run.key == sales.key]
    assert [r.wall_ms for r in runs] == [
        q.wall_ms for q in sorted(own, key=lambda q: q.execution_id)
    ]


def test_costs_are_those_of_the_tasks(report: Data, events: list[dict[str, Any]]) -> None:
    tasks = named(events, "SparkListenerTaskEnd")
    kept = {
        reason: sum(
            t["Task Info"]["Finish Time"] - t["Task Info"]["Launch Time"]
            for t in tasks
            if (t["Task End Reason"]["Reason"] == "Success") == (reason == "done")
        )
        for reason in ("done", "lost")
    }
    whole = report.costs.whole
    assert (whole.slot_ms, whole.retried_ms) == (sum(kept.values()), kept["lost"])
    assert whole.retried_ms > 0
    assert whole.starting_ms is not None
    assert 0 < whole.starting_ms < whole.slot_ms
    assert EVIL in {cost.description for cost in report.costs.top}


def test_points_guards_and_failures_are_counted(report: Data, events: list[dict[str, Any]]) -> None:
    decided = named(events, "AqePilotDecision")
    fates = {
        fate["decisionId"]: fate["fate"]
        for closed in named(events, "AqePilotQueryClosed")
        for fate in closed["fates"]
    }
    expected = Counter(
        (e["point"], e.get("policy"), e["reason"], fates.get(e["decisionId"])) for e in decided
    )
    counted: Counter[Any] = Counter()
    for s in report.answers:
        counted[s.point, s.policy, s.reason, s.fate] += s.times
    assert counted == expected
    reasons = {s.reason for s in report.answers}
    assert {"APPLIED", "GUARD_PARTITIONS"} <= reasons
    assert reasons & {"EVALUATION_FAILED", "OUT_OF_RANGE"}
    assert "adopted" in {s.fate for s in report.answers}


def test_skew_is_that_of_the_facts(report: Data, events: list[dict[str, Any]]) -> None:
    assert report.shuffles
    for shuffle in report.shuffles:
        sizes = shuffle.bytes_by_partition_id
        assert len(sizes) == shuffle.num_partitions > 64  # packed in the facts
        assert max(sizes) == shuffle.max_bytes > 2 * shuffle.median_bytes
        middle = int(statistics.median(sizes))
        assert abs(shuffle.median_bytes - max(middle, 1)) <= 1
    assert any("skew_join" in line for shuffle in report.shuffles for line in shuffle.outcomes)


def test_joins_are_those_of_the_final_plans(
    report: Data, spark: SparkSession, log_folder: Path, events: list[dict[str, Any]]
) -> None:
    expected = Counter(
        join.split()[0]
        for query in read_log(spark, log_folder).queries.collect()
        for join in query.joins or []
    )
    counted: Counter[str] = Counter()
    for _, _, strategy, joins in report.joins.counts:
        counted[strategy] += joins
    assert counted == expected
    assert counted["ShuffledHashJoin"] >= 3
    adopted = [
        fate["finalStrategy"]
        for closed in named(events, "AqePilotQueryClosed")
        for fate in closed["fates"]
        if fate["fate"] == "adopted" and fate.get("finalStrategy") == "ShuffledHashJoin BuildLeft"
    ]
    expected_change = ("SortMergeJoin", "ShuffledHashJoin BuildLeft", len(adopted))
    assert report.joins.changes == [expected_change]


def test_logs_without_aqepilot_and_lost_lines(
    spark: SparkSession, tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    plain = [
        json.dumps(e, separators=(",", ":"))
        for e in events
        if not e["Event"].startswith("io.aqepilot")
    ]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app").write_text("\n".join([*plain[:-1], plain[-1][:20]]))
    made = read_log(spark, tmp_path / "logs").report(tmp_path / "r.html")
    assert made.unreadable_lines == 1
    page = (tmp_path / "r.html").read_text("utf-8")
    assert made.page_bytes == len(page.encode())
    assert "no fingerprint" in page
    assert "The logs have no decisions of aqepilot." in page
    assert "1 line is no whole event" in page
    assert "sales &lt;script&gt;" in page
    assert "<script" not in page


def test_the_command(
    spark: SparkSession, log_folder: Path, tmp_path: Path, command_line: CommandLine
) -> None:

    def ran(log: Path, *more: str) -> Result:
        return command_line("report", "--log", log, "-o", tmp_path / "r.html", *more)

    (tmp_path / "empty").mkdir()
    empty, missing = ran(tmp_path / "empty"), ran(tmp_path / "gone")
    assert (empty.exit_code, missing.exit_code) == (1, 1)
    assert "there is no event log in" in empty.stderr
    assert "there is nothing at" in missing.stderr
    assert not (tmp_path / "r.html").exists()

    collect(spark, log_folder, tmp_path / "tables")
    (tmp_path / "p.toml").write_text("currency = 'EUR'\nper_core_hour = 3.6\n")
    shown = ran(tmp_path / "tables", "--prices", str(tmp_path / "p.toml"), "--top", "1")
    assert shown.exit_code == 0, shown.output
    assert "queries of 1 applications" in shown.stdout
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "EUR" in page
    assert "The 1 with most task time of" in page
    assert page.count('<div id="q') == 1
