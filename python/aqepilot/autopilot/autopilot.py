"""The autopilot itself: its looks, and what a person does to a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone

from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.delivery import deliver
from aqepilot.autopilot.evidence import Evidence, Measured
from aqepilot.autopilot.journal import Journal, MovedError
from aqepilot.autopilot.names import Action
from aqepilot.autopilot.state import ALL, Event, Figures, State, Trial
from aqepilot.autopilot.steps import Steps
from aqepilot.errors import AqePilotError, Problem, nearest

_STEPS = {
    "hold": ("hold", "HELD", None),
    "release": ("release", "RELEASED", None),
    "skip": ("end", "SKIPPED", None),
    "pin": ("pin", "PINNED", ALL),
    "undo": ("end", "UNDONE", None),
}
_TRIES = 5
Known = Callable[[State], tuple[Evidence, Iterable[Candidate]]]


class Autopilot:
    """An autopilot with its journal.

    Args:
        definition: What it may do.
        conf: Spark settings for file systems, ``spark.hadoop.*``.
    """

    def __init__(self, definition: Definition, conf: Mapping[str, str] | None = None) -> None:
        self.definition = definition
        self._conf = dict(conf or {})
        self.journal = Journal(definition.state, self._conf)
        self._measured: dict[tuple[str, int], Measured | None] = {}

    def look(
        self, name: str, known: Known, *, with_figures: bool = True, now: datetime | None = None
    ) -> list[Event]:
        """Decides the next steps, writes them down, and puts them into force.

        A look that is decided is not decided again: what is left of its delivery is done.

        Args:
            name: The look, e.g. a date: the same name is the same look.
            known: Returns the evidence and the candidates, of the trials of a state.
            with_figures: Whether the state's file has the figures of all trials.
            now: The time; null for now.

        Returns:
            The look's steps; none where it was decided before.

        Raises:
            AqePilotError: The logs cannot be read, or something cannot be written.
        """
        for _ in range(_TRIES):
            state = self.journal.read()
            if name in state.decided:
                self._deliver(state, name, now)
                return []
            evidence, candidates = known(state)
            steps = Steps(self.definition, state, evidence, name, now, self._measured)
            events = steps.decide(candidates)
            figures = steps.figures() if with_figures else {}
            try:
                after = self.journal.add(events, state)
            except MovedError:
                continue
            over = {event.trial for event in events if event.step in ("start", "promote", "end")}
            kept = {trial: value for trial, value in figures.items() if trial not in over}
            self._deliver(after, name, now, kept)
            return events
        raise _moved(self.journal)

    def act(self, action: Action, trial: str, *, reason: str = "", by: str = "a person") -> Event:
        """Holds, releases, skips, pins or undoes a trial, for a person.

        Args:
            action: ``hold`` leaves it as it is, ``release`` lets it go on, ``skip`` and ``undo``
                end it for good, ``pin`` keeps it for all runs.
            trial: Its id, or its beginning.
            reason: Why.
            by: Who.

        Raises:
            AqePilotError: There is no such trial, or it has ended; or nothing can be written.
        """
        for _ in range(_TRIES):
            state = self.journal.read()
            meant = self._named(state, trial)
            step, code, share = _STEPS[action]
            now = datetime.now(timezone.utc).replace(microsecond=0)
            event = Event(
                look=f"by hand, {now:%Y-%m-%d %H:%M:%S}",
                at=now,
                step=step,  # type: ignore[arg-type]
                reason=code,
                detail=reason,
                by=by,
                trial=meant.id,
                day=now.timestamp() / 86400,
                share=share,
            )
            try:
                after = self.journal.add([event], state)
            except MovedError:
                continue
            deliver(self.definition, self.journal, after, self._conf)
            return event
        raise _moved(self.journal)

    def _deliver(
        self,
        state: State,
        look: str,
        now: datetime | None,
        figures: Mapping[str, Figures] | None = None,
    ) -> None:
        shown = state.measured(figures or {})
        deliver(self.definition, self.journal, shown, self._conf, now=now)
        if state.delivered != look:
            at = now or datetime.now(timezone.utc).replace(microsecond=0)
            done = Event(look=look, at=at, step="delivered", reason="DELIVERED")
            try:
                self.journal.add([done], state)
            except MovedError:
                # Whoever has added to it delivers that, too.
                return

    def _named(self, state: State, trial: str) -> Trial:
        meant = [one for name, one in state.trials.items() if name.startswith(trial) and trial]
        if len(meant) == 1 and not meant[0].is_over:
            return meant[0]
        if len(meant) == 1:
            message = f"the trial {meant[0].id} is over: {meant[0].reason}."
        elif meant:
            message = f"several trials begin with {trial!r}: give more of its id."
        else:
            message = f"there is no trial {trial!r}: `aqepilot autopilot status` lists them."
        near = nearest(trial, [one.id for one in state.open])
        raise AqePilotError(Problem("AUTOPILOT_TRIAL_UNKNOWN", message, None, near))


def _moved(journal: Journal) -> AqePilotError:
    message = "others add to the journal all the time: is there a second autopilot with it?"
    return AqePilotError(Problem("AUTOPILOT_NOT_WRITTEN", message, journal.folder))
