"""Runs every part of `make test`: side by side where one does not need the other.

What a part prints goes to target/logs/<part>.log; the end of it is shown where the part failed. At
the end stand how long each part took, the slowest files and tests, and the failed ones with what
they say, from the JUnit files in target/junit/. Fails if any part failed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import junit

LOGS = Path("target/logs")
JUNIT = Path("target/junit")
# By the part's name or its beginning: what has to have passed before. The first that fits counts.
NEEDS = {
    "env": (),
    "jars": ("env",),
    "lint": ("env",),
    "quick-starts": ("env",),
    "wheel": ("jars",),
    "dist": ("wheel",),
    "install": ("wheel",),
    "test-classes": ("jars",),
    "test-jvm": ("test-classes",),
    "test-python": ("install", "quick-starts"),
    "": ("install",),
}
# Where nothing was found to run, something is wrong.
HAS_TESTS = ("test-jvm", "test-python")
# Two sbt at once in one folder wait for each other or fail.
SBT = ("jars", "lint-scala", "test-classes")
# Half of their time they wait for what hangs, as their tests are about that. So one of them runs
# beside as many others as there are cores, and comes first when it needs one: it has deadlines.
WAITS = ("test-jvm",)
LESS = ("nice", "-n", "5")
# Of many targets that need nothing of each other.
SIDE_BY_SIDE = ("env", "install")
# What a part takes at most: the heaps of a session and of a job under spark-submit, or sbt's and
# its test process', and what is beside the heaps.
GB_OF_A_PART = 6
# What takes longer hangs, however busy the machine: the parts after it run, and all is told.
MOST_S = float(os.environ.get("MOST_S_OF_A_PART", "3900"))
ENDS_WITHIN_S = 30
SAYS_SO_EACH_S = 60
LAST_LINES = 200  # of a part that failed
LINES_OF_A_TEST = 12
LONGEST_LINE = 160
SLOWEST = 20
PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"


class Outcome(NamedTuple):
    """How a part ended: its tests, and how long it took."""

    part: str
    outcome: str
    seconds: float
    tests: list[junit.Test]

    def count(self, outcome: str) -> int:
        return sum(test.outcome == outcome for test in self.tests)

    @property
    def failures(self) -> int:
        """At least one where the part failed: not every fault is a test's."""
        return max(self.count("failed"), int(self.outcome != PASSED))

    @property
    def passes(self) -> int:
        """A part without tests, such as lint, counts as one."""
        return self.count("passed") if self.tests else int(self.outcome == PASSED)


