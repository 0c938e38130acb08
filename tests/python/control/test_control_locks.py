"""Writers of one control file where creating a file is not atomic, as in stores of objects."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from aqepilot import control
from aqepilot.control.lock import LockedFile
from aqepilot.control.store import Store
from aqepilot.errors import AqePilotError

LATEST_S = 0.02


class Objects(LockedFile):
    """What all clients see at once, where a writer may be late: two may create one object."""

    settles_after_s = 0.0
    # Much more than any writer is late, as threads are, too, on a busy machine.
    created_after_s = 20 * LATEST_S

    def __init__(self) -> None:
        self.kept: dict[str, tuple[str, float]] = {}
        self.late: Callable[[str], None] = lambda suffix: time.sleep(random.uniform(0, LATEST_S))

    def _text(self, suffix: str) -> str | None:
        return self.kept.get(suffix, (None, 0.0))[0]

    def _create(self, suffix: str, text: str) -> bool:
        if suffix in self.kept:
            return False
        self.late(suffix)
        self.kept[suffix] = (text, time.monotonic())
        return True

    def _delete(self, suffix: str) -> None:
        self.kept.pop(suffix, None)

    def _modified_s(self, suffix: str) -> float | None:
        return self.kept[suffix][1] if suffix in self.kept else None

    def _put(self, text: str, check: Callable[[], None]) -> None:
        check()
        self.late("")
        self.kept[""] = (text, time.monotonic())


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[Objects]:
    made = Objects()

    def open_store(path: str, conf: object) -> Store:
        return made

    monkeypatch.setattr(control, "open_store", open_store)
    yield made
    assert set(made.kept) == {""}, "something is left beside the file"


def policies(objects: Objects) -> list[str | None]:
    return [rule.policy for rule in control.read("any").rules]


def test_no_write_is_lost_though_two_can_create_the_lock(objects):
    def writes(who: str) -> None:
        for n in range(3):
            control.lower("any", "off", {"policy": f"{who}{n}"}, reason="at once", by=who)

    writers = [threading.Thread(target=writes, args=(who,)) for who in "abc"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(policies(objects)) == sorted(f"{who}{n}" for who in "abc" for n in range(3))
    assert control.read("any").version == 9


def test_a_file_that_another_has_replaced_since_it_was_read_is_read_again(objects):
    """Whoever was halted for longer than a lock counts has lost the lock, too, unseen."""
    control.lower("any", "off", {"policy": "first"}, reason="r")
    text, halts = objects._text, [True]
    old = text("")

    def read(suffix: str) -> str | None:
        content = text(suffix)
        if suffix == "" and halts:
            halts.clear()
            objects.kept[""] = (old.replace("first", "other"), 0.0)
        return content

    objects._text = read
    control.lower("any", "off", {"policy": "second"}, reason="r")
    assert policies(objects) == ["other", "second"]


def test_a_lock_that_was_left_behind_is_taken_over_and_one_that_is_held_is_not(
    objects, monkeypatch
):
    monkeypatch.setattr("aqepilot.control.store.LOCK_TRIES_S", 0.1)
    objects.kept[".lock"] = ("of another", time.monotonic())
    with pytest.raises(AqePilotError, match="held by another writer"):
        control.lower("any", "off", {"policy": "first"}, reason="r")
    objects.kept[".lock"] = ("of another", time.monotonic() - 61)
    control.lower("any", "off", {"policy": "first"}, reason="r")
    assert policies(objects) == ["first"]


def test_a_write_that_is_there_is_told_though_its_lock_stays(objects, monkeypatch):
    def delete(suffix: str) -> None:
        raise AqePilotError([])

    monkeypatch.setattr(objects, "_delete", delete)
    control.lower("any", "off", {"policy": "first"}, reason="r")
    assert policies(objects) == ["first"]
    objects.kept.pop(".lock")
