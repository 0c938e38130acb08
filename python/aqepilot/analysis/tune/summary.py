"""What a search came to, for the command line and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aqepilot import texts
from aqepilot.analysis.intervals import interval, percent
from aqepilot.analysis.tune.evidence import Evidence, Measured, Try
from aqepilot.analysis.tune.tuning import Tuned

HEAD = ("Try", "From", "What", "Answers", "Time to plain")
_OUTCOMES = {
    "ran": "ran",
    "timed_out": "slower than the best: cancelled",
    "failed": "failed",
    "rows_differ": "other rows: not used",
    "no_effect": "changes no plan",
}


def rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """Returns a row of a table with `HEAD` for each try."""
    return [_row(number, one) for number, one in enumerate(evidence.tries, 1)]


def _row(number: int, one: Try) -> tuple[str, ...]:
    answers = "; ".join(f"{a.point}: {a.text}" for a in one.proposal.answers)
    ratio = percent(one.log_ratio) if one.outcome == "ran" else ""
    return (str(number), one.proposal.came_from, _OUTCOMES[one.outcome], answers[:160], ratio)


def sentences(tuned: Tuned, currency: str = "") -> Iterator[str]:
    """Yields what a person has to know."""
    evidence = tuned.evidence
    yield (
        f"{evidence.query}: {texts.plural(len(evidence.tries), 'try', 'tries')} in "
        f"{texts.duration(evidence.search_ms)}; plain Spark takes "
        f"{texts.duration(evidence.plain_ms)}."
    )
    if not evidence.has_same_rows:
        yield "Rows were not compared: plain Spark's own differ from run to run, or there are none."
    if evidence.winner is None:
        yield "No try was faster than plain Spark: no policy is written."
        return
    if evidence.fresh:
        yield f"The best try on {_pairs(evidence.fresh, 'fresh ')}"
    if evidence.held_out:
        yield f"On other data, {_pairs(evidence.held_out, '')}"
    if tuned.policy is None:
        yield "The gain is not real: no policy is written."
        return
    money = f" and {texts.money(tuned.cost, currency)}" if tuned.cost is not None else ""
    yield (
        f"The policy is {tuned.policy}. The search took {texts.duration(evidence.search_ms)}{money}"
        f", and has paid for itself after {texts.plural(evidence.paid_after_runs or 0, 'run')}."
    )


def _pairs(measured: Measured, kind: str) -> str:
    return (
        f"{len(measured.pairs)} {kind}pairs: time {interval(measured.log_ratio)}, "
        f"{measured.verdict}."
    )


def data(tuned: Tuned) -> dict[str, Any]:
    """Returns what came of it as JSON has it."""
    evidence = tuned.evidence
    return {
        "query": evidence.query,
        "fingerprints": list(evidence.fingerprints),
        "policy": str(tuned.policy) if tuned.policy else None,
        "tries": len(evidence.tries),
        "plain_ms": evidence.plain_ms,
        "fresh": _measured(evidence.fresh),
        "held_out": _measured(evidence.held_out),
        "search_ms": evidence.search_ms,
        "cost": tuned.cost,
        "paid_after_runs": evidence.paid_after_runs,
    }


def _measured(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "pairs": len(measured.pairs),
        "log_ratio": measured.log_ratio._asdict(),
        "verdict": measured.verdict,
        "error": measured.error,
    }
