"""Python functions as policies: marked with their decision point, pickled for their own process.

That process imports this with a user's module, so nothing heavy is imported here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from aqepilot import catalog
from aqepilot.errors import PolicyError, Problem

_Function = TypeVar("_Function", bound=Callable[[Any], Any])


class Pickled(NamedTuple):
    """A function on its way to its process.

    Attributes:
        name: What it is called in records.
        code: Itself, as pyspark pickles a UDF.
    """

    name: str
    code: bytes


def policy(point: str) -> Callable[[_Function], _Function]:
    """Marks a function as a policy of one decision point; it can be called as before.

    Args:
        point: The decision point.

    Returns:
        A decorator, which returns the function itself.

    Raises:
        AqePilotError: There is no such point.
        PolicyError: The function cannot be called with the facts alone.

    >>> from aqepilot.testing import facts
    >>> @policy("dynamic_join_selection")
    ... def hash_small_sides(facts):
    ...     return "SHUFFLE_HASH" if (facts.side.max_bytes or 0) < 64 * 1024 * 1024 else None
    >>> hash_small_sides(facts("dynamic_join_selection", side={"max_bytes": 1024}))
    'SHUFFLE_HASH'
    """
    if callable(point):
        message = 'policy takes the name of a decision point: @aqepilot.policy("skew_join").'
        raise PolicyError(Problem("FUNCTION_INVALID", message))
    catalog.point(point)

    def marked(function: _Function) -> _Function:
        _check(point, function)
        function.aqepilot_point = point  # type: ignore[attr-defined]
        return function

    return marked


def pickled(point: str, function: Callable[[Any], Any]) -> Pickled:
    """Pickles a function as pyspark pickles a UDF.

    Args:
        point: The decision point that it is for.
        function: What takes the facts of that point and returns a decision or None.

    Raises:
        PolicyError: It is for another point, cannot be called with the facts alone, or holds what
            cannot be pickled.
    """
    from pyspark import cloudpickle

    _check(point, function)
    try:
        return Pickled(_name(function), cloudpickle.dumps(function))  # type: ignore[no-untyped-call]
    except Exception as error:
        message = (
            f"{_name(function)} cannot be pickled for its process: {error} It may use plain "
            "values, modules and functions; give it what it needs of a Spark session, an open "
            "file, a lock or a connection as a plain value."
        )
        raise PolicyError(Problem("FUNCTION_NOT_PICKLABLE", message, point)) from error


def is_python(text: str) -> bool:
    """Returns whether a policy's text names a Python function.

    >>> is_python(" python:sales.policies:choose"), is_python("'SHUFFLE_HASH'")
    (True, False)
    """
    return text.strip().startswith("python:")


def is_imported(text: str) -> bool:
    """Returns whether a policy's text names a function that a module has.

    >>> is_imported("python:sales.policies:choose"), is_imported("python:pickled:choose:00ff")
    (True, False)
    """
    return is_python(text) and text.count(":") == 2


def _check(point: str, function: Any) -> None:
    declared = getattr(function, "aqepilot_point", point)
    if declared != point:
        message = f"{_name(function)} is a policy for {declared}, not for {point}."
        raise PolicyError(Problem("FUNCTION_FOR_ANOTHER_POINT", message, point))
    if not _takes_one(function):
        message = (
            f"{_name(function)} cannot be called with the facts alone: write it as "
            f"def {_name(function)}(facts)."
        )
        raise PolicyError(Problem("FUNCTION_INVALID", message, point))


def _takes_one(function: Any) -> bool:
    try:
        signature = inspect.signature(function)
    except ValueError:  # of some that are written in C it cannot be known
        return True
    except TypeError:
        return False
    try:
        signature.bind(None)
    except TypeError:
        return False
    return True


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))
