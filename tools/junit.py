"""What the JUnit files of a run say: how many tests each part had, which took long, which failed.

pytest writes one file for a part, ScalaTest a folder with one file for each suite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree


class Test(NamedTuple):
    """One test that ran: its part, the file or suite that holds it, and what came of it."""

    part: str
    file: str
    name: str
    seconds: float
    outcome: str  # passed, failed or skipped
    message: str = ""  # what a failed one says, and where; else empty

    def __str__(self) -> str:
        return f"{self.part}: {self.file}: {self.name}"


class Took(NamedTuple):
    """How long the tests of one file or suite took, in one part."""

    part: str
    file: str
    tests: int
    seconds: float


def read(folder: Path, part: str) -> list[Test]:
    """Returns the tests of a part; none for a part that has no tests, or ended before them.

    A test that fails and then fails in its teardown stands in the file twice: it is one test.
    """
    tests: dict[tuple[Path, str, str], Test] = {}
    for path in sorted([*folder.glob(f"{part}.xml"), *folder.glob(f"{part}/**/*.xml")]):
        try:
            cases = ElementTree.parse(path).getroot().iter("testcase")
        except ElementTree.ParseError:
            continue  # The part ended while it wrote: it has failed, and says so itself.
        within = path.parent.relative_to(folder).parts[1:]
        for case in cases:
            owner, name = case.get("classname", ""), case.get("name", "")
            file = "/".join([*within, owner.rpartition(".")[2]])
            seconds = float(case.get("time") or 0)
            test = Test(part, file, name, seconds, _outcome(case), _message(case))
            before = tests.get((path, owner, name))
            if before:
                outcome = "failed" if "failed" in (before.outcome, test.outcome) else test.outcome
                test = test._replace(
                    seconds=before.seconds + test.seconds,
                    outcome=outcome,
                    message=before.message or test.message,
                )
            tests[path, owner, name] = test
    return list(tests.values())


def _outcome(case: ElementTree.Element) -> str:
    results = {child.tag for child in case}
    if results & {"failure", "error"}:
        return "failed"
    return "skipped" if "skipped" in results else "passed"


def _message(case: ElementTree.Element) -> str:
    for result in case:
        if result.tag in ("failure", "error"):
            lines = (result.text or "").strip().splitlines() or [""]
            # The last line is pytest's place, and within ScalaTest's stack trace is a suite's.
            place = next((line for line in lines if "Suite.scala:" in line), lines[-1])
            return f"{result.get('message') or ''}\n{place.strip()}".strip()
    return ""


def slowest_files(tests: Iterable[Test], most: int) -> list[Took]:
    """Returns the files whose tests took longest, the longest first."""
    by_file: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for test in tests:
        by_file[test.part, test.file].append(test.seconds)
    took = [Took(*key, len(seconds), sum(seconds)) for key, seconds in by_file.items()]
    return sorted(took, key=lambda one: -one.seconds)[:most]


def slowest_tests(tests: Iterable[Test], most: int) -> list[Test]:
    """Returns the tests that took longest, the longest first."""
    return sorted(tests, key=lambda test: -test.seconds)[:most]
