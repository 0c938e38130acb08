"""What an experiment says so far, for people and programs; and taking back what hurts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from aqepilot import control
from aqepilot.experiment.analysis import HARM, Analysis, Shares
from aqepilot.experiment.assignment import PLAIN
from aqepilot.experiment.history import METRICS, Experiment
from aqepilot.experiment.sequences import Interval
from aqepilot.experiment.telling import interval


def table(of: Experiment, found: Analysis) -> Table:
    """Returns a row for each metric, the one that decides first; then what fails or stalls."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("")
    for head in ("where the arms differ", "all that were assigned"):
        shown.add_column(head, justify="right")
    names = sorted(METRICS, key=lambda name: name != of.metric)
    for name in names:
        what, _, _ = METRICS[name]
        shown.add_row(
            what,
            interval(found.exposed[name]),
            interval(found.effects[name]),
            style="bold" if name == of.metric else None,
        )
    for what, shares in (("failed", found.failures), ("over twice as long", found.slow)):
        arms = f"{_percent(shares.treatment.mean)} instead of {_percent(shares.control.mean)}"
        shown.add_row(what, "", arms, style="red" if shares.is_worse else None)
    return shown


def sentences(of: Experiment, found: Analysis) -> list[str]:
    """Returns what is compared, the verdict, and who is harmed."""
    control, treatment = found.runs
    said = [
        f"{of.name}: {of.treatment} ({_counted(treatment, of.unit_kind)}) compared with "
        f"{of.control} ({control}).",
        f"{found.verdict.capitalize()}. {found.says}",
    ]
    said += [
        f"{job} takes {interval(effect)}: more than {HARM:g} times as long counts as harm."
        for job, effect in found.harmed.items()
    ]
    said += [
        f"Stopped by a guard rail in {_applications(n)}: {why}." for why, n in of.stopped.items()
    ]
    return said


def data(of: Experiment, found: Analysis) -> dict[str, Any]:
    """Returns all of it as JSON can say it; infinities are null."""

    def shares(given: Shares) -> dict[str, Any]:
        return {"control": _data(given.control), "treatment": _data(given.treatment)}

    def all_of(given: Mapping[str, Interval]) -> dict[str, Any]:
        return {name: _data(effect) for name, effect in given.items()}

    return {
        **of._asdict(),
        "runs": {"control": found.runs[0], "treatment": found.runs[1]},
        "verdict": found.verdict,
        "says": found.says,
        "effects": all_of(found.effects),
        "exposed": all_of(found.exposed),
        "failed": shares(found.failures),
        "slow": shares(found.slow),
        "mismatch_e_value": found.mismatch,
        "harmed": all_of(found.harmed),
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
    is_worse = found.failures.is_worse or found.slow.is_worse or found.exposed[of.metric].lower > 0
    if found.verdict == "broken":
        return []
    reason = f"experiment {of.name}: {found.says}"
    # A query's run is named by its job and its fingerprint.
    wheres = (
        [{}]
        if found.verdict == "stop" and is_worse
        else [
            dict(zip(("job", "fingerprint"), job.rsplit("|", 1), strict=True))
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


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "?"


def _data(of: Interval) -> dict[str, float | None]:
    return {name: value if math.isfinite(value) else None for name, value in of._asdict().items()}
