"""What came of suggestions that were applied, as verdicts and tables."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aqepilot import texts
from bench.figures import Table

PLAIN, WITH, AGAIN = "plain", "with it", "plain again"
DIFFERS = 1.03
FASTER, SAME, SLOWER = "helped", "no difference", "slower"
HEAD = (
    *("workload", "finding", "query", "at stake", "answers that change", "decisions adopted"),
    *("plain s", "with it s", "plain again s", "to plain", "noise", "it"),
)
TOTALS = (
    *("workload", "queries", "suggestions", FASTER, SAME, SLOWER),
    *("counters", "suggestions about counters"),
)


class Verdict(NamedTuple):
    """What came of a query.

    Attributes:
        ratio: Its time with the suggestion to that without; null where runs failed.
        noise: By how much runs without it differ, as a ratio above 1; null likewise.
        word: `FASTER`, `SAME` or `SLOWER`.
    """

    ratio: float | None
    noise: float | None
    word: str


def verdict(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Verdict:
    """Returns what came of a query, from its runs by way, one a round."""
    failed = {
        way: sum(bool(run["error"]) for run in runs_of_way) for way, runs_of_way in runs.items()
    }
    without = (failed[PLAIN] + failed[AGAIN]) / 2
    rounds = [
        (plain["seconds"], ours["seconds"], again["seconds"])
        for plain, ours, again in zip(runs[PLAIN], runs[WITH], runs[AGAIN], strict=True)
        if not (plain["error"] or ours["error"] or again["error"])
    ]
    ratio = noise = None
    if rounds:
        ratio = statistics.median(ours / math.sqrt(p * a) for p, ours, a in rounds)
        noise = math.exp(statistics.median(abs(math.log(a / p)) for p, _, a in rounds))
    if failed[WITH] != without:
        return Verdict(ratio, noise, SLOWER if failed[WITH] > without else FASTER)
    least = max(DIFFERS, noise or 1)
    outcome = SAME
    if ratio is not None and not 1 / least <= ratio <= least:
        outcome = FASTER if ratio < 1 else SLOWER
    return Verdict(ratio, noise, outcome)


def _outcome(suggestion: Mapping[str, Any]) -> str:
    """What came of a suggestion, by all queries that it is about; `SAME` where it is about none."""
    outcomes = {verdict(runs).word for runs in suggestion["runs"].values()}
    return SLOWER if SLOWER in outcomes else FASTER if FASTER in outcomes else SAME


def tables(workloads: Mapping[str, Mapping[str, Any]], rounds: int) -> list[Table]:
    """Returns a table of all suggestions and one of the workloads, from their figures by name."""
    rows = [
        row
        for name, workload in workloads.items()
        for suggestion in workload["suggestions"]
        for row in _rows(name, suggestion)
    ]
    totals = []
    for name, workload in workloads.items():
        made = [one for one in workload["suggestions"] if one["of"] == "queries"]
        outcomes = [_outcome(one) for one in made]
        about_counters = (
            str(len(workload["suggestions"]) - len(made)) if workload["counters"] else ""
        )
        counts = (len(made), *(outcomes.count(word) for word in (FASTER, SAME, SLOWER)))
        cells = map(str, (workload["queries"], *counts, workload["counters"]))
        totals.append((name, *cells, about_counters))
    return [
        (f"Suggestions, each applied in {texts.plural(rounds, 'round')}", HEAD, rows),
        ("Do suggestions help?", TOTALS, totals),
    ]


def _rows(workload: str, suggestion: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    at_stake = texts.duration(suggestion["stake_ms"])
    asked = suggestion["asked"]
    cells = (
        f"{at_stake} in {texts.plural(suggestion['queries'], 'run')}",
        "not known" if asked is None else f"{suggestion['changed']} of {asked}",
    )
    if not suggestion["runs"]:
        rest = [""] * (len(HEAD) - 6)
        yield workload, suggestion["kind"], "none of these", *cells, *rest, "not run"
    for query, runs in suggestion["runs"].items():
        judged = verdict(runs)
        adopted = statistics.median(run["adopted"] for run in runs[WITH])
        yield (
            *(workload, suggestion["kind"], query, *cells, f"{adopted:g}"),
            *(_seconds(runs[way]) for way in (PLAIN, WITH, AGAIN)),
            "" if judged.ratio is None else f"{100 * (judged.ratio - 1):+.1f} %",
            "" if judged.noise is None else f"{100 * (judged.noise - 1):.1f} %",
            judged.word,
        )


def _seconds(runs: Sequence[Mapping[str, Any]]) -> str:
    good = [run["seconds"] for run in runs if not run["error"]]
    cells = [f"{statistics.median(good):.2f}"] if good else []
    if len(good) < len(runs):
        cells.append(f"{len(runs) - len(good)} failed")
    return ", ".join(cells)
