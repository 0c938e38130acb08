"""A query on Spark: plain or with answers, within a time, its rows beside plain Spark's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from aqepilot import catalog
from aqepilot.analysis.bench.pairs import Query, act, copied
from aqepilot.analysis.tune import choices
from aqepilot.analysis.tune.evidence import Choice, Decided, Proposal
from aqepilot.analysis.tune.measure import Ran
from aqepilot.analysis.tune.rows import same_rows
from aqepilot.decision import COLUMNS, Decision
from aqepilot.errors import AqePilotError, Problem, first_line
from aqepilot.pins import conflicts, policy_text
from aqepilot.policies import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TUNED = "tuned"
_POLICIES = (_TUNED, *(f"{choices.PREFIX}{name}" for name in choices.RECIPES), choices.ASKED)
_KEPT_FATES = ("no_change", "gone", "superseded", "refused_by_cost")
# A cancelled query ends at the next step of its plan; what does not end is no policy's fault.
_CANCEL_SECONDS, _CANCEL_EACH = 300.0, 0.5


class SparkRuns:
    """Runs one query in copies of a session.

    Args:
        spark: A classic session in which the extension is live.
        query: A statement, or a function of a session, whose DataFrame is run.
        fingerprint: Of the one query to tune, where a function runs several; null for all.
        held_out: A session with another day's data under the same names; null for none.
    """

    def __init__(
        self,
        spark: SparkSession,
        query: Query,
        fingerprint: str | None = None,
        held_out: SparkSession | None = None,
    ) -> None:
        self._query = query
        self._only = fingerprint
        self._sessions = {False: (copied(spark), copied(spark))}
        if held_out is not None:
            self._sessions[True] = (copied(held_out), copied(held_out))
        for plain, tuned in self._sessions.values():
            plain.conf.set("spark.aqepilot.mode", "off")
            tuned.conf.set("spark.aqepilot.policies", ",".join(_POLICIES))
            for policy in (*choices.recipes_in_shadow(), choices.asked()):
                _set(tuned, policy, "off")
        self._in_use: dict[bool, str] = {}
        self._rows: Sequence[Any] | None = None
        self.fingerprints: tuple[str, ...] = ()

    def begin(self) -> tuple[float, bool, tuple[Choice, ...], tuple[Proposal, ...]]:
        """Runs it plainly, twice to warm up and to see its rows, and once with the recipes asked.

        Returns:
            The shortest time; whether its rows are the same each time; the decisions, and what the
            recipes answered.

        Raises:
            AqePilotError: It fails, or there is nothing to decide.
        """
        plain, tuned = self._sessions[False]
        times, rows = [], []
        for _ in range(2):
            begin = time.perf_counter()
            rows.append(self._with_fault("plain Spark", lambda: _collected(plain, self._query)))
            times.append((time.perf_counter() - begin) * 1000)
        begin = time.perf_counter()
        self._with_fault("plain Spark", lambda: act(plain, self._query))
        times.append((time.perf_counter() - begin) * 1000)
        has_same_rows = rows[0] is not None and rows[1] is not None and same_rows(*rows)
        self._rows = rows[1] if has_same_rows else None
        for policy in choices.recipes_in_shadow():
            _mode(tuned, policy.name, "shadow")
        _mode(tuned, choices.ASKED, "enforce")
        last = _last(tuned)
        self._with_fault("Spark with recipes in shadow", lambda: act(tuned, self._query))
        made = _since(tuned, last)
        for policy in choices.recipes_in_shadow():
            _mode(tuned, policy.name, "off")
        if self._only:
            made = [one for one in made if one.fingerprint == self._only]
        self.fingerprints = tuple(sorted({one.fingerprint for one in made if one.fingerprint}))
        offered = choices.choices(tuned, made, self.fingerprints)
        if not offered:
            message = "this query has no decision with another legal answer: nothing can be tuned."
            raise AqePilotError(Problem("NOTHING_TO_TUNE", message))
        return min(times), has_same_rows, offered, choices.starts(made)

    def policy(self, answers: Sequence[Decided], name: str = _TUNED, comment: str = "") -> str:
        """Returns the policy file that gives these answers."""
        pins = [one.pin for one in answers]
        return policy_text(name, list(self.fingerprints), pins, comment=comment)

    def first(self, answers: Sequence[Decided], timeout_ms: float) -> Ran:
        """Runs it for the first time with answers: rows and decisions are looked at."""
        _, tuned = self._sessions[False]
        if conflicts([one.pin for one in answers]):
            return Ran("no_effect", 0.0, "two answers are about one decision")
        self._use(answers, held_out=False, asking=True)
        last = _last(tuned)
        rows: list[Any] = []
        ran = self._within(timeout_ms, lambda: rows.append(_collected(tuned, self._query)), tuned)
        if ran.outcome != "ran":
            return ran
        made = _since(tuned, last)
        if not any(one.applied and one.fate not in _KEPT_FATES for one in made):
            return ran._replace(outcome="no_effect", error=_why(made))
        if self._rows is not None and not (rows[0] is not None and same_rows(self._rows, rows[0])):
            return ran._replace(outcome="rows_differ", error="the rows are not plain Spark's")
        own = [one for one in made if not one.fingerprint or one.fingerprint in self.fingerprints]
        return ran._replace(choices=choices.choices(tuned, own, self.fingerprints))

    def timed(
        self, answers: Sequence[Decided], timeout_ms: float | None, held_out: bool = False
    ) -> Ran:
        """Runs it once more; without answers it is plain Spark."""
        plain, tuned = self._sessions[held_out]
        if answers:
            self._use(answers, held_out, asking=False)
        spark = tuned if answers else plain
        return self._within(timeout_ms, lambda: act(spark, self._query), spark)

    def _use(self, answers: Sequence[Decided], held_out: bool, asking: bool) -> None:
        """What the settings of `aqepilot.use` would be: the texts are known to be good."""
        tuned = self._sessions[held_out][1]
        text = self.policy(answers)
        if self._in_use.get(held_out) != text:
            _set(tuned, Policy.from_toml(text), "enforce")
            self._in_use[held_out] = text
        _mode(tuned, choices.ASKED, "enforce" if asking else "off")

    def _within(
        self, timeout_ms: float | None, run: Callable[[], None], spark: SparkSession
    ) -> Ran:
        """Runs in a thread of its own, whose jobs are cancelled when the time is over."""
        from pyspark import InheritableThread

        group = f"aqepilot-tune-{uuid4()}"
        errors: list[str] = []
        ms: list[float] = []

        def body() -> None:
            spark.sparkContext.setJobGroup(group, "aqepilot tune", interruptOnCancel=True)
            begin = time.perf_counter()
            try:
                run()
            except Exception as error:
                errors.append(first_line(error)[:300])
            ms.append((time.perf_counter() - begin) * 1000)

        thread: threading.Thread = InheritableThread(target=body)
        thread.start()
        thread.join(None if timeout_ms is None else timeout_ms / 1000)
        if not thread.is_alive():
            return Ran("failed", ms[0], errors[0]) if errors else Ran("ran", ms[0])
        begin = time.monotonic()
        while thread.is_alive() and time.monotonic() - begin < _CANCEL_SECONDS:
            spark.sparkContext.cancelJobGroup(group)
            thread.join(_CANCEL_EACH)
        if thread.is_alive():
            message = "a run went on for minutes after it was cancelled: the search cannot go on."
            raise AqePilotError(Problem("RUN_NOT_CANCELLED", message))
        return Ran("timed_out", timeout_ms or ms[0])

    def _with_fault(self, what: str, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except AqePilotError:
            raise
        except Exception as error:
            message = f"the query fails with {what}: {first_line(error)}"
            raise AqePilotError(Problem("QUERY_FAILED", message)) from error


def _collected(spark: SparkSession, query: Query) -> Sequence[Any] | None:
    """The rows; null where a function gives no DataFrame, or one without columns."""
    result = spark.sql(query) if isinstance(query, str) else query(spark)
    if hasattr(result, "collect") and getattr(result, "columns", None):
        rows: Sequence[Any] = result.collect()
        return rows
    return None


def _set(spark: SparkSession, policy: Policy, mode: str) -> None:
    prefix = f"spark.aqepilot.policy.{policy.name}."
    texts = policy.texts()
    for key in (*catalog.point_names(), "when"):
        if key in texts:
            spark.conf.set(prefix + key, texts[key])
        else:
            spark.conf.unset(prefix + key)
    _mode(spark, policy.name, mode)


def _mode(spark: SparkSession, name: str, mode: str) -> None:
    spark.conf.set(f"spark.aqepilot.policy.{name}.mode", mode)


def _last(spark: SparkSession) -> int:
    rows = spark.sql("SELECT decision_id FROM aqepilot_decisions()").collect()
    return max((row[0] for row in rows), default=0)


def _since(spark: SparkSession, last: int) -> list[Decision]:
    """The later decisions, by a query of which none is asked: it has no shuffle."""
    columns = ", ".join(f"`{name}`" for name in COLUMNS)
    sql = f"SELECT {columns} FROM aqepilot_decisions() WHERE decision_id > {last:d}"
    made = [Decision(*row) for row in spark.sql(sql).collect()]
    return sorted(made, key=lambda one: one.decision_id)


def _why(made: Sequence[Decision]) -> str:
    """Why no answer changed the plan."""
    refused = [one for one in made if one.policy == _TUNED and not one.applied]
    if refused:
        return f"{refused[0].reason}: {refused[0].detail or ''}"
    return "no answer changed the plan"
