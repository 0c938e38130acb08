"""How each sub-plan of each query ran, and in how many of its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aqepilot.analysis.costs import KEY
from aqepilot.analysis.final_plan import as_ran

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.eventlog.frames import Frames

# Of the queries of a log those with most task time, and of one query so many sub-plans and ways.
MOST_QUERIES = 2000
MOST_OUTCOMES = 2000
MOST_RUNS = 200
_SIDE = "struct<signature: string, tables: array<string>, is_left: boolean>"
_SCHEMA = (
    f"`left` {_SIDE}, `right` {_SIDE}, side {_SIDE}, other {_SIDE}, "
    "chain struct<signatures: array<string>>, "
    "shuffles struct<signatures: array<string>, num_partitions: int>, "
    "shuffle struct<signatures: array<string>>"
)
_POINTS = {
    "join_selection": "strategy",
    "dynamic_join_selection": "strategy",
    "join_reorder": "order",
    "shuffle_partitions": "number",
    "partition_coalescing": "tasks",
    "skew_join": "splits",
}
# What a decision is about, and what ran there; columns `f` (facts) and those of a decision.
_KIND = f"CASE point {' '.join(f'''WHEN '{p}' THEN '{k}' ''' for p, k in _POINTS.items())} END"
_LEFT = "IF(point = 'dynamic_join_selection', IF(f.side.is_left, f.side, f.other), f.left)"
_RIGHT = "IF(point = 'dynamic_join_selection', IF(f.side.is_left, f.other, f.side), f.right)"
_SUBJECT = """
  concat_ws(' ', array_sort(
    CASE WHEN point IN ('join_selection', 'dynamic_join_selection', 'skew_join')
        THEN array(l.signature, r.signature)
      WHEN point = 'join_reorder' THEN f.chain.signatures
      WHEN point = 'shuffle_partitions' THEN f.shuffles.signatures
      ELSE f.shuffle.signatures END))
"""
# A group of shuffles is as many subjects: its members may be in other groups elsewhere.
_SUBJECTS = f"IF(kind IN ('number', 'tasks'), split(({_SUBJECT}), ' '), array({_SUBJECT}))"
_RAN = "IF(applied, coalesce(final_strategy, spark_strategy), spark_strategy)"
_BUILT = "CASE WHEN ran LIKE '%BuildLeft' THEN l WHEN ran LIKE '%BuildRight' THEN r END"
_ORDER = """IF(applied AND answer IS NOT NULL, transform(from_json(answer, 'array<int>'),
  i -> element_at(f.chain.signatures, i + 1)), f.chain.signatures)"""
_OUTCOME = f"""
  CASE kind
    WHEN 'strategy' THEN concat_ws(' ', split_part(ran, ' ', 1), ({_BUILT}).signature)
    WHEN 'order' THEN concat_ws(' ', {_ORDER})
    WHEN 'number' THEN coalesce(nullif(regexp_extract(ran, '^([0-9]+) partition', 1), ''),
      string(f.shuffles.num_partitions))
    WHEN 'tasks' THEN regexp_extract(ran, '((local read, )?[0-9]+ task)', 1)
    WHEN 'splits' THEN coalesce(nullif(regexp_extract(ran, '([0-9]+ partitions? split)', 1), ''),
      'no split')
  END
"""
_SHOWN = f"""
  CASE WHEN kind = 'strategy' AND ran LIKE '%Build%'
      THEN concat(split_part(ran, ' ', 1), ' that builds from ',
        concat_ws('+', ({_BUILT}).tables))
    WHEN kind = 'strategy' THEN ran
    WHEN kind = 'order' THEN IF(
      applied AND answer IS NOT NULL
        AND size(split(tables, ' ⋈ ')) = size(f.chain.signatures),
      array_join(transform(from_json(answer, 'array<int>'), i -> split(tables, ' ⋈ ')[i]), ' ⋈ '),
      tables)
    WHEN kind = 'number' THEN concat(outcome, ' partitions')
    WHEN kind = 'tasks' THEN ran
    ELSE outcome END
