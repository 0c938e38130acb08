"""The answers that are legal at decisions, by the decision points' own legality."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from aqepilot.eventlog.frames import Frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_KEYS = ("log", "app_id", "execution_id", "fingerprint", "point", "subject", "facts_id")
_SCHEMA = (
    "log string, app_id string, execution_id bigint, fingerprint string, point string, "
    "subject string, facts_id string, decision_id bigint, answer string, is_sparks boolean"
)
# A statement has so many asks.
_AT_ONCE = 50
Ask = tuple[str, str]


def judged(spark: SparkSession, asks: Iterable[Ask], most: int) -> Mapping[Ask, list[str]]:
    """Returns the legal answers for each point and its facts, as the record has answers.

    Args:
        spark: A session in which the extension is live, whose guard rails hold.
        asks: A decision point, and facts as JSON, as the record has them.
        most: How many answers of each at most; 1 or more.
    """
    rest = list(dict.fromkeys(asks))
    answers: dict[Ask, list[str]] = {ask: [] for ask in rest}
    while rest:
        some, rest = rest[:_AT_ONCE], rest[_AT_ONCE:]
        selects, args = [], dict[str, str]()
        for n, (point, facts) in enumerate(some):
            selects.append(f"SELECT {n} AS n, answer FROM aqepilot_legal(:p{n}, :f{n}, {most:d})")
            args |= {f"p{n}": point, f"f{n}": facts}
        for n, answer in spark.sql(" UNION ALL ".join(selects), args=args).collect():
            answers[some[n]].append(answer)
    return answers


def legal_answers(log: Frames, fingerprint: str | None, most: int) -> DataFrame:
    """Judges the answers of each decision in the driver. See `Log.legal_answers`."""
    from pyspark.sql import functions

    from aqepilot.session import status

    decisions = log.decisions
    spark = decisions.sparkSession
    status(spark)
    asked = decisions.where("subject IS NOT NULL")
    if fingerprint is not None:
        asked = asked.where(functions.col("fingerprint") == fingerprint)
    rows = (
        asked.groupBy(*_KEYS)
        .agg(
            functions.min("decision_id").alias("decision_id"),
            functions.first("facts", ignorenulls=True).alias("facts"),
            functions.first("spark_answer", ignorenulls=True).alias("spark_answer"),
        )
        .where("facts IS NOT NULL")
        .orderBy("log", "decision_id")
        .collect()
    )
    answers = judged(spark, [(row["point"], row["facts"]) for row in rows], most)
    values = [
        (
            *(row[name] for name in (*_KEYS, "decision_id")),
            answer,
            answer == row["spark_answer"],
        )
        for row in rows
        for answer in answers[row["point"], row["facts"]]
    ]
    return spark.createDataFrame(values, _SCHEMA)
