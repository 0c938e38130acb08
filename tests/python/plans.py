"""What Spark executed: the joins of the final adaptive plan, and that plan as comparable text.

Classic sessions only: the plan is read over py4j.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

MAX_FIELDS = 1000
# Else a scan's text is cut at 100 characters, ids included, and differs with their length.
METADATA_IN_FULL = {"spark.sql.maxMetadataStringLength": "100000"}
# Where code generation starts and ends says nothing on what was decided.
SKIPPED = ("WholeStageCodegenExec", "InputAdapter")
# TPC-H's brands look like ids. Stages are numbered in the order they happen to start.
IDS = re.compile(r"(plan_id=|id=#|(?<!Brand)#|_gen_alias_)(\d+)")
STAGE = re.compile(r"(?<=QueryStage) \d+")


class Join(NamedTuple):
    """An executed join.

    Attributes:
        strategy: As Spark prints it: ``SortMergeJoin``, ``ShuffledHashJoin BuildLeft``, ...
        type: ``Inner``, ``LeftOuter``, ...
        left: The tables beneath the left child, by file or table name, in plan order.
        right: Those beneath the right one.
        skewed: Its skewed partitions were split.
    """

    strategy: str
    type: str
    left: tuple[str, ...]
    right: tuple[str, ...]
    skewed: bool

    @property
    def build_side(self) -> str | None:
        """``BuildLeft``, ``BuildRight``; null for a sort-merge join."""
        return self.strategy.partition(" ")[2] or None


class Reads(NamedTuple):
    """How a join reads its shuffles, task by task.

    Attributes:
        left: A text for each task: ``3`` is all of partition 3, ``3-5`` are 3 to 5, ``3[0,2)`` is
            what map tasks 0 and 1 wrote of it. Null for a plain shuffle, a broadcast, or none.
        right: The same.
    """

    left: list[str] | None
    right: list[str] | None

    def splits(self) -> tuple[dict[int, int], dict[int, int]]:
        """Returns the parts of each split partition, left and right."""
        return _parts(self.left), _parts(self.right)


class Executed(NamedTuple):
    """A query that has run: its rows, joins (root first) and the canonical final plan."""

    rows: list[Row]
    joins: list[Join]
    plan: str

    @property
    def strategies(self) -> list[str]:
        return [join.strategy for join in self.joins]


def execute(df: DataFrame) -> Executed:
    """Collects the query and reads its final plan."""
    rows = df.collect()
    return Executed(rows, joins(df), canonical_plan(df))


def joins(df: DataFrame) -> list[Join]:
    """Returns the joins of a query that has been collected; those in subqueries too."""
    return [
        _join(node)
        for _, node in _walk(_executed_plan(df))
        if _class(node).endswith(("JoinExec", "CartesianProductExec"))
    ]


def strategies(df: DataFrame) -> list[str]:
    """Returns the joins' strategies, root first."""
    return [join.strategy for join in joins(df)]


def reads(df: DataFrame) -> list[Reads]:
    """Returns how the equi-joins of a query that has been collected read, root first."""
    names = ("SortMergeJoinExec", "ShuffledHashJoinExec", "BroadcastHashJoinExec")
    return [
        Reads(_specs(node.left()), _specs(node.right()))
        for _, node in _walk(_executed_plan(df))
        if _class(node) in names
    ]


def canonical_plan(df: DataFrame) -> str:
    """Returns the final plan as an indented text that is the same in each run.

    Ids are numbered anew, in the order they appear. Wants `METADATA_IN_FULL` in the session. A
    read of a shuffle is followed by what each task reads.
    """
    return _text(_walk(_executed_plan(df)))


def initial_plan(df: DataFrame) -> str:
    """Returns the plan that the query began with, as `canonical_plan` does the final one."""
    return _text(_walk(_executed_plan(df), initial=True))


def _text(nodes: Iterator[tuple[int, Any]]) -> str:
    lines = ["  " * depth + _line(node) for depth, node in nodes]
    return canonical("\n".join(line.rstrip() for line in lines))


def canonical(plan: str) -> str:
    """Returns a plan's text with its ids numbered in the order they appear.

    >>> canonical("Filter (a#17 > 1), [plan_id=40]\\n  Scan [a#17,b#9L]")
    'Filter (a#0 > 1), [plan_id=1]\\n  Scan [a#0,b#2L]'
    """
    seen: dict[str, str] = {}
    plan = STAGE.sub("", plan)
    return IDS.sub(lambda found: found[1] + seen.setdefault(found[0], str(len(seen))), plan)


