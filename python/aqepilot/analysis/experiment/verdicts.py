"""What an experiment says so far, for people and programs; and taking back what hurts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from aqepilot import control
from aqepilot.analysis.experiment.analysis import HARM, Analysis
from aqepilot.analysis.experiment.experiment import Experiment
from aqepilot.analysis.experiment.guards import Shares
from aqepilot.analysis.experiment.metrics import METRICS
from aqepilot.analysis.experiment.money import Money
from aqepilot.analysis.intervals import Interval, interval
from aqepilot.experiment.assignment import PLAIN


def metrics(experiment: Experiment, analysis: Analysis) -> list[tuple[str, Interval, Interval]]:
    """Returns what each metric is, with its effects where arms differ and on all, as texts.

    The one that decides is the first.
    """
    names = sorted(METRICS, key=lambda name: name != experiment.metric)
    return [(METRICS[name][0], analysis.exposed[name], analysis.effects[name]) for name in names]


def guards(analysis: Analysis) -> list[tuple[str, Shares]]:
    """Returns the counts beside the metrics, as names and texts."""
    rows = [
        ("failed", analysis.failures),
        ("over twice as long", analysis.slow),
        ("out of memory", analysis.out_of_memory),
    ]
    return [*rows, ("spilled to disk", analysis.spilled)] if analysis.spilled else rows


def table(experiment: Experiment, analysis: Analysis) -> Table:
    """Returns a row for each metric, the one that decides first; then what fails or stalls."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("")
    for head in ("where the arms differ", "all that were assigned"):
        shown.add_column(head, justify="right")
    for number, (what, exposed, effect) in enumerate(metrics(experiment, analysis)):
        style = None if number else "bold"
        shown.add_row(what, interval(exposed), interval(effect), style=style)
    shown.add_section()
    shown.add_row("", experiment.treatment, experiment.control, style="bold")
    for what, shares in guards(analysis):
        arms = (share(shares.treatment), share(shares.control))
        shown.add_row(what, *arms, style="red" if shares.is_worse else None)
    return shown


def sentences(
    experiment: Experiment,
    analysis: Analysis,
    *,
    harmful: float = HARM,
    queries: Mapping[str, Interval] | None = None,
    money: Money | None = None,
) -> list[str]:
    """Returns what is compared, the verdict, who is harmed, and what is not in the figures.

    Args:
        experiment: What was compared.
        analysis: What it says.
        harmful: How many times as long counts as harm.
        queries: Queries that are harmed, of units that have more than one.
        money: What it saves or costs.
    """
    control, treatment = analysis.runs
    lines = [
        f"{experiment.name}: {experiment.treatment} ({_counted(treatment, experiment.unit_kind)}) "
        f"compared with {experiment.control} ({control}).",
        f"{analysis.verdict.capitalize()}. {analysis.says}",
    ]
    more = f"more than {harmful:g} times as long counts as harm"
    lines += [f"{job}: its time is {interval(by)}; {more}." for job, by in analysis.harmed.items()]
    lines += [
        f"A query of {job}, with the fingerprint {fingerprint[:12]}: its time is {interval(by)}; "
        f"{more}."
        for job, fingerprint, by in _by_query(queries)
    ]
    if money:
        lines.append(_money(money))
    if analysis.spilled and analysis.spilled.is_worse:
        lines.append(
            f"More of the treatment's runs spill to disk: {share(analysis.spilled.treatment)} "
            f"instead of {share(analysis.spilled.control)}. That alone stops nothing."
        )
    lines += [
        f"Stopped by a guard rail in {_applications(n)}: {why}."
        for why, n in experiment.stopped.items()
    ]
    return lines + _left_out(experiment, analysis)


def _left_out(experiment: Experiment, analysis: Analysis) -> list[str]:
    lines = []
    if analysis.backfills:
        control, treatment = analysis.backfills.runs
        failed = analysis.backfills.failed
        lines.append(
            f"Beside them backfills, which do not count: {treatment} ({failed[1]} failed) compared "
            f"with {control} ({failed[0]} failed), {interval(analysis.backfills.effect)}."
        )
    for n, why in (
        (analysis.undrawn, "could have got one of the two arms only: {} left out"),
        (analysis.without_query, "had no query: {} nothing of any metric"),
        (experiment.running, "may still run: {} left out"),
    ):
        if n:
            verb = (
                ("says" if n == 1 else "say") if "nothing" in why else ("is" if n == 1 else "are")
            )
            lines.append(f"{_counted(n, experiment.unit_kind)} {why.format(verb)}.")
    return lines


def _by_query(queries: Mapping[str, Interval] | None) -> list[tuple[str, str, Interval]]:
    return [(*_split(name), effect) for name, effect in (queries or {}).items()]


def _split(query: str) -> tuple[str, str]:
    """A query is named by its job and its fingerprint."""
    job, _, fingerprint = query.rpartition("|")
    return job, fingerprint


