"""Experiments in the driver: who gets which arm, when the arms differ, and what ends one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import submitting
import tiers
from aqepilot.experiment.assignment import arm_of, bucket, parse_arms

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

NAME = "wider"
ARMS = "spark:50,wide:50"


def run_of(arm: str, arms: str = ARMS) -> str:
    """A run of the job `sales` that gets this arm."""
    parsed = parse_arms(arms)
    return next(
        f"r{i}" for i in range(100) if arm_of(parsed, bucket("", NAME, f"sales|r{i}")).name == arm
    )


CONTROL, TREATED = run_of("spark"), run_of("wide")
# What each application is submitted with, beside what all have.
APPLICATIONS = {
    "control": {"run": CONTROL},
    "treated": {"run": TREATED},
    "control of three": {
        "run": run_of("spark", "spark:30,wide:40,same:30"),
        "arms": "spark:30,wide:40,same:30",
    },
    "second try": {"run": TREATED, "attempt": "2"},
    "the same answers": {"run": CONTROL, "arms": "same:50,alike:50"},
    "not meant": {"run": TREATED, "experiment.when": "query.job = 'other'"},
    "meant": {"run": TREATED, "experiment.when": "query.job = 'sales'"},
    "over": {"run": TREATED, "experiment.end": "2026-01-01"},
    "not begun": {"run": TREATED, "experiment.start": "2100-01-01T00:00:00Z"},
    "begun": {"run": TREATED, "experiment.start": "2026-01-01", "experiment.end": "2100-01-01"},
    "failing": {"run": TREATED, "fails": "1"},
    "failing, allowed": {"run": TREATED, "fails": "1", "experiment.guardrails": "none"},
    "failing before": {"run": TREATED, "fails": "before"},
    "cancelled": {"run": TREATED, "fails": "cancelled"},
    "own text": {"run": TREATED, "sets": "policy.wide.join_selection"},
    "control failing": {"run": CONTROL, "fails": "1"},
    "own list": {"run": TREATED, "own": "same"},
    "unknown policy": {"run": TREATED, "arms": "wide:50,none:50"},
    "wrong weights": {"run": TREATED, "arms": "spark:50,wide:60", "policies": "wide"},
    "no name": {"run": TREATED, "experiment.name": ""},
    "wrong text": {"run": TREATED, "arms": "spark:50,faulty:50"},
    "wrong when": {"run": TREATED, "experiment.when": "query.jub = 'sales'"},
    "end first": {"run": TREATED, "experiment.start": "2026-02-01", "experiment.end": "2026-01-01"},
    "of queries": {"run": "r0", "experiment.unit": "query_run"},
    "of sessions": {"run": "r0", "experiment.unit": "session"},
}
JOB = """
import json, sys, threading, time
from pyspark.sql import SparkSession

def cancel_until(over, jobs):
    # One call may come before the job: it is forgotten then.
    while not over.wait(0.1):
        jobs.cancelJobGroup("slow")

