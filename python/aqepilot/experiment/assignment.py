"""Which arm of an experiment a unit gets: the same in both languages, byte for byte.

The driver assigns (`Experiment.scala`); what is here tells the same afterwards, of any unit.
"""

from __future__ import annotations

import re
from decimal import Decimal
from hashlib import sha256
from typing import NamedTuple

from aqepilot.errors import AqePilotError, Problem

BUCKETS = 10_000
PLAIN = "spark"
MOST_ARMS = 3
_POLICY = r"[a-z][a-z0-9_]*"
_ARM = re.compile(rf"({_POLICY}(?:\+{_POLICY})*)\s*:\s*(\d{{1,3}}(?:\.\d{{1,2}})?)")


class Arm(NamedTuple):
    """One arm of an experiment.

    Attributes:
        name: Policies, joined by ``+`` in the order in which they are asked; ``spark`` for none.
        weight: In hundredths of a percent: of 10,000 units, so many get this arm.
    """

    name: str
    weight: int

    @property
    def policies(self) -> tuple[str, ...]:
        """Policies' names; none for plain Spark."""
        return () if self.name == PLAIN else tuple(self.name.split("+"))


def parse_arms(text: str) -> tuple[Arm, ...]:
    """Reads arms with their weights: ``platform:90,platform_v2:10``.

    The first is the control.

    Args:
        text: Two or three arms, comma separated; weights in percent, with up to two digits after
            the point, of 100 together.

    Raises:
        AqePilotError: Something is wrong; lists all that is.

    >>> parse_arms("spark:90, sales+skew:10")
    (Arm(name='spark', weight=9000), Arm(name='sales+skew', weight=1000))
    """
    arms: list[Arm] = []
    problems: list[str] = []
    for part in text.split(","):
        match = _ARM.fullmatch(part.strip())
        if match is None:
            problems.append(
                f"{part.strip()!r} is no arm: it has to be <policies>:<percent>, such as sales:90, "
                "sales+skew:10 or spark:50"
            )
            continue
        arms.append(Arm(match[1], int(Decimal(match[2]) * 100)))
    names = [arm.name for arm in arms]
    problems += [
        f"arm {name} is there twice" for name in sorted({n for n in names if names.count(n) > 1})
    ]
    problems += [
        f"{PLAIN} is an arm of its own: no policy stands beside it"
        for name in names
        if PLAIN in name.split("+") and name != PLAIN
    ]
    if not problems:
        total = sum(arm.weight for arm in arms)
        if total != BUCKETS:
            problems.append(f"the weights are {Decimal(total) / 100} percent together, not 100")
        if not 2 <= len(arms) <= MOST_ARMS:
            problems.append(f"an experiment has two or three arms, not {len(arms)}")
    if problems:
        raise AqePilotError([Problem("ARMS_INVALID", f"{what}.") for what in problems])
    return tuple(arms)


def bucket(salt: str, experiment: str, unit: str) -> int:
    """Returns the unit's number, 0 to 9,999: SHA-256 of ``salt|experiment|unit`` in UTF-8.

    Its first 8 bytes, as an unsigned number with the highest byte first, modulo 10,000.

    >>> bucket("", "skew", "daily.sales|2026-11-24")
    8364
    """
    digest = sha256(f"{salt}|{experiment}|{unit}".encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def arm_of(arms: tuple[Arm, ...], number: int) -> Arm:
    """Returns the arm of the units with this number.

    The second arm has the lowest numbers, the third the highest, the first (the control) those
    between. So who raises one of the two at the control's cost moves nobody else.

    >>> arms = parse_arms("spark:80,a:10,b:10")
    >>> [arm_of(arms, number).name for number in (0, 999, 1000, 8999, 9000)]
    ['a', 'a', 'spark', 'spark', 'b']
    """
    if number < arms[1].weight:
        return arms[1]
    if len(arms) > 2 and number >= BUCKETS - arms[2].weight:
        return arms[2]
    return arms[0]
