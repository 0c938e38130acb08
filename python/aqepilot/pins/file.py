"""A policy file of pins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from aqepilot.pins.pin import Pin, texts
from aqepilot.policies import Mode, Policy, when_query


def policy_text(
    name: str,
    fingerprints: str | Sequence[str],
    pins: Iterable[Pin],
    *,
    mode: Mode | None = None,
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
    when = when_query(prints)
    made = Policy(name=name, mode=mode, when=when, expires=expires, points=texts(pins))
    return made.to_toml(comment)