applications, base = json.loads(sys.argv[1])
found = {}
for name, settings in applications.items():
    builder = SparkSession.builder
    of_app = dict(base)
    fails, own = settings.pop("fails", None), settings.pop("own", None)
    sets = settings.pop("sets", None)
    if "arms" in settings:
        of_app["spark.aqepilot.experiment.arms"] = settings.pop("arms")
    of_app |= {"spark.aqepilot." + key: value for key, value in settings.items()}
    for key, value in of_app.items():
        if value:
            builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if own:
        spark.conf.set("spark.aqepilot.policies", own)
    if sets:
        spark.conf.set("spark.aqepilot." + sets, "'SHUFFLE_HASH'")

    def query(of, sql):
        df = of.sql(sql)
        rows = sorted(map(tuple, df.collect()))
        plan = df._jdf.queryExecution().executedPlan().toString()
        decided = of.sql("SELECT * FROM aqepilot_decisions()").collect()
        return [rows, "BroadcastHashJoin" in plan, len(decided)]

    def join(of, i):
        of.range(1000).createOrReplaceTempView("l")
        of.range(500).createOrReplaceTempView("r")
        # A fingerprint knows no literals: queries differ by how often they add.
        sums = "+".join(["id"] * i) if isinstance(i, int) else i
        return query(of, f"SELECT count(*), sum({sums}) FROM l JOIN r USING (id)")

    def fail(sql):
        try:
            spark.sql(sql).collect()
        except Exception:
            pass

    if fails == "before":
        fail("SELECT raise_error(string(id)) FROM range(9)")
        spark.sql("SELECT * FROM aqepilot_decisions()").collect()
    told = [join(spark, 1)]
    if fails == "cancelled":
        jobs = spark.sparkContext
        jobs.setLocalProperty("spark.jobGroup.id", "slow")
        slow = "SELECT sum(id % 7) FROM range(1000000000000)"
        over = threading.Event()
        cancelling = threading.Thread(target=cancel_until, args=(over, jobs))
        cancelling.start()
        fail(slow)
        over.set()
        cancelling.join()
        jobs.setLocalProperty("spark.jobGroup.id", None)
        spark.sql("SELECT * FROM aqepilot_decisions()").collect()
    if fails == "1":
        try:
            join(spark, "raise_error('planted')")
        except Exception:
            pass
        # The query's end is seen after its rows.
        spark.sql("SELECT * FROM aqepilot_decisions()").collect()
    told.append(join(spark, 2))
    status = spark.sql("SELECT * FROM aqepilot_status()").collect()
    if "unit" in "".join(settings):
        told += [join(spark, i) for i in range(3, 15)]
        others = [spark.newSession() for _ in range(24)]
        told += [join(other, 1) for other in others]
    found[name] = {
        "app": spark.sparkContext.applicationId,
        "joins": told,
        "experiment": [[r.name, r.value, r.detail] for r in status if r.kind == "experiment"],
        "problems": [[r.name, r.detail] for r in status if r.kind == "problem"],
    }
    spark.stop()
    builder._options.clear()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def ran(
    logs: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What was found in each application, its events of experiments and queries, and the log."""
    prefix = "spark.aqepilot."
    base = {
        f"{prefix}job": "sales",
        f"{prefix}experiment.name": NAME,
        f"{prefix}experiment.arms": ARMS,
        f"{prefix}policy.wide.join_selection": "'BROADCAST'",
        f"{prefix}policy.same.join_selection": "'SHUFFLE_MERGE'",
        f"{prefix}policy.alike.join_selection": "concat('SHUFFLE_', 'MERGE')",
        f"{prefix}policy.faulty.join_selection": "no_such_column",
    }
    conf = {
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": logs.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    arguments = json.dumps([APPLICATIONS, base])
    folder = tmp_path_factory.mktemp("job")
    done = submitting.submit(
        folder, JOB, conf=conf, job_words=[arguments], timeout_s=400, own_jvm=tiers.OWN_JVM
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    logged = {
        path.name.split(".")[0]: [
            json.loads(line)
            for line in path.read_text("utf-8").splitlines()
            if "AqePilotExperiment" in line or "AqePilotQueryClosed" in line
        ]
        for path in logs.iterdir()
    }
    return answer, {name: logged[answer["app"]] for name, answer in answer.items()}, done.stderr


def events_of_units(events: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [
        (e["what"], e["unit"], e["arm"])
        for e in events
        if e["Event"].endswith("AqePilotExperiment")
    ]


def closed(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (e.get("experiment"), e.get("unit"), e.get("arm"))
        for e in events
        if e["Event"].endswith("AqePilotQueryClosed")
    ]


def are_broadcast(run: dict[str, Any]) -> list[bool]:
    return [is_broadcast for _, is_broadcast, _ in run["joins"]]


def test_rows_are_the_same_whatever_the_arm(ran):
    answers, _, _ = ran
    for name, answer in answers.items():
        for rows, _, _ in answer["joins"]:
            assert rows[0][0] == 500, name


@pytest.mark.parametrize(
    ("name", "broadcast"),
    [
        ("control", [False, False]),
        ("treated", [True, True]),
        ("control of three", [False, False]),
        ("second try", [False, False]),
        ("the same answers", [False, False]),
        ("not meant", [False, False]),
        ("meant", [True, True]),
        ("over", [False, False]),
        ("not begun", [False, False]),
        ("begun", [True, True]),
        ("failing", [True, False]),
        ("failing, allowed", [True, True]),
        ("failing before", [True, True]),
        ("cancelled", [True, True]),
        ("own text", [False, False]),  # it runs as control, which is plain Spark
        ("control failing", [False, False]),
        ("own list", [False, False]),
        ("unknown policy", [True, True]),  # the control is a policy here
        ("wrong weights", [True, True]),  # no arm can be read: the list as it is
        ("no name", [False, False]),
        ("wrong text", [False, False]),
        ("wrong when", [False, False]),
        ("end first", [False, False]),
    ],
)
def test_queries_run_as_their_arm_says(ran, name, broadcast):
    answers, _, _ = ran
    assert are_broadcast(answers[name]) == broadcast


@pytest.mark.parametrize(
    ("name", "arm", "events"),
    [
        ("control", "spark", ["assigned", "exposed"]),
        ("treated", "wide", ["assigned", "exposed"]),
        ("control of three", "spark", ["assigned", "exposed"]),
        ("second try", "wide", ["assigned"]),  # plain Spark under either arm
        ("the same answers", None, ["assigned"]),
        ("meant", "wide", ["assigned", "exposed"]),
        ("begun", "wide", ["assigned", "exposed"]),
        ("failing", "wide", ["assigned", "exposed", "stopped"]),
        ("failing, allowed", "wide", ["assigned", "exposed"]),
        ("failing before", "wide", ["assigned", "exposed"]),
        ("cancelled", "wide", ["assigned", "exposed"]),
        ("control failing", "spark", ["assigned", "exposed"]),
    ],
)
def test_a_run_is_assigned_at_its_start_and_exposed_where_arms_differ(ran, name, arm, events):
    answers, logged, _ = ran
    run = APPLICATIONS[name]["run"]
    assert [what for what, _, _ in events_of_units(logged[name])] == events
    arms = {arm for _, _, arm in events_of_units(logged[name])}
    assert arms == {arm} or arm is None
    assert {unit for _, unit, _ in events_of_units(logged[name])} == {f"sales|{run}"}
    # Queries without a decision are of the experiment as well.
    assert set(closed(logged[name])) == {(NAME, f"sales|{run}", *arms)}
    assert len(closed(logged[name])) >= len(answers[name]["joins"])
    state = {n: (v, d) for n, v, d in answers[name]["experiment"]}
    assert state["unit"][0] == f"sales|{run}"
    assert state["arm"][1] == events[-1]


@pytest.mark.parametrize("name", ["not meant", "over", "not begun", "own list", "own text"])
def test_what_is_outside_leaves_no_trace(ran, name):
    _, logged, _ = ran
    assert events_of_units(logged[name]) == [] or name in ("own list", "own text")
    assert {e for e, _, _ in closed(logged[name])} <= {None}


def test_what_differs_is_told(ran):
    _, logged, _ = ran
    (control,) = [e for e in logged["control"] if e.get("what") == "exposed"]
    assert control["detail"].startswith("join_selection: Spark's own, with arm wide: ")
    assert "BROADCAST" in control["detail"]
    assert control["executionId"] is not None
    (treated,) = [e for e in logged["treated"] if e.get("what") == "exposed"]
    assert treated["detail"].endswith("with arm spark: Spark's own")
    (stopped,) = [e for e in logged["failing"] if e.get("what") == "stopped"]
    assert stopped["detail"] == "1 failed queries (failed_queries:1)"


def test_a_control_that_differs_no_more_is_plain_spark(ran):
    """Asked beside its own are the other arms' policies only until an answer differs."""
    answers, _, _ = ran
    (_, _, first), (_, _, second) = answers["control"]["joins"]
    assert first == second == 1


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("unknown policy", "names 'none', but spark.aqepilot.policy.none has no text"),
        ("wrong weights", "the weights are 110 percent together, not 100"),
        ("no name", "spark.aqepilot.experiment.name is not set"),
        ("wrong text", "names 'faulty', whose text is wrong"),
        ("wrong when", "spark.aqepilot.experiment.when: line 1, column"),
        ("end first", "spark.aqepilot.experiment.end is not after"),
    ],
)
def test_a_wrong_definition_is_told_and_runs_as_control(ran, name, says):
    answers, logged, log = ran
    assert any(says in detail for _, detail in answers[name]["problems"]), answers[name]["problems"]
    assert says in log
    assert events_of_units(logged[name]) == []