class Running:
    """A part that runs, and the file that takes what it prints."""

    def __init__(self, part: str) -> None:
        self.part = part
        self.log = LOGS / f"{part}.log"
        self.started = time.monotonic()
        words = [f"-j{at_once()}"] if part in SIDE_BY_SIDE else []
        less = () if part.startswith(WAITS) else LESS
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [*less, "make", "--no-print-directory", *words, part],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def text(self) -> str:
        return self.log.read_text("utf-8", errors="replace")

    def last_line(self) -> str:
        lines = self.text()[-2000:].split("\n")
        return next((line.strip()[-100:] for line in reversed(lines) if line.strip()), "")

    def end(self) -> None:
        """Ends it with all that it has started; pytest writes down first what has run."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDS_WITHIN_S)
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def ended(self) -> Outcome | None:
        """How it ended; None while it runs."""
        if self.seconds > MOST_S and self.process.poll() is None:
            self.end()
            with self.log.open("a") as log:
                log.write(f"\nended by make test: it took more than {MOST_S:.0f} s\n")
        if self.process.poll() is None:
            return None
        tests = junit.read(JUNIT, self.part)
        lacks = self.part.startswith(HAS_TESTS) and not tests
        outcome = FAILED if self.process.returncode or lacks else PASSED
        return Outcome(self.part, outcome, self.seconds, tests)


def last_lines(part: str, most: int) -> list[str]:
    """Returns the end of what a part printed."""
    text = (LOGS / f"{part}.log").read_text("utf-8", errors="replace")
    return text.rstrip().splitlines()[-most:]


def at_once(beside: int = 0) -> int:
    """How many parts the machine can run side by side, with some that mostly wait beside them."""
    gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return max(1, min((os.cpu_count() or 1) + beside, int(gb / GB_OF_A_PART)))


def needs(part: str) -> tuple[str, ...]:
    return next(before for name, before in NEEDS.items() if part.startswith(name))


def next_part(waiting: list[str], running: list[str], outcomes: dict[str, Outcome]) -> str | None:
    """Returns the first part that may start now."""
    if len(running) == at_once(beside=1):
        return None
    waits = [part for part in running if part.startswith(WAITS)]
    is_full = len(running) - len(waits) == at_once()
    for part in waiting:
        has_room = not waits if part.startswith(WAITS) else not is_full
        if not has_room:
            continue
        ready = all(outcomes[b].outcome == PASSED for b in needs(part) if b in outcomes)
        # What is asked for by itself has what it needs from make.
        ready &= not any(b in waiting or b in running for b in needs(part))
        if ready and not (part in SBT and any(other in SBT for other in running)):
            return part
    return None


def say(text: str) -> None:
    print(text, flush=True)


def run(parts: list[str]) -> list[Outcome]:
    """Runs the parts and returns how each ended; those that need a failed one are not run."""
    waiting, running = list(parts), list[Running]()
    outcomes = dict[str, Outcome]()
    reported = started = time.monotonic()
    try:
        while waiting or running:
            while part := next_part(waiting, [r.part for r in running], outcomes):
                waiting.remove(part)
                running.append(Running(part))
                say(f"==== make {part}: started")
            if not running:
                break
            time.sleep(0.2)
            for one in list(running):
                if ended := one.ended():
                    running.remove(one)
                    outcomes[one.part] = ended
                    if ended.outcome == FAILED:
                        say(f"\n==== make {one.part}: the end of {one.log}")
                        say("\n".join(last_lines(one.part, LAST_LINES)))
                    say(f"==== make {one.part}: {ended.outcome} in {ended.seconds:.0f} s")
            if time.monotonic() - reported >= SAYS_SO_EACH_S:
                reported = time.monotonic()
                for one in running:
                    minutes = (reported - started) / 60
                    say(f"[{minutes:3.0f} min] {one.part}, {one.seconds:.0f} s: {one.last_line()}")
    finally:
        for one in running:
            one.end()
    return [outcomes.get(part) or Outcome(part, NOT_RUN, 0, []) for part in parts]


def report(outcomes: list[Outcome], seconds: float) -> None:
    width = max(len(outcome.part) for outcome in outcomes)
    say(f"\n{'Part':<{width}}  Outcome  Seconds   Tests  Failed  Skipped")
    for one in outcomes:
        counts = f"{len(one.tests):7} {one.count('failed'):7} {one.count('skipped'):8}"
        line = f"{one.part:<{width}}  {one.outcome:<7} {one.seconds:8.0f}"
        say(f"{line} {counts}" if one.tests else line)
    say(f"{'all':<{width}}          {sum(one.seconds for one in outcomes):8.0f}")
    say(f"{'from start to end':<{width}}          {seconds:8.0f}")

    tests = [test for one in outcomes for test in one.tests]
    say("\nSlowest files   Seconds  Tests")
    for file in junit.slowest_files(tests, SLOWEST):
        say(f"{file.seconds:23.1f} {file.tests:6}  {file.part}: {file.file}")
    say("\nSlowest tests   Seconds")
    for test in junit.slowest_tests(tests, SLOWEST):
        say(f"{test.seconds:23.1f}  {test}")

    # Last, as some keep only the end of what is printed.
    failed = [test for test in tests if test.outcome == "failed"]
    if failed:
        say("\nFailed tests")
        for test in failed:
            say(f"  {test}")
            for line in test.message.splitlines()[:LINES_OF_A_TEST]:
                say(f"      {line}")
    for one in outcomes:
        if one.outcome == FAILED and not one.count("failed"):
            say(f"\nThe end of {LOGS / one.part}.log, of a part that failed without a failed test")
            for line in last_lines(one.part, LINES_OF_A_TEST):
                say(f"  {line[:LONGEST_LINE]}")
    bad = [one.part for one in outcomes if one.outcome != PASSED]
    if bad:
        say(f"\nmake test failed in: {', '.join(bad)}. Run one alone with: make {bad[0]}")
    # CI reads this line.
    say(f"\n{sum(o.passes for o in outcomes)} passed, {sum(o.failures for o in outcomes)} failed")


def main(parts: list[str]) -> int:
    for folder in (LOGS, JUNIT):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    started = time.monotonic()
    outcomes = run(parts)
    report(outcomes, time.monotonic() - started)
    return int(any(one.failures for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
