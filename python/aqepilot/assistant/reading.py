"""What logs say, as rows for an assistant. Nothing here changes anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from aqepilot import texts
from aqepilot.assistant.kept import Kept
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from aqepilot.analysis.log import Log
    from aqepilot.decision import Decisions
    from aqepilot.eventlog.files import LogFile

T = TypeVar("T")
# For so long an answer stands, and longer where no file of the logs has changed: pages of one list
# are of the same list.
FRESH_S = 600.0
# Who has gone waits for no answer.
_PATIENCE_S = 2.0
_MOST_KEPT = 50
_MOST_ROWS = 500
_MOST_APPLICATIONS = 200
_SUGGESTIONS = 50
_ARRAY = 20
REPORT_PARTS = ("points", "guard_rails", "failures", "bad_policies", "skewed_shuffles", "stages")


class Reading:
    """Logs, and the Spark that reads them, which starts when it is needed first.

    Tools read at the same time, and each thing once: no tool waits for what another one reads.

    Args:
        logs: Where they are; none is for policies alone.
        open_session: Opens the Spark.
        pack: The file of history; null for none.
        autopilot: The file of an autopilot; null for none.
    """

    def __init__(
        self,
        logs: Sequence[str],
        open_session: Callable[[], AbstractContextManager[SparkSession]],
        pack: str | None = None,
        autopilot: Path | None = None,
    ) -> None:
        self.logs = tuple(logs)
        self.pack = pack
        self._autopilot = autopilot
        self._open_session = open_session
        # Of the session and of the log, not of what is read of it.
        self._lock = threading.RLock()
        self._open = ExitStack()
        self._spark: SparkSession | None = None
        self._log: Log | None = None
        self._files: frozenset[LogFile] | None = None
        self._fresh_until = 0.0
        self._kept = Kept(_MOST_KEPT)

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the Spark, and with it what still reads."""
        is_alone = self._lock.acquire(timeout=_PATIENCE_S)
        try:
            self._open.close()
        finally:
            if is_alone:
                self._lock.release()

    def with_session(self, use: Callable[[SparkSession], T]) -> T:
        """Calls a function with the session."""
        with self._lock:
            if self._spark is None:
                self._spark = self._open.enter_context(self._open_session())
            spark = self._spark
        return use(spark)

    def with_log(self, use: Callable[[Log], T], *key: Any) -> T:
        """Calls a function with the log, or returns what it returned some minutes ago.

        Args:
            use: The function.
            *key: Names what it returns.

        Raises:
            AqePilotError: The server was started without a log, or it cannot be read.
        """
        if not self.logs:
            message = "the server was started without logs: `aqepilot mcp --log PATH` names them."
            raise AqePilotError(Problem("LOG_MISSING", message))
        log, kept = self.with_session(self._newest)
        return kept.get(key, lambda: use(log))

    def _newest(self, spark: SparkSession) -> tuple[Log, Kept]:
        """The log, and what was read of it."""
        from aqepilot.analysis.log import read_log

        with self._lock:
            if self._log is None or self._fresh_until < time.monotonic():
                files = self._listed(spark)
                if self._log is None or files is None or files != self._files:
                    self._log = read_log(spark, self.logs)
                    self._files, self._kept = files, Kept(_MOST_KEPT)
                self._fresh_until = time.monotonic() + FRESH_S
            return self._log, self._kept

    def _listed(self, spark: SparkSession) -> frozenset[LogFile] | None:
        """The logs' files; null where they cannot be listed, as those of a catalog's tables."""
        from aqepilot.eventlog import files

        try:
            return frozenset(files.find(spark, self.logs))
        except AqePilotError:
            return None

    def warm(self) -> None:
        """Reads what tools answer without an argument, before they are asked."""
        self.overview()
        self.findings()
        self.queries(None)
        self.costs(None)
        for part in REPORT_PARTS:
            self.report(part)
        self.experiments()

    def overview(self) -> tuple[str, list[Any]]:
        """Returns figures of the logs in words, and their applications, policies and answers."""
        return self.with_log(_overview, "overview")

    def findings(self) -> list[Any]:
        """Returns what the queries would gain most from."""
        return self.with_log(_findings, "findings")

    def queries(self, app_id: str | None) -> list[Any]:
        """Returns the queries with most task time."""
        from aqepilot.analysis.explanation.query import most_expensive

        def read(log: Log) -> list[Any]:
            return [row.asDict() for row in most_expensive(log, _MOST_ROWS, app_id)]

        return self.with_log(read, "queries", app_id)

    def explanation(self, query: int, app_id: str | None) -> str:
        """Returns the sentences on one query."""
        return self.with_log(lambda log: str(log.explain(query, app_id)), "explain", query, app_id)

    def decisions(self, query: int, app_id: str | None) -> Decisions:
        """Returns the decisions of one query, with their facts."""
        from aqepilot.analysis.explanation import query as queries

        return self.with_log(
            lambda log: queries.decisions(log, query, app_id), "decisions", query, app_id
        )

    def costs(self, slots: int | None) -> list[Any]:
        """Returns where cores' time did no work, by query."""

        def read(log: Log) -> list[Any]:
            rows = log.costs(slots).fingerprints.limit(_MOST_ROWS).collect()
            return [row.asDict() for row in rows]

        return self.with_log(read, "costs", slots)

    def report(self, part: str) -> list[Any]:
        """Returns a part of the report, one of `REPORT_PARTS`."""
        return self.with_log(lambda log: _report(log, part), "report", part)

    def experiments(self) -> list[Any]:
        """Returns what experiments say so far."""
        from aqepilot.analysis.report.experiments import newest_tried

        return self.with_log(lambda log: [_plain(one) for one in newest_tried(log)], "experiments")

    def autopilot(self) -> list[Any]:
        """Returns what an autopilot tries, a row for each trial.

        Raises:
            AqePilotError: The server was started without one, or its state cannot be read.
        """
        from aqepilot.autopilot import sentences, shown
        from aqepilot.autopilot.definition import Definition

        if self._autopilot is None:
            message = "the server was started without one: `aqepilot mcp --autopilot FILE`."
            raise AqePilotError(Problem("AUTOPILOT_MISSING", message))
        definition = Definition.from_file(self._autopilot)
        return sentences.data(shown.state(definition), definition)

    def history(self) -> dict[str, Any]:
        """Returns what the file of history holds.

        Raises:
            AqePilotError: The server was started without one, or it cannot be read.
        """
        from aqepilot import history

        path = self.pack
        if path is None:
            message = "the server was started without history: `aqepilot mcp --history FILE`."
            raise AqePilotError(Problem("HISTORY_MISSING", message))
        pack: dict[str, Any] = _plain(self.with_session(lambda spark: history.read(spark, path)))
        return pack


