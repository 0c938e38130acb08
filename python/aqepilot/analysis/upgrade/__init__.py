"""Two Sparks' logs, or two weeks', compared query by query."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from aqepilot.analysis.upgrade import compared, times
from aqepilot.analysis.upgrade.outcomes import Outcome, outcomes_of, runs_of
from aqepilot.analysis.upgrade.result import CONDITIONS, Compared, Upgrade
from aqepilot.analysis.upgrade.settings import RULES
from aqepilot.analysis.upgrade.settings import changes as settings_changes
from aqepilot.analysis.upgrade.times import Difference
from aqepilot.errors import AqePilotError, Problem
from aqepilot.submit.jars import minor_of

if TYPE_CHECKING:
    from aqepilot.analysis.pins.run import Pinned
    from aqepilot.eventlog.frames import Frames

__all__ = ["CONDITIONS", "Compared", "Upgrade", "pins", "upgrade"]


def upgrade(
    before: Frames,
    after: Frames,
    *,
    margin: float = 0.1,
    conf: Mapping[str, str] | None = None,
) -> Upgrade:
    """Compares two logs. See `Log.upgrade`."""
    runs = [runs_of(before), runs_of(after)]
    if not all(runs):
        which = "before" if not runs[0] else "after"
        message = f"the log {which} has no query that ended well."
        raise AqePilotError(Problem("NOTHING_TO_COMPARE", message))
    paired = compared.pairs(*runs)
    if not paired:
        message = (
            "the logs have no query in common, neither by fingerprint nor by a description of its "
            "own: compare logs of the same jobs."
        )
        raise AqePilotError(Problem("NOTHING_TO_COMPARE", message))
    outcomes = [
        _by_query(outcomes_of(before, [pair.before for pair in paired])),
        _by_query(outcomes_of(after, [pair.after for pair in paired])),
    ]
    differences = times.together(
        times.difference(pair.before.task_ms, pair.after.task_ms) for pair in paired
    )
    old, new = _versions(before), _versions(after)
    queries = tuple(
        Compared(
            pair,
            tuple(
                compared.changes(
                    outcomes[0].get(pair.before.query, ()),
                    outcomes[1].get(pair.after.query, ()),
                    pair,
                )
            ),
            one,
            _verdict(one, margin),
        )
        for pair, one in zip(paired, differences, strict=True)
    )
    job = _excluded(before) | dict(conf or {})
    newest = [max(side, key=_order, default=None) for side in (old, new)]
    known = {pair.before.query for pair in paired}, {pair.after.query for pair in paired}
    alone = [
        tuple(one.description or one.query for one in side if one.query not in names)
        for side, names in zip(runs, known, strict=True)
    ]
    changes = settings_changes(newest[0], newest[1], job)
    return Upgrade(old, new, queries, changes, alone[0], alone[1], margin)


def _verdict(one: Difference, margin: float) -> str:
    if one.is_worse(margin):
        return "worse"
    if one.is_better(margin):
        return "better"
    if one.lower is not None and one.upper is not None:
        within = 1 / (1 + margin) < one.lower and one.upper < 1 + margin
        return "same" if within else "not known"
    return "not known"


def _by_query(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    by_query: dict[str, list[Outcome]] = {}
    for one in outcomes:
        by_query.setdefault(one.query, []).append(one)
    return by_query


def _versions(log: Frames) -> tuple[str, ...]:
    rows = log.applications.where("spark_version IS NOT NULL").select("spark_version").distinct()
    return tuple(sorted((row[0] for row in rows.collect()), key=_order))


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor_of(version).split("."))


def _excluded(log: Frames) -> dict[str, str]:
    """The rules that jobs exclude, as far as decisions tell."""
    from pyspark.sql import functions

    facts = ("optimizer_excluded_rules", "adaptive_optimizer_excluded_rules")
    values = [functions.get_json_object("facts", f"$.conf.{name}").alias(name) for name in facts]
    rows = log.decisions.where("facts IS NOT NULL").select(*values).distinct().collect()
    texts_of = (sorted({row[name] for row in rows if row[name]}) for name in facts)
    return {
        key: ",".join(name.strip('[]" ') for text in listed for name in text.split(","))
        for key, listed in zip(RULES, texts_of, strict=True)
        if listed
    }


def pins(log: Frames, result: Upgrade, days: int | None = 30) -> Iterator[Pinned]:
    """Yields the pins that would restore the plans of what got worse.

    Args:
        log: The log before.
        result: The comparison.
        days: As for `Log.pin`.
    """
    from aqepilot.analysis.pins.run import pin

    for one in result.worse:
        if one.fingerprint and one.changes and one.pair.before.decisions:
            later = one.pair.after.fingerprint
            also = [later] if later and later != one.fingerprint else []
            yield pin(log, one.fingerprint, also=also, days=days)
