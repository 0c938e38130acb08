"""Decisions as aqepilot wrote them into Spark's event logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot import catalog
from aqepilot.eventlog import events
from aqepilot.eventlog.events import OURS
from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns
from aqepilot.eventlog.frames.applications import with_application

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_OF_CLOSING = ("fate", "final_strategy")
# The fields of the event: the columns, but for those of the closing event, and what is made whole.
_DECISION = {
    events.field(column.name): column.type
    for column in catalog.decision_columns()
    if column.name not in _OF_CLOSING
} | {"time": "bigint", "commonFactsId": "string", "commonFacts": "string"}
_CLAIMED = ("claimed_by", "claimed_fingerprint")
_CLOSED = (
    "`executionId` bigint, `fingerprint` string, `claimed` array<bigint>, "
    "`fates` array<struct<decisionId: bigint, fate: string, finalStrategy: string>>"
)
# A closing event has each decision's fate, and which decisions are this query's after all.
_CLOSING = """inline(concat(
    transform(coalesce(fates, array()), f -> struct(f.decisionId AS decision_id, f.fate AS fate,
      f.finalStrategy AS final_strategy, cast(null AS bigint) AS claimed_by,
      cast(null AS string) AS claimed_fingerprint)),
    transform(coalesce(claimed, array()), id -> struct(id AS decision_id,
      cast(null AS string) AS fate, cast(null AS string) AS final_strategy,
      executionId AS claimed_by, fingerprint AS claimed_fingerprint))))"""


def decisions(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row per decision, with its facts and, by the query's closing event, its fate."""
    from pyspark.sql import functions

    made = events.renamed(
        events.read(spark, files, {f"{OURS}Decision": events.schema(_DECISION)}), _DECISION
    )
    made = _with_whole_facts(made)
    closing = (
        events.read(spark, files, {f"{OURS}QueryClosed": _CLOSED})
        .select("log", functions.expr(_CLOSING))
        .groupBy("log", "decision_id")
        .agg(*(functions.max(n).alias(n) for n in (*_OF_CLOSING, *_CLAIMED)))
    )
    joined = made.join(closing, ["log", "decision_id"], "left").withColumns(
        {
            "execution_id": functions.coalesce("execution_id", _CLAIMED[0]),
            "fingerprint": functions.coalesce("fingerprint", _CLAIMED[1]),
            # Logs of before `gone` was a fate, and of before `mode` was null where nobody answered.
            "fate": functions.expr(
                "if(fate = 'superseded' AND final_strategy IS NULL, 'gone', fate)"
            ),
            "mode": functions.expr("if(policy IS NULL, NULL, mode)"),
        }
    )
    return events.shaped(with_application(joined, heads), columns.DECISIONS)


def _with_whole_facts(made: DataFrame) -> DataFrame:
    """Gives each event its `facts` as a whole.

    An event has them where it is the first of its query with them, and of those that every point
    has the first of its query alone. Where a line with these is lost, there are no facts: a policy
    would be asked with nulls that nobody knew.
    """
    from pyspark.sql import functions

    def first_of_equal(by: str, value: str) -> Column:
        # Rows with an equal value are the frame: both ways need rows of a query in one place only.
        return functions.expr(
            f"first({value}, true) OVER (PARTITION BY log, execution_id ORDER BY {by} "
            "RANGE BETWEEN CURRENT ROW AND CURRENT ROW)"
        )

    own = "CASE WHEN facts IS NOT NULL THEN struct(facts, common_facts_id) END"
    whole = "concat(left(_common, length(_common) - 1), ',', substr(_own.facts, 2))"
    facts = f"CASE WHEN _own.common_facts_id IS NULL THEN _own.facts ELSE {whole} END"
    return (
        made.withColumn(
            "_own", functions.coalesce(functions.expr(own), first_of_equal("facts_id", own))
        )
        .withColumn("_common", first_of_equal("_own.common_facts_id", "common_facts"))
        .withColumn("facts", functions.expr(facts))
    )