"""


class Outcome(NamedTuple):
    """How a sub-plan ran.

    Attributes:
        query: The query, as in `costs`.
        kind: ``strategy``, ``order``, ``number`` (of a shuffle's partitions), ``tasks`` (that read
            a shuffle), ``splits``, or ``joins``, all of a query of whose sub-plans nothing is
            known.
        subject: Its signatures; of `number` and `tasks` that of one shuffle.
        outcome: What to compare.
        shown: The same for a person.
        tables: What is read beneath.
        runs: In how many runs.
    """

    query: str
    kind: str
    subject: str
    outcome: str
    shown: str
    tables: str
    runs: int


class Runs(NamedTuple):
    """The runs of a query that ended well.

    Attributes:
        query: The query, as in `costs`.
        fingerprint: Null of queries without a decision.
        description: As in Spark's UI; null when there is none.
        runs: How many there are.
        task_ms: Task time of the newest of them, milliseconds; at most 200.
        slot_ms: What their tasks kept slots for, the mean.
        decisions: How many decisions they have.
    """

    query: str
    fingerprint: str | None
    description: str | None
    runs: int
    task_ms: tuple[int, ...]
    slot_ms: float
    decisions: int


def runs_of(log: Frames) -> list[Runs]:
    """Returns the runs of each query of a log, those with most task time first."""
    from pyspark.sql import functions

    newest = "slice(sort_array(collect_list(struct(started, task_ms)), false), 1, {})"
    rows = (
        log.queries.where("succeeded AND execution_id = root_execution_id")
        .withColumn("key", functions.expr(KEY))
        .groupBy("key")
        .agg(
            *(functions.max(n).alias(n) for n in ("fingerprint", "description")),
            functions.count("*").alias("runs"),
            functions.expr(newest.format(MOST_RUNS)).alias("newest"),
            functions.avg("slot_ms").alias("slot_ms"),
            functions.sum("decisions").alias("decisions"),
            functions.sum("task_ms").alias("whole"),
        )
        .orderBy(functions.desc("whole"), "key")
        .limit(MOST_QUERIES)
        .collect()
    )
    return [
        Runs(
            *(row["key"], row["fingerprint"], row["description"], row["runs"]),
            *(tuple(one["task_ms"] for one in row["newest"]), row["slot_ms"], row["decisions"]),
        )
        for row in rows
    ]


def outcomes_of(log: Frames, wanted: list[Runs]) -> list[Outcome]:
    """Returns how the sub-plans of these queries ran."""
    spark = log.queries.sparkSession
    keys = spark.createDataFrame([(one.query,) for one in wanted], "key string")
    from pyspark.sql import functions

    ended = (
        log.queries.where("succeeded AND execution_id = root_execution_id")
        .withColumn("key", functions.expr(KEY))
        .join(functions.broadcast(keys), "key")
        .select("key", "log", "execution_id", "joins", "decisions")
    )
    last = _last(log, ended)
    whole = (
        ended.where("joins IS NOT NULL AND size(joins) > 0 AND decisions = 0")
        .withColumn("outcome", functions.expr("array_join(array_sort(joins), ', ')"))
        .selectExpr(
            *("key", "log", "execution_id", "'joins' AS kind", "'' AS subject"),
            *("outcome", "outcome AS shown", "'' AS tables"),
        )
    )
    columns = ("key", "log", "execution_id", "kind", "subject", "outcome", "shown", "tables")
    rows = (
        last.select(*columns)
        .unionByName(whole.select(*columns))
        .groupBy("key", "kind", "subject", "outcome")
        .agg(
            functions.max("shown").alias("shown"),
            functions.max("tables").alias("tables"),
            functions.countDistinct("log", "execution_id").alias("runs"),
        )
        .limit(MOST_QUERIES * MOST_OUTCOMES)
        .collect()
    )
    return [
        Outcome(
            *(row["key"], row["kind"], row["subject"], row["outcome"]),
            *(row["shown"] or row["outcome"], row["tables"] or "", row["runs"]),
        )
        for row in rows
    ]


def _last(log: Frames, ended: DataFrame) -> DataFrame:
    """What the last decision on each sub-plan of each run came to."""
    from pyspark.sql import functions

    points = ", ".join(f"'{point}'" for point in _POINTS)
    columns = ("decision_id", "point", "facts", "applied", "answer")
    known = (
        log.decisions.where(f"point IN ({points}) AND facts IS NOT NULL")
        .select(*columns, "final_strategy", "spark_strategy", "tables", "log", "execution_id")
        .join(ended.select("key", "log", "execution_id"), ["log", "execution_id"])
        .withColumn("f", functions.expr(f"from_json(facts, '{_SCHEMA}')"))
        .withColumn("kind", functions.expr(_KIND))
        .withColumn("l", functions.expr(_LEFT))
        .withColumn("r", functions.expr(_RIGHT))
        .withColumn("ran", functions.expr(_RAN))
        .withColumn("outcome", functions.expr(_OUTCOME))
        .withColumn("shown", functions.expr(_SHOWN))
        .withColumn("subjects", functions.expr(_SUBJECTS))
        .withColumn("subject", functions.explode("subjects"))
        .where("subject != '' AND outcome IS NOT NULL AND outcome != ''")
    )
    by = ("key", "log", "execution_id", "kind", "subject")
    last = (
        known.groupBy(*by)
        .agg(functions.expr("max_by(struct(outcome, shown, tables), decision_id) AS last"))
        .select(*by, "last.outcome", "last.shown", "last.tables")
    )
    ran = _ran(known, ended)
    if not ran:
        return last
    frame = log.queries.sparkSession.createDataFrame(ran, last.schema)
    others = last.join(functions.broadcast(frame), [*by], "left_anti")
    return others.unionByName(frame.where("outcome IS NOT NULL"))


def _ran(known: DataFrame, ended: DataFrame) -> list[tuple[str | None, ...]]:
    """Strategies by which joins ran where that is not the last that AQE planned.

    AQE kept the plan that it had, or the plan that ran has no such join, as a side was empty: then
    there is no outcome.
    """
    from pyspark.sql import functions

    run = ("key", "log", "execution_id")
    ways = "sort_array(collect_list(struct(decision_id, ran, outcome, shown, tables))) AS ways"
    lasts = "array_sort(transform(subjects, s -> element_at(s.ways, -1).ran))"
    rows = (
        known.where("kind = 'strategy'")
        .groupBy(*run, "kind", "subject")
        .agg(functions.expr(ways))
        .groupBy(*run)
        .agg(functions.expr("collect_list(struct(subject, ways)) AS subjects"))
        .join(ended.select("log", "execution_id", "joins"), ["log", "execution_id"])
        .where(f"joins IS NOT NULL AND {lasts} != array_sort(joins)")
        .limit(MOST_QUERIES * MOST_RUNS)
        .collect()
    )
    outcomes: list[tuple[str | None, ...]] = []
    for row in rows:
        planned = {one.subject: [way.ran for way in one.ways] for one in row.subjects}
        last = {name: len(own) - 1 for name, own in planned.items()}
        places = as_ran(planned, last, row.joins)
        # Not where an engine's joins have names of their own.
        is_read = {*row.joins} <= {name for own in planned.values() for name in own}
        for one in row.subjects:
            name = (row.key, row.log, row.execution_id, "strategy", one.subject)
            way = one.ways[places[one.subject]]
            if is_read and way.ran not in row.joins:
                outcomes.append((*name, None, None, None))
            elif places[one.subject] != last[one.subject]:
                outcomes.append((*name, way.outcome, way.shown, way.tables))
    return outcomes
