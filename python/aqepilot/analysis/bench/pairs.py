"""`aqepilot bench`: the same queries under two sets of policies, in pairs, until it is clear."""

from __future__ import annotations

import json
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from aqepilot.analysis.intervals import Interval, mean_interval
from aqepilot.display import html, text
from aqepilot.display.in_place import InPlace
from aqepilot.errors import AqePilotError, NotLiveError, Problem
from aqepilot.session_policies import PolicyLike
from aqepilot.texts import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A statement, or what is called with the session; its result is run if it is a DataFrame.
Query = str | Callable[["SparkSession"], Any]
Arm = Literal["control", "treatment"]

# What one pair may say at most: a run that is so many times longer or shorter counts as that.
CLIPPED_AT = 16.0


class Run(NamedTuple):
    """One run of a query.

    Attributes:
        round: From 1 on; 0 and below are warm-ups, which do not count.
        query: Its name.
        arm: Under which policies.
        ms: Wall time.
        error: The first line of what it failed with; null when it did not.
    """

    round: int
    query: str
    arm: Arm
    ms: float
    error: str | None


class QueryResult(NamedTuple):
    """What is known of one query.

    Attributes:
        query: Its name.
        control_ms: Median wall time under the control; null without a run that succeeded.
        treatment_ms: The same under the treatment.
        log_ratio: Mean of the logarithms of treatment's time over control's, pair by pair. The
            intervals of all queries hold at once.
        applied: Decisions of the treatment's policies that took effect in one run; where there are
            none, the arms differ by what asking costs.
        control_errors: Runs that failed under the control.
        treatment_errors: Runs that failed under the treatment.
        error: What the first of these failed with; null when none did.
    """

    query: str
    control_ms: float | None
    treatment_ms: float | None
    log_ratio: Interval
    applied: int
    control_errors: int
    treatment_errors: int
    error: str | None


class Paired(NamedTuple):
    """What is known after a round.

    Attributes:
        rounds: In each, every query ran once in each arm.
        log_ratio: Mean over rounds of the mean over queries of the logarithm of treatment's time
            over control's. Its exponential is the geometric mean of the ratios.
        queries: Each of them, in the order in which they were given.
        verdict: ``faster``, ``slower``, ``same`` (within the margin) or ``open``; ``broken`` where
            a query failed under the treatment and never under the control.
        margin: How little counts as the same, as a share of the time.
    """

    rounds: int
    log_ratio: Interval
    queries: list[QueryResult]
    verdict: Literal["faster", "slower", "same", "open", "broken"]
    margin: float

    @property
    def harmed(self) -> list[QueryResult]:
        """Queries that are slower under the treatment."""
        return [result for result in self.queries if result.log_ratio.lower > 0]

    def __repr__(self) -> str:
        """The verdict, and a row for each query."""
        from aqepilot.analysis.bench.summary import shown

        lines, table = shown(self)
        sentences = [visible(line) for line in (lines.heading, *lines.lines)]
        return "\n".join([*sentences, text(table) or ""])

    def _repr_html_(self) -> str | None:
        from aqepilot.analysis.bench.summary import shown

        return html(*shown(self))


class Rounds(Iterator[Paired]):
    """The rounds of a bench: a result after each, for as long as the caller asks for more.

    Args:
        results: What runs them.
    """

    def __init__(self, results: Iterator[Paired]) -> None:
        self._results = results

    def __next__(self) -> Paired:
        """Runs a round."""
        return next(self._results)

    def watch(self) -> Paired:
        """Runs all rounds, shows what is known after each in its place, and returns the last.

        Raises:
            ValueError: There is no round to run.
        """
        last: Paired | None = None
        with InPlace() as place:
            for last in self:
                place.show(last)
        if last is None:
            raise ValueError("there was no round")
        return last


