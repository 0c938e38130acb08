"""Past runs in a pack are facts at each point; a pack that cannot be read costs nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import each_point
import places
import submitting
import tiers
from aqepilot import Policy, read_log

# In SHAPE the pack has the same sub-plan with another name.
BEGIN = """
import json, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
import each_point, packs, scala_objects, skewed

path, tables = Path(sys.argv[1]), Path(sys.argv[2])
spark = SparkSession.builder.getOrCreate()
skewed.write(spark, tables)
skewed.register(spark, tables)
signatures = scala_objects.get(spark, "org.apache.spark.sql.aqepilot.facts.Signature")

def status(kind):
    rows = spark.sql("SELECT * FROM aqepilot_status()").collect()
    return {r.name: [r.value, r.detail] for r in rows if r.kind == kind}

def until(reached):
    end = time.monotonic() + 120
    while not reached():
        assert time.monotonic() < end, (status("history"), status("problem"))
        time.sleep(0.2)

def asked(point, text):
    row = each_point.ROWS[point]
    each_point.use(spark, {point: text})
    last = max((d.decision_id for d in decided()), default=0)
    rows = None
    if "INSERT" in row.query:
        each_point.run(spark, row.query)
    else:
        rows = sorted(map(str, spark.sql(row.query).collect()))
    made = [d for d in decided() if d.decision_id > last and d.point == point]
    spark.sql("SET spark.aqepilot.policies=")
    return made, rows

def decided():
    return spark.sql("SELECT * FROM aqepilot_decisions()").collect()

def optimised(sql):
    return spark.sql(sql)._jdf.queryExecution().optimizedPlan()

def text(made):
    return made.get().sameText(), made.get().shapeText()

def shuffled(table):
    plan = optimised(f"SELECT * FROM {table}")
    output = plan.output()
    keys = [c for c in map(output.apply, range(output.size())) if c.name() == "k"]
    return text(signatures.shuffled(plan, spark._jvm.PythonUtils.toSeq(keys)))

def say(name, **more):
    print(json.dumps({"name": name, **more}), flush=True)
"""
PACKED = (
    BEGIN
    + """
until(lambda: "HISTORY_UNREADABLE" in status("problem"))
say("without", history=status("history"), problem=status("problem"))
plain, fingerprints = {}, {}
for point, row in each_point.ROWS.items():
    made, plain[point] = asked(point, row.one)
    fingerprints[point] = made[0].fingerprint
    say(f"without {point}", facts=[d.facts for d in made], rows=plain[point])

run = {"input_bytes": 1, "row_count": 120, "bytes": 1200, "task_ms": 70, "failures": 0}
rows = []
for table in ("l", "r", "d"):
    same, shape = text(signatures.of(optimised(f"SELECT * FROM {table}")))
    which = {"signature": shape, "form": "SHAPE"} if table == "d" else {"signature": same}
    rows += [which | run | {"kind": "PLAN", "row_count": n} for n in (100, 120, 140)]
    moved = {"kind": "SHUFFLE", "shuffle_bytes": 64, "partitions": 8, "read_bytes": 1 << 20}
    rows += [{"signature": shuffled(table)[0]} | run | moved] * 2
rows += [
    {"signature": f[:16], "kind": "QUERY", "task_ms": 900, "failures": 0}
    for f in sorted(set(fingerprints.values()))
]
packs.write(spark, path, rows)
until(lambda: status("history")["signatures"][0] != "0")
say("with", history=status("history"), problem=status("problem"))
for point, row in each_point.ROWS.items():
    made, same = asked(point, row.one)
    say(f"with {point}", facts=[d.facts for d in made], rows=same, plain=plain[point])
for table in ("l", "r"):
    same, _ = text(signatures.of(optimised(f"SELECT * FROM {table}")))
    until_ms = int(time.time() * 1000) + 86_400_000
    held = {"signature": same, "kind": "HELD", "held_until_ms": until_ms}
    rows.append(held | {"reason": "2.0 times the task time of runs without"})
