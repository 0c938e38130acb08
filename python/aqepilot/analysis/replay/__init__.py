"""What policies would have answered to what event logs recorded, as a Spark job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from aqepilot import catalog
from aqepilot.analysis.replay import changes, python_functions
from aqepilot.analysis.replay.conditions import failing
from aqepilot.analysis.replay.facts import (
    LACKS_ARRAY,
    as_asked,
    has_long,
    may_be_read,
    named,
    with_facts,
)
from aqepilot.display import html
from aqepilot.errors import AqePilotError, PolicyError, Problem
from aqepilot.eventlog.frames import Frames
from aqepilot.function import is_python
from aqepilot.policies import Policy, as_policies
from aqepilot.session_policies import PolicyLike

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ASK = (
    *("log", "app_id", "app_attempt_id", "execution_id", "fingerprint", "point", "subject"),
    *("tables", "facts_id"),
)
_EVENT = "struct<policy: string, revision: string, mode: string, answer: string, failed: boolean>"
_SHOWN = 50
_MAX_ANSWER = 2000  # DecisionRecord.scala
UNKNOWN = {
    "FACTS_MISSING": "the log does not have the facts",
    "FACTS_LEFT_OUT": "the policy may read an array that the log has no more than the length of",
    "FACTS_UNREADABLE": "the facts are cut off, or of a newer aqepilot",
    "SCORES": "the policy scores relations one by one, and the log has the chain as a whole",
    "EARLIER_DECISION": "an earlier decision of the same query would have been another one, and "
    "with it these facts",
}


class Replay(NamedTuple):
    """What policies would have decided.

    Attributes:
        asked: One row for each time that policies were asked: `log`, `app_id`, `app_attempt_id`,
            `execution_id`, `fingerprint`, `point`, `subject`, `tables`, `facts_id`, `decision_id`
            (of the first decision that was recorded of it), `facts`, `recorded` and `replayed`
            (each policy's `policy`, `revision`, `mode`, `answer`, `failed`), `before` (the answer
            that was put into the plan) and `after` (the first answer there is), both null where it
            is left to Spark, `changed`, `named` (the facts that the policies name), and `unknown`:
            why `after` is not to be relied on, a key of `UNKNOWN`; null where it is.
        changes: One row per `point`, `fingerprint`, `before` and `after` of what changed: `asked`,
            of these `unknown`, `queries`, `task_ms`: the run time of all tasks of these queries,
            and `facts`: those that the policies name, with the least and the largest there was.
            It is what is at stake, and no promise. Most first.
    """

    asked: DataFrame
    changes: DataFrame

    def failing(self, condition: str) -> DataFrame:
        """Returns the rows of `asked` that a condition forbids, of the answers to be relied on.

        Args:
            condition: A boolean SQL expression over the columns of `asked` and the facts, e.g.
                ``after = 'BROADCAST' AND side.size_in_bytes > aqepilot_bytes('500MB')``. At a point
                that has not the facts that it names, nothing is forbidden.

        Raises:
            AqePilotError: No point has what it names, or it is no condition.
        """
        return failing(self.asked, condition)

    def _repr_html_(self) -> str | None:
        """The changes with most at stake: a notebook that shows this replays the logs."""
        rows = self.changes.limit(_SHOWN + 1).collect()
        return html(changes.table(rows[:_SHOWN], has_more=len(rows) > _SHOWN))


def replay(log: Frames, *policies: PolicyLike, against: Sequence[PolicyLike] = ()) -> Replay:
    """Asks policies again with the facts of a log. See `Log.replay`."""
    from pyspark.sql import functions

    spark = log.decisions.sparkSession
    new, old = (_checked(spark, side) for side in (policies, against))
    points = [p for p in catalog.point_names() if any(p in policy.points for policy in new + old)]
    if not points:
        message = "there is no policy to replay: give one at least."
        raise AqePilotError(Problem("POLICY_MISSING", message))
    answered = reduce(
        lambda one, other: one.unionByName(other),
        (_answered(log.decisions.where(functions.col("point") == p), p, new, old) for p in points),
    )
    asked = _outcomes(_asks(answered), bool(old))
    return Replay(asked, changes.grouped(asked, log.queries, _named(points, new + old)))


def _checked(spark: SparkSession, policy_likes: Sequence[PolicyLike]) -> list[Policy]:
    from aqepilot.session import check_text, status

    policies = [policy for policy in as_policies(policy_likes) if policy.mode != "off"]
    status(spark)
    problems: list[Problem] = []
    for policy in policies:
        for key, text in policy.texts().items():
            if not is_python(text):
                problems += check_text(spark, policy, key)
            elif fault := python_functions.fault(text):
                problems.append(Problem("PYTHON_LOAD_FAILED", fault, policy.place(key)))
    if problems:
        raise PolicyError(problems)
    return policies


def _answered(decisions: DataFrame, point: str, new: list[Policy], old: list[Policy]) -> DataFrame:
    """Adds `found`, what policies answer now, to each decision: before its facts have to move."""
    from pyspark.sql import functions

    own = [policy for policy in (*new, *old) if point in policy.points]
    texts = [text for p in own for text in (p.points[point], p.when) if text]
    read = with_facts(decisions, point, texts)
    replayed, scores = _answers(read, point, texts, new, "replayed")
    recorded = "NULL"
    if old:
        replayed, old_scores = _answers(replayed, point, texts, old, "_old")
        recorded, scores = "_old", scores or old_scores
    is_left_out = has_long(may_be_read(point, [policy.points[point] for policy in own]))
    unknown = (
        "CASE WHEN facts IS NULL THEN 'FACTS_MISSING' "
        "WHEN f._corrupt IS NOT NULL THEN 'FACTS_UNREADABLE' "
        f"WHEN {is_left_out} AND {LACKS_ARRAY} THEN 'FACTS_LEFT_OUT' "
        f"WHEN {scores} THEN 'SCORES' END"
    )
    pairs = [f"'{path}', cast(f.{path} AS string)" for path in _named([point], new + old)]
    entry = (
        f"struct(facts IS NOT NULL AS has_facts, replayed, cast({recorded} AS array<{_EVENT}>) AS "
        f"recorded, cast(map({', '.join(pairs)}) AS map<string, string>) AS named, {unknown} AS "
        "unknown)"
    )
    return replayed.withColumn("found", functions.expr(entry)).drop("f", "replayed", "_old")


def _asks(answered: DataFrame) -> DataFrame:
    """One row for each time that policies were asked, with all that was recorded of it."""
    from pyspark.sql import functions

    event = (
        "named_struct('decision_id', decision_id, 'policy', policy, 'revision', revision, "
        "'mode', mode, 'answer', answer, 'failed', answer IS NULL)"
    )
    refused = "NOT applied AND mode = 'enforce' AND answer IS NOT NULL"
    # Where nobody was asked there is no subject. Rows of a query meet once, for what follows, too.
    asked = answered.where("subject IS NOT NULL").repartition("log", "execution_id").groupBy(*_ASK)
    return asked.agg(
        functions.min("decision_id").alias("decision_id"),
        functions.first("facts", ignorenulls=True).alias("facts"),
        functions.expr("max_by(found, found.has_facts)").alias("found"),
        functions.expr(
            f"transform(filter(sort_array(collect_list({event})), e -> e.policy IS NOT NULL), e -> "
            f"cast(struct(e.policy, e.revision, e.mode, e.answer, e.failed) AS {_EVENT}))"
        ).alias("recorded"),
        functions.expr("min_by(answer, decision_id) FILTER (WHERE applied)").alias("_applied"),
        # What gives Spark's plan: its own answer, and one that a guard rail, say, refuses again.
        functions.expr(
            f"array_union(collect_set(spark_answer), collect_set(answer) FILTER (WHERE {refused}))"
        ).alias("_sparks"),
    )


def _outcomes(asks: DataFrame, is_against: bool) -> DataFrame:
    """What the policies change, and what of it is not to be relied on."""
    from pyspark.sql import functions

    differ = f"NOT {_in_effect('before')} <=> {_in_effect('after')}"
    earlier = (
        "execution_id IS NOT NULL AND coalesce(max(changed) OVER (PARTITION BY log, execution_id "
        "ORDER BY decision_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), false)"
    )
    unknown = f"coalesce(found.unknown, CASE WHEN {earlier} THEN 'EARLIER_DECISION' END)"
    recorded = "found.recorded" if is_against else "recorded"
    return (
        asks.withColumn("recorded", functions.expr(recorded))
        .withColumn("replayed", functions.expr("found.replayed"))
        .withColumn("before", functions.expr(_first("recorded") if is_against else "_applied"))
        .withColumn("after", functions.expr(_first("replayed")))
        .withColumn("changed", functions.expr(f"{differ} AND found.unknown IS NULL"))
        .withColumn("named", functions.expr("found.named"))
        .withColumn("unknown", functions.expr(unknown))
        .select(*_ASK, "decision_id", "facts", "recorded", "replayed", *_OUTCOME)
    )


_OUTCOME = ("before", "after", "changed", "named", "unknown")


def _named(points: Sequence[str], policies: Sequence[Policy]) -> dict[str, list[str]]:
    """By fact, the points at which a policy's text or its `when` names it."""
    points_by_fact: dict[str, list[str]] = {}
    for point in points:
        own = [policy for policy in policies if point in policy.points]
        texts = [text for p in own for text in (p.points[point], p.when) if text]
        for path in named(point, texts):
            points_by_fact.setdefault(path, []).append(point)
    return points_by_fact


