"""Policies as plain settings, and what the extension says of them, without our Python package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

POINT = "dynamic_join_selection"
HASH_RIGHT = "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END"
HASH_LEFT = "CASE WHEN side.is_left THEN 'SHUFFLE_HASH' END"


def conf(text: str, name: str = "test", **more: str) -> dict[str, str]:
    """Returns the settings of one policy; ``more``: ``when``, ``mode``, texts at other points."""
    prefix = f"spark.aqepilot.policy.{name}."
    return {
        "spark.aqepilot.policies": name,
        prefix + POINT: text,
        **{prefix + key: value for key, value in more.items()},
    }


def use(spark: SparkSession, text: str, name: str = "test", **more: str) -> None:
    """Makes it the session's only policy."""
    for key, value in conf(text, name, **more).items():
        spark.conf.set(key, value)


def decisions(spark: SparkSession) -> list[Row]:
    """Returns the session's decisions, oldest first."""
    return spark.sql("SELECT * FROM aqepilot_decisions() ORDER BY decision_id").collect()


def reasons(spark: SparkSession) -> set[str]:
    """Returns the reasons of the session's decisions."""
    return {d.reason for d in decisions(spark)}


def status(spark: SparkSession, kind: str) -> list[Row]:
    """Returns the rows of ``aqepilot_status()`` of one kind."""
    return [
        row for row in spark.sql("SELECT * FROM aqepilot_status()").collect() if row.kind == kind
    ]


def described(spark: SparkSession, text: str) -> dict[int, str]:
    """Returns the SQL executions that were run under this job description, by execution id.

    As Spark's own status store has them: it takes a job description as the name of an execution.
    """
    spark._jsparkSession.sparkContext().listenerBus().waitUntilEmpty(60000)
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    texts: dict[int, str] = {}
    for i in range(executions.size()):
        one: Any = executions.apply(i)
        if one.description() == text:
            texts[one.executionId()] = one.physicalPlanDescription()
    return texts
