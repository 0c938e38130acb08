"""Python that runs in tasks: unpacks facts, and asks policies that are Python functions.

It travels to executors by value, with `aqepilot.worker` and `aqepilot.decision`: only a policy's
own module has to be there.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aqepilot import catalog, decision, worker
from aqepilot.function import is_imported

if TYPE_CHECKING:
    from pyspark.sql import Column

_RANGE = {"int": 1 << 31, "bigint": 1 << 63}


def unpacked() -> Callable[[Column], Column]:
    """Returns a function that unpacks the long arrays of facts in JSON; of null it gives null."""
    return _udf(_unpacked)


def answer(point: str, text: str, facts: Column) -> Column:
    """Returns what a function answers, as `aqepilot_answer` does for SQL.

    Args:
        point: The decision point.
        text: ``python:<module>:<function>``.
        facts: All facts of the point, as JSON.
    """
    from pyspark.sql import functions

    _, module, name = text.strip().split(":")
    kinds, bare = _kinds(point)
    paths = [path for path in sys.path if path]

    def asked(facts_json: str | None) -> str | None:
        if facts_json is None:
            return None
        try:
            sys.path.extend(path for path in paths if path not in sys.path)
            function = getattr(importlib.import_module(module), name)
            value = worker.plain(function(worker.Facts(json.loads(facts_json))))
            return json.dumps({"answer": typed(value, kinds, bare)})
        except Exception:
            return None  # counts as a failure, as in the driver

    kind = kinds if isinstance(kinds, str) else _struct(kinds)
    return functions.from_json(_udf(asked)(facts), f"answer {kind}")


def fault(text: str) -> str | None:
    """Returns why the function that a text names cannot be called here; null when it can."""
    if not is_imported(text):
        return f"{text} stands for a function of a session that is over: name one of a module."
    _, module, name = text.strip().split(":")
    try:
        getattr(importlib.import_module(module), name)
    except Exception as error:
        return f"{text} cannot be loaded: {type(error).__name__}: {error}"
    return None


def typed(raw: Any, kinds: str | dict[str, str], bare: str | None = None) -> Any:
    """Returns an answer if it is of the type that it has to be, as PythonAnswer.scala takes it.

    Args:
        raw: What a function returned, as JSON has it.
        kinds: The type, or the types of a struct's fields by name.
        bare: The field that may stand alone; null for none.

    Raises:
        ValueError: It is of another type, or has a field that there is not.

    >>> typed("BROADCAST", {"strategy": "string", "build_side": "string"}, "strategy")
    {'strategy': 'BROADCAST'}
    >>> typed(1, "double")
    1.0
    """
    if raw is None:
        return None
    if isinstance(kinds, str):
        return _of_kind(raw, kinds)
    if not isinstance(raw, dict):
        if bare is None:
            raise ValueError(f"{raw!r} is no mapping of {', '.join(kinds)}")
        raw = {bare: raw}
    if unknown := raw.keys() - kinds.keys():
        raise ValueError(f"a decision has no field {', '.join(sorted(unknown))}")
    values = {name: typed(value, kinds[name]) for name, value in raw.items()}
    return {name: value for name, value in values.items() if value is not None}


def _of_kind(value: Any, kind: str) -> Any:
    if kind.startswith("array<") and isinstance(value, list):
        return [typed(item, kind[len("array<") : -1]) for item in value]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "double" and is_number:
        return float(value)
    if kind in _RANGE and is_number and isinstance(value, int):
        if -_RANGE[kind] <= value < _RANGE[kind]:
            return value
    elif {"string": str, "boolean": bool}.get(kind) is type(value):
        return value
    raise ValueError(f"{value!r} is no {kind}")


def _unpacked(facts: str | None) -> str | None:
    try:
        return None if facts is None else json.dumps(decision.unpack(json.loads(facts)))
    except ValueError:
        return None


def _kinds(point: str) -> tuple[str | dict[str, str], str | None]:
    """The type that a function's answers have at a point, and the field that may stand alone."""
    decision_point = catalog.point(point)
    if decision_point.fields:
        bare = "strategy" if point == "join_selection" else None
        return {field.path: field.type for field in decision_point.fields}, bare
    # A function gives a whole order, as it is not asked for scores.
    return ("array<int>" if point == "join_reorder" else decision_point.answer_type), None


def _struct(kinds: dict[str, str]) -> str:
    return f"struct<{', '.join(f'{name}: {kind}' for name, kind in kinds.items())}>"


def _udf(function: Callable[[str | None], str | None]) -> Callable[[Column], Column]:
    from pyspark import cloudpickle
    from pyspark.sql import functions

    for module in (__name__, decision.__name__, worker.__name__):
        cloudpickle.register_pickle_by_value(sys.modules[module])  # type: ignore[no-untyped-call]
    made: Callable[[Column], Column] = functions.udf(function, "string")
    return made
