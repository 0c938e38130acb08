"""Whatever a policy's author means to do, queries run as ever and no other session notices."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pyspark
import pytest

import submitting
import tiers
from places import SUPPORT, TESTS
from waiting import until

sys.path.append(str(TESTS))

import hostile

pytestmark = tiers.on("3.5")

PRINTS = ("python", "print without an end")
ALL = {("sql", name): case for name, case in hostile.SQL.items()} | {
    ("python", name): case for name, case in hostile.PYTHON.items()
}
# `make hostile` has all.
SOME = list(ALL) if tiers.ALL else [*list(ALL)[::21], PRINTS]
CASES = {key: ALL[key] for key in ALL if key in SOME}
every_case = pytest.mark.parametrize("key", CASES, ids=lambda key: f"{key[0]}: {key[1]}")
MINOR = ".".join(pyspark.__version__.split(".")[:2])
DEADLINE_S = 2 if tiers.ALL else 3
# Of a hang, on any machine: an ask may take its turn and then an answer, a few times in a query.
LONG_S = 300
CONF = {
    "spark.aqepilot.ask.deadline": f"{DEADLINE_S}s",
    # Each is asked again in the second query, and has three tries.
    "spark.aqepilot.ask.breaker_failures": "3",
    "spark.aqepilot.ask.breaker_time": "10ms",
    "spark.aqepilot.python.load_timeout": "15s",
    "spark.aqepilot.python.memory": "512m",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "4",
    "spark.log.level": "INFO",
    hostile.SETTING: hostile.SECRETS["setting"],
}
# What may be told of a function that raised what it found: to its own session.
TELLS = {"the environment": {"environment"}}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the job told of each case, and of all."""
    folder = tmp_path_factory.mktemp("hostile")
    here = os.pathsep.join([str(TESTS), str(SUPPORT)])
    mark = uuid.uuid4().hex
    done: subprocess.CompletedProcess[str] = submitting.submit(
        folder,
        (SUPPORT / "hostile_job.py").read_text("utf-8"),
        conf=CONF,
        job_words=[here, str(180 * tiers.ALL), *(name for _, name in CASES)],
        memory="2g",
        env={hostile.ENVIRONMENT: hostile.SECRETS["environment"], "HOSTILE_TEST_MARK": mark},
        timeout_s=1500,
    )
    (folder / "log").write_text(done.stderr, encoding="utf-8")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    *cases, last = (json.loads(line) for line in done.stdout.splitlines() if line[0] == "{")
    return {
        "cases": {(case["kind"], case["name"]): case for case in cases},
        "last": last,
        "log": done.stderr,
        "mark": mark,
    }


@pytest.mark.timeout(1600)
@every_case
def test_a_hostile_policy_comes_to_its_reason_and_harms_no_query(
    ran: dict[str, Any], key: tuple[str, str]
) -> None:
    case, expected = ran["cases"][key], CASES[key].comes_to(MINOR)
    assert "error" not in case
    assert case["rows"] == [True, True]
    assert expected in (case["refused"] or case["reasons"]), case
    assert case["asked_s"] < LONG_S
    assert max(case["queries_s"]) < LONG_S
    assert case["changed"] == []
    secrets = {what for what, secret in hostile.SECRETS.items() if secret in case["shown"]}
    assert secrets <= TELLS.get(key[1], set())


def test_no_other_session_notices(ran: dict[str, Any]) -> None:
    rounds = ran["last"]["rounds"]
    assert len(rounds) > len(CASES)
    applied = ["good dynamic_join_selection APPLIED", "session shuffle_partitions APPLIED"]
    for seen in rounds:
        assert "error" not in seen
        assert (seen["rows"], seen["changed"], seen["reasons"]) == (True, [], applied)
        assert "hostile" not in seen["shown"]
        assert hostile.SECRETS["environment"] not in seen["shown"]
        assert hostile.SECRETS["setting"] not in seen["shown"]


@tiers.LONG
def test_nothing_is_left_when_the_sessions_have_ended(ran: dict[str, Any]) -> None:
    last = ran["last"]
    assert last["sessions"] == 1
    assert last["left"] == {}
    assert last["compiling"] == 0
    before, after = last["descriptors"]
    assert after < before + 20


def test_nothing_is_left_of_the_job(ran: dict[str, Any]) -> None:
    assert ran["last"]["files"] == []
    mark = f"HOSTILE_TEST_MARK={ran['mark']}".encode()

    def left() -> list[Path]:
        left_behind = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                if mark in (process / "environ").read_bytes().split(b"\0"):
                    left_behind.append(process)
        return left_behind

    # What ends a function's processes may outlive the driver by a moment.
    until(lambda: not left(), 30)
    assert left() == []


def test_what_a_function_prints_does_not_fill_the_log(ran: dict[str, Any]) -> None:
    lines = sum("hostile hostile" in line for line in ran["log"].splitlines())
    assert 0 < lines < 30_000  # of millions
    assert "more lines in a minute" in ran["log"]
