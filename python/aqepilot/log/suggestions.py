"""Findings in words, each with a policy to try and what a replay says of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import recipes, texts
from aqepilot.errors import NotLiveError
from aqepilot.log import findings
from aqepilot.log.findings import Found
from aqepilot.policies import Policy

if TYPE_CHECKING:
    from aqepilot.log import Log

# What is about less of all task time than that is not worth a policy.
_LEAST_SHARE = 0.005
_ADVISORY = 64 << 20
_WORDS = {
    "SortMergeJoin": "SHUFFLE_MERGE",
    "ShuffledHashJoin": "SHUFFLE_HASH",
    "BroadcastHashJoin": "BROADCAST",
}
KINDS = {
    "hot_key": "a join whose keys are uneven",
    "tiny_tasks": "thousands of tiny tasks",
    "spilling": "sorts that spill",
    "tiny_blocks": "shuffles of thousands of tiny blocks",
    "expanding": "few bytes that are much work",
    "wrong_broadcast": "a broadcast larger than estimated",
    "failed_broadcast": "a broadcast that ended the query",
    "range_join": "a broadcast beside a range",
    "flipping": "a join whose strategy flips",
}


class Suggestion(NamedTuple):
    """A finding with what to do about it.

    Attributes:
        kind: A key of `KINDS`.
        fingerprint: The query; null where it had no decision of aqepilot's.
        description: As in Spark's UI; null when there is none.
        queries: How many runs it is about.
        stake_ms: The slot time that it is about, milliseconds: the most that could be had, and no
            promise.
        evidence: What the log shows, as sentences; figures are those of the worst run.
        point: The decision point of the policy.
        policy: A policy file, in shadow mode.
        asked: How often a replay asked the policy; null where the log has no facts for one.
        changed: How many of these answers would change what was done; null likewise.
    """

    kind: str
    fingerprint: str | None
    description: str | None
    queries: int
    stake_ms: int
    evidence: str
    point: str
    policy: str
    asked: int | None
    changed: int | None


def suggest(log: Log, top: int = 10) -> list[Suggestion]:
    """Names what the queries of a log would gain most from, with the most at stake first.

    Args:
        log: What `read_log` returned. In a session in which the extension is live, policies are
            replayed over the log's facts.
        top: How many at most.
    """
    (whole,) = log.queries.selectExpr("coalesce(sum(slot_ms), 0)").first() or (0,)
    made = [
        (found, one)
        for found in findings.found(log)
        if found.stake_ms > _LEAST_SHARE * whole and (one := _policy(found))
    ]
    made.sort(key=lambda pair: (-pair[0].stake_ms, pair[0].kind, pair[0].key))
    return [
        Suggestion(
            *(found.kind, found.fingerprint, found.description, found.queries, found.stake_ms),
            *(evidence(found), point, policy, *_replayed(log, found, point, policy)),
        )
        for found, (point, policy) in made[:top]
    ]


def evidence(found: Found) -> str:
    """Returns what a finding's figures say, as sentences."""
    e = found.evidence
    if found.kind == "hot_key":
        return (
            f"{e['subject']} ({e['tables']}): the largest partition has "
            f"{texts.size(e['max_bytes'])}, the median {_median(e['median_bytes'])}. In stage "
            f"{e['stage_id']} the longest task took {texts.duration(e['max_task_ms'])}, the median "
            f"{texts.duration(e['median_task_ms'])}, and the other cores waited."
        )
    if found.kind == "tiny_tasks":
        return (
            f"{texts.number(e['tiny_tasks'])} of {texts.number(e['tasks'])} tasks after shuffles "
            f"ran for less than 200 ms; together they read {texts.size(e['shuffle_read_bytes'])}. "
            f"All runs had {texts.number(e['of_all_runs'])} such tasks. What is at stake is their "
            "start alone."
        )
    if found.kind == "tiny_blocks":
        return (
            f"A shuffle of {texts.size(e['bytes'])} was written in {e['partitions']} partitions "
            f"and read by {texts.plural(e['tasks'], 'task')}. The shuffles of all runs had "
            f"{texts.number(e['of_all_runs'])} blocks of less than 1 KiB on average. What is at "
            "stake is the tasks that wrote them."
        )
    if found.kind == "spilling":
        return (
            f"{texts.size(e['disk_spill_bytes'])} went to disk after shuffles, most of it in stage "
            f"{e['stage_id']}, whose {texts.plural(e['num_tasks'], 'task')} read "
            f"{texts.size(_per_task(e))} each. The query's joins sort."
        )
    if found.kind == "expanding":
        why = "each row is handed to Python" if e["has_python"] else "rows become many"
        return (
            f"Stage {e['stage_id']} read {texts.size(e['read_bytes'])} in "
            f"{texts.plural(e['num_tasks'], 'task')}, the longest of "
            f"{texts.duration(e['max_task_ms'])}, where {e['places']} could have run at once. "
            f"Spark sizes tasks by what they read, and {why} there."
        )
    if found.kind == "failed_broadcast":
        return (
            f"{e['subject']}: Spark broadcast {e['tables']} for a guess of "
            f"{texts.size(e['estimated_bytes'])}, and the query failed: {e['error'].strip()}"
        )
    if found.kind == "range_join":
        return (
            f"{e['subject']}: Spark broadcast {e['tables']} of {texts.size(e['estimated_bytes'])} "
            f"for a join with a condition beside its keys. Stage {e['stage_id']} read "
            f"{texts.size(e['read_bytes'])} in {texts.plural(e['num_tasks'], 'task')}, the longest "
            f"of {texts.duration(e['max_task_ms'])}."
        )
    if found.kind == "wrong_broadcast":
        return (
            f"{e['subject']}: Spark broadcast {e['tables']} for its estimate of "
            f"{texts.size(e['estimated_bytes'])}, and it had {texts.size(e['measured_bytes'])}."
        )
    return (
        f"{texts.plural(e['runs'], 'run')} with {e['way']} had {texts.duration(e['median_ms'])} of "
        f"task time at the median, and {texts.plural(e['best_runs'], 'run')} with {e['best_way']} "
        f"{texts.duration(e['best_median_ms'])}. No run of the former was below that."
    )


