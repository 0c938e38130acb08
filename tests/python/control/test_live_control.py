"""The control file in a running application: what is off there is off, within a refresh."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import submitting
import tiers
from aqepilot import control
from aqepilot.control.hadoop import HadoopFile

pytestmark = tiers.on("3.5")

JOIN = "SELECT count(*) FROM l JOIN r USING (id)"
JOB = f"""
import json, os, sys, time
from pathlib import Path
from pyspark.sql import SparkSession
from aqepilot import control

path = sys.argv[1]
spark = SparkSession.builder.getOrCreate()
spark.range(1000).createOrReplaceTempView("l")
spark.range(500).createOrReplaceTempView("r")

def status(kind):
    rows = spark.sql("SELECT * FROM aqepilot_status()").collect()
    return [[r.name, r.value, r.detail] for r in rows if r.kind == kind]

def decided():
    return spark.sql("SELECT * FROM aqepilot_decisions()").collect()

def query(sql={JOIN!r}):
    last = max((d.decision_id for d in decided()), default=0)
    df = spark.sql(sql)
    (row,) = df.collect()
    made = [d for d in decided() if d.decision_id > last]
    plan = df._jdf.queryExecution().executedPlan().toString()
    return {{
        "rows": row[0],
        "broadcast": "BroadcastHashJoin" in plan,
        "modes": sorted({{d.mode for d in made if d.policy}}),
        "fingerprint": made[0].fingerprint if made else None,
    }}

def seen(version):
    end = time.monotonic() + 60
    while ["version", str(version), None] not in status("control"):
        assert time.monotonic() < end, status("control")
        time.sleep(0.05)

def say(name, **more):
    print(json.dumps({{"name": name, **query(), **more}}), flush=True)

def told():
    return {{kind: status(kind) for kind in ("control", "policy", "problem")}}

say("at first", **told())
fingerprint = query()["fingerprint"]
version = control.read(path).version
steps = [
    ("off", {{}}), ("shadow", {{}}), ("off", {{"policy": "wide"}}), ("off", {{"policy": "other"}}),
    ("off", {{"point": "join_selection"}}), ("off", {{"point": "skew_join"}}),
    ("off", {{"job": "daily"}}), ("off", {{"job": "weekly"}}), ("off", {{"spark": spark.version}}),
    ("off", {{"fingerprint": fingerprint}}), ("off", {{"fingerprint": "another"}}),
]
for mode, selectors in steps:
    began = time.monotonic()
    control.lower(path, mode, selectors, reason="a test", by="ann")
    version += 1
    seen(version)
    say(f"{{mode}} {{selectors}}", seconds=time.monotonic() - began, **told())
    if "fingerprint" in selectors:
        other = query("SELECT max(l.id) FROM l JOIN r USING (id)")
        print(json.dumps({{"name": f"other query {{selectors}}", **other}}))
    control.lift(path, selectors)
    version += 1
    seen(version)
say("on again")
control.lower(path, "off", {{"policy": "wide"}}, reason="a test")
seen(version + 1)
good = Path(path).read_text()
for name, change in (
    ("half written", lambda: Path(path).write_text(good[:40])),
    ("gone", lambda: os.remove(path)),
    ("empty", lambda: Path(path).write_text("")),
):
    change()
    end = time.monotonic() + 60
    while not any(p[0] == "CONTROL_UNREACHABLE" for p in status("problem")):
        assert time.monotonic() < end
        time.sleep(0.05)
    say(name, **told())
    Path(path).write_text(good)
    while any(p[0] == "CONTROL_UNREACHABLE" for p in status("problem")):
        time.sleep(0.05)
