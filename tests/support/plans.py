"""What Spark executed: the joins of the final adaptive plan, and that plan as comparable text.

Classic sessions only: the plan is read over py4j, all of it in one call (`PlanNodes.java`).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

# What the Java code tells of a node of a plan, its children and the like in their places.
Node = dict[str, Any]
SOURCE = Path(__file__).with_name("PlanNodes.java")
# py4j knows a class by its name, so a second one of this name would not work.
COMPILING = threading.Lock()
JOINS = ("JoinExec", "CartesianProductExec")
MAX_FIELDS = 1000
# Else a scan's text is cut at 100 characters, ids included, and differs with their length.
METADATA_IN_FULL = {"spark.sql.maxMetadataStringLength": "100000"}
# To compile a query's code takes longer than to run it over a few rows.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
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
    root = _read(df)
    return Executed(rows, _joins(root), _text(root))


def joins(df: DataFrame) -> list[Join]:
    """Returns the joins of a query that has been collected; those in subqueries too."""
    return _joins(_read(df))


def strategies(df: DataFrame) -> list[str]:
    """Returns the joins' strategies, root first."""
    return [join.strategy for join in joins(df)]


def reads(df: DataFrame) -> list[Reads]:
    """Returns how the equi-joins of a query that has been collected read, root first."""
    names = ("SortMergeJoinExec", "ShuffledHashJoinExec", "BroadcastHashJoinExec")
    return [
        Reads(*(_specs(side) for side in node["children"]))
        for _, node in _walk(_read(df))
        if node["name"] in names
    ]


def canonical_plan(df: DataFrame) -> str:
    """Returns the final plan as an indented text that is the same in each run.

    Ids are numbered anew, in the order they appear. Wants `METADATA_IN_FULL` in the session. A
    read of a shuffle is followed by what each task reads.
    """
    return _text(_read(df))


def initial_plan(df: DataFrame) -> str:
    """Returns the plan that the query began with, as `canonical_plan` does the final one."""
    return _text(_read(df, initial=True))


def canonical(plan: str) -> str:
    """Returns a plan's text with its ids numbered in the order they appear.

    >>> canonical("Filter (a#17 > 1), [plan_id=40]\\n  Scan [a#17,b#9L]")
    'Filter (a#0 > 1), [plan_id=1]\\n  Scan [a#0,b#2L]'
    """
    seen: dict[str, str] = {}
    plan = STAGE.sub("", plan)
    return IDS.sub(lambda match: match[1] + seen.setdefault(match[0], str(len(seen))), plan)


def nodes(df: DataFrame) -> Iterator[tuple[int, Node]]:
    """Yields the depth and node of all that was executed, root first; subqueries too."""
    return _walk(_read(df))


def tables(node: Node) -> tuple[str, ...]:
    """Returns the tables beneath a node, by file or table name, in plan order."""
    named = (_table(leaf) for _, leaf in _walk(node, reused=True))
    return tuple(name for name in named if name)


def partitions_read(df: DataFrame) -> list[tuple[str, int]]:
    """Returns each partitioned table that was read, and how many of its partitions were."""
    reads = (
        (_table(node), re.search(r"value: (\d+)", node.get("read", ""))) for _, node in nodes(df)
    )
    return sorted((str(table), int(count[1])) for table, count in reads if count)


def is_final(df: DataFrame) -> bool:
    """Has the adaptive plan of this very DataFrame been executed?"""
    return "isFinalPlan=true" in df._jdf.queryExecution().executedPlan().toString()


def _read(df: DataFrame, initial: bool = False) -> Node:
    """Returns the root of what was executed, or of the plan that the query began with."""
    with COMPILING:
        reader = _reader(df.sparkSession._sc._gateway)
    root = df._jdf.queryExecution().executedPlan()
    nodes: list[Node] = json.loads(reader.read(root, MAX_FIELDS, initial))
    for node in nodes:
        for key in ("subqueries", "children"):
            node[key] = [nodes[place] for place in node[key]]
        for key in ("plan", "reused"):
            if key in node:
                node[key] = nodes[node[key]]
    return nodes[0]


@cache
def _reader(gateway: Any) -> Any:
    """`PlanNodes.java`, compiled in that JVM."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(SOURCE.read_text("utf-8"))
    return compiler.getClassLoader().loadClass(SOURCE.stem).newInstance()


def _text(root: Node) -> str:
    lines = ["  " * depth + _line(node) for depth, node in _walk(root)]
    return canonical("\n".join(line.rstrip() for line in lines))


def _line(node: Node) -> str:
    return " ".join([node["text"], *([node["specs"]] if "specs" in node else [])])


def _walk(node: Node, depth: int = 0, reused: bool = False) -> Iterator[tuple[int, Node]]:
    """Yields each node and its depth; those that are computed elsewhere only if ``reused``."""
    if node["name"] == "AdaptiveSparkPlanExec":
        yield from _walk(node["plan"], depth, reused)
        return
    if node["name"] not in SKIPPED:
        yield depth, node
        depth += 1
    for below in (*node["subqueries"], *_below(node, reused)):
        yield from _walk(below, depth, reused)


def _below(node: Node, reused: bool) -> list[Node]:
    if "plan" in node:
        return [node["plan"]]
    if "reused" in node:
        return [node["reused"]] if reused else []
    return list(node["children"])


def _joins(root: Node) -> list[Join]:
    return [_join(node) for _, node in _walk(root) if node["name"].endswith(JOINS)]


def _join(node: Node) -> Join:
    strategy = f"{node['name'].removesuffix('Exec')} {node['build']}".rstrip()
    skewed = node["title"].endswith("(skew=true)")
    return Join(strategy, node["type"], *(tables(side) for side in node["children"]), skewed)


def _specs(node: Node) -> list[str] | None:
    """What the first read below says, through sorts, projections and the like."""
    if "specs" in node:
        return [_spec(spec) for spec in node["specs"].split("|")]
    below = node["children"]
    return _specs(below[0]) if len(below) == 1 else None


def _spec(spec: str) -> str:
    """A partition's part, or several partitions in a row.

    >>> _spec("PartialReducerPartitionSpec(3,0,2,4711)"), _spec("CoalescedPartitionSpec(3,6,None)")
    ('3[0,2)', '3-5')
    """
    kind, _, numbers = spec.rstrip(")").partition("(")
    first, second, *more = numbers.split(",")
    if kind == "PartialReducerPartitionSpec":
        return f"{first}[{second},{more[0]})"
    if kind == "PartialMapperPartitionSpec":  # one map task's part of these partitions
        first, second = second, more[0]
    elif kind != "CoalescedPartitionSpec":
        raise ValueError(spec)
    last = int(second) - 1
    return first if int(first) == last else f"{first}-{last}"


def _parts(specs: list[str] | None) -> dict[int, int]:
    ids: dict[int, set[str]] = {}
    for partition, _, part in (spec.partition("[") for spec in specs or []):
        if part:
            ids.setdefault(int(partition), set()).add(part)
    return {partition: len(parts) for partition, parts in ids.items()}


def _table(node: Node) -> str | None:
    if "path" in node:
        return str(node["path"]).removesuffix(".parquet")
    return node.get("table")
