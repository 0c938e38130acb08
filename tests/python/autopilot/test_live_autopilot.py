"""What the autopilot reads of event logs; a broken or hostile log adds nothing."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import fleets as fleet
import made_logs
import tiers
from aqepilot import Log, control
from aqepilot.autopilot import candidates
from aqepilot.autopilot.autopilot import Autopilot
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Figured, Shadow
from aqepilot.autopilot.logs import Seen
from aqepilot.autopilot.state import State, Trial

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

FIRST = datetime(2026, 11, 1, 6, tzinfo=timezone.utc)
DAY = FIRST.timestamp() / 86400
TEXT = 'name = "p"\nskew_join = "null"\n'
TRIAL = Trial(
    id="0123456789ab",
    candidate=Candidate(job="daily.a", shape="any", recipe="p", source="x", text=TEXT),
)
MAY = Definition(state="s", jobs=("daily.*",), suggestions=10)


# A stage of thousands of tasks that take longer to start than to run.
TINY_TASKS = {
    "num_tasks": 5200, "tiny_tasks": 5000, "tiny_start_ms": 60_000, "slot_ms": 100_000,
    "shuffle_read_bytes": 100 << 20, "input_bytes": 0, "shuffle_write_bytes": 0, "waiting_ms": 0,
    "output_bytes": 0, "disk_spill_bytes": 0, "spilled_slot_ms": 0, "max_task_ms": 100,
    "median_task_ms": 90, "operators": [], "rdd_partitions": 200, "has_shuffled": True,
    "writing_tasks": 0, "shuffle_read_records": 1_000_000, "max_task_records": 6000,
}  # fmt: skip


class Written:
    """Rows of logs, an application for each run of a job."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in _NAMES}

    def run(self, job: str, day: float, ms: int = 1000, arm: str | None = None) -> Written:
        log, at = f"{job}|{day}", FIRST + timedelta(days=day)
        own = {"log": log, "app_id": log}
        ended = at + timedelta(hours=1)
        self.rows["applications"].append(own | {"app_name": job, "started": at, "ended": ended})
        unit = {"experiment": TRIAL.experiment, "unit": log} if arm else {}
        query = {
            "fingerprint": job.encode().hex()[:64],
            "job": job,
            "run": log,
            "started": at,
            "ended": at + timedelta(minutes=30),
        }
        times = {"task_ms": ms, "slot_ms": 100 * ms, "input_bytes": 9, "executor_core_ms": ms}
        self.rows["queries"].append(own | query | times | unit)
        self.rows["stages"].append(own | TINY_TASKS)
        for what in ("assigned", "exposed") if arm else ():
            arms = f"spark:75,{TRIAL.name}:25"
            event = {"time": at, "arm": arm, "arms": arms, "unit_kind": "job_run", "what": what}
            self.rows["experiments"].append(own | event | unit | {"job": job, "run": log})
        return self

    def policy(
        self, job: str, day: float, name: str, mode: str, text: str = "named_struct('force', true)"
    ) -> Written:
        row = {"log": f"{job}|{day}", "time": FIRST, "policy": name, "point": "skew_join"}
        self.rows["policies"].append(row | {"mode": mode, "text": text})
        return self

    def read_in(self, spark: SparkSession) -> Log:
        return made_logs.log(spark, **self.rows)


_NAMES = ("applications", "queries", "experiments", "stages", "policies", "decisions")


def clean() -> Written:
    logs = Written()
    for day in range(6):
        logs.run("daily.a", day)
    logs.run("daily.a", 6, 1000, "spark").run("daily.a", 7, 500, TRIAL.name)
    logs.run("daily.b", 7).policy("daily.b", 7, "sales", "enforce")
    return logs


def test_units_shadows_and_the_team_s_policies_are_read(spark: SparkSession) -> None:
    logs = clean().policy("daily.a", 5, TRIAL.name, "shadow")
    # The recipe that decides nothing is no policy of the team's.
    logs.policy("daily.a", 7, "watch", "enforce", " NULL").policy(
        "daily.b", 7, "watch", "enforce", "null"
    )
    decided = {"log": "daily.a|5", "policy": TRIAL.name, "mode": "shadow"}
    logs.rows["decisions"] += [decided | {"answer": "x"}, decided | {"answer": None}]
    seen = Seen(logs.read_in(spark), MAY, DAY + 8)
    evidence = seen.evidence(State(trials={TRIAL.id: TRIAL}))
    measured = Figured(evidence, "task_ms").measure(TRIAL.experiment)
    assert measured is not None
    assert (measured.runs, measured.exposed) == ((1, 1), (1, 1))
    assert measured.effect == pytest.approx(-0.69, abs=0.05)
    assert sorted(evidence.runs.share[evidence.runs.counted]) == [0.25, 0.25]
    assert evidence.shadows == {TRIAL.name: Shadow(1, 1, 1)}
    assert {job: [p.name for p in own] for job, own in evidence.teams.items()} == {
        "daily.b": ["sales"]
    }
    seen.close()