def nodes(df: DataFrame) -> Iterator[tuple[int, Any]]:
    """Yields the depth and node of all that was executed, root first; subqueries too."""
    return _walk(_executed_plan(df))


def tables(node: Any) -> tuple[str, ...]:
    """Returns the tables beneath a node, by file or table name, in plan order."""
    return _tables(node)


def is_final(df: DataFrame) -> bool:
    """Has the adaptive plan of this very DataFrame been executed?"""
    return "isFinalPlan=true" in _executed_plan(df).toString()


def _line(node: Any) -> str:
    text = str(node.simpleString(MAX_FIELDS))
    if _class(node) == "AQEShuffleReadExec":
        text += " " + str(node.partitionSpecs().mkString("|"))
    return text


def _executed_plan(df: DataFrame) -> Any:
    return df._jdf.queryExecution().executedPlan()


def _walk(
    node: Any, depth: int = 0, reused: bool = False, initial: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yields each node and its depth; those that are computed elsewhere only if ``reused``.

    Of an adaptive plan the final one, or the ``initial`` one.
    """
    name = _class(node)
    if name == "AdaptiveSparkPlanExec":
        plan = node.initialPlan() if initial else node.executedPlan()
        yield from _walk(plan, depth, reused, initial)
        return
    if name not in SKIPPED:
        yield depth, node
        depth += 1
    for below in (*_items(node.subqueries()), *_below(node, name, reused)):
        yield from _walk(below, depth, reused, initial)


def _below(node: Any, name: str, reused: bool) -> Iterator[Any]:
    if name.endswith("QueryStageExec"):
        yield node.plan()
    elif name in ("ReusedExchangeExec", "ReusedSubqueryExec"):
        if reused:
            yield node.child()
    elif name == "InMemoryTableScanExec":
        yield node.relation().cachedPlan()
    else:
        yield from _items(node.children())


def _join(node: Any) -> Join:
    name = _class(node).removesuffix("Exec")
    build = ""
    if name in ("ShuffledHashJoin", "BroadcastHashJoin", "BroadcastNestedLoopJoin"):
        build = f" {node.buildSide().toString()}"
    kind = "Cross" if name == "CartesianProduct" else node.joinType().toString()
    skewed = str(node.nodeName()).endswith("(skew=true)")
    return Join(name + build, kind, _tables(node.left()), _tables(node.right()), skewed)


def _specs(node: Any) -> list[str] | None:
    """What the first read below says, through sorts, projections and the like."""
    name = _class(node)
    if name == "AQEShuffleReadExec":
        return [_spec(spec) for spec in _items(node.partitionSpecs())]
    below = list(_items(node.children()))
    return _specs(below[0]) if len(below) == 1 else None


def _spec(spec: Any) -> str:
    if _class(spec) == "PartialReducerPartitionSpec":
        return f"{spec.reducerIndex()}[{spec.startMapIndex()},{spec.endMapIndex()})"
    first, last = spec.startReducerIndex(), spec.endReducerIndex() - 1
    return str(first) if first == last else f"{first}-{last}"


def _parts(specs: list[str] | None) -> dict[int, int]:
    found: dict[int, set[str]] = {}
    for partition, _, part in (spec.partition("[") for spec in specs or []):
        if part:
            found.setdefault(int(partition), set()).add(part)
    return {partition: len(parts) for partition, parts in found.items()}


def _tables(node: Any) -> tuple[str, ...]:
    named = (_table(leaf) for _, leaf in _walk(node, reused=True))
    return tuple(name for name in named if name)


def _table(node: Any) -> str | None:
    name = _class(node)
    if name == "FileSourceScanExec":
        identifier = node.tableIdentifier()
        if identifier.isDefined():
            return str(identifier.get().table())
        path = node.relation().location().rootPaths().head()
        return str(path.getName()).removesuffix(".parquet")
    return str(node.table().name()) if name == "BatchScanExec" else None


def _class(node: Any) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: Any) -> Iterator[Any]:
    iterator = sequence.iterator()
    while iterator.hasNext():
        yield iterator.next()
