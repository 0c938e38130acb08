"""A good run of a query as a policy file that makes its next runs have the same plan."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import texts
from aqepilot.analysis.explanation.query import decisions as decisions_of
from aqepilot.analysis.pins.chosen import REASONS, Unpinned, chosen
from aqepilot.decision import Decision
from aqepilot.display import Column, Folded, Table, html
from aqepilot.errors import AqePilotError, Problem
from aqepilot.pins import Pin, policy_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.eventlog.frames import Frames
    from aqepilot.policies import Mode

_JOIN_POINT = "join_selection"


class Pinned(NamedTuple):
    """A run of a query as a policy file.

    Attributes:
        policy: The policy file; null where nothing of the run can be pinned.
        name: The policy's name.
        fingerprint: The query's.
        description: As in Spark's UI; null when there is none.
        app_id: The application that had the run.
        execution_id: The run.
        spark_version: Spark's version then.
        started: When it started.
        task_ms: Its task time, milliseconds.
        runs: How many runs of the query the log has with decisions; this one took least task time.
        expires: The first day, in UTC, on which the policy is not asked.
        pins: What it pins.
        unpinned: What it cannot pin, and why.
    """

    policy: str | None
    name: str
    fingerprint: str
    description: str | None
    app_id: str | None
    execution_id: int
    spark_version: str | None
    started: datetime | None
    task_ms: int
    runs: int
    expires: date | None
    pins: tuple[Pin, ...]
    unpinned: tuple[Unpinned, ...]

    def _repr_html_(self) -> str | None:
        rows: list[Any] = [(p.identity.point, p.about, f"{p.answer}") for p in self.pins]
        rows += [(u.point, u.subject, f"not pinned: {u.why}") for u in self.unpinned]
        columns = [Column("Point"), Column("About"), Column("Pinned")]
        table = Table(f"{self.name}: {texts.plural(len(self.pins), 'pin')}", columns, rows)
        if not self.policy:
            return html(table)
        return html(table, Table("", [Column("Policy")], [(Folded("its file", self.policy),)]))

    def data(self) -> dict[str, Any]:
        """Returns it as values of JSON."""
        values = self._asdict()
        values["started"] = self.started and self.started.isoformat()
        values["expires"] = self.expires and self.expires.isoformat()
        values["pins"] = [
            {"point": p.identity.point, "signatures": list(p.identity.signatures)}
            | {"answer": p.answer, "when": p.when, "about": p.about}
            for p in self.pins
        ]
        values["unpinned"] = [one._asdict() for one in self.unpinned]
        return values


def pin(
    log: Frames,
    query: str | int,
    *,
    app_id: str | None = None,
    also: Sequence[str] = (),
    name: str | None = None,
    mode: Mode | None = None,
    days: int | None = 30,
) -> Pinned:
    """Pins a run. See `Log.pin`."""
    runs = _runs(log, query, app_id)
    recorded = decisions_of(log, runs[0].execution_id, runs[0].app_id)
    return of_run(runs[0], recorded, len(runs), also=also, name=name, mode=mode, days=days)


def of_run(
    best: Any,
    recorded: Sequence[Decision],
    runs: int = 1,
    *,
    also: Sequence[str] = (),
    name: str | None = None,
    mode: Mode | None = None,
    days: int | None = 30,
) -> Pinned:
    """Pins a run that is at hand.

    Args:
        best: Its row of `Log.queries`, with `spark_version`.
        recorded: Its decisions, oldest first, with their facts.
        runs: How many runs of the query there are.
        also: As for `Log.pin`.
        name: As for `Log.pin`.
        mode: As for `Log.pin`.
        days: As for `Log.pin`.
    """
    choice = chosen(recorded, best.joins or ())
    unpinned = list(choice.unpinned)
    if best.joins and not any(row.point == _JOIN_POINT for row in recorded):
        joins = texts.plural(len(best.joins), "join")
        unpinned.append(Unpinned(_JOIN_POINT, joins, "NO_DECISION", REASONS["NO_DECISION"]))
    expires = None
    if days is not None:
        expires = datetime.now(timezone.utc).date() + timedelta(days=days)
    named = name or f"pin_{best.fingerprint[:12]}"
    text = None
    if choice.pins:
        text = policy_text(
            named,
            [best.fingerprint, *also],
            choice.pins,
            mode=mode,
            expires=expires,
            comment=_comment(best, unpinned),
        )
    return Pinned(
        *(text, named, best.fingerprint, best.description, best.app_id, best.execution_id),
        *(best.spark_version, best.started, best.task_ms, runs, expires),
        *(choice.pins, tuple(unpinned)),
    )


def _comment(run: Any, unpinned: Sequence[Unpinned]) -> str:
    what = " ".join((run.description or "A query").split())[:80]
    day = f"{run.started:%Y-%m-%d}" if run.started else "a day that the log does not say"
    lines = [
        f"{what}: the plan of its run of {day}, on Spark {run.spark_version or 'unknown'},",
        f"query {run.execution_id} of {run.app_id}, {texts.duration(run.task_ms)} of task time.",
    ]
    lines += [f"Not pinned: {u.point}, {u.subject}: {u.why}." for u in unpinned]
    return "\n".join(lines)


def _runs(log: Frames, query: str | int, app_id: str | None) -> list[Any]:
    """The runs of a query that ended well and have decisions, those with least task time first."""
    from pyspark.sql import functions

    col = functions.col
    queries: DataFrame = log.queries.where("succeeded AND decisions > 0")
    if app_id is not None:
        queries = queries.where(col("app_id") == app_id)
    if isinstance(query, int):
        queries = queries.where(col("execution_id") == query)
    else:
        queries = queries.where(col("fingerprint").startswith(query))
    versions = log.applications.select("log", "spark_version")
    rows = (
        queries.where("fingerprint IS NOT NULL")
        .join(versions, "log", "left")
        .orderBy("task_ms", "log", "execution_id")
        .limit(1000)
        .collect()
    )
    names = sorted({row.fingerprint for row in rows})
    if not rows:
        message = (
            f"the logs have no run of query {query} that ended well and has decisions of "
            "aqepilot's: run it with the recipe watch, and event logs."
        )
        raise AqePilotError(Problem("QUERY_NOT_FOUND", message))
    if len(names) > 1:
        short = ", ".join(name[:12] for name in names[:5])
        message = f"several queries are meant by {query}: {short}. Name one by more digits."
        if isinstance(query, int):
            message = f"several applications have a query {query}: name one with the application."
        raise AqePilotError(Problem("QUERY_AMBIGUOUS", message))
    return rows
