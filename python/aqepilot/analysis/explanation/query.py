"""One query of an event log in words: what was known, what was decided, and how it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from aqepilot import texts
from aqepilot.analysis.explanation import Explanation, describe
from aqepilot.decision import COLUMNS, Decision, Decisions
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from aqepilot.eventlog.frames import Frames

_MOST_NAMED = 10
_MOST_DECISIONS = 10_000


def explain(log: Frames, execution_id: int, app_id: str | None = None) -> Explanation:
    """Tells of one query of a log. See `Log.explain`."""
    query = _query(log, execution_id, app_id)
    recorded = _decisions(log, query)
    if recorded:
        decided = describe(recorded, knew=True)
    else:
        text = f" ({query.description})" if query.description else ""
        decided = f"Query {execution_id}{text}: the log has no decision of aqepilot's on it."
    stages = (
        _rows_of(log.stages, query).where("waiting_ms > 0").orderBy("waiting_ms", ascending=False)
    )
    return Explanation("\n".join([decided, *went(query, stages.first())]))


def decisions(log: Frames, execution_id: int, app_id: str | None = None) -> Decisions:
    """Returns the decisions of one query of a log, oldest first; 10,000 at most.

    Args:
        log: The log.
        execution_id: The query's number.
        app_id: Its application; null where only one of the log has such a query.

    Raises:
        AqePilotError: There is no such query, or several applications have one.
    """
    return _decisions(log, _query(log, execution_id, app_id))


def _decisions(log: Frames, query: Any) -> Decisions:
    rows = _rows_of(log.decisions, query).orderBy("decision_id").limit(_MOST_DECISIONS).collect()
    return Decisions(Decision(*(row[name] for name in COLUMNS)) for row in rows)


def most_expensive(log: Frames, top: int = 20, app_id: str | None = None) -> list[Row]:
    """Returns the queries of a log with most task time.

    Args:
        log: The log.
        top: How many at most.
        app_id: Of this application; null for those of all.

    Returns:
        Those with most task time first: `execution_id`, `app_id`, `description`, `wall_ms`,
        `task_ms`, and how many decisions there were in it, `decisions`.
    """
    from pyspark.sql import functions

    col = functions.col
    queries = log.queries if app_id is None else log.queries.where(col("app_id") == app_id)
    order = [col("task_ms").desc_nulls_last(), col("log"), col("execution_id")]
    names = ("execution_id", "app_id", "description", "wall_ms", "task_ms", "decisions")
    return queries.orderBy(*order).limit(top).select(*names).collect()


def went(query: Any, worst: Any | None) -> Iterator[str]:
    """Yields how a query went, as sentences.

    Args:
        query: Its row of `Log.queries`.
        worst: The row of `Log.stages` whose slots waited most; null when none waited.
    """
    ended = {True: "It ended well", False: "It failed", None: "The log ends before it does"}
    wall = f" after {texts.duration(query.wall_ms)}" if query.wall_ms is not None else ""
    yield (
        f"{ended[query.succeeded]}{wall}: {texts.duration(query.task_ms)} of task time in "
        f"{texts.plural(query.stages or 0, 'stage')} and {texts.plural(query.tasks or 0, 'task')}, "
        f"{texts.size(query.shuffle_read_bytes)} read from shuffles, "
        f"{texts.size(query.disk_spill_bytes)} spilled to disk."
    )
    if query.error:
        yield f"Spark said: {query.error.strip().splitlines()[0]}"
    if query.joins:
        yield f"Its last plan joins by {', '.join(query.joins)}."
    troubles = (
        (query.retried_stages, "stage tried again", "stages tried again"),
        (query.failed_tasks, "failed task", "failed tasks"),
        (query.killed_tasks, "killed task", "killed tasks"),
        (query.dropped_events, "dropped event", "dropped events"),
    )
    counted = [texts.plural(n, one, many) for n, one, many in troubles if n]
    if counted:
        yield f"It had {', '.join(counted)}."
    if worst is not None:
        yield (
            f"Its cores waited most in stage {worst.stage_id}: {texts.duration(worst.waiting_ms)} "
            f"in all, as the longest task took {texts.duration(worst.max_task_ms)} and the median "
            f"{texts.duration(worst.median_task_ms)}."
        )


def _query(log: Frames, execution_id: int, app_id: str | None) -> Any:
    from pyspark.sql import functions

    queries = log.queries.where(functions.col("execution_id") == execution_id)
    if app_id is not None:
        queries = queries.where(functions.col("app_id") == app_id)
    rows = queries.orderBy("app_id", "app_attempt_id", "log").limit(_MOST_NAMED + 1).collect()
    owner = f" of {app_id}" if app_id is not None else ""
    if not rows:
        message = f"the logs have no query {execution_id}{owner}: Spark's UI numbers them."
        raise AqePilotError(Problem("QUERY_NOT_FOUND", message))
    if len(rows) > 1:
        names = [row.app_id or row.log for row in rows[:_MOST_NAMED]]
        more = " and more" if len(rows) > _MOST_NAMED else ""
        message = (
            f"several applications have a query {execution_id}: {', '.join(names)}{more}. Name "
            "one, or give its log only."
        )
        raise AqePilotError(Problem("QUERY_AMBIGUOUS", message))
    return rows[0]


def _rows_of(frame: DataFrame, query: Any) -> DataFrame:
    from pyspark.sql import functions

    return frame.where(
        (functions.col("log") == query.log) & (functions.col("execution_id") == query.execution_id)
    )