def bench(
    spark: SparkSession,
    queries: Mapping[str, Query],
    treatment: Sequence[PolicyLike],
    control: Sequence[PolicyLike] = (),
    *,
    rounds: int = 30,
    all_rounds: bool = False,
    warm_up: int = 2,
    margin: float = 0.03,
    seed: int | None = None,
    runs: str | Path | None = None,
) -> Rounds:
    """Runs queries under two sets of policies in turn, and yields what is known after each round.

    In a round each query runs once in each arm, one right after the other, so that what else the
    machine does meets both; which goes first is drawn, and is the other way round in the next
    round. The order of the queries is drawn anew. It ends when the verdict is clear, or after the
    last round. Looking after each round is allowed for: see `intervals`.

    Each arm has a session of its own, a copy of this one with its settings and views. The result
    of a SELECT is computed and thrown away (Spark's sink ``noop``). `bench(...).watch()` shows the
    rounds as they end, in a notebook and in a terminal, and returns the last result.

    Args:
        spark: A classic session in which the extension is live.
        queries: Statements, or functions of a session, whose DataFrame is run, by name.
        treatment: Policies, as for `aqepilot.use`.
        control: Those to compare with; none is plain Spark.
        rounds: How many at most; 1 or more.
        all_rounds: Whether to go on when the verdict is clear, for the verdict on each query.
        warm_up: Rounds before, which do not count; 0 or more.
        margin: How little counts as the same, as a share: 0.03 is 3 percent.
        seed: Of the order; null draws one.
        runs: A file that gets a line of JSON for each run, as it ends; one that is there is
            replaced.

    Raises:
        PolicyError: A policy is wrong.
        NotLiveError: The extension is not live here, or the session is one of Spark Connect.
        AqePilotError: There is no query, or the file cannot be written.
    """
    drawn = random.Random(seed)
    return Rounds(
        _rounds(
            spark, queries, treatment, control, rounds, all_rounds, warm_up, margin, drawn, runs
        )
    )


def _rounds(
    spark: SparkSession,
    queries: Mapping[str, Query],
    treatment: Sequence[PolicyLike],
    control: Sequence[PolicyLike],
    rounds: int,
    all_rounds: bool,
    warm_up: int,
    margin: float,
    drawn: random.Random,
    runs: str | Path | None,
) -> Iterator[Paired]:
    if not queries:
        raise AqePilotError(Problem("QUERIES_MISSING", "there is no query to run."))
    arms = _arms(spark, treatment, control)
    lines = _opened(runs)
    try:
        running = _Bench(arms, queries, margin, drawn, lines)
        for number in range(1 - warm_up, 1):
            running.round(number)
        for number in range(1, rounds + 1):
            running.round(number)
            result = running.result()
            yield result
            if result.verdict != "open" and not all_rounds:
                return
    finally:
        if lines:
            lines.close()


class _Bench:
    def __init__(
        self,
        arms: dict[Arm, SparkSession],
        queries: Mapping[str, Query],
        margin: float,
        drawn: random.Random,
        lines: IO[str] | None,
    ) -> None:
        self._arms = arms
        self._queries = dict(queries)
        self._margin = margin
        self._drawn = drawn
        self._lines = lines
        self._runs: list[Run] = []
        self._applied: dict[str, int] = {}
        self._first: dict[str, Arm] = {}

    def round(self, number: int) -> None:
        names = list(self._queries)
        self._drawn.shuffle(names)
        for name in names:
            for arm in self._order(name):
                run = self._run(number, name, arm)
                self._runs.append(run)
                if self._lines:
                    self._lines.write(json.dumps(run._asdict()) + "\n")
                    self._lines.flush()

    def _order(self, name: str) -> list[Arm]:
        """One order is drawn, and the other one follows in the next round."""
        both: list[Arm] = ["control", "treatment"]
        before = self._first.pop(name, None)
        if before is None:
            self._drawn.shuffle(both)
            self._first[name] = both[0]
        elif before == "control":
            both.reverse()
        return both

    def _run(self, number: int, name: str, arm: Arm) -> Run:
        spark = self._arms[arm]
        is_first = arm == "treatment" and name not in self._applied
        last = _last_decision(spark) if is_first else 0
        error = None
        begin = time.perf_counter()
        try:
            act(spark, self._queries[name])
        except Exception as fault:
            error = (str(fault).strip().splitlines() or [type(fault).__name__])[0][:300]
        ms = (time.perf_counter() - begin) * 1000
        if is_first:
            self._applied[name] = _applied_since(spark, last)
        return Run(number, name, arm, ms, error)

    def result(self) -> Paired:
        counted = [run for run in self._runs if run.round > 0]
        rounds = max(run.round for run in counted)
        ratios = {name: _log_ratios(counted, name) for name in self._queries}
        whole = [
            [by_round[number] for by_round in ratios.values() if number in by_round]
            for number in range(1, rounds + 1)
        ]
        pooled = mean_interval([statistics.fmean(by_query) for by_query in whole if by_query])
        alpha = 0.05 / len(ratios)
        queries = [
            QueryResult(
                name,
                _median(counted, name, "control"),
                _median(counted, name, "treatment"),
                mean_interval(list(ratios[name].values()), alpha),
                self._applied.get(name, 0),
                _errors(counted, name, "control"),
                _errors(counted, name, "treatment"),
                next((r.error for r in counted if r.query == name and r.error), None),
            )
            for name in self._queries
        ]
        is_broken = any(query.treatment_errors and not query.control_errors for query in queries)
        verdict = "broken" if is_broken else verdict_of(pooled, self._margin)
        return Paired(rounds, pooled, queries, verdict, self._margin)


