"""A comparison of two logs in words and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from aqepilot import texts
from aqepilot.analysis.upgrade.compared import KINDS, Change
from aqepilot.analysis.upgrade.settings import SparkChange
from aqepilot.display import Cell, Column, Folded, Table, folded

if TYPE_CHECKING:
    from aqepilot.analysis.prices import Prices
    from aqepilot.analysis.upgrade.result import Compared, Upgrade

_QUERY_COLUMNS = (
    Column("Query"),
    Column("Task time", is_number=True),
    Column("Verdict"),
    Column("Runs", is_number=True),
    Column("What changed"),
)
_SETTING_COLUMNS = (Column("Since"), Column("Setting or rule"), Column("What changed"))


def tables(result: Upgrade, prices: Prices | None, most: int) -> list[Table]:
    """Returns the queries with a change or a verdict, and the settings and rules."""
    rows = [row(one, prices) for one in listed(result.queries)[:most]]
    queries = Table(headline(result), _QUERY_COLUMNS, rows)
    changed = [(one.since, one.name, setting_text(one)) for one in result.settings]
    title = f"{len(changed)} settings and rules that are others in between"
    return [queries, *([Table(title, _SETTING_COLUMNS, changed)] if changed else [])]


def headline(result: Upgrade) -> str:
    """Returns what came of it in a sentence."""
    ways = " and ".join(result.before) or "?", " and ".join(result.after) or "?"
    return (
        f"Spark {ways[0]} to {ways[1]}: {texts.plural(len(result.queries), 'query', 'queries')} "
        f"in both, {len(result.changed)} with another plan, {len(result.worse)} surely slower, "
        f"{len(result.better)} surely faster"
    )


def listed(queries: Iterable[Compared]) -> list[Compared]:
    """Returns what got worse first, then what changed, then what got better."""
    order = {"worse": 0, "better": 2}
    rows = [one for one in queries if one.changes or one.verdict in order]
    return sorted(rows, key=lambda one: order.get(one.verdict, 1))


def row(one: Compared, prices: Prices | None = None) -> tuple[Cell | None, ...]:
    """Returns a query as a row of a table of queries."""
    pair = one.pair
    name = " ".join(filter(None, ((one.fingerprint or "")[:12], pair.before.description)))
    if not pair.is_same:
        name += " (by its description: its fingerprint is another one)"
    return (
        folded(name),
        time_text(one, prices),
        one.verdict,
        f"{pair.before.runs:,}, {pair.after.runs:,}",
        Folded(by_kind(one.changes), "\n".join(map(sentence, one.changes)))
        if len(one.changes) > 3
        else "; ".join(map(sentence, one.changes)) or "its plan is the same",
    )


def by_kind(changes: Iterable[Change]) -> str:
    """Returns how many changes there are of each kind."""
    counted = Counter(change.kind for change in changes)
    return ", ".join(f"{words}: {counted[kind]}" for kind, words in KINDS.items() if counted[kind])


def time_text(one: Compared, prices: Prices | None = None) -> str:
    """Returns how task time and money changed."""
    times = one.times
    if times.ratio is None:
        return "–"
    shown = f"{100 * (times.ratio - 1):+.0f} %"
    if times.lower is not None and times.upper is not None:
        shown += f" ({100 * (times.lower - 1):+.0f} to {100 * (times.upper - 1):+.0f})"
    if prices:
        more = prices.cost(one.pair.after.slot_ms) - prices.cost(one.pair.before.slot_ms)
        shown += f", {'-' if more < 0 else '+'}{texts.money(abs(more), prices.currency)} a run"
    return shown


def sentence(one: Change) -> str:
    """Returns a change in words."""
    where = f" at {one.tables}" if one.tables else ""
    seen = f"{one.before_runs[0]} of {one.before_runs[1]} runs"
    then = f"{one.after_runs[0]} of {one.after_runs[1]}"
    if one.kind == "shuffle":
        what = "is there no more" if one.after is None else "is new"
        return f"a shuffle{where} {what}"
    if one.kind == "order" and one.before == one.after:
        return f"order of joins{where}: one (in {seen}), now another (in {then})"
    return f"{KINDS[one.kind]}{where}: {one.before} (in {seen}), now {one.after} (in {then})"


def setting_text(one: SparkChange) -> str:
    """Returns what changed of a setting or rule in words."""
    if one.kind == "default":
        return f"default {one.before}, now {one.after}. {one.what}"
    instead = f" Now: {', '.join(one.instead)}." if one.instead else ""
    harm = " Your jobs set it, to no effect any more." if one.harms else ""
    return f"{one.what}{instead}{harm}"
