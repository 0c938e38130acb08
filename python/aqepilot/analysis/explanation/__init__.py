"""The last query's decisions in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aqepilot import catalog, texts
from aqepilot.decision import Decision
from aqepilot.display import Lines, html
from aqepilot.session import Status, decisions, status

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Where Spark's own answer and what it would have planned say the same.
_WHOLE_STRATEGY = ("join_reorder", "join_selection")


class Explanation(str):
    """A text that shows its lines when a notebook or a Python prompt displays it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return texts.visible(self)

    def _repr_html_(self) -> str | None:
        heading, *lines = self.splitlines() or [""]
        return html(Lines(heading, [line.strip() for line in lines]))


def explain(spark: SparkSession) -> Explanation:
    """Tells what was decided for the last query that had decisions, and what came of it.

    Args:
        spark: A session, classic or Spark Connect, in which the extension is live.

    Returns:
        One sentence or two per decision, a line each; when there are none, why that may be.

    Raises:
        NotLiveError: The extension is not live in this session; says why and what to do.
    """
    recorded = decisions(spark)
    if not recorded:
        return Explanation(no_decisions(status(spark)))
    return Explanation(describe(recorded))


def describe(recorded: Sequence[Decision], *, knew: bool = False) -> str:
    """Returns the sentences on the last query among these decisions, oldest first.

    What was decided alike at several re-plans is one sentence.

    Args:
        recorded: One at least.
        knew: Whether to add what was known when that was decided first.
    """
    last = recorded[-1]
    facts = {d.facts_id: d.facts for d in recorded if d.facts_json}
    of_query = [
        d
        for d in recorded
        if (d.execution_id, d.fingerprint) == (last.execution_id, last.fingerprint)
    ]
    name = "A query" if last.execution_id is None else f"Query {last.execution_id}"
    text = (facts.get(last.facts_id, {}).get("query") or {}).get("description")
    title = f"{name}{f' ({_short(text)})' if text else ''}: {_count(of_query)}"
    times: Counter[str] = Counter()
    known: dict[str, str] = {}
    for d in of_query:
        outcome = sentence(d, facts.get(d.facts_id, {}))
        times[outcome] += 1
        known.setdefault(outcome, what_was_known(facts.get(d.facts_id, {})) if knew else "")
    lines = (
        f"  {outcome}{f' ({n} times.)' * (n > 1)}{known[outcome] and f' {known[outcome]}'}"
        for outcome, n in times.items()
    )
    return "\n".join([title, *lines])


_KNOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("num_relations", "{} relations", texts.number),
    ("size_in_bytes", "{}", texts.size),
    ("row_count", "{} rows", texts.number),
    ("shuffle_bytes", "{} shuffled", texts.size),
    ("num_partitions", "{} partitions", texts.number),
    ("max_bytes", "the largest {}", texts.size),
    ("median_bytes", "the median {}", texts.size),
    ("shuffles", "{} shuffles to come", texts.number),
    ("cost", "cost {}", texts.number),
)


def what_was_known(facts: dict[str, Any]) -> str:
    """Returns the sizes among facts as a sentence; empty when there are none.

    >>> what_was_known({"conf": {"x_bytes": 1}, "side": {"size_in_bytes": 2048, "row_count": 7}})
    'Spark knew: side 2.0 KiB, 7 rows.'
    """
    groups = []
    for group, values in facts.items():
        if group in ("query", "conf", "cluster") or not isinstance(values, dict):
            continue
        parts = [
            form.format(show(values[name]))
            for name, form, show in _KNOWN
            if isinstance(values.get(name), (int, float))
        ]
        if parts:
            groups.append(f"{group} {', '.join(parts)}")
    return f"Spark knew: {'; '.join(groups)}." if groups else ""


