"""An assistant's answers are bounded, redacted and marked as data, and what it does only lowers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mcp import Client, StdioServerParameters

import injections
import shown_values
from aqepilot import Policy, catalog, control
from aqepilot.analysis import log as logs
from aqepilot.assistant import acting, documents, reading, server
from aqepilot.assistant.answers import HIDDEN, MOST_CHARACTERS, NOTE, Answers
from aqepilot.assistant.reading import Reading
from aqepilot.assistant.tools import RefusedError, Tools
from aqepilot.cli import main as cli
from aqepilot.errors import AqePilotError
from assistants import Written, tools

GOOD = 'name = "sales"\nmode = "shadow"\nskew_join = "null"\n'
RANK = {"off": 0, "shadow": 1, "enforce": 2}


# Each read tool of logs, with what it needs.
CALLS: dict[str, dict[str, Any]] = {
    "overview": {},
    "findings": {},
    "queries": {"app_id": "a"},
    "explain": {"query": 7},
    "decisions": {"query": 7},
    "facts": {"query": 7, "decision_id": 0},
    "costs": {},
    "report": {"part": "points"},
    "experiments": {},
    "history": {},
}


@pytest.mark.parametrize("name", CALLS)
def test_texts_of_users_are_data_and_nothing_else(name: str) -> None:
    for text in injections.STRINGS:
        shown = tools(Written(text))[name](**CALLS[name])
        answer = json.loads(shown)
        assert answer["note"] == NOTE
        assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u202e]", shown)
        # Without the data there is not a word of theirs.
        ours = json.dumps({k: v for k, v in answer.items() if k != "data"})
        assert "injected" not in ours
        assert "Ignore all" not in ours
        assert "njected" in json.dumps(answer["data"]) or "Ignore all" in shown


@pytest.mark.parametrize("name", CALLS)
def test_answers_are_bounded_and_their_pages_are_all_there_is(name: str) -> None:
    reading = Written("x" * 1500, 50)
    tool = tools(reading)[name]
    rows: list[Any] = []
    offset: int | None = 0
    for _ in range(200):
        shown = tool(**CALLS[name], offset=offset)
        assert len(shown) <= MOST_CHARACTERS
        answer = json.loads(shown)
        rows += answer["data"]
        offset = answer.get("next_offset")
        if offset is None:
            break
    assert offset is None
    whole = {"facts": 2, "history": 51}.get(name, 50)
    assert len(rows) == whole


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Reading]:
    """A reading of a log without any Spark: `read_log` counts how often it was read."""
    numbers = itertools.count(1)
    monkeypatch.setattr(logs, "read_log", lambda *_: next(numbers))
    with Reading(["made"], lambda: contextlib.nullcontext(object())) as one:  # type: ignore[arg-type]
        monkeypatch.setattr(one, "_listed", lambda _: frozenset())
        yield one


def test_no_tool_waits_for_what_another_one_reads_and_each_thing_is_read_once(
    made: Reading,
) -> None:
    go_on = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(made.with_log, lambda _: go_on.wait(30), "slow")
        assert made.with_log(lambda _: "read", "quick") == "read"
        again = pool.submit(made.with_log, lambda _: "read twice", "slow")
        go_on.set()
        assert (slow.result(), again.result()) == (True, True)


def test_what_could_not_be_read_is_read_again(made: Reading) -> None:
    def wrong(_: Any) -> str:
        raise ValueError("no such query")

    with pytest.raises(ValueError, match="no such query"):
        made.with_log(wrong, "a")
    assert made.with_log(lambda _: "read", "a") == "read"


def test_what_was_read_stands_while_no_file_changes(
    made: Reading, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FRESH_S", -1.0)
    listings = [frozenset("a"), frozenset("a"), frozenset("b"), None, None]
    monkeypatch.setattr(made, "_listed", lambda _: listings.pop(0))
    read = [made.with_log(lambda log: log, "a") for _ in range(len(listings))]
    assert read == [1, 1, 2, 3, 4]


def test_a_row_that_is_too_long_is_cut_and_says_so() -> None:
    shown = tools(Written("x" * 100_000))["queries"]()
    assert len(shown) <= MOST_CHARACTERS
    assert "more characters)" in shown
    many = {f"name {n}": "y" * 900 for n in range(2000)}
    assert len(Answers().rows("many", [many])) <= MOST_CHARACTERS


def test_long_arrays_of_facts_are_asked_for_by_their_path() -> None:
    facts = tools(Written("sales"))["facts"]
    shown = json.loads(facts(query=7, decision_id=0))
    assert 'path=\\"side.bytes_by_partition_id\\"' in json.dumps(shown["data"])
    values = json.loads(facts(query=7, decision_id=0, path="side.bytes_by_partition_id"))
    assert values["data"] == shown_values.SIZES
    tail = json.loads(facts(query=7, decision_id=0, path="side.bytes_by_partition_id", offset=58))
    assert tail["data"] == shown_values.SIZES[58:]
    with pytest.raises(RefusedError, match=r"there is no fact 'side\.none'"):
        facts(query=7, decision_id=0, path="side.none")
    with pytest.raises(RefusedError, match="query 7 has no decision 9; it has 0 to 0"):
        facts(query=7, decision_id=9)


@pytest.mark.parametrize(
    "secret",
    [
        "jdbc:postgresql://h/d?user=u&password=hunter2",
        "SET spark.hadoop.fs.s3a.secret.key = hunter2",
        '{"access_key": "hunter2"}',
        "api-key=hunter2",
        "dbPassword: 'hunter2'",
    ],
)
def test_what_looks_like_a_secret_is_hidden(secret: str) -> None:
    for name, arguments in CALLS.items():
        shown = tools(Written(secret))[name](**arguments)
        assert "hunter2" not in shown, name
        assert HIDDEN in shown, name


def test_secrets_are_looked_for_in_a_time_that_grows_with_the_text_alone() -> None:
    for text in ("a." * 200_000, "token" * 100_000, "secret= " * 50_000, "x" * 500_000):
        began = time.monotonic()
        Answers().redacted(text)
        assert time.monotonic() - began < 20


def test_what_is_redacted_stays_so_and_a_pattern_hides_more() -> None:
    answers = Answers("ledger_[a-z]+")
    assert "ledger" not in answers.rows("a", [{"ledger_xyz": "of ledger_abc"}])
    assert json.loads(answers.rows("a", ["of ledger_abc", HIDDEN]))["data"] == [
        f"of {HIDDEN}",
        HIDDEN,
    ]
    with pytest.raises(AqePilotError, match="no regular expression"):
        Answers("(")


def test_an_error_is_words_without_secrets(tmp_path: Path) -> None:
    class Failing(Written):
        def findings(self) -> list[Any]:
            raise RuntimeError("password=hunter2 \x1b[2J\nat Java")

    with pytest.raises(RefusedError) as refused:
        tools(Failing("a"))["findings"]()
    assert str(refused.value) == f"RuntimeError: password={HIDDEN} \\x1b[2J"
    with pytest.raises(RefusedError, match="aqepilot mcp --control PATH"):
        tools(Written("a"))["control_state"]()
    with pytest.raises(RefusedError, match="aqepilot mcp --history FILE"):
        tools(Reading([], contextlib.nullcontext))["history"]()  # type: ignore[arg-type]
    without = Reading([], contextlib.nullcontext)  # type: ignore[arg-type]
    with without, pytest.raises(RefusedError, match="started without logs"):
        tools(without)["findings"]()


def test_tools_that_write_are_there_where_a_person_named_a_place(tmp_path: Path) -> None:
    assert {"propose", "lower"}.isdisjoint(tools(Written("a")))
    assert "propose" in tools(Written("a"), tmp_path)
    assert "lower" in tools(Written("a"), None, tmp_path / "control.json")


# -- the control file ----------------------------------------------------------------------------


def in_force(path: Path, at: datetime) -> int:
    """The most that policies may do at a time."""
    if not path.exists():
        return RANK["enforce"]
    rules = control.read(str(path)).rules
    held = [RANK[rule.mode] for rule in rules if rule.until is None or rule.until > at]
    return min(held, default=RANK["enforce"])


@pytest.mark.parametrize("mode", ["off", "shadow", "on", "enforce", "", "OFF"])
@pytest.mark.parametrize("hours", [None, 2.0])
@pytest.mark.parametrize("there", [None, *product(["off", "shadow"], [None, -1.0, -0.1, 1.0, 3.0])])
@pytest.mark.parametrize("selectors", [{}, {"policy": "sales", "point": "skew_join"}])
def test_no_mode_is_raised_at_any_time(
    tmp_path: Path,
    mode: str,
    hours: float | None,
    there: tuple[str, float | None] | None,
    selectors: dict[str, str],
) -> None:
    """Whatever rule is there, what is in force after a call is at most what was in force before."""
    path = tmp_path / "control.json"
    now = datetime.now(timezone.utc)
    if there:
        end = None if there[1] is None else now + timedelta(hours=there[1])
        control.lower(str(path), there[0], selectors, reason="a person", until=end)  # type: ignore[arg-type]
    # Drivers end a rule ten minutes late.
    moments = [now + timedelta(hours=h) for h in (0.01, 0.5, 1.5, 2.5, 4, 9999)]
    late = [moment - timedelta(minutes=10) for moment in moments]
    before = [[in_force(path, at) for at in each] for each in (moments, late)]
    with contextlib.suppress(RefusedError):
        tools(Written("a"), None, path)["lower"](
            mode=mode, reason="spills", hours=hours, **selectors
        )
    after = [[in_force(path, at) for at in each] for each in (moments, late)]
    pairs = [*zip(before[0], after[0], strict=True), *zip(before[1], after[1], strict=True)]
    assert [pair for pair in pairs if pair[1] > pair[0]] == []
    if there is None:
        assert path.exists() == (mode in ("off", "shadow"))


def test_a_rule_says_who_and_why_and_the_state_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "control.json"
    both = tools(Written("a"), None, path)
    both["lower"](mode="off", reason="tasks spill", policy="sales", point="skew_join")
    (rule,) = control.read(str(path)).rules
    assert (rule.mode, rule.selectors) == ("off", {"policy": "sales", "point": "skew_join"})
    assert rule.by.startswith("assistant of ")
    assert "tasks spill" in both["control_state"]()
    with pytest.raises(RefusedError, match="Did you mean skew_join"):
        both["lower"](mode="off", reason="a", point="skew_jion")
    with pytest.raises(RefusedError, match="say why"):
        both["lower"](mode="off", reason=" ")
    with pytest.raises(RefusedError, match="only a person lifts a rule"):
        both["lower"](mode="shadow", reason="a", policy="sales", point="skew_join")


def test_no_tool_has_a_mode_above_shadow(tmp_path: Path) -> None:
    listed = asyncio.run(_listed(server.made(_all_tools(tmp_path))))
    assert "enforce" not in json.dumps([tool.input_schema for tool in listed])
    words = {word for tool in listed for word in re.split("_", tool.name)}
    assert words.isdisjoint({"lift", "raise", "enforce", "on", "run", "bench", "delete", "write"})


def test_rules_of_assistants_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acting, "_MOST_RULES", 2)
    lower = tools(Written("a"), None, tmp_path / "c.json")["lower"]
    for job in ("a", "b"):
        lower(mode="off", reason="r", job=job)
    with pytest.raises(RefusedError, match="a person has to look"):
        lower(mode="off", reason="r", job="c")


# -- proposals -----------------------------------------------------------------------------------


def proposed(tmp_path: Path, text: str) -> list[str]:
    folder = tmp_path / "proposed"
    folder.mkdir(exist_ok=True)
    tools(Written("a"), folder)["propose"](policy=text)
    return sorted(file.name for file in folder.iterdir())


def test_a_proposal_is_a_new_file_in_shadow(tmp_path: Path) -> None:
    assert proposed(tmp_path, GOOD) == ["sales.toml"]
    assert Policy.from_file(tmp_path / "proposed" / "sales.toml").mode == "shadow"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (GOOD.replace('mode = "shadow"\n', ""), "enforce, as it names none"),
        (GOOD.replace("shadow", "enforce"), "only a person raises it"),
        (GOOD.replace("shadow", "off"), "is in off"),
        (GOOD.replace("sales", "../sales"), "name"),
        (GOOD.replace("sales", "/etc/sales"), "name"),
        (GOOD.replace('"null"', '"python:os:system"'), "an assistant does not run"),
        (GOOD.replace("skew_join", "skew_jion"), "skew_join"),
        ("name = [", "TOML"),
        (GOOD + "# " + "x" * 70_000, "70,"),
        ("[experiment]\nname = 'a'\n", "experiment"),
    ],
)
def test_what_is_not_in_shadow_or_no_policy_is_not_written(
    tmp_path: Path, text: str, why: str
) -> None:
    with pytest.raises(RefusedError, match=re.compile(re.escape(why), re.IGNORECASE)):
        proposed(tmp_path, text)
    assert list((tmp_path / "proposed").iterdir()) == []
    assert [file.name for file in tmp_path.iterdir()] == ["proposed"]


def test_no_file_and_no_name_that_is_there_is_taken(tmp_path: Path) -> None:
    folder = tmp_path / "proposed"
    folder.mkdir()
    (folder / "other.toml").write_text(GOOD.replace("shadow", "enforce"))
    (folder / "linked.toml").symlink_to(tmp_path / "elsewhere.toml")
    for name in ("sales", "linked"):
        with pytest.raises(RefusedError, match="is there already"):
            proposed(tmp_path, GOOD.replace("sales", name))
    assert not (tmp_path / "elsewhere.toml").exists()
    assert Policy.from_file(folder / "other.toml").mode == "enforce"


# -- documentation -------------------------------------------------------------------------------


def test_every_topic_has_something_and_the_topics_are_listed() -> None:
    documentation = tools(Written("a"))["documentation"]
    for topic in ("", *documents.topics()):
        assert json.loads(documentation(topic=topic))["data"]
    named = {row["name"] for row in json.loads(documentation())["data"]}
    assert set(catalog.point_names()) <= named
    with pytest.raises(RefusedError, match="Did you mean skew_join"):
        documentation(topic="skewjoin")


def test_the_skill_names_tools_that_are_there_and_all_of_them(tmp_path: Path) -> None:
    text = documents.skill().read_text("utf-8")
    assert text.startswith("---\nname: aqepilot\ndescription: ")
    names = set(tools(Written("a"), tmp_path, tmp_path / "c.json"))
    assert {name for name in names if f"`{name}`" not in text} == set()
    beside = {"data", "next_offset", "join_selection"}
    assert set(re.findall(r"`([a-z_]+)`", text)) - names <= beside
    result = CliRunner().invoke(cli, ["mcp", "--skill"])
    assert Path(result.output.strip()).read_text("utf-8") == text


# -- the protocol, by the library's own client ---------------------------------------------------


def _all_tools(tmp_path: Path, text: str = "sales") -> Tools:
    folder = tmp_path / "proposed"
    folder.mkdir(exist_ok=True)
    return Tools(Written(text), Answers(), folder, str(tmp_path / "control.json"))


async def _listed(target: Any) -> list[Any]:
    async with Client(target) as client:
        return list((await client.list_tools()).tools)


async def _contract(target: Any, tmp_path: Path, has_logs: bool = True) -> None:
    """What a client may rely on, over any transport."""
    async with Client(target, read_timeout_seconds=120) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        reads = {name for name, tool in listed.items() if tool.annotations.read_only_hint}
        assert listed.keys() - reads == {"propose", "lower"}
        assert not any(tool.annotations.destructive_hint for tool in listed.values())
        assert all(tool.description for tool in listed.values())
        assert CALLS.keys() <= reads

        async def called(name: str, **arguments: Any) -> tuple[bool, str]:
            result = await client.call_tool(name, arguments)
            (content,) = result.content
            return result.is_error, content.text

        for name, arguments in CALLS.items() if has_logs else ():
            is_error, text = await called(name, **arguments)
            assert not is_error, text
            assert json.loads(text)["note"] == NOTE
        is_error, text = await called("documentation", topic="skill")
        assert (is_error, "propose" in text) == (False, True)
        is_error, text = await called("documentation", topic="skewjoin")
        assert is_error
        assert "Did you mean skew_join" in text
        for wrong in ({"mode": "enforce", "reason": "a"}, {"mode": "off"}, {"mode": "on"}):
            is_error, _ = await called("lower", **wrong)
            assert is_error
        assert not (tmp_path / "control.json").exists()
        is_error, text = await called("lower", mode="off", reason="spills", policy="sales")
        assert not is_error, text
        is_error, text = await called("control_state")
        assert "spills" in text
        is_error, text = await called("facts", query=1)
        assert is_error
        assert "decision_id" in text
        is_error, text = await called("no_such_tool")
        assert is_error


def test_a_client_in_this_process(tmp_path: Path) -> None:
    asyncio.run(_contract(server.made(_all_tools(tmp_path)), tmp_path))


def test_a_client_over_standard_input_and_output(tmp_path: Path) -> None:
    """The command itself; without logs it starts no Spark."""
    (tmp_path / "proposed").mkdir()
    words = ["-m", "aqepilot", "mcp", "--control", str(tmp_path / "control.json")]
    words += ["--propose", str(tmp_path / "proposed")]
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))
    asyncio.run(_contract(command, tmp_path, has_logs=False))


def test_a_person_who_starts_it_in_a_terminal_reads_what_it_waits_for() -> None:
    master, terminal = os.openpty()
    command = [sys.executable, "-m", "aqepilot", "mcp"]
    with subprocess.Popen(command, stdin=terminal, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr
        line = started.stderr.readline()
        started.kill()
    os.close(master)
    os.close(terminal)
    assert "name it in the assistant's settings" in line


@contextlib.contextmanager
def served(made: Tools, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server by HTTP, in a thread of this process."""
    printed: list[str] = []
    ready = threading.Event()

    def kept(*values: object, **_: object) -> None:
        printed.extend(map(str, values))
        ready.set()

    monkeypatch.setattr(server, "print", kept, raising=False)
    thread = threading.Thread(target=server.serve_http, args=(server.made(made), 0), daemon=True)
    thread.start()
    assert ready.wait(60)
    yield printed[0]


def test_a_client_over_http(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(_all_tools(tmp_path, injections.STRINGS[-1]), monkeypatch) as address:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/mcp", address)
        asyncio.run(_contract(address, tmp_path))


def test_http_answers_who_knows_the_address_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other user of the machine who guesses, and no page in a browser of another origin."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def status(address: str, **headers: str) -> int:
        try:
            with urlopen(Request(address, call, {**sent, **headers}), timeout=30) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    with served(_all_tools(tmp_path), monkeypatch) as address:
        base = address.split("/", 3)
        assert status(f"{base[0]}//{base[2]}/mcp") == 404
        assert status(f"{base[0]}//{base[2]}/{'x' * 32}/mcp") == 404
        assert status(address, Host="rebound.invalid") == 421
        assert status(address, Origin="http://page.invalid") == 403


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    script = "import sys; sys.modules['mcp'] = None; from aqepilot.cli import main; main(['mcp'])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "pip install 'aqepilot[mcp]'" in done.stderr
    assert done.stdout == ""
