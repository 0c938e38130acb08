"""Where core time went that did no work, by stage, query and fingerprint."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from aqepilot import display, texts
from aqepilot.analysis import slots as simulation

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from aqepilot.eventlog.frames import Frames

# Names a query among all: by its fingerprint or, without one, by its description.
KEY = "coalesce(fingerprint, concat('described: ', left(description, 300)), 'not described')"
_OUTSIDE = "outside queries"
FIGURES = ("slot_ms", "waiting_ms", "starting_ms", "spilled_ms", "retried_ms")
# What people call them.
TITLES = {
    "slot_ms": "In all",
    "waiting_ms": "Waited",
    "starting_ms": "Tiny starts",
    "spilled_ms": "Spilled",
    "retried_ms": "Retried",
}
_SHOWN = 20
_LAID_OUT = ("own_span_ms", "span_ms", "span_waiting_ms")


class Costs(NamedTuple):
    """What stages cost beside their work, in milliseconds of slots; a slot is a task's core.

    `slot_ms` is what all tasks kept slots for, `waiting_ms` what slots waited for the last tasks of
    a stage, `starting_ms` what tasks that ran for less than 200 ms kept slots for beside that,
    `spilled_ms` the slot time of tasks that spilled, and `retried_ms` that of attempts that failed,
    were killed, or ran again. A task may be in several of them. They are null of what `collect`
    read before version 3 of the columns.

    With slots to lay the tasks out on: `own_span_ms` is how long stages take on the slots that they
    had, `span_ms` on the others, one stage after the other, and `span_waiting_ms` what those wait.

    Attributes:
        stages: One row per attempt of a stage, with its `key`.
        queries: One row per query that ran stages.
        fingerprints: One row per `key`, a fingerprint or what stands for it: `fingerprint`,
            `description`, `queries`, the figures, and `not_known`, stages without them. Most of
            what did no work first.
    """

    stages: DataFrame
    queries: DataFrame
    fingerprints: DataFrame

    def _repr_html_(self) -> str | None:
        """The queries with most of it: a notebook that shows this reads the logs."""
        rows = self.fingerprints.limit(_SHOWN).collect()
        return display.html(
            display.Table(
                "Time of cores, and of it what did no work, by query",
                [display.Column("Query"), display.Column("Runs", is_number=True)]
                + [display.Column(name, is_number=True) for name in TITLES.values()],
                [
                    (
                        display.folded(row["description"] or row["key"]),
                        texts.number(row["queries"]),
                        *(_cost(row[name], row["slot_ms"]) for name in TITLES),
                    )
                    for row in rows
                ],
                note=f"The {_SHOWN} queries with most of it; `fingerprints` has all."
                if len(rows) == _SHOWN
                else "",
            )
        )


def _cost(ms: int | None, whole: int | None) -> display.Cell:
    shown = texts.duration(ms)
    return shown if not ms or not whole else display.Share(ms, whole, shown)


def costs(log: Frames, slots: int | None = None) -> Costs:
    """Adds up what the stages of a log cost beside their work. See `Log.costs`."""
    from pyspark.sql import functions

    if slots is not None and slots < 1:
        raise ValueError(f"there is no stage on {slots} slots: 1 or more.")
    described = log.queries.selectExpr(
        *("log", "execution_id", "fingerprint", "left(description, 300) AS description"),
        f"{KEY} AS key",
    )
    stages = log.stages.selectExpr(
        *("log", "app_id", "app_attempt_id", "execution_id", "stage_id", "stage_attempt_id"),
        *("left(name, 200) AS name", "num_tasks", "slots", "slot_ms", "waiting_ms"),
        *(["task_slot_ms"] if slots is not None else []),
        "tiny_start_ms AS starting_ms",
        "spilled_slot_ms AS spilled_ms",
        "CASE WHEN stage_attempt_id > 0 THEN slot_ms ELSE lost_slot_ms END AS retried_ms",
    )
    figures: tuple[str, ...] = FIGURES
    if slots is not None:
        figures = (*FIGURES, *_LAID_OUT)
        stages = stages.withColumn("laid_out", _laid_out(slots)("task_slot_ms", "slots"))
        stages = stages.withColumns(
            {name: functions.expr(f"laid_out[{i}]") for i, name in enumerate(_LAID_OUT)}
        ).drop("laid_out")
    stages = (
        stages.drop("task_slot_ms")
        .join(described, ["log", "execution_id"], "left")
        .withColumn("key", functions.expr(f"coalesce(key, '{_OUTSIDE}')"))
    )
    sums = [functions.sum(name).alias(name) for name in figures]
    unknown = functions.expr("count_if(waiting_ms IS NULL)").alias("not_known")
    of_query = ("log", "app_id", "app_attempt_id", "execution_id", "key")
    names = [functions.max(name).alias(name) for name in ("fingerprint", "description")]
    queries = (
        stages.where("execution_id IS NOT NULL").groupBy(*of_query).agg(*names, *sums, unknown)
    )
    count = functions.countDistinct("log", "execution_id").alias("queries")
    beside = " + ".join(f"coalesce({name}, 0)" for name in FIGURES[1:])
    fingerprints = (
        stages.groupBy("key")
        .agg(*names, count, *sums, unknown)
        .orderBy(functions.expr(beside).desc(), functions.desc("slot_ms"), "key")
    )
    return Costs(stages, queries, fingerprints)


def _laid_out(slots: int) -> Callable[..., Column]:
    from pyspark import cloudpickle
    from pyspark.sql import functions

    cloudpickle.register_pickle_by_value(sys.modules[simulation.__name__])  # type: ignore[no-untyped-call]
    lay_out = simulation.laid_out
    made: Callable[..., Column] = functions.udf(
        lambda durations, own: lay_out(durations, own, slots), "array<bigint>"
    )
    return made