def _first(events: str) -> str:
    """An array without such an element has no first one: under ANSI that is an error."""
    first = f"filter({events}, e -> e.answer IS NOT NULL)[0].answer"
    return f"CASE WHEN exists({events}, e -> e.answer IS NOT NULL) THEN {first} END"


def _in_effect(answer: str) -> str:
    """An answer, or null where it leaves Spark's own plan."""
    of_spark = f"array_contains(_sparks, {answer}) AND NOT {answer} <=> _applied"
    return f"CASE WHEN NOT coalesce({of_spark}, false) THEN {answer} END"


def _answers(
    asks: DataFrame, point: str, texts: Sequence[str], policies: Sequence[Policy], name: str
) -> tuple[DataFrame, bool]:
    """Adds what each policy answers, as `Asking.scala` asks them; whether one gives scores.

    Args:
        asks: Facts as `with_facts` reads them.
        point: The decision point.
        texts: What the facts were read for.
        policies: Those that are asked.
        name: Of the new column.
    """
    from pyspark.sql import functions

    scores = False
    events: list[str] = []
    frame = asks.withColumn("_decided", functions.lit(False))
    groups = as_asked(point, texts)
    all_groups = ", ".join(f"{value} AS `{group}`" for group, value in groups.items())
    facts = functions.expr(f"struct({all_groups})")
    query = functions.expr(f"struct({groups['query']} AS query)")
    for i, policy in enumerate(p for p in policies if point in p.points):
        when = _answer("when", policy.when, query) if policy.when else functions.expr(_ALWAYS)
        answer = _answer(point, policy.points[point], facts)
        frame = frame.withColumns({"_meant": when, "_answer": answer})
        kind = frame.schema["_answer"].dataType["answer"].dataType.simpleString()  # type: ignore[index]
        if point == "join_reorder" and kind == "double":
            scores = True
        mode = policy.mode or "enforce"
        event = (
            f"'{policy.name}' AS policy, '{policy.revision(point)}' AS revision, '{mode}' AS mode"
        )
        frame = frame.withColumn(
            f"_event{i}",
            functions.expr(
                "CASE WHEN _decided THEN NULL WHEN _meant IS NULL OR (_meant.answer AND _answer IS "
                f"NULL) THEN cast(struct({event}, NULL AS answer, true AS failed) AS {_EVENT}) "
                "WHEN _meant.answer AND _answer.answer IS NOT NULL THEN cast(struct("
                f"{event}, {_shown(kind)} AS answer, false AS failed) AS {_EVENT}) END"
            ),
        ).withColumn(
            "_decided",
            functions.expr(
                f"_decided OR ('{mode}' = 'enforce' AND NOT coalesce(_event{i}.failed, true))"
            ),
        )
        events.append(f"_event{i}")
    answers = functions.expr(f"filter(array({', '.join(events)}), e -> e IS NOT NULL)")
    if not events:
        answers = functions.expr(f"cast(array() AS array<{_EVENT}>)")
    return frame.withColumn(name, answers).drop(*events, "_meant", "_answer", "_decided"), scores