def test_a_right_definition_has_no_problem(ran):
    answers, _, _ = ran
    for name in ("control", "treated", "begun", "of queries", "of sessions"):
        codes = {code for code, _ in answers[name]["problems"]}
        assert codes <= {"POLICY_NOT_LISTED"}, name  # of the policies of the other applications


def test_each_query_of_a_run_is_drawn_for_by_itself(ran):
    answers, logged, _ = ran
    units = {
        (unit, arm)
        for what, unit, arm in events_of_units(logged["of queries"])
        if what == "assigned"
    }
    arms = parse_arms(ARMS)
    joins = {unit for unit, _ in units}
    assert len(joins) >= 14
    for unit, arm in units:
        assert unit.startswith("sales|r0|")
        assert arm == arm_of(arms, bucket("", NAME, unit)).name
    drawn = are_broadcast(answers["of queries"])
    assert 0 < sum(drawn[:14]) < 14
    # The same query, in other sessions of the same run, has the same arm.
    assert len({drawn[0], *drawn[14:]}) == 1


def test_each_session_is_drawn_for_by_itself(ran):
    answers, logged, _ = ran
    units = [
        (unit, arm)
        for what, unit, arm in events_of_units(logged["of sessions"])
        if what == "assigned"
    ]
    assert len(units) == len({unit for unit, _ in units}) == 25
    arms = parse_arms(ARMS)
    assert all(arm == arm_of(arms, bucket("", NAME, unit)).name for unit, arm in units)
    drawn = are_broadcast(answers["of sessions"])
    assert len(set(drawn[:14])) == 1
    assert 0 < sum(drawn[14:]) < 24


def test_the_logs_say_what_the_experiment_found(ran, logs, tmp_path, command_line):
    answers, _, _ = ran

    def analysed(*words):
        return command_line("experiment", "analyse", "--log", tmp_path, *words)

    names = ["control", "treated", "failing", "control failing"]
    for name in names:
        (path,) = logs.glob(f"{answers[name]['app']}*")
        shutil.copy(path, tmp_path)
    done = analysed("--json")
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    # Of one job's two runs each is there twice, as two applications.
    assert answer["runs"] == {"control": 1, "treatment": 1}
    assert (answer["control"], answer["treatment"], answer["unit_kind"]) == (
        "spark",
        "wide",
        "job_run",
    )
    assert answer["verdict"] == "keep running"
    assert answer["stopped"] == {"1 failed queries (failed_queries:1)": 1}
    shown = analysed("--metric", "wall_ms")
    assert "wide (1 run) compared with spark (1)." in shown.stdout
    assert "Keep running. Not known yet" in shown.stdout
    wrong = analysed("--name", "other")
    assert wrong.exit_code == 1
    assert "there is no experiment 'other' in the logs: name one of wider." in wrong.stderr
