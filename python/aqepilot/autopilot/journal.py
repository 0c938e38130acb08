"""The journal: one file of events, one a line, that is only added to; and what it comes to.

A look first writes what it has decided, as one write, and only then changes anything. So whatever
is in force has its record, and who comes after a kill finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ValidationError

from aqepilot import control
from aqepilot.autopilot.state import Event, State
from aqepilot.control.store import ReplacedMeanwhileError
from aqepilot.errors import AqePilotError, Problem

JOURNAL = "journal.jsonl"
STATE = "state.json"
LIVE = "live.json"


class MovedError(Exception):
    """Another writer has added to the journal meanwhile: what was decided is of an older state."""


class Journal:
    """The journal in a folder.

    Args:
        folder: On this machine, or the URI of a folder of a Hadoop file system.
        conf: Spark settings for that file system, ``spark.hadoop.*``.
    """

    def __init__(self, folder: str, conf: Mapping[str, str] | None = None) -> None:
        self.folder = folder.rstrip("/") or "/"
        self._conf = dict(conf or {})
        self._file = control.open_store(self.path(JOURNAL), self._conf)
        self._known: tuple[str, State, list[Event]] = ("", State(), [])

    def path(self, name: str) -> str:
        """Returns the path of a file of the folder."""
        return f"{self.folder}/{name}"

    def read(self) -> State:
        """Returns what the journal comes to; an empty state where there is none.

        Raises:
            AqePilotError: It cannot be read, or a line of it is no event; says which.
        """
        return self._read(self._file.read())[0]

    def events(self) -> list[Event]:
        """Returns all events, the oldest first.

        Raises:
            AqePilotError: As for `read`.
        """
        return self._read(self._file.read())[1]

    def add(self, events: Sequence[Event], state: State) -> State:
        """Adds events that follow from a state, all or none; returns the state after them.

        Args:
            events: The events.
            state: The state that they were decided by.

        Raises:
            MovedError: The journal has more events than this state.
            AqePilotError: It cannot be written.
        """
        lines = "".join(f"{event.model_dump_json(exclude_defaults=True)}\n" for event in events)
        added: list[str] = []

        def longer(text: str | None) -> str:
            before = text or ""
            if before.count("\n") != state.events:
                raise MovedError
            added.append(before + lines)
            return before + lines

        self._file.make_folder()
        for _ in range(10):
            try:
                self._file.replace(longer)
            except ReplacedMeanwhileError:
                continue
            after = state.after(events)
            self._known = (added[-1], after, [*self._events_of(state), *events])
            return after
        message = "other writers replaced the journal ten times while this was written; try again."
        raise AqePilotError(Problem("AUTOPILOT_NOT_WRITTEN", message, self.path(JOURNAL)))

    def _events_of(self, state: State) -> list[Event]:
        _, known, events = self._known
        return events if known.events == state.events else self.events()[: state.events]

    def keep(self, name: str, value: BaseModel) -> None:
        """Replaces a file of the folder as a whole; readers see the old one or the new one.

        Raises:
            AqePilotError: It cannot be written.
        """
        text = value.model_dump_json(indent=1, exclude_none=True) + "\n"
        file = control.open_store(self.path(name), self._conf)
        if file.read() == text:
            return
        for _ in range(10):
            try:
                file.replace(lambda _: text)
            except ReplacedMeanwhileError:
                continue
            return
        message = "other writers replaced the file ten times while it was written; try again."
        raise AqePilotError(Problem("AUTOPILOT_NOT_WRITTEN", message, self.path(name)))

    def text(self, name: str) -> str | None:
        """Returns the text of a file of the folder; null where there is none.

        Raises:
            AqePilotError: It cannot be read.
        """
        return control.open_store(self.path(name), self._conf).read()

    def _read(self, text: str | None) -> tuple[State, list[Event]]:
        known, state, events = self._known
        whole = text or ""
        if whole.startswith(known) and known:
            more = self._parsed(whole[len(known) :], state.events)
        else:
            state, events, more = State(), [], self._parsed(whole, 0)
        if more or not known:
            state, events = state.after(more), [*events, *more]
        self._known = (whole, state, events)
        return state, events

    def _parsed(self, text: str, before: int) -> list[Event]:
        events = []
        for number, line in enumerate(text.split("\n")[:-1], before + 1):
            try:
                events.append(Event.model_validate_json(line))
            except ValidationError as error:
                detail = error.errors()[0]
                message = (
                    f"this line is no event of an autopilot: {detail['msg']}. Nothing is decided "
                    "before the journal is whole: take a copy of it from before, or delete the "
                    "line."
                )
                where = f"{self.path(JOURNAL)}:{number}"
                raise AqePilotError(Problem("AUTOPILOT_JOURNAL_INVALID", message, where)) from None
        return events
