"""Who is at the control file of ``make soak ARGS="--by drivers"``: writers, and a vandal.

Each is a process of its own, ends when there is a file ``end`` in the folder of all, and writes
down what it did, and when it began and ended.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark

from aqepilot import control
from aqepilot.control.store import LocalFile
from aqepilot.errors import AqePilotError

POINTS = ("shuffle_partitions", "partition_coalescing")
JOBS = 10
# A writer takes back as often as it adds when it has so many rules.
RULES = 6
# Both write as fast as they can whenever so many seconds are full, rules for nobody.
BURSTS_EVERY_S = 10
BURST = 5
Record = Callable[[dict[str, Any]], None]


def policy_of(driver: int) -> str:
    return f"driver_{driver:02}"


def job_of(driver: int) -> str:
    return f"job_{driver % JOBS}"


def drawn(rng: random.Random, drivers: int) -> dict[str, str]:
    """Draws what a rule is for: mostly one driver or some, now and then all."""
    driver = rng.randrange(drivers)
    policy, job = {"policy": policy_of(driver)}, {"job": job_of(driver)}
    point = {"point": rng.choice(POINTS)}
    kinds = [policy, policy | point, job, job | point, point, {"spark": pyspark.__version__}, {}]
    return rng.choices(kinds, [30, 20, 25, 19, 3, 1.5, 1.5])[0]


class Writer:
    """Somebody who switches policies off and on."""

    def __init__(self, path: str, who: str, record: Record) -> None:
        self._path = path
        self._who = who
        self._record = record
        self._n = 0

    def write(self, action: str, selectors: dict[str, str]) -> None:
        """Makes one write; its reason is its name in the file's log."""
        self._n += 1
        reason, refused, began = f"{self._who} {self._n}", None, time.time()
        try:
            if action == "on":
                control.lift(self._path, selectors, reason=reason, by=self._who)
            else:
                mode = "off" if action == "off" else "shadow"
                control.lower(self._path, mode, selectors, reason=reason, by=self._who)
        except AqePilotError as error:
            refused = [problem.code for problem in error.problems]
        self._record(
            {"reason": reason, "began": began, "ended": time.time(), "refused": refused}
            | {"action": action, "selectors": selectors}
        )


def write(path: str, who: str, end: Path, record: Record, drivers: int) -> None:
    """Writes rules for drivers every two seconds or so, and the bursts."""
    rng, writer, own = random.Random(who), Writer(path, who, record), list[dict[str, str]]()
    burst = time.time() // BURSTS_EVERY_S
    while not end.exists():
        if rng.random() * 2 * RULES < len(own):
            writer.write("on", own.pop(0))
        else:
            own.append(drawn(rng, drivers))
            writer.write(rng.choice(("off", "off", "shadow")), own[-1])
        next_at = time.time() + rng.uniform(1, 3)
        while time.time() < next_at and not end.exists():
            time.sleep(0.01)
            if time.time() // BURSTS_EVERY_S > burst:
                burst = time.time() // BURSTS_EVERY_S
                for action in ("off", "on"):
                    for n in range(BURST):
                        writer.write(action, {"policy": f"nobody_{who}_{n}"})


def damage(path: str, end: Path, record: Record, refresh_s: float) -> None:
    """Writes half a file, takes it away, lets it hang; each time it puts back what was there.

    It has the writers' lock meanwhile: a writer that finds no file makes a new one, whose log
    begins anew, and one that finds half a file is refused.
    """
    rng, kinds = random.Random(0), ("half", "gone", "hanging", "half, then gone")
    turn = 0
    while not end.exists():
        time.sleep(rng.uniform(6, 9) * refresh_s)
        kind = kinds[turn % len(kinds)]
        turn += 1

        held: list[int] = []

        def changed(text: str | None, kind: str = kind, held: list[int] = held) -> str:
            assert text
            record({"kind": kind, "began": time.time()})
            if kind == "hanging":
                held.append(hung(path))
                time.sleep(3 * refresh_s)
            if kind.startswith("half"):
                Path(path).write_text(text[: len(text) // 2], "utf-8")
                time.sleep(1.5 * refresh_s)
            if "gone" in kind:
                Path(path).unlink()
                time.sleep(1.5 * refresh_s)
            time.sleep(2 * refresh_s)
            return text

        LocalFile(Path(path)).replace(changed)
        # There is a whole file again, and nobody comes to the pipe: who reads it is let go.
        for pipe in held:
            os.close(pipe)
        record({"kind": kind, "ended": time.time()})


def hung(path: str) -> int:
    """Puts a pipe in the file's place; somebody has it open to write, and writes nothing."""
    os.mkfifo(f"{path}.pipe")
    held = os.open(f"{path}.pipe", os.O_RDWR)
    os.replace(f"{path}.pipe", path)
    return held


def main(kind: str, path: str, written: str, more: str) -> None:
    with Path(written).open("w", encoding="utf-8") as out:

        def record(what: dict[str, Any]) -> None:
            out.write(json.dumps(what) + "\n")
            out.flush()

        end = Path(written).with_name("end")
        if kind == "vandal":
            damage(path, end, record, float(more))
        else:
            write(path, kind, end, record, int(more))


if __name__ == "__main__":
    main(*sys.argv[1:])
