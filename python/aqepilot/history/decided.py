"""Which sub-plans a policy decided on by their history, with the decision in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aqepilot.eventlog.events import expr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.eventlog.frames import Frames

# Each `history` and `joined_history` among the facts; their values have no braces.
_BEGIN = 'history":{'
_HELD = '"held":"'
_HISTORY = r'history":(\{[^{}]*\})'
_FIELDS = "signature string, runs int, match string, held string"
_QUERY = ["log", "execution_id"]


def by_history(log: Frames) -> DataFrame:
    """Returns what was applied by policies that read history: a row for each sub-plan.

    Its columns: `log`, `execution_id`, `fingerprint`, `job`, `time_ms` of the decision,
    `is_adopted`, and of the sub-plan `same`, 16 hexadecimal digits, and `form`, by which it was
    found. `same` is null of what was decided by the query's own history alone.

    Whether a policy reads history is told by its text. A Python function may, and so may a policy
    whose text the log has lost.
    """
    from pyspark.sql import functions

    text, when = functions.col("text"), functions.col("when")
    reads = (
        text.rlike(r"\bhistory\b")
        | functions.coalesce(when.rlike(r"\bhistory\b"), functions.lit(False))
        | text.startswith("python:")
    )
    policies = log.policies.groupBy("log", "policy", "point", "revision").agg(
        functions.max(reads).alias("reads_history")
    )
    applied = (
        _with_histories(log.decisions, _BEGIN)
        .where("applied AND answer IS NOT NULL AND execution_id IS NOT NULL")
        .join(functions.broadcast(policies), ["log", "policy", "point", "revision"], "left")
        .where("coalesce(reads_history, true)")
        .withColumn("histories", expr("filter(histories, h -> h.runs IS NOT NULL)"))
        .where("size(histories) > 0")
    )
    return applied.selectExpr(
        *("log", "execution_id", "fingerprint", "get_json_object(facts, '$.query.job') AS job"),
        *("unix_millis(time) AS time_ms", "coalesce(fate = 'adopted', false) AS is_adopted"),
        "explode(histories) AS h",
    ).selectExpr(
        *("log", "execution_id", "fingerprint", "job", "time_ms", "is_adopted"),
        *("h.signature AS same", "coalesce(h.match, 'SAME') AS form"),
    )


def withheld(decisions: DataFrame) -> DataFrame:
    """Returns the history that policies could not use, as it is held: a row for each sub-plan.

    Args:
        decisions: Those of a log, with their facts.

    Returns:
        `signature`, `reason` as the newest decision has it, `decisions`, how many did without,
        and `last`, when the newest of them was.
    """
    seen = _with_histories(decisions, _HELD).selectExpr("time", "explode(histories) AS h")
    return (
        seen.where("h.held IS NOT NULL")
        .groupBy(expr("h.signature").alias("signature"))
        .agg(
            expr("max_by(h.held, time) AS reason"),
            expr("count(*) AS decisions"),
            expr("max(time) AS last"),
        )
    )


def _with_histories(decisions: DataFrame, text: str) -> DataFrame:
    """Adds `histories`, those among the facts, to decisions whose facts have the text."""
    from pyspark.sql import functions

    texts = functions.regexp_extract_all("facts", functions.lit(_HISTORY), 1)
    return (
        decisions.where(functions.col("facts").contains(text))
        .withColumn("texts", texts)
        .withColumn("histories", expr(f"transform(texts, t -> from_json(t, '{_FIELDS}'))"))
    )


def unfinished(log: Frames, decided: DataFrame, runs: DataFrame) -> DataFrame:
    """Returns the queries of `by_history` that never ended: their driver is gone.

    A query counts where the same query ran later in another log: else it may still run.

    Args:
        log: The log.
        decided: The result of `by_history`.
        runs: Queries that ended, with `log`, `fingerprint` and `run_ms`.

    Returns:
        A row for each: `log`, `execution_id`, `fingerprint` and `run_ms`, when it was decided on.
    """
    # What has no aggregate of stages in it needs none of their events.
    open_queries = log.queries.where("ended IS NULL").select(*_QUERY).distinct()
    begun = (
        decided.where("fingerprint IS NOT NULL")
        .groupBy(*_QUERY, "fingerprint")
        .agg(expr("max(time_ms) AS run_ms"))
    )
    later = (
        runs.select("log", "fingerprint", "run_ms")
        .unionByName(begun.select("log", "fingerprint", "run_ms"))
        .selectExpr("log AS other_log", "fingerprint AS other", "run_ms AS other_ms")
    )
    is_later = expr("fingerprint = other AND log != other_log AND run_ms < other_ms")
    return begun.join(open_queries, _QUERY, "left_semi").join(later, is_later, "left_semi")
