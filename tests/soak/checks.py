"""Whether each promise was kept, by the records of drivers and writers of one control file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Rules = tuple[tuple[tuple[tuple[str, str], ...], str], ...]
RANKS = {"off": 0, "shadow": 1, "enforce": 2}
ENFORCED_PARTITIONS = 2


class Version(NamedTuple):
    """The file from one write to the next.

    Attributes:
        rules: What each rule is for, and its mode.
        first: When it may have been there first.
        last: When it was surely no longer there.
    """

    rules: Rules
    first: float
    last: float


class Outage(NamedTuple):
    """When there was no whole file to read, and why."""

    kind: str
    began: float
    ended: float


def lost(writes: Sequence[Mapping[str, Any]], log: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compares what the writers wrote with the file's log; says what is wrong."""
    logged = Counter(w["reason"] for w in log)
    made = Counter(w["reason"] for w in writes if not w["refused"])
    wrong = [f"the write {reason!r} is not in the log" for reason in made - logged]
    wrong += [f"the log has {reason!r} more often than it was written" for reason in logged - made]
    versions = [w["version"] for w in log]
    if versions != list(range(1, len(log) + 1)):
        wrong.append(f"the log's versions are not 1 to {len(log)}, one for each write: {versions}")
    refusals = {code for w in writes for code in w["refused"] or ()} - {"CONTROL_RULE_UNKNOWN"}
    wrong += [f"a writer was refused with {code}" for code in sorted(refusals)]
    return wrong


def versions(
    writes: Iterable[Mapping[str, Any]], log: Iterable[Mapping[str, Any]]
) -> list[Version]:
    """Returns the file's versions by its log, with the times by the writers' own clocks."""
    times = {w["reason"]: (w["began"], w["ended"]) for w in writes}
    rules: dict[tuple[tuple[str, str], ...], str] = {}
    collected: list[Version] = []
    for write in log:
        own = tuple(sorted(write["selectors"].items()))
        rules.pop(own, None)
        if write["action"] != "on":
            rules[own] = write["action"]
        began, ended = times[write["reason"]]
        if collected:
            collected[-1] = collected[-1]._replace(last=ended)
        collected.append(Version(tuple(rules.items()), began, float("inf")))
    return collected


def mode(rules: Rules, about: Mapping[str, str]) -> str:
    """Returns what rules leave of the mode of a policy at a point of a job."""
    fitting = (m for own, m in rules if all(about.get(name) == value for name, value in own))
    return min(fitting, key=RANKS.__getitem__, default="enforce")


def known_since(at: float, within_s: float, outages: Sequence[Outage]) -> float:
    """Returns the latest moment whose file a driver has read by ``at``: see docs/run/control.md.

    >>> known_since(20, 3, [])
    17
    >>> known_since(20, 3, [Outage("gone", 15, 18)])
    12
    """
    since = at - within_s
    for outage in sorted(outages, key=lambda o: -o.began):
        if outage.ended > since and outage.began < since + within_s:
            since = outage.began - within_s
    return since


class Asked(NamedTuple):
    """What a query was decided by at a point, as its driver recorded it."""

    driver: int
    number: int
    point: str
    mode: str
    began: float
    ended: float


class Judged(NamedTuple):
    """What queries went by.

    Attributes:
        counts: Queries at a point by mode, and by whether another mode was possible, too.
        oldest_s: By how much the oldest copy of the file was at least too old, without an outage.
        wrong: What no copy that is new enough says.
    """

    counts: Counter[tuple[str, bool]]
    oldest_s: list[float]
    wrong: list[str]


def judged(
    asked: Iterable[Asked],
    about: Mapping[int, Mapping[str, str]],
    versions: Sequence[Version],
    within_s: float,
    outages: Sequence[Outage],
) -> Judged:
    """Looks for queries that no version of the file explains that a driver could go by.

    Args:
        asked: The queries.
        about: Each driver's policy, job and Spark, as selectors.
        versions: The file's.
        within_s: How soon a driver has to know of a version, while the file can be read.
        outages: When it could not be read.
    """
    counts: Counter[tuple[str, bool]] = Counter()
    oldest: list[float] = []
    wrong: list[str] = []
    messages: dict[tuple[int, str], list[str]] = {}
    for one in asked:
        place = (one.driver, one.point)
        if place not in messages:
            own = {**about[one.driver], "point": one.point}
            messages[place] = [mode(v.rules, own) for v in versions]
        since = known_since(one.began, within_s, outages)
        until = [
            (m, v.last)
            for m, v in zip(messages[place], versions, strict=True)
            if v.first <= one.ended
        ]
        allowed = {m for m, last in until if last >= since}
        counts[one.mode, len(allowed) > 1] += 1
        # By how much a copy that says so is too old; less than nothing where it is the newest.
        late = one.began - max((last for m, last in until if m == one.mode), default=0.0)
        if one.mode not in allowed:
            wrong.append(
                f"driver {one.driver}, query {one.number}, {one.point}: {one.mode}, and for "
                f"{late:.1f} s the file said {' or '.join(sorted(allowed))}"
            )
        elif not any(o.began < one.began < o.ended + within_s for o in outages):
            oldest.append(max(0.0, late))
    return Judged(counts, oldest, wrong)


def of_driver(
    driver: int, lines: Iterable[Mapping[str, Any]], points: Iterable[str]
) -> tuple[list[Asked], list[Mapping[str, Any]], list[str]]:
    """Reads what one driver wrote: what its queries were asked, the queries, what went wrong."""
    queries: dict[int, Mapping[str, Any]] = {}
    decisions: list[Mapping[str, Any]] = []
    for line in lines:
        if "query" in line:
            queries[line["query"]] = line
        decisions += line.get("decisions", ())
    named = {d["execution_id"]: d["query"] for d in decisions if d["query"] is not None}
    events_by_driver: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for d in decisions:
        events_by_driver.setdefault((int(named.get(d["execution_id"], -1)), d["point"]), []).append(
            d
        )
    asked, wrong = [], []
    for number, query in queries.items():
        if query["error"]:
            wrong.append(f"driver {driver}, query {number} failed: {query['error']}")
            continue
        for point in points:
            made = events_by_driver.get((number, point), [])
            is_applied = any(d["applied"] for d in made)
            modes = {d["mode"] for d in made} or {"off"}
            if "enforce" in modes and not is_applied:
                reasons = ", ".join(sorted({d["reason"] for d in made}))
                wrong.append(f"driver {driver}, query {number}, {point}: {reasons}")
            began, ended = query["began"], query["ended"]
            asked += [Asked(driver, number, point, m, began, ended) for m in sorted(modes)]
            if point == "shuffle_partitions" and is_applied != (
                query["partitions"] == ENFORCED_PARTITIONS
            ):
                recorded = "applied" if is_applied else "not applied"
                wrong.append(
                    f"driver {driver}, query {number}: recorded as {recorded}, "
                    f"and the plan has a shuffle of {query['partitions']} partitions"
                )
    return asked, list(queries.values()), wrong
