"""What an autopilot knows: its trials, made of the events of its journal alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from aqepilot.autopilot.candidate import Candidate
from aqepilot.policies import Policy

PREFIX = "autopilot"
Phase = Literal["shadow", "experiment", "promoted", "ended"]
Step = Literal[
    "propose", "start", "share", "promote", "end", "hold", "release", "pin", "decided", "delivered"
]
ALL = 100.0


class Figures(BaseModel):
    """What a trial's runs say so far.

    Attributes:
        control: Runs of the control since the phase began.
        treatment: Runs of the treatment.
        effect: On the logarithm of the metric; null where nothing is known.
        lower: Where the effect may be, at the least; null for minus infinity.
        upper: At the most; null for infinity.
        log_e: Logarithm of the evidence of a gain.
        saved_ms: What the treated runs saved since the phase began, negative for what they cost.
        ms_per_day: What the job takes a day.
    """

    model_config = ConfigDict(frozen=True)

    control: int = 0
    treatment: int = 0
    effect: float | None = None
    lower: float | None = None
    upper: float | None = None
    log_e: float = 0.0
    saved_ms: float = 0.0
    ms_per_day: float = 0.0


class Event(BaseModel):
    """One line of the journal.

    Attributes:
        look: The look that it is of.
        at: When it was written.
        step: What is done.
        reason: A key of `REASONS`.
        detail: A sentence with the figures.
        by: ``autopilot``, or the person.
        trial: Which trial; empty for a step of the whole look.
        day: The day that the look is for, since the epoch.
        share: Share of treated runs from now on, in percent; null for as before.
        candidate: Of a proposal.
        base: Of a start: the policies that the arms have in common, in their order.
        figures: What was known.
    """

    model_config = ConfigDict(frozen=True)

    look: str
    at: datetime
    step: Step
    reason: str
    detail: str = ""
    by: str = PREFIX
    trial: str = ""
    day: float = 0.0
    share: float | None = None
    candidate: Candidate | None = None
    base: tuple[str, ...] | None = None
    figures: Figures | None = None


class Trial(BaseModel):
    """A policy on a job, from its proposal to its end.

    Attributes:
        id: 12 hexadecimal digits.
        candidate: What is tried.
        number: Of the experiment among all of the autopilot, from 0 on; null before it has one.
        phase: Where it is.
        part: Counts phases, so that each has an experiment of its own.
        since: The day on which the phase began.
        shared: The day since which the share is as it is.
        share: Share of treated runs, in percent.
        base: Policies that both arms have: the team's, then what was promoted before.
        is_held: Whether a person holds it.
        is_pinned: Whether a person keeps it.
        was_promoted: Whether it ever was.
        is_doubted: Whether its hold-out was widened.
        reason: Of the last step.
        detail: Of the last step.
        figures: The newest.
        effect: The estimate at its promotion, on the logarithm; null before.
        saved_ms: Saved in earlier phases.
        harm_ms: Cost in earlier phases.
        ended: The day on which it ended; null for not yet.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    candidate: Candidate
    number: int | None = None
    phase: Phase = "shadow"
    part: int = 0
    since: float = 0.0
    shared: float = 0.0
    share: float = 0.0
    base: tuple[str, ...] = ()
    is_held: bool = False
    is_pinned: bool = False
    was_promoted: bool = False
    is_doubted: bool = False
    reason: str = ""
    detail: str = ""
    figures: Figures = Figures()
    effect: float | None = None
    saved_ms: float = 0.0
    harm_ms: float = 0.0
    ended: float | None = None

    @property
    def job(self) -> str:
        """The job."""
        return self.candidate.job

    @property
    def name(self) -> str:
        """The policy's name in settings and in the record."""
        return f"{PREFIX}_{self.id}"

    @property
    def experiment(self) -> str:
        """The name of the experiment of this phase."""
        return f"{PREFIX}.{self.id}.{self.part}"

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.phase == "ended"

    def policy(self) -> Policy:
        """Returns the policy under the trial's own name, in the mode of its phase."""
        return self.candidate.policy(self.name, "shadow" if self.phase == "shadow" else "enforce")


