"""Nothing of the autopilot is lost or done twice by a kill."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

import tiers
from aqepilot import control
from aqepilot.autopilot.journal import LIVE
from aqepilot.autopilot.live import live
from bench import autopilot as fleet
from fleets import pilot

pytestmark = tiers.on("4.3")

DAYS = 60


class KilledError(BaseException):
    """The process ends here."""


def test_a_kill_anywhere_loses_nothing_and_does_nothing_twice(tmp_path, monkeypatch):
    """Each kill is before or after a file is replaced, and all that is written is replaced."""
    quiet = _flown(tmp_path / "quiet", lambda look: look())
    draws = random.Random(1)
    kills = []
    replace = Path.replace
    fuse = [0, False]

    def replaced(self, target):
        fuse[0] -= 1
        if fuse[0] == 0 and not fuse[1]:
            raise KilledError
        done = replace(self, target)
        if fuse[0] == 0:
            raise KilledError
        return done

    monkeypatch.setattr(Path, "replace", replaced)
    monkeypatch.setattr("os.fsync", lambda _: None)
    folder = tmp_path / "killed"

    def until_it_is_done(look):
        while True:
            fuse[:] = [draws.randint(1, 3), draws.random() < 0.5]
            try:
                return look()
            except KilledError:
                kills.append(fuse[:])
                _is_recorded(folder)

    killed = _flown(folder, until_it_is_done)
    assert len(kills) >= 100
    assert [_step(e) for e in killed.events()] == [_step(e) for e in quiet.events()]
    decided = killed.read().decided
    assert len(decided) == len(set(decided))


def _step(event):
    return event.look, event.step, event.reason, event.trial, event.share


def _is_recorded(folder):
    """All that is in force at this moment has its record."""
    state = pilot(folder).journal.read()
    text = (folder / "state" / LIVE).read_text() if (folder / "state" / LIVE).exists() else "{}"
    recorded = {f"autopilot_{trial}" for trial in state.trials}
    for conf in json.loads(text).get("jobs", {}).values():
        policies = {key.split(".")[3] for key in conf if ".policy." in key}
        assert policies <= recorded
    for rule in control.read(str(folder / "control.json")).rules:
        assert state.trials[rule.policy.removeprefix("autopilot_")].is_over


def _flown(folder, attempt):
    """A small fleet for some days; each look is taken by a new autopilot."""
    (folder / "state").mkdir(parents=True)
    control.lift(str(folder / "control.json"))
    jobs = fleet.Fleet(np.random.default_rng(5), 12, 1)
    world = fleet.World(jobs, DAYS, pilot(folder))
    for at in world.looks(DAYS, 1):
        attempt(lambda at=at: fleet.look(pilot(folder, experiments=20), world, at))
        world.read_settings()
    journal = pilot(folder).journal
    state = journal.read()
    assert json.loads(journal.text(LIVE)) == live(state).model_dump()
    return journal