joined = text(signatures.of(optimised("SELECT * FROM r JOIN d ON r.k = d.k")))[0]
rows += [{"signature": joined, "kind": "PLAN", "row_count": 7}] * 2
packs.write(spark, path, rows)
until(lambda: status("history")["held"][0] == "2")
say("held", history=status("history"))
made, _ = asked("join_selection", each_point.ROWS["join_selection"].one)
say("held join_selection", facts=[d.facts for d in made])
score = '''double(IF(joined.num_relations = 0, abs(candidate.position - 1),
  coalesce(candidate.joined_history.rows_p50, 1000 + candidate.position)))'''
made, same = asked("join_reorder", score)
say("scored", answers=[d.answer for d in made], rows=same, plain=plain["join_reorder"])
path.write_bytes(path.read_bytes()[:100])
until(lambda: "HISTORY_UNREADABLE" in status("problem"))
made, same = asked("join_selection", each_point.ROWS["join_selection"].one)
say("damaged", problem=status("problem"), rows=same, plain=plain["join_selection"])
spark.stop()
"""
)
# What queries came to before, as the record of the same application has it.
OWN = (
    BEGIN
    + """
def learnt():
    return int(status("history")["own_signatures"][0])

def is_settled():
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty(60000)
    before = learnt()
    time.sleep(2)
    return learnt() == before > 0

plain = {}
for _ in range(2):
    for point, row in each_point.ROWS.items():
        plain[point] = asked(point, row.one)[1]
until(is_settled)
for point, row in each_point.ROWS.items():
    made, rows = asked(point, row.one)
    say(point, facts=[d.facts for d in made], rows=rows, plain=plain[point])
spark.conf.set("spark.aqepilot.policy.past.join_selection", sys.argv[3])
spark.conf.set("spark.aqepilot.policies", "past")
spark.sql(each_point.QUERIES["join_selection"]).collect()
spark.stop()
"""
)
BY_HISTORY = """
IF(right.history.runs > 1 AND right.history.rows_p50 > 0,
  named_struct('strategy', 'SHUFFLE_HASH', 'build_side', 'RIGHT'), NULL)
