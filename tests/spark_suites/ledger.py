"""The ledger: which tests differ from plain Spark's, in which way, and why."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from spark_suites import outcomes
from spark_suites.outcomes import FAILED, NONE, Case, Outcome
from spark_suites.ways import PLAIN, WAYS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LEDGER = Path(__file__).with_name("ledger.toml")
# What a difference is about. No answer and no error may differ: there is no kind for these.
KINDS = ("plan shape", "metrics", "order", "printed plan", "test setting", "plain")
# These are about asserts of a test; one about rows or an error would be a fault of ours.
ASSERTS = ("plan shape", "metrics")
# A test that takes the first of the operators that it looks for fails on an empty list, and one
# that takes a join of one kind, or an adaptive plan, apart fails on another.
ASSERT = re.compile(
    r"^(class )?[\w.]*(TestFailedException|AssertionError|MatchError: \w+Join"
    r"|ClassCastException: class [\w.]+Exec cannot be cast"
    r"|NoSuchElementException: (next on empty|head of empty|None\.get))\b"
)
ROWS_OR_ERROR = re.compile(r"[Rr]esults? (do|did) not match|[Ee]xpected exception|was thrown")


class Entry(NamedTuple):
    """A difference that is accounted for; of the way ``plain``, a test that fails by itself.

    Attributes:
        test: The test.
        ways: Where it differs.
        sparks: The minors; none for all.
        kind: One of `KINDS`.
        says: What the failure's message has to match, so that no other failure hides behind it.
        why: Why it differs.
        flaky: Why it does not always differ; null where it does.
    """

    test: Case
    ways: tuple[str, ...]
    sparks: tuple[str, ...]
    kind: str
    says: str
    why: str
    flaky: str | None = None

    def explains(self, outcome: Outcome) -> bool:
        """Whether the outcome is the one that the entry is about."""
        if self.kind in ASSERTS and (
            outcome.kind != FAILED
            or not ASSERT.match(outcome.message)
            or ROWS_OR_ERROR.search(outcome.message)
        ):
            return False
        if self.kind == "order" and not outcomes.has_same_rows(outcome.message):
            return False
        return re.search(self.says, outcome.message, re.DOTALL) is not None

    def concerns(self, way: str, minor: str) -> bool:
        return way in self.ways and (not self.sparks or minor in self.sparks)


class Difference(NamedTuple):
    """One test that does not do in a way what it does in plain Spark."""

    way: str
    test: Case
    plain: Outcome
    outcome: Outcome
    entry: Entry | None


def load(text: str) -> list[Entry]:
    """Returns the entries of a ledger.

    Raises:
        ValueError: An entry lacks something, or has a word that is not known.
    """
    entries = []
    for block in tomllib.loads(text).get("difference", []):
        entries += list(_entries(block))
    seen = [
        (entry.test, way, minor)
        for entry in entries
        for way in entry.ways
        for minor in entry.sparks or ("all",)
    ]
    twice = sorted({str(key) for key in seen if seen.count(key) > 1})
    if twice:
        raise ValueError(f"the ledger names twice: {', '.join(twice)}")
    return entries


def _entries(block: dict[str, Any]) -> list[Entry]:
    wanted = {"ways", "kind", "says", "why", "tests"}
    if not wanted <= block.keys() <= wanted | {"sparks", "flaky"}:
        raise ValueError(f"an entry has {', '.join(wanted)}, maybe sparks and flaky: {block}")
    unknown = {*block["ways"]} - WAYS.keys() | {block["kind"]} - {*KINDS}
    if unknown or not block["why"]:
        raise ValueError(f"unknown, or no reason: {', '.join(unknown)}: {block}")
    re.compile(block["says"])
    return [
        Entry(
            Case(suite, name),
            tuple(block["ways"]),
            tuple(block.get("sparks", ())),
            block["kind"],
            block["says"],
            block["why"],
            block.get("flaky"),
        )
        for suite, names in block["tests"].items()
        for name in names
    ]


def differences(
    way: str,
    plain: Mapping[Case, Outcome],
    other: Mapping[Case, Outcome],
    entries: Collection[Entry],
    minor: str,
) -> list[Difference]:
    """Returns the tests whose outcome is not plain Spark's, each with its entry if it has one.

    Of the way ``plain`` these are the tests that fail, as they show nothing in any other way.
    """
    by_test = {entry.test: entry for entry in entries if entry.concerns(way, minor)}
    differing = []
    for test in sorted({*plain, *other}):
        before, after = plain.get(test, NONE), other.get(test, NONE)
        if (after.kind == FAILED) if way == PLAIN else (before.kind != after.kind):
            entry = by_test.get(test)
            fits = entry is not None and entry.explains(after)
            differing.append(Difference(way, test, before, after, entry if fits else None))
    return differing


def stale(
    way: str,
    differing: Collection[Difference],
    ran: Collection[Case],
    entries: Collection[Entry],
    minor: str,
) -> list[Entry]:
    """Returns the entries for a way whose tests ran and do not differ any more."""
    differ = {difference.test for difference in differing}
    return [
        entry
        for entry in entries
        if entry.concerns(way, minor)
        and entry.flaky is None
        and entry.test in ran
        and entry.test not in differ
    ]


def unknown(
    ran: Collection[Case], whole: Collection[str], entries: Collection[Entry], minor: str
) -> list[Entry]:
    """Returns the entries that name no test of a suite, of those that ran as a whole."""
    return [
        entry
        for entry in entries
        if (not entry.sparks or minor in entry.sparks)
        and entry.test.suite in whole
        and entry.test not in ran
    ]
