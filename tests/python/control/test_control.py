"""The control file as people write it: no write is lost, and each keeps who, when and why."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from click.testing import CliRunner

from aqepilot import control
from aqepilot.cli import main
from aqepilot.control.store import LocalFile
from aqepilot.errors import AqePilotError


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "control.json")


def run(*words: str, ok: bool = True) -> str:
    done = CliRunner().invoke(main, ["control", *words])
    assert (done.exit_code == 0) is ok, done.output
    return done.output


def modes(path: str) -> list[tuple[str, dict[str, str]]]:
    return [(rule.mode, rule.selectors) for rule in control.read(path).rules]


def test_rules_are_added_replaced_and_taken_back(path):
    run("off", "--file", path, "--policy", "sales", "--point", "skew_join", "--reason", "slow")
    run("shadow", "--file", path, "--job", "daily", "--reason", "a trial", "--for", "2h")
    run("off", "--file", path, "--reason", "all of them")
    one = {"policy": "sales", "point": "skew_join"}
    assert modes(path) == [("off", one), ("shadow", {"job": "daily"}), ("off", {})]
    run("shadow", "--file", path, "--policy", "sales", "--point", "skew_join", "--reason", "better")
    assert modes(path) == [("shadow", {"job": "daily"}), ("off", {}), ("shadow", one)]
    assert "Taken back: everything" in run("on", "--file", path, "--reason", "mended")
    rule = control.read(path).rules[0].id
    run("on", "--file", path, "--rule", rule)
    assert modes(path) == [("shadow", one)]
    run("on", "--file", path, "--all")
    assert modes(path) == []
    assert "has no rule" in run("on", "--file", path)


def test_each_write_keeps_who_when_and_why(path):
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    run(
        "off", "--file", path, "--policy", "sales", "--reason", "slow", "--by", "ann", "--for", "1d"
    )
    run("on", "--file", path, "--policy", "sales", "--reason", "mended")
    off, on = control.read(path).history
    assert (off.by, off.action, off.reason, off.version) == ("ann", "off", "slow", 1)
    assert (on.action, on.reason, on.version) == ("on", "mended", 2)
    assert "@" in on.by
    assert before <= off.at <= on.at <= datetime.now(timezone.utc)
    day = timedelta(days=1)
    assert before + day <= off.until <= off.at + day
    shown = run("log", "--file", path)
    assert shown.index("mended") < shown.index("slow")
    assert "ann" in shown


def test_the_rules_are_shown_and_printed_for_programs(path):
    run("off", "--file", path, "--fingerprint", "abc", "--reason", "slow", "--by", "ann")
    shown = run("status", "--file", path)
    assert "Version 1: 1 rule " in shown
    assert "fingerprint=abc" in shown
    (rule,) = json.loads(run("status", "--file", path, "--json"))
    assert (rule["mode"], rule["fingerprint"], rule["by"]) == ("off", "abc", "ann")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["off"], "--reason is missing"),
        (["off", "--reason", " "], "--reason is missing"),
        (["off", "--reason", "r", "--point", "skew_joins"], "Did you mean skew_join"),
        (["off", "--reason", "r", "--policy", ""], "policy is empty"),
        (["off", "--reason", "r", "--for", "2 weeks"], "90m, 2h, 7d"),
        (["off", "--reason", "r", "--for", "0h"], "90m, 2h, 7d"),
        (["off", "--reason", "r", "--until", "2026-12-24T18:00:00"], "with its zone"),
        (["off", "--reason", "r", "--until", "2020-01-01T00:00:00Z"], "a time to come"),
        (["off", "--reason", "r", "--rule", "x"], "belong to `aqepilot control on`"),
        (["on", "--all", "--policy", "sales"], "give one of"),
        (["on", "--policy", "other"], "There are: "),
        (["on", "--rule", "other"], "There are: "),
        (["status", "--policy", "sales"], "takes no selectors"),
        (["off", "--reason", "r", "--conf", "x"], "is not KEY=VALUE"),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(path, words, says):
    run("off", "--file", path, "--policy", "sales", "--reason", "slow")
    before = Path(path).read_text("utf-8")
    assert says in run(*words, "--file", path, ok=False)
    assert Path(path).read_text("utf-8") == before


@pytest.mark.parametrize("action", ["status", "log", "off", "on"])
@pytest.mark.parametrize(
    "text", ["", "{", '{"format": 2}', '{"rules": [{"mode": "off"}]}', "\udcff"]
)
def test_what_is_no_control_file_is_left_as_it_is(path, action, text):
    data = text.encode("utf-8", "surrogateescape")
    Path(path).write_bytes(data)
    reason = ["--reason", "r"] if action == "off" else []
    assert "control file" in run(action, "--file", path, *reason, ok=False)
    assert Path(path).read_bytes() == data


def test_a_file_that_is_not_there_is_told_and_made_by_on(path):
    assert "control on" in run("status", "--file", path, ok=False)
    run("on", "--file", path)
    assert "Version 1: 0 rules" in run("status", "--file", path)


def test_what_a_newer_version_wrote_is_kept(path):
    run("off", "--file", path, "--policy", "sales", "--reason", "slow")
    file = json.loads(Path(path).read_text("utf-8"))
    file["rules"][0]["user"] = "ann"
    file["more"] = 1
    Path(path).write_text(json.dumps(file), "utf-8")
    run("off", "--file", path, "--policy", "other", "--reason", "slow")
    after = json.loads(Path(path).read_text("utf-8"))
    assert (after["rules"][0]["user"], after["more"]) == ("ann", 1)


def test_the_file_stays_as_small_as_drivers_read_it(path):
    reason = "x" * 500
    for n in range(3):
        control.lower(path, "off", {"policy": f"p{n}"}, reason=reason)
    text = Path(path).read_text("utf-8")
    file = json.loads(text)
    file["history"] = file["history"] * 400
    Path(path).write_text(json.dumps(file), "utf-8")
    control.lower(path, "off", {"policy": "p9"}, reason=reason)
    assert len(control.read(path).history) == 1000
    assert Path(path).stat().st_size < 1 << 20
    with pytest.raises(AqePilotError, match="500"):
        control.lower(path, "off", {"policy": "p10"}, reason=reason + "x")


def _writes(path: str, who: str) -> None:
    for n in range(25):
        control.lower(path, "off", {"policy": f"{who}{n}"}, reason="at once", by=who)


def test_of_writers_at_once_no_write_is_lost(path):
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_writes, args=(path, who)) for who in ("a", "b", "c")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    file = control.read(path)
    assert file.version == 75
    assert {rule.policy for rule in file.rules} == {f"{w}{n}" for w in "abc" for n in range(25)}
    assert [write.version for write in file.history] == list(range(1, 76))


def test_a_write_that_another_replaced_is_made_again(path, monkeypatch):
    """As on a file system without locks: a slow writer puts back what it had read before."""
    control.lower(path, "off", {"policy": "first"}, reason="r")
    before = Path(path).read_text("utf-8")
    replace, slow = LocalFile.replace, [True]

    def replaced(self, change):
        replace(self, change)
        if slow:
            slow.clear()
            Path(path).write_text(before, "utf-8")

    monkeypatch.setattr(LocalFile, "replace", replaced)
    control.lower(path, "off", {"policy": "second"}, reason="r")
    assert [rule.policy for rule in control.read(path).rules] == ["first", "second"]


@pytest.mark.parametrize(
    "seen",
    [None, '{"format": 1, "vers', "", AqePilotError([])],
    ids=["none", "half", "empty", "half a character"],
)
def test_a_write_that_cannot_be_seen_for_a_while_is_made_once(path, monkeypatch, seen):
    """As when another writer has the file by then and a file system shows half of it, or none."""
    control.lower(path, "off", {"policy": "first"}, reason="r")
    read, reads = LocalFile.read, []

    def briefly(self):
        reads.append(read(self))
        if len(reads) != 2:
            return reads[-1]
        if isinstance(seen, AqePilotError):
            raise seen
        return seen

    monkeypatch.setattr(LocalFile, "read", briefly)
    assert [rule.policy for rule in control.lift(path, {"policy": "first"})] == ["first"]
    file = control.read(path)
    assert not file.rules
    assert [write.action for write in file.history] == ["off", "on"]


def test_a_folder_that_may_not_be_written_is_told(tmp_path):
    with pytest.raises(AqePilotError, match="cannot be written"):
        control.lower(str(tmp_path / "none" / "control.json"), "off", reason="r")


def test_a_long_history_makes_room_before_drivers_stop_reading(path):
    """Of more than 1 MiB drivers read nothing: what switches off would be off itself."""
    control.lower(path, "off", {"policy": "first"}, reason="r")
    file = json.loads(Path(path).read_text("utf-8"))
    write = file["history"][0]
    file["history"] = [
        write | {"id": f"{n:012}", "reason": "ü" * 500, "selectors": {"job": "j" * 500}}
        for n in range(700)
    ]
    Path(path).write_text(json.dumps(file), "utf-8")
    assert Path(path).stat().st_size > 1 << 20
    control.lower(path, "off", {"policy": "second"}, reason="ü" * 500)
    assert Path(path).stat().st_size <= 1 << 20
    after = control.read(path)
    assert [rule.policy for rule in after.rules] == ["first", "second"]
    assert after.history[-1].selectors == {"policy": "second"}
    assert len(after.history) > 500
    assert after.history[-2].id == f"{699:012}"


def test_a_rule_that_does_not_fit_is_refused_and_those_before_stay(path):
    control.lower(path, "off", {"policy": "first"}, reason="r")
    before = Path(path).read_text("utf-8")
    with pytest.raises(AqePilotError, match="control on --rule ID") as refused:
        control.lower(path, "off", {"job": "j" * (1 << 20)}, reason="r")
    assert refused.value.problems[0].code == "CONTROL_TOO_LARGE"
    assert Path(path).read_text("utf-8") == before


def test_a_rule_with_a_selector_of_a_newer_version_is_kept_apart(path):
    """Here it looks like one for everything, and is for one user only."""
    control.lower(path, "off", {}, reason="r")
    file = json.loads(Path(path).read_text("utf-8"))
    file["rules"][0]["user"] = "ann"
    Path(path).write_text(json.dumps(file), "utf-8")
    newer = file["rules"][0]["id"]
    control.lower(path, "shadow", {}, reason="r")
    assert [rule.mode for rule in control.read(path).rules] == ["off", "shadow"]
    assert '"user": "ann"' in run("status", "--file", path, "--json")
    run("on", "--file", path)
    assert [rule.id for rule in control.read(path).rules] == [newer]
    assert "off for user=ann" in run("on", "--file", path, ok=False)
    run("on", "--file", path, "--rule", newer)
    assert modes(path) == []


@pytest.fixture
def private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("private_umask")
def test_drivers_and_writers_of_other_users_can_open_what_is_made(path):
    control.lower(path, "off", reason="r")
    assert Path(path).stat().st_mode & 0o777 == 0o644
    assert Path(path + ".lock").stat().st_mode & 0o666 == 0o666
    Path(path).chmod(0o664)
    control.lower(path, "shadow", reason="r")
    assert Path(path).stat().st_mode & 0o777 == 0o664


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file to another")
def test_a_file_keeps_its_owner(path):
    control.lower(path, "off", reason="r")
    os.chown(path, 12345, 23456)
    control.lower(path, "shadow", reason="r")
    assert (Path(path).stat().st_uid, Path(path).stat().st_gid) == (12345, 23456)


def test_a_lock_that_may_only_be_read_is_taken(path, monkeypatch):
    """Another user made it, under a mask of that user's."""
    control.lower(path, "off", reason="r")
    opened = os.open

    def refused(name, flags, *more):
        if str(name).endswith(".lock") and flags & (os.O_RDWR | os.O_CREAT):
            raise PermissionError(name)
        return opened(name, flags, *more)

    monkeypatch.setattr(os, "open", refused)
    control.lower(path, "shadow", reason="r")
    assert modes(path) == [("shadow", {})]


def test_a_link_to_the_file_stays_one(path, tmp_path):
    control.lower(path, "off", {"policy": "a"}, reason="r")
    link = tmp_path / "elsewhere" / "link.json"
    link.parent.mkdir()
    link.symlink_to(path)
    control.lower(str(link), "off", {"policy": "b"}, reason="r")
    assert link.is_symlink()
    assert [rule.policy for rule in control.read(path).rules] == ["a", "b"]
    assert [p.name for p in link.parent.iterdir()] == ["link.json"]


def test_a_writer_that_holds_the_lock_for_ever_is_told(path, monkeypatch):
    monkeypatch.setattr("aqepilot.control.store.LOCK_TRIES_S", 0.05)
    control.lower(path, "off", reason="r")
    with Path(path + ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(AqePilotError, match="held by another writer"):
            control.lower(path, "off", reason="r")