spark.stop()
"""
CONF = {
    "spark.aqepilot.policies": "wide",
    "spark.aqepilot.policy.wide.join_selection": "'BROADCAST'",
    "spark.aqepilot.job": "daily",
    "spark.aqepilot.control.refresh": "1s",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}
Ran = tuple[dict[str, dict[str, Any]], list[dict[str, Any]], str]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """What was found at each step, the events, and what the driver logged."""
    folder = tmp_path_factory.mktemp("control")
    path = folder / "control.json"
    control.lift(str(path))
    (folder / "events").mkdir()
    done = submitting.submit(
        folder / "job",
        JOB,
        conf=CONF
        | {"spark.aqepilot.control": str(path), "spark.eventLog.dir": (folder / "events").as_uri()},
        job_words=[str(path)],
        own_jvm=tiers.OWN_JVM,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    steps = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    (log,) = (folder / "events").iterdir()
    events = [
        json.loads(line) for line in log.read_text("utf-8").splitlines() if "AqePilot" in line
    ]
    return {step["name"]: step for step in steps}, events, done.stderr


ON = (True, ["enforce"])
OFF = (False, [])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("at first", ON),
        ("off {}", OFF),
        ("shadow {}", (False, ["shadow"])),
        ("off {'policy': 'wide'}", OFF),
        ("off {'policy': 'other'}", ON),
        ("off {'point': 'join_selection'}", OFF),
        ("off {'point': 'skew_join'}", ON),
        ("off {'job': 'daily'}", OFF),
        ("off {'job': 'weekly'}", ON),
        ("off {'spark': '%s'}", OFF),
        ("off {'fingerprint': '%s'}", OFF),
        ("other query {'fingerprint': '%s'}", ON),
        ("off {'fingerprint': 'another'}", ON),
        ("on again", ON),
        ("half written", OFF),
        ("gone", OFF),
        ("empty", OFF),
    ],
)
def test_what_is_off_is_plain_spark_and_nothing_else_is(
    ran: Ran, step: str, expected: tuple[bool, list[str]]
) -> None:
    steps, _, _ = ran
    if "%s" in step:
        (rule,) = (
            v
            for k, v in steps.items()
            if k.startswith(step.partition("%s")[0]) and "another" not in k
        )
    else:
        rule = steps[step]
    assert (rule["broadcast"], rule["modes"]) == expected
    if not step.startswith("other query"):
        assert rule["rows"] == 500


def test_it_is_seen_within_a_refresh(ran: Ran) -> None:
    """A refresh is a second here, and reading and asking take their time on a busy machine."""
    steps, _, _ = ran
    times = [step["seconds"] for step in steps.values() if "seconds" in step]
    assert len(times) == 11
    assert sorted(times)[len(times) // 2] < 15


def test_the_status_says_what_holds_and_why(ran: Ran) -> None:
    steps, _, _ = ran
    control_rows = {name: (value, detail) for name, value, detail in steps["off {}"]["control"]}
    assert control_rows["version"][0] == "2"
    assert int(control_rows["age_ms"][0]) < 60_000
    mode, why = control_rows["rule"]
    assert mode == "off"
    assert why.endswith(": off: a test")
    ((name, mode, detail),) = steps["off {}"]["policy"]
    assert (name, mode) == ("wide.join_selection", "off")
    assert json.loads(detail)["limit"] == why
    ((code, _, message),) = steps["gone"]["problem"]
    assert code == "CONTROL_UNREACHABLE"
    assert "FileNotFound" in message
    assert " holds" in message


def test_the_record_and_the_log_say_so(ran: Ran) -> None:
    _, events, log = ran
    events_of_control = [e for e in events if e["Event"].endswith("AqePilotControl")]
    assert events_of_control[0]["version"] == 1
    assert events_of_control[0]["rules"] == []
    assert any(e["rules"] and e["rules"][0].endswith(": off: a test") for e in events_of_control)
    assert any("FileNotFound" in (e["problem"] or "") for e in events_of_control)
    limits = {e["limit"] for e in events if e["Event"].endswith("AqePilotPolicyLoaded")}
    assert None in limits
    assert any(limit and limit.endswith(": off for policy=wide: a test") for limit in limits)
    assert "CONTROL_UNREACHABLE" in log
    read = [e for e in events_of_control if e["version"]]
    assert all(0 <= e["ageMillis"] < 60_000 for e in read)
    closed = [e for e in events if e["Event"].endswith("AqePilotQueryClosed")]
    assert closed[0]["controlVersion"] == 1
    assert all(0 <= e["controlAgeMillis"] < 60_000 for e in closed)


START = f"""
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.range(1000).createOrReplaceTempView("l")
spark.range(500).createOrReplaceTempView("r")
rows = spark.sql({JOIN!r}).collect()[0][0]
made = spark.sql("SELECT * FROM aqepilot_decisions()").collect()
print(json.dumps([rows, sorted({{(d.mode, d.applied) for d in made}})]))
"""


@pytest.mark.parametrize(
    ("unreachable", "expected"),
    [
        (None, [["shadow", False]]),
        pytest.param("off", [], marks=tiers.LONG),
        pytest.param("enforce", [["enforce", True]], marks=tiers.LONG),
    ],
)
def test_without_a_file_at_the_start_is_done_what_is_set_for_that(
    unreachable: str | None,
    expected: list[Any],
    spark_submit: Callable[..., Any],
    tmp_path: Path,
) -> None:
    own = {"spark.aqepilot.control.unreachable": unreachable} if unreachable else {}
    conf = CONF | own | {"spark.aqepilot.control": str(tmp_path / "none.json")}
    done = spark_submit(START, conf=conf | {"spark.eventLog.enabled": "false"})
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [500, expected]
    assert "CONTROL_UNREACHABLE" in done.stderr


def test_a_file_on_a_hadoop_file_system_is_written_and_read(tmp_path: Path) -> None:
    """Hadoop's viewfs over files of this machine: all goes through Hadoop's own interface."""
    conf = {"spark.hadoop.fs.viewfs.mounttable.test.link./etc": tmp_path.as_uri()}
    path = "viewfs://test/etc/control.json"
    began = time.monotonic()
    control.lower(path, "off", {"policy": "wide"}, reason="far away", conf=conf)
    control.lower(path, "shadow", {"policy": "other"}, reason="far away", conf=conf)
    control.lift(path, {"policy": "wide"}, conf=conf)
    assert time.monotonic() - began < 60
    (rule,) = control.read(path, conf).rules
    assert (rule.mode, rule.policy) == ("shadow", "other")
    assert control.read(str(tmp_path / "control.json")).version == 3
    assert sorted(p.name for p in tmp_path.iterdir() if not p.name.endswith(".crc")) == [
        "control.json"
    ]

    def writes(who: str) -> None:
        for n in range(2):
            control.lower(path, "off", {"policy": f"{who}{n}"}, reason="at once", conf=conf)

    writers = [threading.Thread(target=writes, args=(who,)) for who in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    file = control.read(path, conf)
    assert file.version == 9
    assert {rule.policy for rule in file.rules} == {"other", "a0", "a1", "b0", "b1", "c0", "c1"}


def test_a_checksum_that_is_behind_its_file_is_waited_for(tmp_path: Path) -> None:
    """As where another writer replaces the two, one after the other."""
    file = HadoopFile((tmp_path / "control.json").as_uri(), {})
    file.replace(lambda _: "first")
    (tmp_path / "control.json").write_text("second")
    later = threading.Timer(0.3, (tmp_path / ".control.json.crc").unlink)
    later.start()
    assert file.read() == "second"
    later.join()


def test_a_lock_that_two_have_created_at_once_is_nobodys(tmp_path: Path) -> None:
    """What is in it fails its checksum for good, and no writer waits for it."""
    file = HadoopFile((tmp_path / "control.json").as_uri(), {})
    assert file._create(".lock", "one" * 10)
    (tmp_path / "control.json.lock").write_text("two" * 10)
    file.replace(lambda _: "written")
    assert file.read() == "written"
    assert not list(tmp_path.glob("*.lock"))


def test_a_scheme_without_an_abstract_file_system_is_written(tmp_path: Path) -> None:
    """Hadoop has a rename that replaces only there; vendors' schemes often lack it."""
    file = HadoopFile((tmp_path / "control.json").as_uri(), {})
    file._conf.unset("fs.AbstractFileSystem.file.impl")
    for text in ("first", "second"):
        file.replace(lambda _, text=text: text)
    assert file.read() == "second"
    assert (tmp_path / "control.json").read_text() == "second"
    assert not list(tmp_path.glob("control.json.*"))