def _median(size: int) -> str:
    return texts.size(size) if size > 1 else "nothing"


def _per_task(of: dict[str, Any]) -> int:
    return int(of["shuffle_read_bytes"] // max(1, of["num_tasks"]))


def _policy(found: Found) -> tuple[str, str] | None:
    """A decision point and a policy file; null where none would fit."""
    e = found.evidence
    if found.kind == "flipping":
        best = set(e["best_way"].split(", "))
        word = _WORDS.get(next(iter(best))) if len(best) == 1 else None
        return word and _file(found, "join_selection", f"'{word}'")  # type: ignore[return-value]
    if found.kind == "wrong_broadcast":
        tables = e["tables"].replace("\\", "\\\\").replace("'", "\\'")
        return _file(found, "join_selection", _UNLIKE_ESTIMATE.format(tables=tables))
    if found.kind == "spilling":
        if _per_task(e) > _ADVISORY:
            number = -(-e["shuffle_read_bytes"] // (16 << 20))
            return _file(
                found, "shuffle_partitions", f"greatest(shuffles.num_partitions, {number})"
            )
        target = max(1 << 20, _per_task(e) // 4)
        text = f"named_struct('target_bytes', {target}L)"
        return _file(found, "partition_coalescing", text)
    recipe = {
        "hot_key": "hot_keys",
        "tiny_tasks": "right_sized_shuffles",
        "tiny_blocks": "right_sized_shuffles",
        "expanding": "expanding_stages",
        "failed_broadcast": "no_broadcast_of_guesses",
        "range_join": "no_broadcast_of_range_joins",
    }[found.kind]
    ((point, text),) = recipes.get(recipe).points.items()
    return _file(found, point, text)


_UNLIKE_ESTIMATE = """
CASE WHEN join.can_merge AND spark.strategy = 'BROADCAST' AND spark.reason = 'SIZE'
  AND array_join(IF(spark.build_side = 'LEFT', left.tables, right.tables), ', ') = '{tables}'
  AND IF(spark.build_side = 'LEFT', left.estimate_from, right.estimate_from) <> 'STAGE'
THEN 'SHUFFLE_MERGE' END
"""


def _file(found: Found, point: str, text: str) -> tuple[str, str]:
    name = f"{found.kind}_{(found.fingerprint or 'of_application')[:14]}"
    fact, value = "fingerprint", found.fingerprint
    if value is None:
        fact, value = "app_name", found.app_name or ""
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    when = f"query.{fact} = '{quoted}'"
    lines = [
        f"# {KINDS[found.kind][0].upper()}{KINDS[found.kind][1:]}. Recorded only, until its mode "
        'is "enforce".',
        f"name = {json.dumps(name)}",
        'mode = "shadow"',
        f"when = {json.dumps(when, ensure_ascii=False)}",
        "",
        f"{point} = '''",
        text.strip(),
        "'''",
    ]
    if "'''" in text:
        lines[-3:] = [f"{point} = {json.dumps(text.strip(), ensure_ascii=False)}"]
    return point, "\n".join(lines) + "\n"


def _replayed(
    log: Log, found: Found, point: str, policy: str
) -> tuple[int, int] | tuple[None, None]:
    """How often the policy is asked with the log's facts, and how often that changes something."""
    from pyspark.sql import functions

    from aqepilot.log.replay import replay

    if found.fingerprint is None:
        return None, None
    own = log.decisions.where(
        (functions.col("fingerprint") == found.fingerprint) & (functions.col("point") == point)
    )
    try:
        asked = replay(log.replace(decisions=own), Policy.from_toml(policy)).asked
    except NotLiveError:
        return None, None
    counts = asked.where("facts IS NOT NULL").selectExpr("count(*)", "count_if(changed)").collect()
    return tuple(counts[0]) if counts[0][0] else (None, None)


def sentences(of: Suggestion) -> Iterable[str]:
    """Yields a suggestion as sentences, without its policy."""
    yield of.evidence
    runs = texts.plural(of.queries, "run")
    yield f"At stake: {texts.duration(of.stake_ms)} of cores' time in {runs}, at the most."
    if of.asked is None:
        yield (
            f"The log has no facts of {of.point} for it: run the policy in shadow, as it is here, "
            "and replay it then."
        )
    elif of.changed:
        yield (
            f"Replayed over the log's facts, it would have answered otherwise {of.changed} of "
            f"{of.asked} times."
        )
    else:
        yield f"Replayed over the log's facts, it would have changed none of {of.asked} answers."
