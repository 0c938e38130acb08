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


def metrics(of: Experiment, found: Analysis) -> list[tuple[str, Interval, Interval]]:
    """Returns what each metric is, with its effects where arms differ and on all, as they are told.

    The one that decides is the first.
    """
    names = sorted(METRICS, key=lambda name: name != of.metric)
    return [(METRICS[name][0], found.exposed[name], found.effects[name]) for name in names]


def guards(found: Analysis) -> list[tuple[str, Shares]]:
    """Returns what is counted beside the metrics, as it is told."""
    rows = [
        ("failed", found.failures),
        ("over twice as long", found.slow),
        ("out of memory", found.out_of_memory),
    ]
    return [*rows, ("spilled to disk", found.spilled)] if found.spilled else rows


def table(of: Experiment, found: Analysis) -> Table:
    """Returns a row for each metric, the one that decides first; then what fails or stalls."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("")
    for head in ("where the arms differ", "all that were assigned"):
        shown.add_column(head, justify="right")
    for number, (what, exposed, effect) in enumerate(metrics(of, found)):
        style = None if number else "bold"
        shown.add_row(what, interval(exposed), interval(effect), style=style)
    shown.add_section()
    shown.add_row("", of.treatment, of.control, style="bold")
    for what, shares in guards(found):
        arms = (share(shares.treatment), share(shares.control))
        shown.add_row(what, *arms, style="red" if shares.is_worse else None)
    return shown


def sentences(
    of: Experiment,
    found: Analysis,
    *,
    harmful: float = HARM,
    queries: Mapping[str, Interval] | None = None,
    money: Money | None = None,
) -> list[str]:
    """Returns what is compared, the verdict, who is harmed, and what is not in the figures.

    Args:
        of: What was compared.
        found: What it says.
        harmful: How many times as long counts as harm.
        queries: Queries that are harmed, of units that have more than one.
        money: What it saves or costs.
    """
    control, treatment = found.runs
    said = [
        f"{of.name}: {of.treatment} ({_counted(treatment, of.unit_kind)}) compared with "
        f"{of.control} ({control}).",
        f"{found.verdict.capitalize()}. {found.says}",
    ]
    more = f"more than {harmful:g} times as long counts as harm"
    said += [f"{job}: its time is {interval(by)}; {more}." for job, by in found.harmed.items()]
    said += [
        f"A query of {job}, with the fingerprint {fingerprint[:12]}: its time is {interval(by)}; "
        f"{more}."
        for job, fingerprint, by in _by_query(queries)
    ]
    if money:
        said.append(_money(money))
    if found.spilled and found.spilled.is_worse:
        said.append(
            f"More of the treatment's runs spill to disk: {share(found.spilled.treatment)} instead "
            f"of {share(found.spilled.control)}. That alone stops nothing."
        )
    said += [
        f"Stopped by a guard rail in {_applications(n)}: {why}." for why, n in of.stopped.items()
    ]
    return said + _left_out(of, found)


def _left_out(of: Experiment, found: Analysis) -> list[str]:
    said = []
    if found.backfills:
        control, treatment = found.backfills.runs
        failed = found.backfills.failed
        said.append(
            f"Beside them backfills, which do not count: {treatment} ({failed[1]} failed) compared "
            f"with {control} ({failed[0]} failed), {interval(found.backfills.effect)}."
        )
    for n, why in (
        (found.undrawn, "could have got one of the two arms only: {} left out"),
        (found.without_query, "had no query: {} nothing of any metric"),
        (of.running, "may still run: {} left out"),
    ):
        if n:
            verb = (
                ("says" if n == 1 else "say") if "nothing" in why else ("is" if n == 1 else "are")
            )
            said.append(f"{_counted(n, of.unit_kind)} {why.format(verb)}.")
    return said


def _by_query(queries: Mapping[str, Interval] | None) -> list[tuple[str, str, Interval]]:
    return [(*_split(name), effect) for name, effect in (queries or {}).items()]


def _split(query: str) -> tuple[str, str]:
    """A query is named by its job and its fingerprint."""
    job, _, fingerprint = query.rpartition("|")
    return job, fingerprint


def _money(of: Money) -> str:
    what = f"All runs cost about {of.control:,.2f} {of.currency} a day under the control"
    if not math.isfinite(of.lower) or not math.isfinite(of.upper):
        return f"{what}; what the treatment changes is not known yet."
    return (
        f"{what}; under the treatment {of.change:+,.2f} ({of.lower:+,.2f} to {of.upper:+,.2f}), if "
        "each run changes as runs do on average."
    )


def data(
    of: Experiment,
    found: Analysis,
    *,
    queries: Mapping[str, Interval] | None = None,
    money: Money | None = None,
) -> dict[str, Any]:
    """Returns all of it as JSON can say it; infinities are null.

    Args:
        of: What was compared.
        found: What it says.
        queries: As for `sentences`.
        money: As for `sentences`.
    """

    def shares(given: Shares | None) -> dict[str, Any] | None:
        if given is None:
            return None
        return {
            "control": _data(given.control),
            "treatment": _data(given.treatment),
            "is_worse": given.is_worse,
        }

    def all_of(given: Mapping[str, Interval]) -> dict[str, Any]:
        return {name: _data(effect) for name, effect in given.items()}

    def by_arm(given: tuple[int, int]) -> dict[str, int]:
        return {"control": given[0], "treatment": given[1]}

    backfills = found.backfills
    return {
        **of._asdict(),
        "runs": by_arm(found.runs),
        "exposed_runs": by_arm(found.exposed_runs),
        "undrawn": found.undrawn,
        "without_query": found.without_query,
        "backfills": backfills
        and {
            "runs": by_arm(backfills.runs),
            "failed": by_arm(backfills.failed),
            "effect": _data(backfills.effect),
        },
        "verdict": found.verdict,
        "says": found.says,
        "effects": all_of(found.effects),
        "exposed": all_of(found.exposed),
        "failed": shares(found.failures),
        "slow": shares(found.slow),
        "out_of_memory": shares(found.out_of_memory),
        "spilled": shares(found.spilled),
        "mismatch_e_value": found.mismatch,
        "exposed_mismatch_e_value": found.exposed_mismatch,
        "harmed": all_of(found.harmed),
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
    of: Experiment, found: Analysis, file: str, conf: Mapping[str, str] | None = None
) -> list[control.Rule]:
    """Switches the treatment's policies off by the control file: for harmed jobs, or altogether.

    Altogether where more of its runs fail or stall, or where it makes runs longer. Policies that
    the control has, too, stay.

    Args:
        of: What was compared.
        found: What it says.
        file: The control file.
        conf: Spark settings for its file system, ``spark.hadoop.*``.

    Returns:
        The rules that were written: none where nothing is harmed.

    Raises:
        AqePilotError: The file cannot be read or written.
    """
    own = [] if of.treatment == PLAIN else of.treatment.split("+")
    policies = [policy for policy in own if policy not in of.control.split("+")]
    stopping = (found.failures, found.slow, found.out_of_memory)
    is_worse = any(of.is_worse for of in stopping) or found.exposed[of.metric].lower > 0
    if found.verdict == "broken":
        return []
    reason = f"experiment {of.name}: {found.says}"
    wheres = (
        [{}]
        if found.verdict == "stop" and is_worse
        else [
            dict(zip(("job", "fingerprint"), _split(job), strict=True))
            if of.unit_kind == "query_run"
            else {"job": job}
            for job in found.harmed
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


def share(of: Interval) -> str:
    """Returns a share of runs with where it may be.

    >>> share(Interval(100, 0.05, 0.007, 0.16))
    '5.0 % (0.7 % to 16.0 %)'
    """
    if not of.n:
        return "?"
    return f"{100 * of.mean:.1f} % ({100 * of.lower:.1f} % to {100 * of.upper:.1f} %)"


def _data(of: Interval) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in of._asdict().items()}
