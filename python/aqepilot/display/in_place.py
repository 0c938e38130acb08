"""What is known so far of long work, shown in one place: a notebook's output, or a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress
from types import TracebackType
from typing import Any


class InPlace:
    """A place where values are shown, each instead of the one before; at the end it is empty.

    A notebook shows it by the update of an output, which needs no widgets and works in each that
    has IPython's kernel. rich's own progress there needs ipywidgets, and shows nothing without.
    """

    def __init__(self) -> None:
        self._output: Any = None
        self._live: Any = None

    def __enter__(self) -> InPlace:
        return self

    def show(self, value: Any) -> None:
        """Shows a value that has `_repr_html_`."""
        if is_notebook():
            bundle = {"text/plain": repr(value), "text/html": value._repr_html_()}
            self._in_notebook({kind: shown for kind, shown in bundle.items() if shown is not None})
        elif sys.stdout.isatty():
            with suppress(ImportError):
                self._in_terminal(repr(value))

    def _in_notebook(self, bundle: dict[str, str]) -> None:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        if self._output is None:
            self._output = display(bundle, raw=True, display_id=True)
        else:
            self._output.update(bundle, raw=True)

    def _in_terminal(self, text: str) -> None:
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            self._live = Live(auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(Text(text), refresh=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Takes away what was shown."""
        if self._live is not None:
            self._live.stop()
        if self._output is not None:
            self._in_notebook({"text/plain": ""})


def is_notebook() -> bool:
    """Whether a kernel of IPython runs this, which has outputs that can be updated."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")
