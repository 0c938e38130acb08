"""An assistant over texts that were made up."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shown_values
from aqepilot.assistant.answers import Answers
from aqepilot.assistant.reading import Reading
from aqepilot.assistant.tools import Tools
from aqepilot.decision import Decisions


class Written(Reading):
    """Logs whose rows have one text wherever a user can name something."""

    def __init__(self, text: str, number: int = 1) -> None:
        super().__init__(["logs"], contextlib.nullcontext)  # type: ignore[arg-type]
        self.text, self.number = text, number

    def with_session(self, use: Callable[[Any], Any]) -> Any:
        return []  # nothing is wrong with a policy

    def _rows(self) -> list[Any]:
        return [{"name": self.text, self.text: [self.text], "n": n} for n in range(self.number)]

    def overview(self) -> tuple[str, list[Any]]:
        return "1 log.", self._rows()

    def findings(self) -> list[Any]:
        return self._rows()

    def queries(self, app_id: str | None) -> list[Any]:
        return self._rows()

    def explanation(self, query: int, app_id: str | None) -> str:
        return "\n".join([self.text] * self.number)

    def decisions(self, query: int, app_id: str | None) -> Decisions:
        return Decisions(shown_values.decision(self.text, n) for n in range(self.number))

    def costs(self, slots: int | None) -> list[Any]:
        return self._rows()

    def report(self, part: str) -> list[Any]:
        return self._rows()

    def experiments(self) -> list[Any]:
        return self._rows()

    def history(self) -> dict[str, Any]:
        return {"path": self.text, "kinds": [], "held": self._rows()}


def tools(reading: Reading, folder: Path | None = None, path: Path | None = None) -> dict[str, Any]:
    made = Tools(reading, Answers(), folder, None if path is None else str(path))
    return {tool.__name__: tool for tool in (*made.reads(), *made.acts())}