class State(BaseModel):
    """All that follows from a journal.

    Attributes:
        events: How many events it has.
        trials: By id, in the order of their proposals.
        decided: Looks that are decided, the newest last.
        delivered: The newest look that is delivered; null for none.
        started: How many experiments there were.
        promoted: How many promotions there were.
        day: The day of the newest look that is decided, since the epoch.
    """

    events: int = 0
    trials: dict[str, Trial] = {}
    decided: list[str] = []
    delivered: str | None = None
    started: int = 0
    promoted: int = 0
    day: float = 0.0

    def after(self, events: Iterable[Event]) -> State:
        """Returns the state after more events."""
        state = self.model_copy(update={"trials": dict(self.trials), "decided": list(self.decided)})
        for event in events:
            state._add(event)
        return state

    def _add(self, event: Event) -> None:
        self.events += 1
        if event.step == "decided":
            self.decided.append(event.look)
            self.day = event.day
        elif event.step == "delivered":
            self.delivered = event.look
        elif event.step == "propose":
            if event.candidate and event.trial not in self.trials:
                self.trials[event.trial] = Trial(
                    id=event.trial,
                    candidate=event.candidate,
                    since=event.day,
                    reason=event.reason,
                    detail=event.detail,
                )
        elif event.trial in self.trials:
            trial = self.trials[event.trial]
            changes = {**_changes(trial, event), "reason": event.reason, "detail": event.detail}
            if event.step == "start":
                changes["number"] = self.started
                self.started += 1
            if event.step in ("promote", "pin") and not trial.was_promoted:
                self.promoted += event.step == "promote"
                changes["was_promoted"] = True
            self.trials[event.trial] = trial.model_copy(update=changes)

    def measured(self, figures: Mapping[str, Figures]) -> State:
        """Returns the state with the newest figures of trials."""
        trials = {
            name: trial.model_copy(update={"figures": figures[name]}) if name in figures else trial
            for name, trial in self.trials.items()
        }
        return self.model_copy(update={"trials": trials})

    @property
    def open(self) -> list[Trial]:
        """Trials that have not ended."""
        return [trial for trial in self.trials.values() if not trial.is_over]


# Steps that begin a phase.
_BEGINS = ("start", "promote", "pin", "end")
# Reasons of a new share for which runs are drawn anew: what was known is of another time.
_REDRAWS = ("GAIN_DOUBTED", "GAIN_KEPT")


def _changes(trial: Trial, event: Event) -> dict[str, object]:
    """What an event changes of its trial."""
    changes: dict[str, object] = {}
    if event.share is not None:
        changes |= {"share": event.share, "shared": event.day}
    if event.step in _BEGINS or event.reason in _REDRAWS:
        saved = (event.figures or trial.figures).saved_ms
        changes |= {
            "since": event.day,
            "part": trial.part + 1,
            "saved_ms": trial.saved_ms + max(saved, 0.0),
            "harm_ms": trial.harm_ms + max(-saved, 0.0),
        }
        changes["figures"] = Figures(ms_per_day=trial.figures.ms_per_day)
    if event.step == "start":
        changes |= {"phase": "experiment", "base": event.base or ()}
    elif event.step == "promote":
        changes |= {"phase": "promoted", "effect": (event.figures or trial.figures).effect}
    elif event.step == "pin":
        changes |= {"phase": "promoted", "is_pinned": True, "is_held": False, "share": ALL}
    elif event.step == "end":
        changes |= {"phase": "ended", "share": 0.0, "ended": event.day, "is_pinned": False}
        # What was saved is counted already.
        last = event.figures or trial.figures
        changes["figures"] = last.model_copy(update={"saved_ms": 0.0})
    elif event.step == "share":
        changes["is_doubted"] = event.reason == "GAIN_DOUBTED"
    elif event.step in ("hold", "release"):
        changes["is_held"] = event.step == "hold"
    return changes
