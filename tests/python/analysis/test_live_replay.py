"""Replay: the policies in force give what was recorded, and others what they would have given."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

import made_logs
import places
import python_policies
import submitting
import tiers
from aqepilot import Log, catalog, read_log
from aqepilot.analysis.replay import texts_in_force
from aqepilot.analysis.replay.conditions import checked, failing
from aqepilot.errors import AqePilotError, PolicyError
from aqepilot.policies import Policy
from conftest import CommandLine

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

HERE = str(places.SUPPORT)
WHEN = "query.app_name LIKE 'job%'"
JOB = """
import importlib
import sys
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession


workload = importlib.import_module(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
workload.register(spark, 0.01)
numbers = sys.argv[3:]
for number, query in workload.queries().items():
    if numbers and str(number) not in numbers:
        continue
    wide = number in (3, 5, 18)
    spark.conf.set("spark.sql.shuffle.partitions", 80 if wide else 8)
    spark.sparkContext.setJobDescription("wide" if wide else None)
    try:
        spark.sql(query).collect()
    except Exception as error:
        print("failed", number, error)
spark.table("customer").write.parquet("written")
spark.stop()
"""
# Where the functions do not say otherwise, shuffles have more partitions than facts list plainly.
NOT_WIDE = "query.description IS NULL"
FAILING = "CASE WHEN side.is_left THEN CAST(1 / (side.row_count - side.row_count) AS STRING) END"


@pytest.fixture(scope="module")
def log_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    some = () if tiers.ALL else (2, 3, 5, 7, 9, 18, 20, 21)
    return written_log(tmp_path_factory.mktemp("replay"), "tpch", 500, *some)


def written_log(folder: Path, workload: str, timeout_s: float, *numbers: int) -> Path:
    """These queries, or all, with SQL in shadow and Python functions in force at every point."""
    (folder / "functions.py").write_text(python_policies.SOURCE, encoding="utf-8")
    (folder / "events").mkdir()
    names = {"sql": "shadow", "bad": "shadow", "py": "enforce"}
    prefix = "spark.aqepilot.policy."
    conf = {f"{prefix}{name}.mode": mode for name, mode in names.items()}
    conf |= {f"{prefix}sql.{point}": text.strip() for point, text in python_policies.SQL.items()}
    conf |= {f"{prefix}py.{point}": python_policies.text(point) for point in python_policies.SQL}
    run = submitting.submit(
        folder / "job",
        JOB,
        ["--py-files", str(folder / "functions.py")],
        conf={
            **conf,
            f"{prefix}sql.when": WHEN,
            f"{prefix}py.when": NOT_WIDE,
            f"{prefix}bad.dynamic_join_selection": FAILING,
            "spark.aqepilot.policies": ",".join(names),
            "spark.aqepilot.ask.deadline": "20s",
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.eventLog.compress": "false",
        },
        job_words=[HERE, workload, *map(str, numbers)],
        timeout_s=timeout_s,
        own_jvm=tiers.OWN_JVM,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    assert "failed" not in run.stdout, run.stdout
    return folder / "events"


@pytest.fixture
def log(spark: SparkSession, log_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.syspath_prepend(str(log_folder.parent))
    return read_log(spark, log_folder)


def in_force() -> list[Policy]:
    """As they were asked."""
    python = {point: python_policies.text(point) for point in python_policies.SQL}
    return [
        Policy(name="sql", when=WHEN, mode="shadow", points=python_policies.SQL),
        Policy(name="bad", mode="shadow", dynamic_join_selection=FAILING),
        Policy(name="py", when=NOT_WIDE, points=python),
    ]


def test_the_policies_in_force_give_every_recorded_decision(log: Log) -> None:
    assert_no_difference(log)


@tiers.LONG
def test_the_policies_in_force_give_every_recorded_decision_of_tpcds(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = written_log(tmp_path, "tpcds", timeout_s=3000)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert_no_difference(read_log(spark, events))


def assert_no_difference(log: Log) -> None:
    """At every point, SQL and Python, failures and null included."""
    asked = log.replay(*in_force()).asked.collect()
    print(sorted(Counter(row.point for row in asked).items()), "replayed")
    points = {row.point for row in asked}
    assert points == set(catalog.point_names())
    assert len(asked) > 200
    packed = sum('"packed":' in row.facts for row in asked)
    assert packed > 0
    failed = sum(event.failed for row in asked for event in row.recorded)
    assert failed > 0
    answers = {(e.policy, row.point) for row in asked for e in row.recorded if e.answer is not None}
    assert {point for policy, point in answers if policy == "sql"} == points
    assert {point for policy, point in answers if policy == "py"} == points
    different = [
        (row.point, row.subject, row.recorded, row.replayed)
        for row in asked
        if [e.asDict() | {"revision": None} for e in row.recorded if not _of_python(e)]
        != [e.asDict() | {"revision": None} for e in row.replayed if not _of_python(e)]
        or [e.answer for e in row.recorded] != [e.answer for e in row.replayed]
    ]
    assert different == []
    # Those in force leave all as it was; the one in shadow would have decided before them.
    assert log.replay(*in_force()[1:]).asked.where("changed OR unknown IS NOT NULL").count() == 0
    assert {row.unknown for row in asked} <= {None, "EARLIER_DECISION"}
    assert any(row.changed for row in asked)
    sql = {e.revision for row in asked for e in row.replayed if e.policy == "sql"}
    assert sql == {e.revision for row in asked for e in row.recorded if e.policy == "sql"}


def _of_python(event: Any) -> bool:
    """Whose revision is a hash of its code."""
    return bool(event.policy == "py")


def test_what_another_policy_would_change(log: Log) -> None:
    always = Policy(name="new", dynamic_join_selection="'SHUFFLE_MERGE'")
    replayed = log.replay(always)
    asked = replayed.asked.collect()
    assert {row.point for row in asked} == {"dynamic_join_selection"}
    assert {row.after for row in asked} == {"SHUFFLE_MERGE"}
    made = log.decisions.where("point = 'dynamic_join_selection'").collect()
    applied = {d.decision_id: d.answer for d in made if d.applied}
    assert {row.before for row in asked} == {None, *applied.values()}
    no_change = {(d.execution_id, d.subject, d.facts_id) for d in made
                 if (not d.applied and d.mode == "enforce" and d.answer == "SHUFFLE_MERGE")
                 or d.spark_answer == "SHUFFLE_MERGE"}  # fmt: skip
    for row in asked:
        stays = (row.execution_id, row.subject, row.facts_id) in no_change and row.before is None
        assert row.changed == (row.before != "SHUFFLE_MERGE" and not stays)
    first: dict[int, int] = {}
    for row in sorted(asked, key=lambda row: row.decision_id):
        changed_before = first.get(row.execution_id, row.decision_id) < row.decision_id
        assert row.unknown == ("EARLIER_DECISION" if changed_before else None)
        if row.changed:
            first.setdefault(row.execution_id, row.decision_id)
    changes = replayed.changes.collect()
    assert sum(c.asked for c in changes) == sum(row.changed for row in asked)
    assert [c.task_ms for c in changes] == sorted((c.task_ms for c in changes), reverse=True)
    task_ms = {q.execution_id: q.task_ms for q in log.queries.collect()}
    for change in changes:
        executions = {
            row.execution_id
            for row in asked
            if row.changed and (row.fingerprint, row.before) == (change.fingerprint, change.before)
        }
        assert change.queries == len(executions)
        assert change.task_ms == sum(task_ms[e] for e in executions)


FIRST = made_logs.facts(side={"max_bytes": 10, "size_in_bytes": 900})
LATER = made_logs.facts(side={"max_bytes": 20, "size_in_bytes": 900})
ANSWERS = "'SHUFFLE_HASH'"


def shadowed(**more: Any) -> dict[str, Any]:
    return {"policy": "p", "mode": "shadow", "answer": "SHUFFLE_HASH", "reason": "SHADOW", **more}


def test_what_a_shadow_policy_answered_was_spark_s_choice(spark: SparkSession) -> None:
    """Later facts come of it: in force, the policy would have met others."""
    rows = [
        shadowed(facts=FIRST),
        shadowed(facts=LATER, subject="join 1, right side"),
        shadowed(facts=LATER, execution_id=2),
    ]
    log = made_logs.log(spark, decisions=rows, queries=[{}, {"execution_id": 2}])
    replayed = log.replay({"name": "p", "mode": "shadow", "dynamic_join_selection": ANSWERS})
    asked = replayed.asked.orderBy("decision_id").collect()
    assert [(row.before, row.after) for row in asked] == [(None, "SHUFFLE_HASH")] * 3
    assert all(row.changed for row in asked)
    assert [row.unknown for row in asked] == [None, "EARLIER_DECISION", None]
    (change,) = replayed.changes.collect()
    assert (change.asked, change.unknown, change.queries) == (3, 1, 2)


def test_what_ran_is_what_was_applied(spark: SparkSession) -> None:
    """Not what a policy in shadow said before it, or what a guard rail refused."""
    refused = {"policy": "q", "answer": "BROADCAST", "reason": "GUARD_BROADCAST_BYTES"}
    rows = [
        shadowed(facts=FIRST, facts_id="a"),
        {"policy": "q", "answer": "SHUFFLE_MERGE", "applied": True, "reason": "APPLIED",
         "facts_id": "a"},
        {**refused, "facts": LATER, "execution_id": 2},
    ]  # fmt: skip
    log = made_logs.log(spark, decisions=rows)
    asked = log.replay({"name": "q", "dynamic_join_selection": "'SHUFFLE_MERGE'"}).asked
    assert {(r.execution_id, r.before, r.changed) for r in asked.collect()} == {
        (1, "SHUFFLE_MERGE", False),
        (2, None, True),
    }
    same = log.replay({"name": "q", "dynamic_join_selection": "'BROADCAST'"}).asked
    # What was refused would be refused again: the plan stays Spark's.
    assert {(r.execution_id, r.after, r.changed) for r in same.collect()} == {
        (1, "BROADCAST", True),
        (2, "BROADCAST", False),
    }


def test_spark_s_own_answer_changes_nothing(spark: SparkSession) -> None:
    rows = [shadowed(facts=FIRST, spark_answer="SHUFFLE_HASH")]
    log = made_logs.log(spark, decisions=rows)
    replayed = log.replay({"name": "p", "dynamic_join_selection": ANSWERS})
    assert [row.changed for row in replayed.asked.collect()] == [False]
    assert replayed.changes.collect() == []


def test_changes_say_which_facts_moved_them(spark: SparkSession) -> None:
    """Those that the policy names, over all that changed alike."""
    rows = [shadowed(facts=FIRST), shadowed(facts=LATER, execution_id=2)]
    log = made_logs.log(spark, decisions=rows, queries=[{}, {"execution_id": 2}])
    text = "CASE WHEN side.max_bytes < 50 AND NOT side.is_left <=> true THEN 'SHUFFLE_HASH' END"
    (change,) = log.replay({"name": "p", "dynamic_join_selection": text}).changes.collect()
    assert change.facts == {"side.max_bytes": "10 to 20", "side.is_left": None}


def test_conditions_are_checked_where_answers_are_known(spark: SparkSession) -> None:
    rows = [shadowed(facts=FIRST), shadowed(facts=None, execution_id=2)]
    log = made_logs.log(spark, decisions=rows)
    asked = log.replay({"name": "p", "dynamic_join_selection": ANSWERS}).asked
    condition = "after = 'SHUFFLE_HASH'"
    assert [row.execution_id for row in failing(asked, condition).collect()] == [1]
    assert checked(asked, condition)[1:] == (1, 1)
    nothing = made_logs.log(spark, decisions=rows[1:]).replay(
        {"name": "p", "dynamic_join_selection": ANSWERS}
    )
    assert checked(nothing.asked, condition)[1:] == (0, 1)


def test_two_policies_are_compared(log: Log) -> None:
    text = python_policies.SQL["skew_join"]
    same = log.replay({"name": "a", "skew_join": text}, against=[{"name": "b", "skew_join": text}])
    assert same.changes.collect() == []
    assert same.asked.where("before IS NOT NULL").count() > 0
    other = log.replay(
        {"name": "a", "skew_join": "null"}, against=[{"name": "b", "skew_join": text}]
    )
    assert {c.after for c in other.changes.collect()} == {None}


def test_scores_of_relations_are_not_known(log: Log) -> None:
    asked = log.replay({"name": "p", "join_reorder": "candidate.size_in_bytes"}).asked.collect()
    assert {row.unknown for row in asked} == {"SCORES"}
    assert not any(row.changed for row in asked)


def test_lost_facts_are_not_known(log: Log) -> None:
    from pyspark.sql import functions

    cut = functions.expr(
        "CASE abs(hash(facts_id)) % 3 WHEN 0 THEN NULL WHEN 1 THEN left(facts, 90) ELSE facts END"
    )
    lost = log.replace(decisions=log.decisions.withColumn("facts", cut))
    asked = lost.replay({"name": "p", "cost_evaluation": "spark.cost"}).asked.collect()
    assert {row.unknown for row in asked} >= {"FACTS_MISSING", "FACTS_UNREADABLE"}


def test_a_condition_may_read_facts(log: Log) -> None:
    asked = log.replay({"name": "p", "dynamic_join_selection": "'BROADCAST'"}).asked
    large = failing(asked, "after = 'BROADCAST' AND side.size_in_bytes > aqepilot_bytes('1k')")
    expected = [
        row
        for row in asked.collect()
        if (json.loads(row.facts)["side"]["size_in_bytes"] or 0) > 1024
    ]
    known = [row for row in expected if row.unknown is None]
    assert large.count() == len(known) > 0
    failing_rows = checked(
        asked, "after = 'BROADCAST' AND side.size_in_bytes > aqepilot_bytes('1k')"
    )
    assert failing_rows.doubtful == len(expected) - len(known) > 0
    assert failing(asked, "after = 'SHUFFLE_HASH'").count() == 0
    with pytest.raises(AqePilotError, match="no decision point has all of"):
        failing(asked, "side.size_in_bytes > chain.num_relations")
    with pytest.raises(AqePilotError, match="this is no condition") as caught:
        failing(asked, "side.size_in_byte > 3")
    assert "side.size_in_bytes" in caught.value.problems[0].suggestions


def test_wrong_policies_are_refused_with_their_place(log: Log) -> None:
    with pytest.raises(PolicyError, match=r"p\.skew_join.*left\.max_byte"):
        log.replay({"name": "p", "skew_join": "left.max_byte > 1"})
    with pytest.raises(PolicyError, match="cannot be loaded"):
        log.replay({"name": "p", "skew_join": "python:functions:gone"})
    with pytest.raises(AqePilotError, match="no policy to replay"):
        log.replay()


def test_what_was_in_force_is_in_the_log(log: Log) -> None:
    assert [p.name for p in texts_in_force(log)] == ["sql", "bad", "py"]
    assert set(texts_in_force(log)) == {
        p.model_copy(update={"mode": p.mode or "enforce"}) for p in in_force()
    }


def test_the_command(
    spark: SparkSession, log_folder: Path, tmp_path: Path, command_line: CommandLine
) -> None:
    (log,) = (f for f in log_folder.rglob("*") if f.is_file() and f.stat().st_size > 100_000)
    lines = log.read_text().splitlines()
    ends = [n for n, line in enumerate(lines) if "QueryClosed" in line[:60]]
    (tmp_path / "log").write_text("\n".join([*lines[: ends[3] + 1], "cut"]))
    policy = tmp_path / "new.toml"
    policy.write_text("name = 'new'\ndynamic_join_selection = \"'BROADCAST'\"\n")

    def ran(*more: str) -> Result:
        return command_line("replay", "--log", tmp_path / "log", "--policy", policy, *more)

    shown = ran("--fail-if", "after = 'BROADCAST' AND side.size_in_bytes > 1")
    assert shown.exit_code == 1, shown.output
    assert "1 logs: policies were asked" in shown.stdout
    assert "times: after = 'BROADCAST'" in shown.stderr
    assert "1 lines of the logs are no whole events" in shown.stderr
    as_json = ran("--json", "--fail-if", "after = 'SHUFFLE_HASH'")
    assert as_json.exit_code == 0, as_json.output
    answer = json.loads(as_json.stdout)
    assert answer["asked"] > 3
    assert answer["unreadable_lines"] == 1
    assert answer["changes"][0]["after"] == "BROADCAST"
    assert answer["fail_if"][0]["rows"] == 0