"""
# Where the facts at each point have past runs of `l`, `r` or `d`, or of a shuffle of theirs.
PLACES = {
    "skew_join": ["left.history", "right.history"],
    "shuffle_partitions": ["shuffles.history"],
    "partition_coalescing": ["shuffle.history"],
    "dynamic_join_selection": ["side.history", "other.history"],
    "join_selection": ["left.history", "right.history"],
    "join_reorder": ["chain.relations.0.history", "chain.relations.2.history"],
    "write_distribution": ["input.history"],
    "cost_evaluation": [],
}


def at(facts: Any, path: str) -> Any:
    for name in path.split("."):
        facts = facts[int(name)] if name.isdigit() else (facts or {}).get(name)
    return facts


def submitted(
    folder: Path, job: str, path: Path, conf: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """What a job prints, by name."""
    done = submitting.submit(
        folder / "job",
        job,
        conf=each_point.SETTINGS | {"spark.aqepilot.ask.deadline": "20s"} | conf,
        env={"PYTHONPATH": str(places.SUPPORT)},
        job_words=[str(path), str(folder / "tables"), BY_HISTORY],
        own_jvm=tiers.OWN_JVM,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("history")
    path = folder / "pack.parquet"
    settings = {"spark.aqepilot.history": path.as_uri(), "spark.aqepilot.history.refresh": "1s"}
    return submitted(folder, PACKED, path, settings)


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("own")
    (folder / "events").mkdir()
    settings = {
        "spark.aqepilot.history.own": "true",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": (folder / "events").as_uri(),
    }
    return submitted(folder, OWN, folder, settings) | {"events": {"path": str(folder / "events")}}


def test_without_a_pack_there_is_a_reason_and_no_history(steps: dict[str, dict[str, Any]]) -> None:
    assert "FileNotFoundException" in steps["without"]["problem"]["HISTORY_UNREADABLE"][1]
    assert steps["without"]["history"]["signatures"][0] == "0"
    for point, paths in PLACES.items():
        for facts in map(json.loads, steps[f"without {point}"]["facts"]):
            assert [at(facts, place) for place in [*paths, "query.history"]] == [None] * (
                len(paths) + 1
            )


@pytest.mark.parametrize("point", each_point.ROWS)
def test_a_pack_gives_each_point_its_past_runs(
    steps: dict[str, dict[str, Any]], point: str
) -> None:
    assert "HISTORY_UNREADABLE" not in steps["with"]["problem"]
    step = steps[f"with {point}"]
    assert step["rows"] == step["plain"]
    facts = [json.loads(facts) for facts in step["facts"]]
    assert facts
    for place in PLACES[point]:
        known = [at(f, place) for f in facts if at(f, place)]
        assert known, (place, facts)
        kinds = {(k["runs"], k["match"], k["rows_p50"], k["bytes_p50"]) for k in known}
        assert kinds <= {(3, "SAME", 120, 1200), (3, "SHAPE", 120, 1200), (2, "SAME", 120, 1200)}
        for one in known:
            assert 0 <= one["age_days"] < 1
            assert one["input_ratio"] > 1
            assert one["held"] is None
            if one["runs"] == 2:
                assert (one["ms_per_mb"], one["shuffle_bytes_p50"]) == (70.0, 64)
    for own in (f["query"]["history"] for f in facts):
        assert (own["runs"], own["task_ms_p50"], own["decided_runs"]) == (1, 900, 0)


def test_what_is_held_is_not_used_and_says_why(steps: dict[str, dict[str, Any]]) -> None:
    (row,) = {detail for _, detail in [steps["held"]["history"]["held_signature"]]}
    assert row.endswith("2.0 times the task time of runs without")
    for facts in map(json.loads, steps["held join_selection"]["facts"]):
        left = facts["left"]["history"]
        assert left["held"] == "2.0 times the task time of runs without"
        assert {k for k, v in left.items() if v is not None} == {"signature", "held"}
        assert facts["right"]["history"]["held"] is None


def test_a_score_reads_what_a_set_of_relations_came_to_in_any_order(
    steps: dict[str, dict[str, Any]],
) -> None:
    """After `r`, the join with `d` is known to leave few rows, and that with `l` is not known."""
    assert steps["scored"]["rows"] == steps["scored"]["plain"]
    assert steps["scored"]["answers"] == ["[1,2,0]"]


def test_a_damaged_pack_costs_no_query(steps: dict[str, dict[str, Any]]) -> None:
    assert "HISTORY_UNREADABLE" in steps["damaged"]["problem"]
    assert steps["damaged"]["rows"] == steps["damaged"]["plain"]


@pytest.mark.parametrize("point", each_point.ROWS)
def test_what_an_application_measured_is_there_when_the_query_runs_again(
    own: dict[str, dict[str, Any]], point: str
) -> None:
    """So what names a sub-plan when it is decided on names it when it has run."""
    step = own[point]
    assert step["rows"] == step["plain"]
    facts = [json.loads(facts) for facts in step["facts"]]
    for place in PLACES[point]:
        known = [at(f, place) for f in facts if at(f, place)]
        assert known, (place, facts)
        for one in known:
            assert one["runs"] >= 2
            assert one["match"] == "SAME"
            # Joins drop nulls of the same relation or keep them, and more tasks have more groups.
            assert 0 < one["rows_p50"] <= one["rows_max"]
            assert one["input_ratio"] == 1
    assert all(f["query"]["history"]["runs"] >= 2 for f in facts)


@tiers.READS_LOGS
def test_a_replay_gives_each_decision_that_history_made(
    own: dict[str, dict[str, Any]], spark: SparkSession
) -> None:
    log = read_log(spark, own["events"]["path"])
    replayed = log.replay(Policy(name="past", join_selection=BY_HISTORY)).asked.where(
        "exists(recorded, one -> one.policy = 'past')"
    )
    rows = replayed.collect()
    assert rows
    for row in rows:
        assert (row.changed, row.unknown) == (False, None)
        assert "SHUFFLE_HASH" in row.before
        assert int(row.named["right.history.runs"]) >= 2