def _overview(log: Log) -> tuple[str, list[Any]]:
    count = log.applications.selectExpr(
        "count(*)", "coalesce(sum(unreadable_lines), 0)", "count(problem)"
    ).collect()[0]
    queries = log.queries.selectExpr(
        "count(*)",
        "count_if(NOT succeeded)",
        "coalesce(sum(task_ms), 0)",
        "coalesce(sum(decisions), 0)",
    ).collect()[0]
    applications = (
        log.applications.orderBy("started", ascending=False)
        .limit(_MOST_APPLICATIONS)
        .selectExpr(
            *("app_id", "app_name", "user", "spark_version", "string(started) AS started"),
            *("string(ended) AS ended", "problem"),
        )
        .collect()
    )
    policies = (
        log.policies.groupBy("policy", "point", "mode")
        .agg({"revision": "max", "session_id": "count", "error": "max"})
        .toDF("policy", "point", "mode", "newest_revision", "times_read", "error")
        .orderBy("policy", "point", "mode")
        .limit(_MOST_ROWS)
        .collect()
    )
    summary = (
        f"{texts.plural(count[0], 'log')} with {texts.plural(queries[0], 'query', 'queries')}, of "
        f"which {queries[1]:,} failed: {texts.duration(queries[2])} of task time, "
        f"{texts.plural(queries[3], 'decision')}. {count[1]:,} lines were no whole events, and "
        f"{count[2]:,} logs could not be read to their end. Policies first, then applications, the "
        "newest first."
    )
    rows = [{"policy": row.asDict()} for row in policies]
    return summary, rows + [{"application": row.asDict()} for row in applications]


def _findings(log: Log) -> list[Any]:
    from aqepilot.analysis.findings import KINDS
    from aqepilot.analysis.suggestions import sentences

    rows = []
    for one in log.suggest(_SUGGESTIONS):
        *_, what_to_do = sentences(one)
        stake = {"at_stake": texts.duration(one.stake_ms), "what_to_do": what_to_do}
        rows.append({"kind": one.kind, "cause": KINDS[one.kind], **one._asdict(), **stake})
    return rows


def _report(log: Log, part: str) -> list[Any]:
    from aqepilot.analysis.report import outcomes, page, skew

    if part == "bad_policies":
        return [_plain(row) for row in outcomes.bad_policies(log.policies)]
    if part == "stages":
        return [_plain(row) for row in skew.stages(log.stages, log.queries, log.applications)]
    narrow = outcomes.narrowed(log.decisions)
    if part == "skewed_shuffles":
        shuffles = [_plain(row) for row in skew.shuffles(narrow, log.queries)]
        return [
            {**row, "bytes_by_partition_id": row["bytes_by_partition_id"][:_ARRAY]}
            for row in shuffles
        ]
    answers = outcomes.answers(narrow)
    if part == "points":
        return [
            {"point": point.point, **{k: v for k, v in _plain(row).items() if k != "bar"}}
            for point in page.points(answers)
            for row in point.policies
        ]
    rows = page.guards(answers) if part == "guard_rails" else page.failures(answers)
    return [_plain(row) for row in rows]


def _plain(value: Any) -> Any:
    """Named tuples as mappings."""
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def at_path(facts: Any, path: str) -> Any:
    """Returns what stands at a dotted path among facts.

    Raises:
        AqePilotError: Nothing does; says what there is.

    >>> at_path({"left": {"max_bytes": 9}}, "left.max_bytes")
    9
    """
    value = facts
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            known = ", ".join(value) if isinstance(value, dict) else "nothing beneath"
            message = f"there is no fact {path!r}: at {name!r} there is {known}."
            raise AqePilotError(Problem("FACT_UNKNOWN", message))
        value = value[name]
    return value


def without_arrays(value: Any, path: str = "") -> Any:
    """Returns facts with a sentence in the place of each long array.

    >>> without_arrays({"left": {"sizes": list(range(100))}})
    {'left': {'sizes': '100 values; path="left.sizes" has them'}}
    """
    if isinstance(value, dict):
        return {
            key: without_arrays(item, f"{path}.{key}" if path else key)
            for key, item in value.items()
        }
    if isinstance(value, list) and len(value) > _ARRAY:
        return f'{len(value):,} values; path="{path}" has them'
    return value
