"""An assistant's read tools hold the cause of what is planted in a log, and the policy for it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client
from pyspark.sql import SparkSession

import assistants
import injections
import made_logs
import planted_logs as planted
import tiers
from aqepilot.analysis import log as logs
from aqepilot.analysis.findings import KINDS
from aqepilot.assistant import server
from aqepilot.assistant.answers import MOST_CHARACTERS, Answers
from aqepilot.assistant.reading import Reading
from aqepilot.assistant.tools import RefusedError, Tools
from aqepilot.policies import Policy
from conftest import reads_logs

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

# The decision point whose policy helps, by what is planted; null where a change of the job does.
POINTS = {
    "hot_key": "skew_join",
    "tiny_tasks": "shuffle_partitions",
    "spilling": "shuffle_partitions",
    "tiny_blocks": "shuffle_partitions",
    "expanding": "partition_coalescing",
    "wrong_broadcast": "join_selection",
    "small_files": "write_distribution",
    "failed_broadcast": "join_selection",
    "range_join": "join_selection",
    "flipping": "join_selection",
    "skewed_runs": "skew_join",
    "small_side": "join_selection",
    "many_partitions": "shuffle_partitions",
    "coalesce": None,
    "one_group": None,
    "not_in": None,
    "no_keys": None,
}
# Six more, which the record and Spark's own events tell, and no finding: the tool that has each,
# how it is asked, and what is in its answer.
BESIDE: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a guard rail that holds": (
        "report",
        {"part": "guard_rails"},
        ["GUARD_MEMORY", "careless", "679 MiB"],
    ),
    "a policy that fails": (
        "report",
        {"part": "failures"},
        ["EVALUATION_FAILED", "divide by zero"],
    ),
    "a text that is wrong": ("report", {"part": "bad_policies"}, ["misspelt", "side.max_byte"]),
    "a plan refused on cost": ("explain", {"query": 60}, ["Refused on cost", "`dear`"]),
    "a stage that was tried again": ("costs", {}, ['"retried_ms": 12000', "flaky"]),
    "a log that is cut off": ("overview", {}, ["could not be read to their end", "truncated"]),
}


def decision(number: int, **more: Any) -> dict[str, Any]:
    return planted.decision(number, "record", "dynamic_join_selection", **more)


DECISIONS = [
    *planted.decisions(),
    decision(
        60, policy="careless", mode="enforce", answer="SHUFFLE_HASH", reason="GUARD_MEMORY",
        detail="it would need 679 MiB of a task's 512 MiB",
    ),
    decision(60, policy="faulty", reason="EVALUATION_FAILED", detail="divide by zero"),
    decision(
        60, policy="dear", mode="enforce", answer="SHUFFLE_MERGE", applied=True, reason="APPLIED",
        fate="refused_by_cost", spark_strategy="BroadcastHashJoin BuildRight",
        final_strategy="BroadcastHashJoin BuildRight",
    ),
]  # fmt: skip
QUERIES = [*planted.QUERIES, planted.query(60, "flaky", slot_ms=20_000)]
STAGES = [*planted.STAGES, planted.stage(60, slot_ms=12_000, stage_attempt_id=1)]
POLICIES = [
    {
        "log": made_logs.OF_LOG["log"], "time": made_logs.AT, "session_id": "s",
        "policy": "misspelt", "point": "dynamic_join_selection", "revision": "0", "mode": "shadow",
        "text": "side.max_byte > 1", "source": "submitted", "error": "no fact side.max_byte",
    }
]  # fmt: skip


@contextlib.contextmanager
def reading(
    session: SparkSession, log: logs.Log, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Reading]:
    monkeypatch.setattr(logs, "read_log", lambda *_: log)
    with Reading(["made"], lambda: contextlib.nullcontext(session)) as made:
        yield made


@pytest.fixture(scope="module")
def asked(_spark_context: SparkSession) -> Iterator[Reading]:
    session = _spark_context.newSession()
    reads_logs(session)
    log = made_logs.log(
        session,
        applications=[{"problem": "truncated block"}],
        queries=QUERIES,
        stages=STAGES,
        decisions=DECISIONS,
        policies=POLICIES,
        sub_plans=planted.sub_plans(),
    )
    with pytest.MonkeyPatch.context() as patched, reading(session, log, patched) as made:
        yield made


def everything(tool: Any, **arguments: Any) -> list[Any]:
    """All pages of a tool's answer."""
    rows: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        text = tool(**arguments, offset=offset)
        assert len(text) <= MOST_CHARACTERS
        answer = json.loads(text)
        rows += answer["data"]
        offset = answer.get("next_offset")
    return rows


