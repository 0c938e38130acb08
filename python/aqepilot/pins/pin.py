"""An answer for one decision, and the SQL that gives it there and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from aqepilot import catalog
from aqepilot.errors import AqePilotError, Problem
from aqepilot.pins.identity import SHUFFLES, SIDES, Identity
from aqepilot.policies import sql_text

_SWAPPED = {"LEFT": "RIGHT", "RIGHT": "LEFT"}


class Pin(NamedTuple):
    """An answer for one decision.

    Attributes:
        identity: The decision.
        answer: As the point takes it, in Python's words: a word, a number, a dict of the fields
            that are not null, or at join_reorder the order as positions in `identity.signatures`.
        when: A condition over the facts of the point, in SQL: the pin answers only where it is
            true. Empty for always. Pins with a condition are asked before those without.
        about: A few words for a reader of the file; empty for none.
    """

    identity: Identity
    answer: Any
    when: str = ""
    about: str = ""


def conflicts(pins: Iterable[Pin]) -> list[tuple[Pin, Pin]]:
    """Returns pins of one decision that answer otherwise: no text can tell them apart."""
    first: dict[tuple[Any, ...], Pin] = {}
    pairs = []
    for pin in pins:
        names = pin.identity.signatures if pin.identity.point in SHUFFLES else ("",)
        key = ("",) if pin.identity.point in SHUFFLES else pin.identity.key
        for name in names:
            before = first.setdefault((pin.identity.point, key, name, pin.when), pin)
            if before.answer != pin.answer:
                pairs.append((before, pin))
                break
    return pairs


def texts(pins: Iterable[Pin]) -> dict[str, str]:
    """Returns the policy texts that give these answers, by decision point.

    Args:
        pins: The pins; equal ones count once.

    Raises:
        AqePilotError: Two pins of one decision answer otherwise, or a point has no such answer.

    >>> pin = Pin(Identity("shuffle_partitions", ("1a",)), 12)
    >>> print(texts([pin])["shuffle_partitions"])
    CASE
      WHEN arrays_overlap(shuffles.signatures, array('1a')) THEN 12
    END
    """
    all_pins = list(pins)
    for one, other in conflicts(all_pins):
        message = (
            f"two pins of one decision at {one.identity.point} ({one.about or one.identity.key}) "
            f"answer {one.answer!r} and {other.answer!r}."
        )
        raise AqePilotError(Problem("PINS_DIFFER", message))
    order = {name: i for i, name in enumerate(catalog.point_names())}
    by_point = sorted(all_pins, key=lambda p: order[p.identity.point])
    return {
        point: _text(point, list(group))
        for point, group in groupby(by_point, key=lambda p: p.identity.point)
    }


def _text(point: str, pins: Sequence[Pin]) -> str:
    lines: dict[str, str] = {}
    for pin in sorted(pins, key=lambda p: not p.when):
        for condition, answer in _cases(point, pin, pins):
            about = f"  -- {pin.about}" if pin.about else ""
            lines.setdefault(f"  WHEN {condition} THEN {answer}", about)
    if point in SHUFFLES:
        lines = _merged(point, pins)
    return "\n".join(["CASE", *(line + about for line, about in lines.items()), "END"])


def _cases(point: str, pin: Pin, pins: Sequence[Pin]) -> Iterable[tuple[str, str]]:
    fields = _fields(point, pins)
    more = f" AND {pin.when}" if pin.when else ""
    names = [sql_text(name) for name in pin.identity.signatures]
    if point in SIDES:
        left, right = SIDES[point]

        def case(sides: Sequence[str], answer: Any, condition: str) -> tuple[str, str]:
            named = f"{left}.signature = {sides[0]} AND {right}.signature = {sides[1]}"
            return named + condition, sql_of(point, answer, fields)

        yield case(names, pin.answer, more)
        if pin.identity.can_swap and names[0] != names[1]:
            yield case(names[::-1], swapped(pin.answer), _swapped_text(more))
    elif point == "join_reorder":
        ordered = ", ".join(names[i] for i in pin.answer)
        condition = f"array_sort(chain.signatures) = array({', '.join(sorted(names))})"
        positions = "CAST(array_position(chain.signatures, s) - 1 AS INT)"
        yield condition + more, f"transform(array({ordered}), s -> {positions})"
    else:
        yield f"true{more}", sql_of(point, pin.answer, fields)


def _merged(point: str, pins: Sequence[Pin]) -> dict[str, str]:
    """One line for all shuffles that have the same answer."""
    fields = _fields(point, pins)
    names: dict[tuple[str, str], dict[str, None]] = {}
    for pin in sorted(pins, key=lambda p: not p.when):
        key = (pin.when, sql_of(point, pin.answer, fields))
        names.setdefault(key, {}).update(dict.fromkeys(pin.identity.signatures))
    lines = {}
    for (when, answer), shuffles in names.items():
        listed = ", ".join(map(sql_text, sorted(shuffles)))
        condition = f"arrays_overlap({SHUFFLES[point]}.signatures, array({listed}))"
        condition += f" AND {when}" if when else ""
        lines[f"  WHEN {condition} THEN {answer}"] = ""
    return lines


def swapped(answer: Any) -> Any:
    """Returns an answer about a join for the join whose sides have changed places."""
    if not isinstance(answer, Mapping):
        return answer
    return {
        _swapped_name(key): _SWAPPED.get(value, value) if key == "build_side" else value
        for key, value in answer.items()
    }


def _swapped_name(name: str) -> str:
    side, underscore, rest = name.partition("_")
    other = {"left": "right", "right": "left"}.get(side, side)
    return f"{other}{underscore}{rest}"


def _swapped_text(condition: str) -> str:
    swapped_text = condition.replace("left.", "\0").replace("right.", "left.")
    return swapped_text.replace("\0", "right.")


def _fields(point: str, pins: Iterable[Pin]) -> dict[str, str]:
    """The types of the fields that some pin of a point answers; empty where answers have none."""
    used = {key for pin in pins if isinstance(pin.answer, Mapping) for key in pin.answer}
    known = {field.path: field.type for field in catalog.point(point).fields}
    if unknown := used - known.keys():
        message = f"an answer at {point} has no field {', '.join(sorted(unknown))}."
        raise AqePilotError(Problem("PIN_INVALID", message))
    return {name: kind for name, kind in known.items() if name in used}


def sql_of(point: str, answer: Any, fields: Mapping[str, str]) -> str:
    """Returns an answer as SQL.

    Args:
        point: The decision point.
        answer: The answer.
        fields: The fields that it is to have, with their types; those it lacks are null.
    """
    if not isinstance(answer, Mapping):
        return _literal(answer, catalog.point(point).answer_type)
    if list(fields) == ["strategy"]:
        return _literal(answer["strategy"], "string")
    parts = (f"'{name}', {_literal(answer.get(name), kind)}" for name, kind in fields.items())
    return f"named_struct({', '.join(parts)})"


def _literal(value: Any, kind: str) -> str:
    if value is None:
        return f"CAST(NULL AS {kind.upper()})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return sql_text(value)
    if isinstance(value, Sequence):
        item = kind.partition("<")[2].removesuffix(">")
        return f"array({', '.join(_literal(v, item) for v in value)})"
    return f"CAST({value!r} AS {kind.upper()})" if kind != "int" else repr(value)
