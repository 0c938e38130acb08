"""Waiting for what comes soon, and on a busy machine later."""

from __future__ import annotations

import time
from collections.abc import Callable


def until(condition: Callable[[], object], limit_s: float = 120) -> bool:
    """Waits for a condition; says whether it held within the limit."""
    end = time.monotonic() + limit_s
    while not (holds := bool(condition())) and time.monotonic() < end:
        time.sleep(0.01)
    return holds