def test_the_findings_have_the_cause_and_the_policy_of_what_is_planted(asked: Reading) -> None:
    rows = {row["description"]: row for row in everything(assistants.tools(asked)["findings"])}
    assert rows.keys() == POINTS.keys() == KINDS.keys()
    for kind, point in POINTS.items():
        row = rows[kind]
        assert (row["kind"], row["cause"], row["point"]) == (kind, KINDS[kind], point)
        assert row["evidence"]
        assert row["what_to_do"]
        if point is None:
            assert row["change"]
        else:
            policy = Policy.from_toml(row["policy"])
            assert (policy.mode, list(policy.points)) == ("shadow", [point])


@pytest.mark.parametrize("what", BESIDE)
def test_the_other_tools_tell_what_else_is_planted(asked: Reading, what: str) -> None:
    tool, arguments, words = BESIDE[what]
    text = assistants.tools(asked)[tool](**arguments)
    assert [word for word in words if word not in text.replace("\\n", " ")] == []


def test_twenty_are_planted_and_more() -> None:
    assert len(POINTS) + len(BESIDE) >= 20


def test_a_finding_s_policy_goes_all_the_way_to_a_proposal(asked: Reading, tmp_path: Any) -> None:
    """Over the protocol: found, explained, checked, replayed, proposed."""

    async def whole() -> None:
        made = Tools(asked, Answers(), tmp_path)
        async with Client(server.made(made), read_timeout_seconds=300) as client:

            async def called(name: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(name, arguments)
                assert not result.is_error, result.content[0].text
                answer: dict[str, Any] = json.loads(result.content[0].text)
                return answer

            rows = (await called("findings"))["data"]
            (one,) = [row for row in rows if row["kind"] == "hot_key"]
            (decided,) = (await called("decisions", query=1))["data"]
            facts = await called("facts", query=1, decision_id=decided["decision_id"], path="left")
            assert {"fact": "max_bytes", "value": 300 * planted.MB} in facts["data"]
            assert (await called("check", policy=one["policy"]))["summary"] == "The policy is good."
            replayed = await called("replay", policy=one["policy"])
            assert replayed == await called("replay", policy=one["policy"])
            assert "1 answers would be others" in replayed["summary"]
            assert replayed["data"][1]["change"]["point"] == "skew_join"
            await called("propose", policy=one["policy"])

    asyncio.run(whole())
    (file,) = tmp_path.iterdir()
    assert Policy.from_file(file).mode == "shadow"


def test_what_is_wrong_with_a_policy_is_told_with_its_place(asked: Reading, tmp_path: Any) -> None:
    wrong = 'name = "a"\nmode = "shadow"\nskew_join = "left.max_byte > 1"\n'
    answer = json.loads(assistants.tools(asked)["check"](policy=wrong))
    assert answer["summary"] == "The policy is wrong."
    assert "left.max_bytes" in answer["data"][0]["suggestions"]
    assert "policy.toml:3" in answer["data"][0]["where"]
    with pytest.raises(RefusedError, match=r"left\.max_bytes"):
        assistants.tools(asked, tmp_path)["propose"](policy=wrong)
    assert list(tmp_path.iterdir()) == []


def test_names_in_a_log_are_data(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """All fifty, as descriptions, applications, policies and tables of one log."""
    texts = injections.STRINGS
    names = range(1, len(texts) + 1)
    log = made_logs.log(
        spark,
        applications=[{"app_name": texts[0], "user": texts[1]}],
        queries=[{"execution_id": n, "description": texts[n - 1]} for n in names],
        stages=[{"execution_id": n, "stage_id": n, "name": texts[n - 1]} for n in names],
        decisions=[
            {
                "execution_id": n, "policy": texts[n - 1], "tables": texts[n - 1],
                "reason": "APPLIED", "applied": True, "answer": texts[n - 1],
                "facts": made_logs.facts(query={"description": texts[n - 1], "job": texts[n - 1]}),
            }
            for n in names
        ],
    )  # fmt: skip
    with reading(spark, log, monkeypatch) as made:
        tools = assistants.tools(made)
        for name in ("overview", "queries", "costs", "findings"):
            answer = json.loads(tools[name]())
            ours = {key: value for key, value in answer.items() if key != "data"}
            assert "njected" not in json.dumps(ours)
        assert {row["description"] for row in everything(tools["queries"])} == {
            Answers().clean(text) for text in texts
        }
