"""What a run of suites came to: each test's outcome, and aqepilot's own counters."""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from spark_suites.jvm import PACKAGE

PASSED, FAILED, SKIPPED, ABSENT = "passed", "failed", "skipped", "absent"


class Case(NamedTuple):
    """A test's name.

    Attributes:
        suite: Its class, without ``org.apache.spark.sql.``
        name: Its text.
    """

    suite: str
    name: str


class Outcome(NamedTuple):
    """What a test came to.

    Attributes:
        kind: ``passed``, ``failed``, ``skipped`` (ignored, or cancelled by itself) or ``absent``.
        message: Of a failure.
    """

    kind: str
    message: str = ""


NONE = Outcome(ABSENT, "the suite did not come to an end, or has no such test")


def read(folder: Path) -> dict[Case, Outcome]:
    """Returns the outcomes of a run, from its JUnit files."""
    outcomes = {}
    for file in sorted((folder / "xml").glob("TEST-*.xml")):
        for case in ElementTree.parse(file).iter("testcase"):
            test = Case(case.get("classname", "").removeprefix(PACKAGE), case.get("name", ""))
            outcomes[test] = _outcome(case)
    return outcomes


def _outcome(case: ElementTree.Element) -> Outcome:
    for kind in ("failure", "error"):
        failure = case.find(kind)
        if failure is not None:
            return Outcome(FAILED, f"{failure.get('type', '')}: {failure.get('message', '')}")
    return Outcome(PASSED if case.find("skipped") is None else SKIPPED)


def plainly(message: str) -> str:
    """Returns a message without what differs from run to run: ids, addresses, times, folders."""
    message = re.sub(r"#\d+L?", "#", message)
    message = re.sub(r"(plan_id|id|@|_)=?[0-9a-f]{2,}\b", r"\1", message)
    return re.sub(r"\S*/(tmp|warehouse)\S*", "<file>", message)


def has_same_rows(message: str) -> bool:
    """Whether a message of Spark's QueryTest, or of a golden file, is about the order of rows only.

    QueryTest prints two columns of rows. A golden file's texts come without their ends of lines,
    so that they are compared word by word.
    """
    texts = re.search(r'Expected "(.*)", but got "(.*)" Result did not match', message, re.DOTALL)
    if texts:
        golden, actual = (sorted(re.sub(r"[\[\]]", "", text).split()) for text in texts.groups())
        return golden == actual
    rows = re.findall(r"\[[^\[\]]*\]", message.rpartition("== Results ==")[2])
    return bool(rows) and sorted(rows[::2]) == sorted(rows[1::2])


def counters(folder: Path) -> Counter[str]:
    """Returns aqepilot's counters, summed over the run's SparkContexts; `contexts` counts these."""
    counts: Counter[str] = Counter()
    for file in (folder / "counters").glob("*.aqepilot.*.csv"):
        name = file.name.partition(".aqepilot.")[2].removesuffix(".csv")
        with file.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
        value = rows[-1].get("count") or rows[-1].get("value") if rows else None
        counts[name] += int(float(value or 0))
        counts["contexts"] += name == "errors"
    return counts
