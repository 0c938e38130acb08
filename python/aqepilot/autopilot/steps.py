"""What the next step of each trial is: a function of what is known, without any effect."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timezone

from aqepilot.analysis.experiment.guards import BROKEN
from aqepilot.analysis.intervals import percent
from aqepilot.autopilot import learned
from aqepilot.autopilot.budget import HOUR_MS, Budget
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, Figured, Measured
from aqepilot.autopilot.promotion import promotable
from aqepilot.autopilot.state import PREFIX, Event, Figures, State, Step, Trial
from aqepilot.errors import AqePilotError

# An experiment that is ended says nothing wrong, so what ends it may be quick to do so.
_HARM = math.log(5.0)
_FAILS = math.log(20.0)
_TURNED = math.log(30.0)
_SHOWN = math.log(20.0)
# With such evidence of a gain an experiment may take twice its days.
_HINTED = math.log(3.0)
# A share stays until so many runs were treated.
_TREATED_RUNS = 1
# Before that, nothing is said of a gain that is small.
_FEW = 8
_DOUBT_SHARE = 50.0
_DOUBT_DAYS = 12
_MOST_OF_BUDGET = 0.05


class Steps:
    """The steps of one look.

    Args:
        definition: What the autopilot may do.
        state: What was before.
        evidence: What the runs say.
        look: The look's name.
        at: The time that events get; null for now.
        known: As for `Figured`.
    """

    def __init__(
        self,
        definition: Definition,
        state: State,
        evidence: Evidence,
        look: str,
        at: datetime | None = None,
        known: dict[tuple[str, int], Measured | None] | None = None,
    ) -> None:
        self._definition = definition
        self._state = state
        self._evidence = evidence
        self._look = look
        self._at = at or datetime.now(timezone.utc).replace(microsecond=0)
        self._figured = Figured(evidence, definition.metric, known)
        self._measured: dict[str, Measured] = {}
        for trial in state.open:
            if trial.phase != "shadow" and (one := self._figured.measure(trial.experiment)):
                self._measured[trial.id] = one
        self._events: list[Event] = []
        self._budget = Budget(
            definition, state, evidence, self._figured, self._measured, self._events
        )
        self._done: set[str] = set()

    def decide(self, candidates: Iterable[Candidate]) -> list[Event]:
        """Returns the events of the look, with the one that says that it is decided."""
        for trial in self._state.open:
            if ended := self._ending(trial):
                self._step(trial, "end", *ended)
        self._keep_to_budget()
        for trial in self._free("promoted"):
            self._watch(trial)
        self._promote()
        for trial in self._free("experiment"):
            self._go_on(trial)
        for trial in self._free("shadow"):
            self._leave_shadow(trial)
        self._propose(candidates)
        self._events.append(self._event("decided", "DECIDED"))
        return self._events

    def figures(self) -> dict[str, Figures]:
        """Returns the figures of all trials that have runs."""
        return {name: self._figures_of(self._state.trials[name]) for name in self._measured}

    def _free(self, phase: str) -> list[Trial]:
        """Trials of a phase that had no step in this look, and that nobody holds."""
        return [
            trial
            for trial in self._state.open
            if trial.phase == phase and not trial.is_held and trial.id not in self._done
        ]

    def _ending(self, trial: Trial) -> tuple[str, str] | None:
        """Why a trial ends, whatever else there is."""
        if trial.is_pinned:
            return None
        points = trial.candidate.points
        teams = self._evidence.teams.get(trial.job, ())
        if theirs := [team.name for team in teams if set(team.points) & set(points)]:
            return "TEAM_POLICY", f"The team's policy {theirs[0]} decides at {', '.join(points)}."
        if not self._definition.may(trial.job, points):
            return "JOB_LEFT", "The definition no longer allows it."
        measured = self._measured.get(trial.id)
        if measured is None:
            return None
        control, treatment = measured.exposed
        arms = f"{control} runs of the control and {treatment} treated ones"
        if measured.mismatch >= BROKEN:
            return "DRAW_BROKEN", f"The runs are {measured.runs[0]} and {measured.runs[1]}."
        if measured.failures_log_e >= _FAILS:
            return "FAILURES", f"Of {arms}."
        if measured.memory_log_e >= _FAILS:
            return "OUT_OF_MEMORY", f"Of {arms}."
        effect = "?" if measured.effect is None else percent(measured.effect)
        if trial.phase == "experiment" and measured.harm_log_e >= _HARM:
            return "HARM_SHOWN", f"{effect} in {arms}."
        is_shown = trial.is_doubted and measured.harm_log_e >= _SHOWN
        if trial.phase == "promoted" and (is_shown or measured.turn_log_e >= _TURNED):
            return "GAIN_LOST", f"{effect} in {arms} since it was promoted."
        return None

    def _keep_to_budget(self) -> None:
        """Takes back what harms most, while the fleet's harm is above its budget.

        No trial by itself may cost more than a part of it.
        """
        spent = self._budget.spent_ms()
        budget = self._budget.whole_ms
        worst = sorted(
            (trial for trial in self._state.open if trial.id not in self._done),
            key=self._budget.saved_ms,
        )
        for trial in worst:
            is_dear = -self._budget.saved_ms(trial) > _MOST_OF_BUDGET * budget
            if (spent <= budget and not is_dear) or self._budget.saved_ms(trial) >= 0:
                break
            if trial.is_pinned:
                continue
            own = -self._budget.saved_ms(trial) / HOUR_MS
            whole = f"all trials cost {spent / HOUR_MS:.1f} of {budget / HOUR_MS:.1f}"
            detail = f"It cost {own:.1f} hours, and {whole}."
            self._step(trial, "end", "BUDGET_SPENT", detail)
            # What it has cost stays; what it would cost further is saved.
            spent -= self._budget.at_risk_ms(trial.job, trial.share, trial)

    def _watch(self, trial: Trial) -> None:
        """Widens the hold-out of what may have become slower, and narrows it again.

        Where a newer change of the job is tried, both of its arms have this policy, too.
        """
        drawn = active(self._state.open, trial.job)
        measured = self._measured.get(drawn.id) if drawn else None
        if measured is None or drawn is None or trial.is_pinned:
            return
        kept = 100 - self._definition.hold_out
        if trial.is_doubted:
            is_over = self._evidence.day >= trial.shared + _DOUBT_DAYS
            least = math.log1p(-self._definition.least_effect / 100)
            if is_over and (measured.effect is None or measured.effect > least):
                self._step(trial, "end", "GAIN_LOST", self._words(measured))
            elif is_over or (drawn == trial and measured.gain_log_e >= _HINTED):
                self._step(trial, "share", "GAIN_KEPT", self._words(measured), kept)
        elif self._figured.is_slower(
            trial.job, trial.since, f"{PREFIX}.{trial.id}.", trial.effect or 0.0
        ):
            # Of several, the newest is looked at first.
            newest = max(
                (t for t in self._state.open if t.job == trial.job and t.phase == "promoted"),
                key=lambda t: t.since,
            )
            if newest == trial and not drawn.is_doubted:
                detail = "The newest runs of the job."
                self._step(trial, "share", "GAIN_DOUBTED", detail, min(_DOUBT_SHARE, kept))

    def _promote(self) -> None:
        ready = promotable(
            self._free("experiment"), self._measured, self._definition, self._state.promoted
        )
        for trial in ready:
            measured = self._measured[trial.id]
            detail = f"{percent(measured.effect or 0.0)} in {sum(measured.exposed)} runs."
            share = 100 - self._definition.hold_out
            self._step(trial, "promote", "GAIN_SHOWN", detail, share)

    def _go_on(self, trial: Trial) -> None:
        measured = self._measured.get(trial.id)
        days = self._evidence.day - trial.since
        if days >= self._definition.most_days:
            if measured is None or not sum(measured.exposed):
                self._step(trial, "end", "NEVER_EXPOSED", f"In {days:.0f} days.")
                return
            if measured.gain_log_e < _HINTED or days >= 2 * self._definition.most_days:
                self._step(trial, "end", "GAIN_LATE", self._words(measured))
                return
        if measured is None:
            return
        if min(measured.exposed) >= _FEW and measured.effect is not None:
            half = math.log1p(-self._definition.least_effect / 200)
            if measured.effect > half and measured.gain_log_e < 0:
                self._step(trial, "end", "GAIN_SMALL", self._words(measured))
                return
        self._ramp(trial, measured)

    def _ramp(self, trial: Trial, measured: Measured) -> None:
        """One step up, unless the confidence sequence of the effect may still be all harm.

        The last step needs one that excludes no effect, which is an e-value of 20.
        """
        ramp = self._definition.ramp
        higher = [share for share in ramp if share > trial.share]
        if not higher or measured.exposed[1] < _TREATED_RUNS:
            return
        if measured.harm_log_e > math.log(2) or (measured.effect or 0.0) > math.log(1.5):
            return
        if higher[0] > 50 and measured.gain_log_e < _SHOWN:
            return
        more = self._budget.at_risk_ms(trial.job, higher[0], trial) - self._budget.at_risk_ms(
            trial.job, trial.share, trial
        )
        if self._budget.has_room(more):
            self._step(trial, "share", "RAMP", self._words(measured), higher[0])

    def _leave_shadow(self, trial: Trial) -> None:
        shadow = self._evidence.shadows.get(trial.name)
        days = self._evidence.day - trial.since
        if shadow and shadow.failed:
            self._step(trial, "end", "SHADOW_FAILED", f"{shadow.failed} times.")
        elif shadow and shadow.runs >= self._definition.shadow_runs and not shadow.answers:
            self._step(trial, "end", "SHADOW_SILENT", f"In {shadow.runs} runs.")
        elif shadow and shadow.runs >= self._definition.shadow_runs:
            share = self._definition.ramp[0]
            if self._budget.has_room(self._budget.at_risk_ms(trial.job, share, trial)):
                detail = f"{shadow.answers} answers in {shadow.runs} runs."
                self._step(trial, "start", "SHADOW_WELL", detail, share)
        elif days >= self._definition.most_days:
            self._step(trial, "end", "SHADOW_SILENT", f"It was not asked in {days:.0f} days.")

    def _propose(self, candidates: Iterable[Candidate]) -> None:
        """Proposes one change for each job that has none, as many as there is room for."""
        ended = {event.trial for event in self._events if event.step in ("end", "promote")}
        busy = [t for t in self._state.open if t.phase != "promoted" and t.id not in ended]
        jobs = {trial.job for trial in busy}
        # A job whose promotion is in doubt, or held, gets nothing new meanwhile.
        jobs |= {t.job for t in self._state.open if t.is_doubted or t.is_held or t.is_pinned}
        jobs |= {self._state.trials[e.trial].job for e in self._events if e.trial}
        room = self._definition.at_once - len(busy)
        share = self._definition.ramp[0]
        waiting = sum(self._budget.at_risk_ms(t.job, share) for t in busy if t.phase == "shadow")
        rows = learned.table(self._state.trials.values())
        for candidate in learned.order(self._fresh(candidates), rows):
            if room <= 0:
                break
            risk = self._budget.at_risk_ms(candidate.job, share)
            if candidate.job not in jobs and self._budget.has_room(waiting + risk):
                waiting += risk
                jobs.add(candidate.job)
                room -= 1
                self._events.append(
                    self._event(
                        "propose",
                        "CANDIDATE_NEW",
                        candidate.why,
                        trial=candidate.id,
                        candidate=candidate,
                    )
                )

    def _fresh(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        for listed in candidates:
            try:
                candidate = listed.untried(trial.candidate for trial in self._state.trials.values())
                points = listed.points
            except AqePilotError:
                continue
            if candidate is None:
                continue
            taken = {
                point
                for team in self._evidence.teams.get(candidate.job, ())
                for point in team.points
            }
            allowed = points and self._definition.may(candidate.job, points)
            if allowed and not taken & set(points) and candidate.id not in self._state.trials:
                yield candidate

    def _step(
        self, trial: Trial, step: Step, reason: str, detail: str = "", share: float | None = None
    ) -> None:
        self._done.add(trial.id)
        base = None
        if step == "start":
            base = tuple(team.name for team in self._evidence.teams.get(trial.job, ()))
        figures = self._figures_of(trial) if trial.id in self._measured else None
        event = self._event(step, reason, detail, trial=trial.id)
        self._events.append(
            event.model_copy(update={"share": share, "base": base, "figures": figures})
        )

    def _event(
        self,
        step: Step,
        reason: str,
        detail: str = "",
        *,
        trial: str = "",
        candidate: Candidate | None = None,
    ) -> Event:
        return Event(
            look=self._look,
            at=self._at,
            step=step,
            reason=reason,
            detail=detail,
            trial=trial,
            day=self._evidence.day,
            candidate=candidate,
        )

    def _figures_of(self, trial: Trial) -> Figures:
        measured = self._measured[trial.id]
        interval = self._figured.interval(trial.experiment)
        return Figures(
            control=measured.exposed[0],
            treatment=measured.exposed[1],
            effect=measured.effect,
            lower=_finite(interval.lower if interval else -math.inf),
            upper=_finite(interval.upper if interval else math.inf),
            log_e=measured.gain_log_e,
            saved_ms=measured.saved_ms,
            ms_per_day=self._figured.ms_per_day.get(trial.job, 0.0),
        )

    def _words(self, measured: Measured) -> str:
        effect = "not known" if measured.effect is None else percent(measured.effect)
        return f"{effect} in {measured.exposed[0]} and {measured.exposed[1]} runs."


def active(trials: Sequence[Trial], job: str) -> Trial | None:
    """Returns the trial of a job whose arms are drawn.

    A promoted one that is in doubt comes first, then the experiment, then the newest promoted one.
    """
    own = [trial for trial in trials if trial.job == job and not trial.is_over]
    promoted = sorted((t for t in own if t.phase == "promoted"), key=lambda t: t.since)
    doubted = [trial for trial in promoted if trial.is_doubted]
    experiments = [trial for trial in own if trial.phase == "experiment"]
    drawn = doubted or experiments or promoted
    return drawn[-1] if drawn else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
