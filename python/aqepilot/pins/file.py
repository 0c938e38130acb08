"""A policy file of pins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import date

from aqepilot import toml
from aqepilot.pins.pin import Pin, texts
from aqepilot.policies import when_query


def policy_text(
    name: str,
    fingerprints: str | Sequence[str],
    pins: Iterable[Pin],
    *,
    mode: str | None = None,
    expires: date | None = None,
    comment: str = "",
) -> str:
    """Returns a policy file that gives these answers in a query, and says nothing elsewhere.

    Args:
        name: The policy's name.
        fingerprints: Of the query; several where Spark releases analyse it otherwise.
        pins: One or more.
        mode: ``off``, ``shadow`` or ``enforce``; null is ``enforce``.
        expires: The first day, in UTC, on which the policy is not asked; null for no such day.
        comment: Lines at the top of the file, without the ``#``.

    Raises:
        AqePilotError: Two pins of one decision answer otherwise, or an answer is none.
    """
    prints = [fingerprints] if isinstance(fingerprints, str) else list(fingerprints)
    lines = [f"# {line}".rstrip() for line in comment.splitlines()]
    lines += [f"name = {json.dumps(name)}"]
    lines += [f"mode = {json.dumps(mode)}"] if mode else []
    lines += [f"expires = {expires.isoformat()}"] if expires else []
    lines += [f"when = {json.dumps(when_query(prints))}"]
    for point, text in texts(pins).items():
        lines += ["", toml.assigned(point, text)]
    return "\n".join(lines) + "\n"
