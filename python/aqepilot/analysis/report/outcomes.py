"""What decision points did, as a report shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.analysis.report.values import AnswerCount, BadPolicy, Outcome

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# More than any catalog of points, policies, reasons and fates has.
_MOST_SAID = 5000
_MOST_CHANGES = 30
_OUTCOMES = 12
_SHUFFLE = (
    "struct<bytes_by_partition_id: string, num_partitions: bigint, max_bytes: bigint, "
    "median_bytes: bigint, bytes_are_exact: boolean, tables: array<string>>"
)
_FACTS = ", ".join(f"{name} {_SHUFFLE}" for name in ("side", "shuffle", "`left`", "`right`"))


def narrowed(decisions: DataFrame) -> DataFrame:
    """Leaves out what a report does not need; the partitions of shuffles are in `shuffles`."""
    read = f"from_json(facts, '{_FACTS}')"
    parts = f"array({read}.side, {read}.shuffle, {read}.`left`, {read}.`right`)"
    kept = "s IS NOT NULL AND s.max_bytes IS NOT NULL AND s.bytes_by_partition_id IS NOT NULL"
    return decisions.selectExpr(
        *("log", "decision_id", "execution_id", "fingerprint", "point", "subject", "facts_id"),
        *("policy", "mode", "reason", "applied", "fate", "left(detail, 300) AS detail"),
        "left(spark_strategy, 120) AS spark_strategy",
        "left(final_strategy, 120) AS final_strategy",
        f"filter({parts}, s -> {kept}) AS shuffles",
    )


def answers(decisions: DataFrame) -> list[AnswerCount]:
    """Counts decisions by point, policy, mode, reason and fate."""
    from pyspark.sql import functions

    by = ("point", "policy", "mode", "reason", "applied", "fate")
    count, detail = functions.count("*").alias("n"), functions.max("detail").alias("detail")
    rows = decisions.groupBy(*by).agg(count, detail)
    most = rows.orderBy(functions.desc("n"), *by).limit(_MOST_SAID)
    return [AnswerCount(*row) for row in most.collect()]


def outcomes(decisions: DataFrame, keys: DataFrame) -> list[Outcome]:
    """What came of the decisions on each of these fingerprints: the most frequent outcomes.

    Args:
        decisions: As `of` gives them.
        keys: A column `key` of fingerprints.
    """
    from pyspark.sql import functions

    by = ("key", "point", "policy", "reason", "fate", "spark_strategy", "final_strategy")
    rank = "row_number() OVER (PARTITION BY key ORDER BY n DESC, point, reason, spark_strategy)"
    rows = (
        decisions.where("reason != 'NULL_ANSWER'")
        .withColumnRenamed("fingerprint", "key")
        .join(functions.broadcast(keys), "key", "left_semi")
        .groupBy(*by)
        .agg(functions.count("*").alias("n"))
        .withColumn("rank", functions.expr(rank))
        .where(f"rank <= {_OUTCOMES}")
        .orderBy("key", "rank")
        .drop("rank")
    )
    return [Outcome(*row) for row in rows.collect()]


def join_changes(decisions: DataFrame) -> list[tuple[str, str, int]]:
    """Which joins ran otherwise than Spark alone would have run them, and how often."""
    from pyspark.sql import functions

    rows = (
        decisions.where("point IN ('join_selection', 'dynamic_join_selection')")
        .where("fate = 'adopted' AND spark_strategy != final_strategy")
        .groupBy("spark_strategy", "final_strategy")
        .agg(functions.count("*").alias("n"))
        .orderBy(functions.desc("n"), "spark_strategy", "final_strategy")
        .limit(_MOST_CHANGES)
    )
    return [(spark, ran, n) for spark, ran, n in rows.collect()]


def bad_policies(policies: DataFrame) -> list[BadPolicy]:
    """Texts that could not be asked, with how many sessions read them."""
    from pyspark.sql import functions

    rows = (
        policies.where("error IS NOT NULL")
        .groupBy("policy", "point", functions.expr("left(error, 300)").alias("error"))
        .agg(functions.count("*").alias("n"))
        .orderBy(functions.desc("n"), "policy", "point", "error")
        .limit(50)
    )
    return [BadPolicy(*row) for row in rows.collect()]
