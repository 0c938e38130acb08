"""How the tasks of an executed query read its shuffles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import plans
import policies

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

POINT = "partition_coalescing"


class Read(NamedTuple):
    """One shuffle that a stage reads.

    Attributes:
        tables: The tables beneath.
        kind: As the plan prints it: ``coalesced``, ``local``, ``skewed``, ``coalesced and
            skewed``, an empty text for a read that changes nothing, ``plain`` where there is none.
        tasks: How many tasks read it.
        specs: What each task reads, in Spark's text; empty for ``plain``.
    """

    tables: tuple[str, ...]
    kind: str
    tasks: int
    specs: tuple[str, ...]


class Ran(NamedTuple):
    """A query that has run.

    Attributes:
        digest: Equal for equal multisets of rows without floats, in this process.
        plan: The canonical final plan.
        reads: Of its shuffles, root first.
    """

    digest: tuple[int, int]
    plan: str
    reads: list[Read]

    @property
    def how(self) -> tuple[str, list[Read]]:
        """Plan and reads: equal when Spark ran the same."""
        return self.plan, self.reads

    @property
    def tasks(self) -> list[int]:
        return [read.tasks for read in self.reads]


def run(df: DataFrame) -> Ran:
    """Collects the query and reads its final plan."""
    rows = df.collect()
    digest = (len(rows), sum(hash(tuple(row)) for row in rows))
    return Ran(digest, plans.canonical_plan(df), listed(df))


def listed(df: DataFrame) -> list[Read]:
    """Returns the reads of a query that has run, root first; those in subqueries too."""
    reads: list[Read] = []
    under_read = False
    for _, node in plans.nodes(df):
        if "specs" in node:
            specs = tuple(node["specs"].split("|"))
            (stage,) = node["children"]
            reads.append(Read(plans.tables(stage["plan"]), node["kind"], len(specs), specs))
        elif "partitions" in node and not under_read:
            reads.append(Read(plans.tables(node["plan"]), "plain", node["partitions"], ()))
        under_read = "specs" in node
    return reads


def decide(spark: SparkSession, text: str, name: str = "test", **more: str) -> None:
    """Makes it the session's only policy; ``more`` are its ``when`` and ``mode``."""
    prefix = f"spark.aqepilot.policy.{name}."
    spark.conf.set("spark.aqepilot.policies", name)
    for key, value in {POINT: text, **more}.items():
        spark.conf.set(prefix + key, value)


def decisions(spark: SparkSession) -> list[Row]:
    """Returns the session's decisions at the point, oldest first."""
    return [d for d in policies.decisions(spark) if d.point == POINT]
