"""The shape of the plans that ran, read off event logs: joins, sides, order, shuffles and reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_SQL = '{"Event":"org.apache.spark.sql.execution.ui.SparkListenerSQL'
_JOIN = re.compile(
    r"^(BroadcastHashJoin|SortMergeJoin|ShuffledHashJoin|BroadcastNestedLoopJoin"
    r"|CartesianProduct)"
)
_NUMBER = re.compile(
    r"(hash|range)partitioning\(.*, (\d+)\), |(SinglePartition)|RoundRobin.*\((\d+)"
)
_TABLE = re.compile(r"/(\w+)\.parquet")


class Shape(NamedTuple):
    """A part of a plan.

    Attributes:
        name: What it is, with what decides: a strategy and its side, a number, a table.
        children: The parts beneath, in their order.
    """

    name: str
    children: tuple[Shape, ...] = ()

    def text(self) -> str:
        """Returns it as one line."""
        inner = " ".join(child.text() for child in self.children)
        return f"({self.name} {inner})" if inner else f"({self.name})"


def shape(node: dict[str, Any]) -> Shape | None:
    """Returns the shape of a node of a plan as Spark's UI has it; null where it has none."""
    name, text = node["nodeName"], node["simpleString"]
    below = tuple(one for child in node["children"] if (one := shape(child)) is not None)
    join = _JOIN.match(name)
    if join:
        side = re.search(r"Build(Left|Right)", text)
        skew = " skew" if "skew=true" in name else ""
        return Shape(f"{join[1]}{' ' + side[0] if side else ''}{skew}", below)
    if name == "Exchange":
        number = _NUMBER.search(text)
        return Shape(
            f"Exchange {next(filter(None, number.groups()[1:]), '') if number else ''}", below
        )
    if name == "BroadcastExchange":
        return Shape("Broadcast", below)
    if name.startswith(("EmptyRelation", "LocalTableScan")):
        return Shape("Rows")
    if name.startswith("ReusedExchange"):
        return Shape("Reused")
    if name == "AQEShuffleRead":
        return Shape(f"Read {text.partition(' ')[2]}", below)
    if name.startswith("Scan "):
        table = _TABLE.search(node["metadata"].get("Location", ""))
        return Shape(f"Scan {table[1] if table else ''}")
    if name.startswith(("SubqueryBroadcast", "ReusedSubquery")):
        return None
    if name == "Union" or len(below) > 1:
        return Shape(name.partition(" ")[0] if name == "Union" else "With", below)
    return below[0] if below else None


def without_races(one: Shape) -> Shape:
    """Returns a shape without the shuffles that are read where they were written.

    Where AQE turns a join into a broadcast join, the other side is read so if its shuffle had begun
    by then, and is not shuffled at all if it had not: which of two stages ends first is a race.
    """
    if one.name == "Read local" and len(one.children) == 1:
        inner = one.children[0]
        if inner.name == "Reused":
            return inner
        if inner.name.startswith("Exchange") and inner.children:
            return without_races(inner.children[0])
    return Shape(one.name, tuple(map(without_races, one.children)))


def alike(one: Shape, other: Shape) -> bool:
    """Whether two plans have one shape.

    Of two equal exchanges one is run, and its plan is read there: which one is a race.
    """
    if "Reused" in (one.name, other.name):
        return True
    if one.name != other.name or len(one.children) != len(other.children):
        return False
    return all(map(alike, one.children, other.children))


def shapes(folder: Path) -> dict[str, Shape]:
    """Returns the last plan of the first query of each description in event logs."""
    first: dict[str, Shape] = {}
    for description, plan in every_shape(folder):
        first.setdefault(description, plan)
    return first


def every_shape(folder: Path) -> Iterator[tuple[str, Shape]]:
    """Yields the description and the last plan of each query in event logs."""
    for log in sorted(path for path in folder.rglob("*") if path.is_file()):
        names: dict[int, str] = {}
        last: dict[int, dict[str, Any]] = {}
        with log.open(encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(_SQL) and "sparkPlanInfo" in line:
                    event = json.loads(line)
                    last[event["executionId"]] = event["sparkPlanInfo"]
                    if "description" in event:
                        names[event["executionId"]] = event["description"]
        for number, plan in last.items():
            read = shape(plan)
            if read is not None:
                yield names.get(number, ""), read
