"""What trials cost, what they may still cost, and whether the budget covers one more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, Figured, Measured
from aqepilot.autopilot.state import Event, State, Trial

HOUR_MS = 3_600_000
# What a trial that turns out bad may cost before that is seen: half of its treated time more, of
# so many days.
_AT_RISK = 0.5
_AT_RISK_DAYS = 5


class Budget:
    """The budget of harm in one look.

    Args:
        definition: How much it is.
        state: What was before the look.
        evidence: What is known.
        figured: Its figures.
        measured: The figures of trials that have runs, by id.
        events: The steps of the look so far, which may grow.

    Attributes:
        whole_ms: How much it is, in milliseconds of the metric.
    """

    def __init__(
        self,
        definition: Definition,
        state: State,
        evidence: Evidence,
        figured: Figured,
        measured: Mapping[str, Measured],
        events: Sequence[Event],
    ) -> None:
        self._days = definition.harm_days
        self.whole_ms = definition.harm_hours * HOUR_MS
        self._state = state
        self._day = evidence.day
        self._figured = figured
        self._measured = measured
        self._events = events

    def saved_ms(self, trial: Trial) -> float:
        """Returns what the treated runs of a trial's phase saved, negative for what they cost."""
        measured = self._measured.get(trial.id)
        return measured.saved_ms if measured else 0.0

    def spent_ms(self) -> float:
        """Returns what trials cost in the days of the budget, in milliseconds of the metric."""
        since = self._day - self._days
        spent = 0.0
        for trial in self._state.trials.values():
            if trial.ended is None:
                spent += trial.harm_ms + max(-self.saved_ms(trial), 0.0)
            elif trial.ended >= since:
                spent += trial.harm_ms
        return spent

    def at_risk_ms(self, job: str, share: float, trial: Trial | None = None) -> float:
        """Returns what a job's treated runs may cost before harm is seen.

        Args:
            job: The job.
            share: Of its runs that are treated, in percent.
            trial: Whose evidence counts: the more there is of a gain, the less is at risk.
        """
        daily = self._figured.ms_per_day.get(job, 0.0)
        measured = self._measured.get(trial.id) if trial else None
        doubt = math.exp(-max(measured.gain_log_e, 0.0)) if measured else 1.0
        return _AT_RISK * _AT_RISK_DAYS * daily * share / 100 * doubt

    def has_room(self, more: float) -> bool:
        """Returns whether it covers one more risk beside what is spent and those there are."""
        shares = {t.id: t.share for t in self._state.open if t.phase == "experiment"}
        for event in self._events:
            if event.step in ("end", "promote"):
                shares.pop(event.trial, None)
            elif event.step == "start" or event.trial in shares:
                shares[event.trial] = event.share or 0.0
        trials = self._state.trials
        risks = sum(self.at_risk_ms(trials[t].job, s, trials[t]) for t, s in shares.items())
        return self.spent_ms() + risks + more <= self.whole_ms
