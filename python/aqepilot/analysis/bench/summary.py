"""What a bench found, for people: a table and a sentence; and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from aqepilot.analysis.bench.pairs import Paired, QueryResult
from aqepilot.analysis.intervals import Interval, half_width, interval, observations_needed

_MOST_ROUNDS = 1000


def streamed(each: Iterable[Paired], console: Console, *, quiet: bool = False) -> Paired:
    """Shows what is known after each round, in place on a terminal; returns the last.

    Args:
        each: The results that `aqepilot.bench` yields.
        console: Where to show it.
        quiet: Shows nothing.
    """
    last: Paired | None = None
    with Live(console=console, auto_refresh=False, transient=True) as live:
        if not quiet and console.is_terminal:
            live.update("Warming up ...", refresh=True)
        for last in each:
            if quiet:
                continue
            if console.is_terminal:
                live.update(table(last), refresh=True)
            else:
                console.print(f"round {last.rounds}: time {interval(last.log_ratio)}")
    if last is None:
        raise ValueError("there was no round")
    if not quiet:
        console.print(table(last))
    return last


def table(found: Paired) -> Table:
    """Returns a row for each query, and one for all."""
    shown = Table(caption=f"after {found.rounds} rounds", box=None, pad_edge=False)
    shown.add_column("query")
    for head in ("control", "treatment", "time, 95% at all times", "applied", "failed"):
        shown.add_column(head, justify="right")
    for of in found.queries:
        failed = of.control_errors + of.treatment_errors
        shown.add_row(
            of.query,
            _ms(of.control_ms),
            _ms(of.treatment_ms),
            interval(of.log_ratio),
            str(of.applied),
            f"{of.control_errors} / {of.treatment_errors}" if failed else "",
            style=_style(of),
        )
    if len(found.queries) > 1:
        shown.add_section()
        shown.add_row("all", "", "", interval(found.log_ratio), "", "")
    return shown


def _ms(ms: float | None) -> str:
    return "failed" if ms is None else f"{ms:,.0f} ms"


def _style(of: QueryResult) -> str | None:
    if of.log_ratio.lower > 0:
        return "red"
    return "green" if of.log_ratio.upper < 0 else None


def sentences(found: Paired) -> list[str]:
    """Returns the verdict, and what else there is to say."""
    said = [_verdict(found)]
    if found.harmed:
        names = ", ".join(of.query for of in found.harmed)
        said.append(f"Slower with the treatment's policies: {names}.")
    idle = [of.query for of in found.queries if not of.applied]
    if idle:
        named = "any query" if len(idle) == len(found.queries) else ", ".join(idle)
        said.append(f"The treatment's policies changed nothing in {named}.")
    said += [
        f"{of.query} failed {of.control_errors} times under the control and "
        f"{of.treatment_errors} times under the treatment: {of.error}"
        for of in found.queries
        if of.error
    ]
    return said


def _verdict(found: Paired) -> str:
    all_of = found.log_ratio
    margin = f"{100 * found.margin:g}%"
    match found.verdict:
        case "broken":
            return "Broken: a query fails with the treatment's policies, and not without them."
        case "faster":
            return f"The treatment is faster: time {interval(all_of)}."
        case "slower":
            return f"The treatment is slower: time {interval(all_of)}."
        case "same":
            return f"There is no difference beyond {margin}: time {interval(all_of)}."
    more = _rounds_needed(all_of)
    until = (
        f"if it goes on like this, about {more - all_of.n} more rounds will tell"
        if more
        else f"more than {_MOST_ROUNDS} rounds were needed"
    )
    return f"It is open whether the treatment is faster: time {interval(all_of)}; {until}."


def _rounds_needed(of: Interval) -> int | None:
    width = half_width(of.n, 1.0)
    if not (math.isfinite(width) and of.mean):
        return None
    return observations_needed(of.mean, (of.upper - of.mean) / width, _MOST_ROUNDS)


def data(found: Paired) -> dict[str, Any]:
    """Returns what was found as JSON can say it; infinities are null."""
    return {
        "verdict": found.verdict,
        "rounds": found.rounds,
        "margin": found.margin,
        "log_ratio": _interval(found.log_ratio),
        "queries": [{**of._asdict(), "log_ratio": _interval(of.log_ratio)} for of in found.queries],
        "summary": sentences(found),
    }


def _interval(of: Interval) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in of._asdict().items()}