def sentence(decision: Decision, facts: dict[str, Any]) -> str:
    """Returns what a person wants to know of one decision.

    Args:
        decision: The decision.
        facts: Its facts; empty when they are not known.
    """
    join_type = (facts.get("join") or {}).get("type")
    about = decision.subject or "A query"
    about = about[0].upper() + about[1:]
    if decision.tables:
        about += f", {decision.tables}"
    if join_type:
        about += f" ({join_type})"
    text = (
        f"policy `{decision.policy}` said {decision.answer}"
        if decision.answer is not None
        else "no policy had an answer"
    )
    without = (
        f"; Spark would have planned {decision.spark_strategy}" if decision.spark_strategy else ""
    )
    if decision.spark_answer and decision.point not in _WHOLE_STRATEGY:
        without += f" (its own rule said {decision.spark_answer})"
    more = _sizes(facts) + _withheld(facts)
    return f"{about}, {decision.point}: {text}{without}. {_outcome(decision)}{more}"


def _sizes(facts: dict[str, Any]) -> str:
    """What averaged sizes hide, where a policy saw such."""
    averaged = any(
        isinstance(group, dict) and group.get("bytes_are_exact") is False
        for group in facts.values()
    )
    return (
        " Sizes of small blocks were averages, which hides what many map tasks wrote a little much "
        "of; spark.shuffle.minNumPartitionsToHighlyCompress mends it."
        if averaged
        else ""
    )


def _withheld(facts: dict[str, Any]) -> str:
    """Why history was not used, and for how long, where it is held."""
    reasons = dict.fromkeys(_held(facts))
    return "".join(f" History was not used: {reason}." for reason in reasons)


def _held(facts: Any) -> Iterator[str]:
    if isinstance(facts, dict):
        if isinstance(facts.get("held"), str):
            yield facts["held"]
        facts = list(facts.values())
    if isinstance(facts, list):
        for below in facts:
            yield from _held(below)


def _outcome(decision: Decision) -> str:
    ran = decision.final_strategy
    if decision.applied:
        came_of_it = {
            "adopted": f"Adopted: the query ran {ran or 'as decided'}.",
            "refused_by_cost": "Refused on cost: AQE found the plan that was asked for dearer and "
            f"kept {ran or 'the one it had'}.",
            "no_change": f"No change: the query ran {ran or 'the same'}, as it would have "
            "without the policy.",
            "superseded": f"Superseded by a later decision; the query ran {ran or 'otherwise'}.",
            "gone": "Gone: it is not in the final plan. AQE replaced it, or took its result from "
            "an equal one.",
        }.get(
            decision.fate or "",
            "Applied; what came of it is not known, because the query still runs or has failed.",
        )
        return f"{came_of_it}{f' Note: {decision.detail}.' if decision.detail else ''}"
    kept = f" The query ran {ran}." if ran else ""
    if decision.reason == "SHADOW":
        return f"Recorded only, as the policy is in shadow mode.{kept}"
    if decision.reason == "NULL_ANSWER":
        return f"Left to Spark.{kept}"
    meaning = catalog.reasons().get(decision.reason)
    why = f"{decision.reason}, {meaning}" if meaning else decision.reason
    detail = f" ({decision.detail.rstrip('.')})" if decision.detail else ""
    return f"Not applied: {why}{detail}.{kept}"


def no_decisions(rows: Sequence[Status]) -> str:
    """Returns why there are no decisions, as far as the extension's status tells."""
    problems = [f"  {row.name}: {row.detail or row.value}" for row in rows if row.kind == "problem"]
    policies = [row for row in rows if row.kind == "policy"]
    asked = [row.name for row in policies if row.value in ("shadow", "enforce")]
    if not policies:
        why = "No policy is set: aqepilot.use(spark, policy) sets one."
    elif not asked:
        modes = ", ".join(f"{row.name} is {row.value}" for row in policies)
        why = f"No policy is asked: {modes}."
    else:
        why = (
            f"{', '.join(asked)} would be asked: run a query that has what a policy decides on, "
            "such as a join; what was explained or cached before is not decided anew."
        )
    return "\n".join([f"No decisions are recorded in this session. {why}", *problems])


def _count(of_query: Sequence[Decision]) -> str:
    applied = sum(d.applied for d in of_query)
    return f"{len(of_query)} decision{'s' * (len(of_query) != 1)}, {applied} applied."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:59]}…"