def _money(money: Money) -> str:
    what = f"All runs cost about {money.control:,.2f} {money.currency} a day under the control"
    if not math.isfinite(money.lower) or not math.isfinite(money.upper):
        return f"{what}; what the treatment changes is not known yet."
    return (
        f"{what}; under the treatment {money.change:+,.2f} ({money.lower:+,.2f} to "
        f"{money.upper:+,.2f}), if each run changes as runs do on average."
    )


def data(
    experiment: Experiment,
    analysis: Analysis,
    *,
    queries: Mapping[str, Interval] | None = None,
    money: Money | None = None,
) -> dict[str, Any]:
    """Returns all of it as JSON can say it; infinities are null.

    Args:
        experiment: What was compared.
        analysis: What it says.
        queries: As for `sentences`.
        money: As for `sentences`.
    """

    def shares(pair: Shares | None) -> dict[str, Any] | None:
        if pair is None:
            return None
        return {
            "control": _data(pair.control),
            "treatment": _data(pair.treatment),
            "is_worse": pair.is_worse,
        }

    def all_of(intervals: Mapping[str, Interval]) -> dict[str, Any]:
        return {name: _data(effect) for name, effect in intervals.items()}

    def by_arm(counts: tuple[int, int]) -> dict[str, int]:
        return {"control": counts[0], "treatment": counts[1]}

    backfills = analysis.backfills
    return {
        **experiment._asdict(),
        "runs": by_arm(analysis.runs),
        "exposed_runs": by_arm(analysis.exposed_runs),
        "undrawn": analysis.undrawn,
        "without_query": analysis.without_query,
        "backfills": backfills
        and {
            "runs": by_arm(backfills.runs),
            "failed": by_arm(backfills.failed),
            "effect": _data(backfills.effect),
        },
        "verdict": analysis.verdict,
        "says": analysis.says,
        "effects": all_of(analysis.effects),
        "exposed": all_of(analysis.exposed),
        "failed": shares(analysis.failures),
        "slow": shares(analysis.slow),
        "out_of_memory": shares(analysis.out_of_memory),
        "spilled": shares(analysis.spilled),
        "mismatch_e_value": analysis.mismatch,
        "exposed_mismatch_e_value": analysis.exposed_mismatch,
        "harmed": all_of(analysis.harmed),
        "harmed_queries": [
            {"job": job, "fingerprint": fingerprint, "effect": _data(effect)}
            for job, fingerprint, effect in _by_query(queries)
        ],
        "cost_per_day": money
        and {
            name: value if not isinstance(value, float) or math.isfinite(value) else None
            for name, value in money._asdict().items()
        },
    }


def roll_back(
    experiment: Experiment, analysis: Analysis, file: str, conf: Mapping[str, str] | None = None
) -> list[control.Rule]:
    """Switches the treatment's policies off by the control file: for harmed jobs, or altogether.

    Altogether where more of its runs fail or stall, or where it makes runs longer. Policies that
    the control has, too, stay.

    Args:
        experiment: What was compared.
        analysis: What it says.
        file: The control file.
        conf: Spark settings for its file system, ``spark.hadoop.*``.

    Returns:
        The rules that were written: none where nothing is harmed.

    Raises:
        AqePilotError: The file cannot be read or written.
    """
    own = [] if experiment.treatment == PLAIN else experiment.treatment.split("+")
    policies = [policy for policy in own if policy not in experiment.control.split("+")]
    stopping = (analysis.failures, analysis.slow, analysis.out_of_memory)
    is_worse = (
        any(shares.is_worse for shares in stopping) or analysis.exposed[experiment.metric].lower > 0
    )
    if analysis.verdict == "broken":
        return []
    reason = f"experiment {experiment.name}: {analysis.says}"
    wheres = (
        [{}]
        if analysis.verdict == "stop" and is_worse
        else [
            dict(zip(("job", "fingerprint"), _split(job), strict=True))
            if experiment.unit_kind == "query_run"
            else {"job": job}
            for job in analysis.harmed
        ]
    )
    return [
        control.lower(file, "off", {"policy": policy, **where}, reason=reason, conf=conf)
        for where in wheres
        for policy in policies
    ]


def _counted(n: int, unit_kind: str) -> str:
    what = {"job_run": "run", "query_run": "run of a query", "session": "session"}[unit_kind]
    many = {"run of a query": "runs of queries"}.get(what, f"{what}s")
    return f"{n:,} {what if n == 1 else many}"


def _applications(n: int) -> str:
    return "1 application" if n == 1 else f"{n} applications"


def share(interval: Interval) -> str:
    """Returns a share of runs with where it may be.

    >>> share(Interval(100, 0.05, 0.007, 0.16))
    '5.0 % (0.7 % to 16.0 %)'
    """
    if not interval.n:
        return "?"
    mean, lower, upper = (100 * value for value in interval[1:])
    return f"{mean:.1f} % ({lower:.1f} % to {upper:.1f} %)"


def _data(interval: Interval) -> dict[str, float | None]:
    return {
        name: value if math.isfinite(value) else None for name, value in interval._asdict().items()
    }
