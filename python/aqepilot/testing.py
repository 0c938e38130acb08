"""Facts for plain tests of policies: no Spark is needed."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Mapping
from itertools import groupby
from random import Random
from typing import Any

from aqepilot import catalog
from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.worker import Facts

_SIZES = "bytes_by_partition_id"
_BOUNDS = {"int": 1 << 31, "bigint": 1 << 63}
_ALLOWED = {
    "string": "a str",
    "boolean": "True or False",
    "double": "a number",
    "int": "an int of 32 bits",
    "bigint": "an int of 64 bits",
}


def facts(point: str, /, **groups: Mapping[str, Any]) -> Any:
    """Makes the facts that a policy function is given.

    What follows from ``bytes_by_partition_id`` (``max_bytes``, ``median_bytes``, ...) is computed
    where it is not given. The `Decision.facts` of the record are such groups too.

    Args:
        point: The decision point.
        **groups: Facts by group and name. Arrays are sequences; structs in them are mappings. What
            is not given is None: Spark does not know it.

    Returns:
        Facts with the attributes of that point's class in `aqepilot.points`, e.g. `SkewJoinFacts`.

    Raises:
        AqePilotError: There is no such point, group or fact, or a value has the wrong type; lists
            all that is wrong.

    >>> skewed = facts("skew_join", left={"bytes_by_partition_id": [10, 20, 900]})
    >>> skewed.left.max_bytes, skewed.left.median_bytes, skewed.left.num_mappers
    (900, 20, None)
    """
    by_group = _by_group(point)
    problems: list[Problem] = []
    values: dict[str, dict[str, Any]] = {}
    for group, kinds in by_group.items():
        members = groups.get(group, {})
        problems += _unknown(members, kinds, f"{group}.")
        values[group] = {
            name: _value(kind, members.get(name), f"{group}.{name}", problems)
            for name, kind in kinds.items()
        }
    problems += _unknown(groups, by_group, "")
    if problems:
        raise AqePilotError(problems)
    for known in values.values():
        if known.get(_SIZES) is not None:
            derived = _of_sizes(known[_SIZES])
            known |= {n: derived[n] for n, v in known.items() if v is None and n in derived}
    return Facts(values)


def made_facts(point: str, count: int = 12) -> list[Any]:
    """Makes facts to try a policy on, the same at each call.

    Args:
        point: The decision point.
        count: How many, from 1. Of the first everything is known, of the last nothing that Spark
            may not know; the others lack some of that.

    Raises:
        AqePilotError: There is no such point.

    >>> all_known, nothing_known = made_facts("cost_evaluation", 2)
    >>> nothing_known.plan.shuffles is None
    True
    """
    made = []
    for number in range(count):
        random = Random(f"{point} {number}")
        lacking = 0.0 if number == 0 else 1.0 if number == count - 1 else 0.15
        groups: dict[str, dict[str, Any]] = {}
        for fact in catalog.point(point).facts:
            group, _, name = fact.path.partition(".")
            value = _made(fact.type, fact.path, random)
            if random.random() >= lacking or (group in _ALWAYS and "null" not in fact.meaning):
                groups.setdefault(group, {})[name] = value
        made.append(
            facts(point, **{group: _consistent(values) for group, values in groups.items()})
        )
    return made


def as_json(facts: Any) -> str:
    """Returns facts as the SQL function `aqepilot_decide(point, text, facts)` takes them.

    >>> as_json(facts("cost_evaluation", plan={"shuffles": 2}).plan)
    '{"shuffles": 2}'
    """
    return json.dumps(_known(facts))


def _by_group(point: str) -> dict[str, dict[str, str]]:
    """Types by group and name."""
    return {
        group: {fact.path.partition(".")[2]: fact.type for fact in members}
        for group, members in groupby(
            catalog.point(point).facts, lambda f: f.path.partition(".")[0]
        )
    }


def _unknown(names: Iterable[str], known: Iterable[str], prefix: str) -> list[Problem]:
    known = tuple(known)
    return [
        Problem(
            "FACT_UNKNOWN",
            f"there is no fact {prefix}{name} here; there are: {', '.join(known)}.",
            suggestions=tuple(prefix + near for near in nearest(name, known)),
        )
        for name in names
        if name not in known
    ]


def _value(kind: str, value: Any, path: str, problems: list[Problem]) -> Any:
    """The value as functions see it; a wrong one is added to the problems."""
    if value is None:
        return None
    if kind.startswith("array<"):
        return _array(kind[len("array<") : -1], value, path, problems)
    if kind.startswith("struct<"):
        return _struct(kind, value, path, problems)
    if kind == "double" and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "string" and isinstance(value, str):
        return value
    if kind in _BOUNDS and not isinstance(value, bool) and hasattr(value, "__index__"):
        whole = value.__index__()
        if -_BOUNDS[kind] <= whole < _BOUNDS[kind]:
            return whole
    problems.append(_wrong(path, _ALLOWED[kind], value))
    return None


def _array(kind: str, value: Any, path: str, problems: list[Problem]) -> Any:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        problems.append(_wrong(path, "a sequence", value))
        return None
    convert = _value if "<" not in kind else _struct
    elements = list(value)
    items = [convert(kind, item, f"{path}[{i}]", problems) for i, item in enumerate(elements)]
    if kind != "bigint":
        return items
    if None in elements:
        problems.append(Problem("FACT_INVALID", f"{path} holds ints only, no None."))
    return memoryview(array("q", (item or 0 for item in items))).toreadonly()


def _struct(kind: str, value: Any, path: str, problems: list[Problem]) -> Any:
    if not isinstance(value, Mapping):
        problems.append(_wrong(path, "a mapping", value))
        return None
    kinds = catalog.fields_of(kind)
    problems += _unknown(value, kinds, f"{path}.")
    return {
        name: _value(field_kind, value.get(name), f"{path}.{name}", problems)
        for name, field_kind in kinds.items()
    }


def _wrong(path: str, allowed: str, value: Any) -> Problem:
    return Problem("FACT_INVALID", f"{path} is {allowed} or None, not {value!r:.80}.")


def _of_sizes(sizes: memoryview) -> dict[str, Any]:
    """As the JVM computes them (ShuffleFacts.scala)."""
    ordered = sorted(sizes)
    n = len(ordered)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) // 2 if n else 0
    return {
        "num_partitions": n,
        "shuffle_bytes": sum(ordered),
        "max_bytes": max(ordered, default=0),
        "median_bytes": max(middle, 1),
        "p90_bytes": ordered[(n * 90 + 99) // 100 - 1] if n else None,
        "p99_bytes": ordered[(n * 99 + 99) // 100 - 1] if n else None,
        "non_empty_ratio": sum(size > 0 for size in ordered) / n if n else None,
    }


def _known(value: Any) -> Any:
    if isinstance(value, Facts):
        named = ((name, getattr(value, name)) for name in value)
        return {name: _known(fact) for name, fact in named if fact is not None}
    if isinstance(value, memoryview):
        return value.tolist()
    return [_known(item) for item in value] if isinstance(value, tuple) else value


_ALWAYS = ("query", "conf", "cluster")  # known, and their numbers are not 0
_HINTS = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NO_BROADCAST_HASH")
_WORDS = {
    "join.type": (
        *("INNER", "CROSS", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER"),
        *("LEFT SEMI", "LEFT ANTI", "EXISTENCE"),
    ),
    "join.strategy": ("SortMergeJoin", "ShuffledHashJoin BuildLeft", "BroadcastHashJoin BuildLeft"),
    "spark.strategy": ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "SHUFFLE_REPLICATE_NL"),
    "spark.reason": ("SIZE", "MUCH_SMALLER", "RUN_TIME", "SORTABLE", "HINT"),
    "spark.conversion": ("LEFT", "RIGHT", "NONE"),
    "build_side": ("LEFT", "RIGHT"),
    "hint": _HINTS,
    "left_hint": _HINTS,
    "right_hint": _HINTS,
    "run_time_hint": _HINTS,
    "estimate_from": ("STAGE", "STATISTICS", "FILES", "GUESS"),
    "partitioning": ("HASH", "RANGE"),
    "feeds": ("AGGREGATE", "JOIN", "SORT", "UNION", "WINDOW", "WRITE"),
    "key_types": ("bigint", "string", "date"),
    "match": ("SAME", "SHAPE"),
    "signature": ("0123456789abcdef", "fedcba9876543210"),
    "held": ("1.4 times the task time of runs without its decisions",),
    "tables": ("sales", "items", "stores", "returns"),
    "write_format": ("parquet", "orc"),
    "spark_version": ("3.5.9", "4.0.5", "4.3.0"),
    "spark_faults": ("SPARK-46037", "SPARK-52873"),
}


def _made(kind: str, path: str, random: Random) -> Any:
    name = path.rpartition(".")[2]
    if kind.startswith("struct<"):
        return {
            name: _made(kind_of_field, f"{path}.{name}", random)
            for name, kind_of_field in catalog.fields_of(kind).items()
        }
    if kind == "array<string>":
        return sorted({_made("string", path, random) for _ in range(random.randint(0, 3))})
    if kind.startswith("array<"):
        count = random.choice((1, 8, 200)) if kind == "array<bigint>" else random.randint(3, 6)
        return [_made(kind[len("array<") : -1], path, random) for _ in range(count)]
    if kind == "string":
        return random.choice(_WORDS.get(path) or _WORDS.get(name) or (f"{name} a", f"{name} b"))
    if kind == "boolean":
        return random.random() < 0.5
    always = path.partition(".")[0] in _ALWAYS
    if kind != "bigint":
        number = random.choice((0, 1, 2, 5, 8, 16, 200, 1000)) or int(always)
        return number if kind == "int" else number / 8
    return 0 if not always and random.random() < 0.1 else int(2 ** random.uniform(10, 36))


def _consistent(group: dict[str, Any]) -> dict[str, Any]:
    """Leaves out what follows from the sizes, and numbers the relations of a chain."""
    if _SIZES in group:
        group = {n: v for n, v in group.items() if n not in _of_sizes(memoryview(array("q")))}
    if "relations" in group:
        for position, relation in enumerate(group["relations"]):
            relation["position"] = position
        group["num_relations"] = len(group["relations"])
    return group