def verdict_of(pooled: Interval, margin: float) -> Literal["faster", "slower", "same", "open"]:
    """Returns what is known of a mean of log ratios.

    Args:
        pooled: The mean's confidence sequence.
        margin: How little counts as the same, as a share of the time.
    """
    if pooled.is_within(math.log1p(margin)):
        return "same"
    if pooled.excludes_zero:
        return "faster" if pooled.upper < 0 else "slower"
    return "open"


def _log_ratios(runs: list[Run], name: str) -> dict[int, float]:
    """Of each round in which both runs succeeded."""
    ms = {(run.round, run.arm): run.ms for run in runs if run.query == name and not run.error}
    return {
        number: log_ratio(ms[number, "control"], treated)
        for (number, arm), treated in ms.items()
        if arm == "treatment" and (number, "control") in ms
    }


def log_ratio(control_ms: float, treatment_ms: float) -> float:
    """Returns what one pair says: the logarithm of treatment's time over control's, clipped.

    >>> round(log_ratio(100, 80), 3), round(log_ratio(1, 1000), 3)
    (-0.223, 2.773)
    """
    most = math.log(CLIPPED_AT)
    return max(-most, min(most, math.log(treatment_ms / control_ms)))


def _median(runs: list[Run], name: str, arm: Arm) -> float | None:
    ms = [run.ms for run in runs if (run.query, run.arm) == (name, arm) and not run.error]
    return statistics.median(ms) if ms else None


def _errors(runs: list[Run], name: str, arm: Arm) -> int:
    return sum(bool(run.error) for run in runs if (run.query, run.arm) == (name, arm))


def _arms(
    spark: SparkSession, treatment: Sequence[PolicyLike], control: Sequence[PolicyLike]
) -> dict[Arm, SparkSession]:
    """A session for each arm."""
    from aqepilot.session import use

    require_classic(spark, "a bench")
    treated, plain = copied(spark), copied(spark)
    use(treated, *treatment)
    if control:
        use(plain, *control)
    else:
        plain.conf.set("spark.aqepilot.mode", "off")
    return {"control": plain, "treatment": treated}


def require_classic(spark: SparkSession, what: str) -> None:
    """Refuses a session that cannot be copied, or in which the extension is not live.

    Args:
        spark: The session.
        what: Needs it, e.g. ``a bench``.

    Raises:
        NotLiveError: It is such a session; says why.
    """
    from aqepilot.session import status
    from aqepilot.submit.doctor import probe

    if probe.is_connect(spark):
        message = f"{what} needs a classic session: Spark Connect cannot copy one with its views."
        raise NotLiveError(Problem("NEEDS_CLASSIC", message))
    status(spark)


def copied(spark: SparkSession) -> SparkSession:
    """Returns a session with the settings and views of another one, which are its own from then."""
    from pyspark.sql import SparkSession

    java: Any = spark._jsparkSession
    return SparkSession(spark.sparkContext, java.cloneSession())


def act(spark: SparkSession, query: Query) -> None:
    """Runs a query to its end; the rows of a DataFrame are thrown away."""
    result = spark.sql(query) if isinstance(query, str) else query(spark)
    if hasattr(result, "write") and result.columns:
        result.write.format("noop").mode("overwrite").save()


def _last_decision(spark: SparkSession) -> int:
    from aqepilot.session import decisions

    return max((decision.decision_id for decision in decisions(spark)), default=0)


def _applied_since(spark: SparkSession, last: int) -> int:
    from aqepilot.session import decisions

    return sum(decision.applied for decision in decisions(spark) if decision.decision_id > last)


def _opened(path: str | Path | None) -> IO[str] | None:
    if path is None:
        return None
    try:
        return Path(path).open("w", encoding="utf-8")
    except OSError as error:
        message = f"cannot write the runs: {error.strerror}."
        raise AqePilotError(Problem("OUTPUT_UNWRITABLE", message, str(path))) from error
