"""What a report shows, as small values: each is bounded, however long the logs are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aqepilot.analysis.suggestions import Suggestion


class Heading(NamedTuple):
    """The figures of all logs together.

    Attributes:
        applications: Logs that were read.
        lines: Lines of these.
        unreadable_lines: Of these, those that are no whole event.
        unreadable_logs: Logs with a file that could not be read to its end.
        problem: Why, of one of them; null when there is none.
        spark_versions: Those of the applications, separated by commas; null when not known.
        queries: Queries with a start or an end in the logs.
        failed_queries: Of these, those that ended with an error.
        unfinished_queries: Of these, those without an end.
        first: When the first query or stage started, in the session's time zone; null for none.
        last: When the last of what the logs have happened; null for none.
        task_ms: Run time of all tasks, milliseconds, those outside queries too.
        query_slot_ms: What tasks of queries kept cores for, milliseconds.
        core_ms: Milliseconds of cores that executors had, busy or not; null when not known.
        decisions: Answers and null answers that were recorded.
        applied: Of these, those that were put into a plan.
        time_zone: The session's.
    """

    applications: int
    lines: int
    unreadable_lines: int
    unreadable_logs: int
    problem: str | None
    spark_versions: str | None
    queries: int
    failed_queries: int
    unfinished_queries: int
    first: str | None
    last: str | None
    task_ms: int
    query_slot_ms: int
    core_ms: int | None
    decisions: int
    applied: int
    time_zone: str


class Fingerprint(NamedTuple):
    """The runs of one query: what has one fingerprint, or, without one, one description.

    Attributes:
        key: Names it among all.
        fingerprint: Its fingerprint; null of queries without a decision.
        description: As in Spark's UI, of one of its runs; null when there is none.
        runs: Queries.
        failed: Of these, those that ended with an error.
        wall_ms: Median from start to end, milliseconds; null when none ended.
        task_ms: Run time of all tasks of all runs, milliseconds.
        slot_ms: What these tasks kept cores for, milliseconds.
        shuffle_bytes: Read from shuffles.
        spill_bytes: Spilled to disk.
        decisions: Recorded of it.
    """

    key: str
    fingerprint: str | None
    description: str | None
    runs: int
    failed: int
    wall_ms: int | None
    task_ms: int
    slot_ms: int
    shuffle_bytes: int
    spill_bytes: int
    decisions: int


class Fingerprints(NamedTuple):
    """The fingerprints that took most task time, and how many there are in all.

    Attributes:
        top: The most expensive, by task time.
        number: All of them.
        task_ms: Run time of the tasks of all of them, milliseconds.
    """

    top: list[Fingerprint]
    number: int
    task_ms: int


class Run(NamedTuple):
    """One run of a query; `wall_ms` and `succeeded` are null while it runs, or broke off."""

    key: str
    started: str
    wall_ms: int | None
    succeeded: bool | None
    error: str | None


class AnswerCount(NamedTuple):
    """How often one policy answered at one point, with one reason and fate."""

    point: str
    policy: str | None
    mode: str | None
    reason: str
    applied: bool
    fate: str | None
    times: int
    detail: str | None


class Outcome(NamedTuple):
    """What came of decisions on one query: ``spark`` is what Spark would have run."""

    key: str
    point: str
    policy: str | None
    reason: str
    fate: str | None
    spark: str | None
    ran: str | None
    times: int


class BadPolicy(NamedTuple):
    """A text that could not be asked at all."""

    policy: str
    point: str
    error: str
    sessions: int


class Shuffle(NamedTuple):
    """The partitions of one shuffle, as a decision's facts have them.

    Attributes:
        log: Its log.
        execution_id: Its query; null when it was planned without one.
        fingerprint: Of the query; null when not known.
        description: Of the query; null when not known.
        tables: Tables beneath.
        bytes_by_partition_id: Sizes, compressed; empty when the record has them no more.
        num_partitions: How many there are.
        max_bytes: The largest.
        median_bytes: Spark's median, at least 1.
        are_exact: Whether these are sizes; else Spark reports averages for small ones.
        outcomes: What the points made of it, as sentences.
    """

    log: str
    execution_id: int | None
    fingerprint: str | None
    description: str | None
    tables: str
    bytes_by_partition_id: list[int]
    num_partitions: int
    max_bytes: int
    median_bytes: int
    are_exact: bool
    outcomes: list[str]


class UnevenStage(NamedTuple):
    """A stage of which one task took much longer than the median; times in milliseconds."""

    app_name: str | None
    execution_id: int | None
    description: str | None
    stage_id: int
    stage_attempt_id: int
    name: str | None
    tasks: int
    max_task_ms: int
    median_task_ms: int


class Cost(NamedTuple):
    """What the stages of one query cost beside their work, in all its runs, milliseconds of slots.

    The figures are those of `Log.costs`; null where an older aqepilot collected them.
    """

    key: str
    fingerprint: str | None
    description: str | None
    queries: int
    slot_ms: int
    waiting_ms: int | None
    starting_ms: int | None
    spilled_ms: int | None
    retried_ms: int | None


class Costs(NamedTuple):
    """The queries that cost most beside their work, and all of them together."""

    top: list[Cost]
    whole: Cost


class Joins(NamedTuple):
    """Joins of the final plans by time.

    Attributes:
        unit: ``minute``, ``hour``, ``day``, ``week`` or ``month``.
        unit_ms: How long that is, milliseconds; of a month, on average.
        counts: Start of the unit in milliseconds since 1970, the same as text, strategy, joins.
        changes: What Spark would have run, what ran, and how often a policy made that of it.
    """

    unit: str
    unit_ms: int
    counts: list[tuple[int, str, str, int]]
    changes: list[tuple[str, str, int]]


class Effect(NamedTuple):
    """An experiment's effect on one metric, as text: where the arms differ, and on all runs."""

    what: str
    exposed: str
    all_of: str


class TwoShares(NamedTuple):
    """How many runs of each arm went badly in one way, as text."""

    what: str
    treatment: str
    control: str
    is_worse: bool


class Tried(NamedTuple):
    """What an experiment says.

    Attributes:
        name: Its name.
        verdict: What to do; null where it could not be analysed.
        sentences: The report's sentences about it.
        effects: By metric, the one that decides first.
        treatment: The arm that is compared.
        control: The arm that it is compared with.
        shares: Of runs that went badly.
        problem: Why it could not be analysed; null where it could.
    """

    name: str
    verdict: str | None = None
    sentences: Sequence[str] = ()
    effects: Sequence[Effect] = ()
    treatment: str = ""
    control: str = ""
    shares: Sequence[TwoShares] = ()
    problem: str | None = None


class Withheld(NamedTuple):
    """History of a sub-plan that no policy could use.

    Attributes:
        signature: The sub-plan's, 16 hexadecimal digits.
        reason: Why, and for how long.
        decisions: How many were made without it.
        last: When the newest of them was, as text.
    """

    signature: str
    reason: str
    decisions: int
    last: str


class Data(NamedTuple):
    """All that a page shows."""

    heading: Heading
    fingerprints: Fingerprints
    runs: list[Run]
    answers: list[AnswerCount]
    outcomes: list[Outcome]
    bad_policies: list[BadPolicy]
    shuffles: list[Shuffle]
    stages: list[UnevenStage]
    joins: Joins
    costs: Costs
    suggestions: list[Suggestion]
    experiments: Sequence[Tried] = ()
    withheld: Sequence[Withheld] = ()