_ALWAYS = "named_struct('answer', true)"


def _answer(point: str, text: str, facts: Column) -> Column:
    """A struct with the field `answer`; null where the policy fails."""
    from pyspark.sql import functions

    if is_python(text):
        return python_functions.answer(point, text, functions.to_json(facts, _NULLS))
    return functions.call_function(
        "aqepilot_answer", functions.lit(point), functions.lit(text), facts
    )


_NULLS = {"ignoreNullFields": "false"}


def _shown(kind: str) -> str:
    """An answer as `DecisionPoint.show` writes it into the record."""
    is_plain = not kind.startswith(("struct<", "array<"))
    text = "cast(_answer.answer AS string)" if is_plain else "to_json(_answer.answer)"
    return f"left({text}, {_MAX_ANSWER})"


def texts_in_force(log: Frames) -> Iterator[Policy]:
    """Yields the policies that a log says were asked, in the order in which they were read.

    A policy that was read with other texts at one point is there once for each.
    """
    rows = log.policies.where("error IS NULL AND mode != 'off'").orderBy("time").collect()
    seen: dict[tuple[str, str | None, str], dict[str, str]] = {}
    for row in rows:
        seen.setdefault((row["policy"], row["when"], row["mode"]), {})[row["point"]] = row["text"]
    for (name, when, mode), points in seen.items():
        yield Policy(name=name, when=when, mode=mode, points=points)  # type: ignore[arg-type]