def test_a_hostile_or_broken_log_proposes_nothing_that_a_clean_one_would_not(
    spark: SparkSession,
) -> None:
    """Names with markup, foreign applications, clocks that are wrong, and days that are missing."""

    def proposed(logs: Written) -> tuple[set[tuple[str, str]], set[str]]:
        seen = Seen(logs.read_in(spark), MAY, DAY + 8)
        offered = candidates.find(seen, MAY)
        assert offered.problems == []
        evidence = seen.evidence(State())
        seen.close()
        named = {(one.job, one.text, one.fingerprints) for one in offered.listed}
        return named, set(evidence.runs.job.tolist())

    offered, jobs = proposed(clean())
    hostile = clean()
    for name in ("<script>daily.x</script>", "nightly.a", "../daily.a", "daily\n.a"):
        for day in range(5):
            hostile.run(name, day, 90_000)
    # Of the year 2060, of 1970, and a log whose end is before its start.
    hostile.run("daily.skewed", 12_000).run("daily.skewed", -20_000)
    hostile.rows["queries"].append({"log": "daily.a|1", "fingerprint": "'; --", "job": "daily.a"})
    hostile.rows["queries"].append({"log": "none", "job": "daily.a", "task_ms": None})
    hostile.rows["experiments"].append(
        {"log": "daily.a|1", "experiment": "autopilot.x", "arms": ":,"}
    )
    del hostile.rows["applications"][2:4]
    offered_too, jobs_too = proposed(hostile)
    assert {job for job, _, _ in offered} == {"daily.a", "daily.b"}
    assert offered_too <= offered
    assert jobs_too <= jobs
    assert jobs == {"daily.a", "daily.b"}


def test_queries_of_a_job_that_have_the_same_are_one_candidate(spark: SparkSession) -> None:
    """Each alone would be a trial after the other, and so small that no day tells its effect."""
    logs = clean()
    (first, *_) = (row for row in logs.rows["queries"] if row["job"] == "daily.a")
    logs.rows["queries"].append(first | {"execution_id": 1, "fingerprint": "cd" * 32})
    logs.rows["stages"].append({"log": first["log"], "execution_id": 1} | TINY_TASKS)
    seen = Seen(logs.read_in(spark), MAY, DAY + 8)
    (one,) = (one for one in candidates.find(seen, MAY).listed if one.job == "daily.a")
    seen.close()
    both = tuple(sorted([first["fingerprint"], "cd" * 32]))
    assert one.fingerprints == both
    assert one.why.endswith("2 queries of the job have the same.")
    tried = Trial(id=one.id, candidate=one)
    assert tried.policy().when == f"query.fingerprint IN ('{both[0]}', '{both[1]}')"
    # What is seen of a third one later is tried for that one alone.
    later = one.also(one.model_copy(update={"fingerprints": ("ef" * 32,)}))
    left = later.untried([one])
    assert left is not None
    assert left.fingerprints == ("ef" * 32,)
    assert left.id not in {one.id, later.id}
    assert one.untried([one]) is None
    assert one.untried([fleet.candidate()]) == one


def test_the_state_is_the_same_on_a_hadoop_file_system(spark: SparkSession, tmp_path: Path) -> None:
    """By Hadoop's classes: the journal, to which another autopilot adds, and the control file."""
    assert spark.version
    jobs = fleet.Jobs()
    jobs.past("daily.a")
    uri = (tmp_path / "hadoop").as_uri()
    places: tuple[dict[str, Any], ...] = (
        {},
        {"state": f"{uri}/state", "control": f"{uri}/control.json"},
    )
    steps = []
    for more in places:

        def known(_: State, more: Any = more, **shadows: Any) -> tuple[Any, Any]:
            return jobs.evidence(0, **shadows), [fleet.candidate()]

        def beside(state: State, more: Any = more) -> tuple[Any, Any]:
            fleet.pilot(tmp_path, **more).look("one", known)
            return known(state)

        autopilot: Autopilot = fleet.pilot(tmp_path, **more)
        assert autopilot.look("one", beside) == []
        (trial,) = autopilot.journal.read().open
        seen = {trial.name: Shadow(1, 3, 0)}
        autopilot.look("two", lambda state, seen=seen: known(state, shadows=seen))
        autopilot.act("undo", trial.id)
        steps.append([(e.look, e.step, e.reason, e.trial) for e in autopilot.journal.events()])
        (rule,) = control.read(more.get("control", str(tmp_path / "control.json"))).rules
        assert rule.mode == "off"
    assert steps[0] == steps[1]
    assert [step for _, step, _, _ in steps[0]].count("start") == 1
    live = [tmp_path / name / "live.json" for name in ("state", "hadoop/state")]
    assert live[0].read_text("utf-8") == live[1].read_text("utf-8")
