"""What a bench found, for people: a table and a sentence; and as plain data."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from aqepilot import display
from aqepilot.analysis.intervals import Interval, half_width, interval, observations_needed

if TYPE_CHECKING:
    from aqepilot.analysis.bench.pairs import Paired, QueryResult

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


def shown(paired: Paired) -> tuple[display.Lines, display.Table]:
    """Returns the verdict and a row for each query, as a notebook shows them."""
    verdict, *more = sentences(paired)
    names = ("Control", "Treatment", "Time, 95% at all times", "Applied", "Failed")
    rows: list[tuple[display.Cell, ...]] = [
        (
            result.query,
            _ms(result.control_ms),
            _ms(result.treatment_ms),
            interval(result.log_ratio),
            str(result.applied),
            _failed(result),
        )
        for result in paired.queries
    ]
    if len(rows) > 1:
        rows.append(("all", "", "", interval(paired.log_ratio), "", ""))
    return (
        display.Lines(verdict, more),
        display.Table(
            f"After {paired.rounds} rounds",
            [display.Column("Query"), *(display.Column(n, is_number=True) for n in names)],
            rows,
        ),
    )


def _failed(result: QueryResult) -> str:
    failed = result.control_errors + result.treatment_errors
    return f"{result.control_errors} / {result.treatment_errors}" if failed else ""


def table(paired: Paired) -> Table:
    """Returns a row for each query, and one for all."""
    drawn = Table(caption=f"after {paired.rounds} rounds", box=None, pad_edge=False)
    drawn.add_column("query")
    for head in ("control", "treatment", "time, 95% at all times", "applied", "failed"):
        drawn.add_column(head, justify="right")
    for result in paired.queries:
        drawn.add_row(
            result.query,
            _ms(result.control_ms),
            _ms(result.treatment_ms),
            interval(result.log_ratio),
            str(result.applied),
            _failed(result),
            style=_style(result),
        )
    if len(paired.queries) > 1:
        drawn.add_section()
        drawn.add_row("all", "", "", interval(paired.log_ratio), "", "")
    return drawn


def _ms(ms: float | None) -> str:
    return "failed" if ms is None else f"{ms:,.0f} ms"


def _style(result: QueryResult) -> str | None:
    if result.log_ratio.lower > 0:
        return "red"
    return "green" if result.log_ratio.upper < 0 else None


def sentences(paired: Paired) -> list[str]:
    """Returns the verdict, and what else there is to say."""
    lines = [_verdict(paired)]
    if paired.harmed:
        names = ", ".join(result.query for result in paired.harmed)
        lines.append(f"Slower with the treatment's policies: {names}.")
    idle = [result.query for result in paired.queries if not result.applied]
    if idle:
        named = "any query" if len(idle) == len(paired.queries) else ", ".join(idle)
        lines.append(f"The treatment's policies changed nothing in {named}.")
    lines += [
        f"{result.query} failed {result.control_errors} times under the control and "
        f"{result.treatment_errors} times under the treatment: {result.error}"
        for result in paired.queries
        if result.error
    ]
    return lines


def _verdict(paired: Paired) -> str:
    all_of = paired.log_ratio
    margin = f"{100 * paired.margin:g}%"
    match paired.verdict:
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


def _rounds_needed(ratio: Interval) -> int | None:
    width = half_width(ratio.n, 1.0)
    if not (math.isfinite(width) and ratio.mean):
        return None
    return observations_needed(ratio.mean, (ratio.upper - ratio.mean) / width, _MOST_ROUNDS)


def data(paired: Paired) -> dict[str, Any]:
    """Returns what was found as JSON can say it; infinities are null."""
    return {
        "verdict": paired.verdict,
        "rounds": paired.rounds,
        "margin": paired.margin,
        "log_ratio": _interval(paired.log_ratio),
        "queries": [
            {**result._asdict(), "log_ratio": _interval(result.log_ratio)}
            for result in paired.queries
        ],
        "summary": sentences(paired),
    }


def _interval(ratio: Interval) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None for name, value in ratio._asdict().items()
    }
