"""What the demo shows."""

from __future__ import annotations

import re
import statistics
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from aqepilot.decision import Decision
from aqepilot.demo.query import Query

WIDTH = 110
# Of each run, and the blocks of the longest one.
SHOWN = 12
BAR = 40


class Side(NamedTuple):
    """One of the two runs: its query, the whole spark-submit's seconds and what it printed."""

    query: Query
    wall_s: float
    output: str


def comparison(
    version: str, master: str, wait_ms: str, plain: Side, decided: Side
) -> RenderableType:
    """Returns the two runs side by side, their tasks, and the decisions in the second."""
    return Group(
        Text(),
        Text(f"Spark {version}, {master}, events joined to customers", style="bold"),
        Text(
            f"3 in 10 events are one customer's; each is looked up in a service, for {wait_ms} ms",
            style="dim",
        ),
        _runs(plain, decided),
        _tasks(plain, decided),
        _decisions(decided.query.decisions),
    )


def _runs(plain: Side, decided: Side) -> Table:
    table = Table(box=box.ROUNDED, width=WIDTH)
    table.add_column("the same job.py")
    table.add_column("plain Spark", style="yellow")
    table.add_column("with the policy", style="green")
    sides = (plain, decided)
    table.add_row("executed join", *(", ".join(side.query.joins) for side in sides))
    for name, times in (
        ("query", [side.query.seconds for side in sides]),
        ("  its longest task", [side.query.task_s[0] for side in sides]),
        ("  the median task beside it", [_median(side) for side in sides]),
        ("  CPU of all tasks", [side.query.cpu_s for side in sides]),
        ("whole spark-submit", [side.wall_s for side in sides]),
    ):
        table.add_row(name, f"{times[0]:.1f} s", f"{times[1]:.1f} s  {_change(*times)}")
    same = "the same" if plain.output == decided.output else "[bold red]NOT the same[/]"
    table.add_row("rows", f"{_rows(plain.output)} rows", same)
    table.caption = "One run of each, plain first, each in a fresh JVM: times vary from run to run."
    return table


def _tasks(plain: Side, decided: Side) -> Table:
    """The longest tasks of the stage that joins and looks up, as bars of one scale."""
    longest = max(plain.query.task_s[0], decided.query.task_s[0], 0.001)
    table = Table(
        box=box.ROUNDED,
        width=WIDTH,
        title="tasks of the stage with the longest one",
        title_justify="left",
    )
    table.add_column(f"plain Spark: {len(plain.query.task_s)} tasks", style="yellow")
    table.add_column(f"with the policy: {len(decided.query.task_s)} tasks", style="green")
    for before, after in zip_longest(*(side.query.task_s[:SHOWN] for side in (plain, decided))):
        table.add_row(_bar(before, longest), _bar(after, longest))
    table.caption = f"the {SHOWN} longest of each"
    return table


def _bar(seconds: float | None, longest_s: float) -> str:
    if seconds is None:
        return ""
    blocks = max(1, round(BAR * seconds / longest_s))
    return f"{'█' * blocks} {seconds:.1f} s"


def _median(side: Side) -> float:
    return statistics.median(side.query.task_s)


def _decisions(decisions: tuple[Decision, ...]) -> Table:
    facts = {d.facts_id: d.facts for d in decisions if d.facts_json}
    table = Table(
        box=box.ROUNDED,
        width=WIDTH,
        title="decisions, from Spark's event log",
        title_justify="left",
    )
    for name in ("tables", "events", "policy", "reason", "fate", "what ran"):
        table.add_column(name, overflow="fold")
    for d in decisions:
        table.add_row(
            escape(d.tables or ""),
            _measured(facts.get(d.facts_id, {}).get("left")),
            escape(d.answer or "null"),
            d.reason,
            Text(d.fate or "-", style="green" if d.fate == "adopted" else ""),
            escape(d.final_strategy or "-"),
        )
    if decisions:
        table.caption = f"asked in {_micros(decisions)}: the first compiles the policy"
    else:
        table.caption = "none: no join of this query had its shuffles done"
    return table


def how_to(policy: Path, words: str) -> RenderableType:
    """Returns the policy and the lines to copy for one's own job."""
    lines = "\n".join(
        [
            "aqepilot recipes                    # policies to start from: Spark's own rules",
            f"cp {policy} mine.toml",
            "aqepilot facts skew_join              # all that a policy can ask",
            "aqepilot check mine.toml",
            'eval "spark-submit $(aqepilot conf mine.toml) your_job.py"',
            "",
            "# or, for every job: aqepilot conf mine.toml --format defaults >> spark-defaults.conf",
            "# to only record, not apply: --conf spark.aqepilot.mode=shadow",
        ]
    )
    return Group(
        Panel(
            Syntax(policy.read_text("utf-8").strip(), "toml", background_color="default"),
            title="the policy",
            title_align="left",
            width=WIDTH,
        ),
        Panel(
            Syntax(words, "bash", background_color="default", word_wrap=True),
            title="the words that were added to spark-submit (aqepilot conf)",
            title_align="left",
            width=WIDTH,
        ),
        Panel(
            Syntax(lines, "bash", background_color="default"),
            title="the same with your own job",
            title_align="left",
            width=WIDTH,
        ),
    )


def console(svg: bool) -> Console:
    """Returns the console to show it on; one that can be saved as a picture if `svg`."""
    terminal = Console(highlight=False, record=svg)
    if svg or not terminal.is_terminal or terminal.width < WIDTH:
        return Console(highlight=False, record=svg, width=WIDTH)
    return terminal


def picture(console: Console) -> str:
    """Returns what was shown as SVG that fetches nothing: without the web fonts rich names."""
    svg = console.export_svg(title="aqepilot demo")
    svg = re.sub(r" *@font-face \{.*?\n    \}\n", "", svg, flags=re.DOTALL)
    return re.sub(r" *<!-- Generated with .*? -->\n", "", svg)


def _measured(side: dict[str, object] | None) -> str:
    if not side:
        return "?"
    return (
        f"{_size(side['shuffle_bytes'])}; partitions up to {_size(side['max_bytes'])}, "
        f"median {_size(side['median_bytes'])}"
    )


def _size(size_bytes: object) -> str:
    if not isinstance(size_bytes, int | float):
        return "?"
    size = float(size_bytes)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"


def _change(before_s: float, after_s: float) -> str:
    if before_s <= 0:
        return ""
    percent = round(100 * (after_s / before_s - 1))
    return f"({abs(percent)} % {'less' if percent < 0 else 'more'})" if percent else ""


def _micros(decisions: tuple[Decision, ...]) -> str:
    return ", ".join(f"{d.asked_us:,.0f}" for d in decisions) + " µs"


def _rows(output: str) -> int:
    return max(0, sum(line.startswith("|") for line in output.splitlines()) - 1)
