"""What is in force follows the state: files of a branch, or settings and rules that are live.

Everything here may be done again: it makes what is there the same as what the state says.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta, timezone

from aqepilot import control
from aqepilot.autopilot import branch
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.journal import LIVE, STATE, Journal
from aqepilot.autopilot.live import Live, live
from aqepilot.autopilot.reasons import REASONS
from aqepilot.autopilot.state import PREFIX, State, Trial
from aqepilot.errors import AqePilotError

# Applications that began before a policy was taken back are over by then.
_LASTS = timedelta(days=7)
_BY = f"aqepilot {PREFIX}"
_MOST_REASON = 480


def deliver(
    definition: Definition,
    journal: Journal,
    state: State,
    conf: Mapping[str, str] | None = None,
    *,
    now: datetime | None = None,
) -> None:
    """Puts what a state says into force.

    Args:
        definition: What the autopilot may do.
        journal: Where the state is from: it has the records of all that is put into force.
        state: The state.
        conf: Spark settings for file systems, ``spark.hadoop.*``.
        now: The time; null for now.

    Raises:
        AqePilotError: Something cannot be written.
    """
    if definition.deliver == "live":
        # What hurts goes first.
        _take_back(str(definition.control), state, conf, now or datetime.now(timezone.utc))
        journal.keep(LIVE, live(state))
    else:
        journal.keep(LIVE, Live())
        branch.write(definition, state)
    journal.keep(STATE, state)


def _take_back(file: str, state: State, conf: Mapping[str, str] | None, now: datetime) -> None:
    """Makes the control file's rules of the autopilot those of the trials that ended."""
    wanted = {
        tuple(sorted(selectors.items())): trial
        for trial in state.trials.values()
        if trial.is_over and trial.number is not None and _is_recent(trial, now)
        for selectors in _selectors(trial)
    }
    try:
        there = control.read(file, conf)
    except AqePilotError as error:
        if not wanted or any(problem.code == "CONTROL_INVALID" for problem in error.problems):
            if wanted:
                raise
            return
        there = control.ControlFile()
    rules = {tuple(sorted(rule.selectors.items())): rule for rule in there.rules}
    for selectors, trial in wanted.items():
        if selectors not in rules:
            reason = f"{trial.reason}: {trial.detail or REASONS[trial.reason]}"[:_MOST_REASON]
            control.lower(
                file,
                "off",
                dict(selectors),
                reason=reason,
                until=now + _LASTS,
                by=_BY,
                conf=conf,
            )
    for selectors, rule in rules.items():
        if rule.by == _BY and selectors not in wanted:
            # A person was faster.
            with suppress(AqePilotError):
                control.lift(file, rule=rule.id, reason="its week is over", by=_BY, conf=conf)


def _is_recent(trial: Trial, now: datetime) -> bool:
    return trial.ended is not None and now.timestamp() / 86400 - trial.ended < _LASTS.days


def _selectors(trial: Trial) -> list[dict[str, str]]:
    return [{"policy": trial.name, "job": trial.job}]
