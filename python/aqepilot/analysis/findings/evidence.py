"""What a finding's figures say, as sentences, and what to change in a job that no policy helps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aqepilot import texts
from aqepilot.analysis.findings import Found

Figures = dict[str, Any]


def evidence(found: Found) -> str:
    """Returns what a finding's figures say, as sentences."""
    return _EVIDENCE[found.kind](found.evidence)


def change(found: Found) -> str | None:
    """Returns what to change in the job; null where a policy helps."""
    advice = _CHANGES.get(found.kind)
    return advice(found.evidence) if advice else None


def per_task(of: Figures) -> int:
    """Returns how much each task of the stage read from shuffles, bytes."""
    return int(of["shuffle_read_bytes"] // max(1, of["num_tasks"]))


def _hot_key(e: Figures) -> str:
    if e["subject"] is None:
        read = (
            f"A task of a join's stage read {texts.number(e['records'])} rows, many times the mean."
        )
    else:
        read = (
            f"{e['subject']} ({e['tables']}): the largest partition has "
            f"{texts.size(e['max_bytes'])}, the median {_median(e['median_bytes'])}."
        )
    took = f"In stage {e['stage_id']} the longest task took {texts.duration(e['max_task_ms'])}"
    if e["median_task_ms"] < e["max_task_ms"]:
        took += f", the median {texts.duration(e['median_task_ms'])}"
    return f"{read} {took}, and the other cores waited."


def _tiny_tasks(e: Figures) -> str:
    where = "after shuffles or of what is cached from them" if e["is_cached"] else "after shuffles"
    cached = (
        " What is cached keeps the partitions of its shuffle, and each query has a task for each."
        if e["is_cached"]
        else ""
    )
    return (
        f"{texts.number(e['tiny_tasks'])} of {texts.number(e['tasks'])} tasks {where} "
        f"ran for less than 200 ms; together they read {texts.size(e['shuffle_read_bytes'])} of "
        f"shuffles.{cached} All runs had {texts.number(e['of_all_runs'])} such tasks. What is at "
        "stake is their start alone."
    )


def _tiny_blocks(e: Figures) -> str:
    return (
        f"A shuffle of {texts.size(e['bytes'])} was written in {e['partitions']} partitions "
        f"and read by {texts.plural(e['tasks'], 'task')}. The shuffles of all runs had "
        f"{texts.number(e['of_all_runs'])} blocks of less than 1 KiB on average. What is at "
        "stake is the tasks that wrote them."
    )


def _small_files(e: Figures) -> str:
    mean = int(e["output_bytes"] // e["writing_tasks"])
    return (
        f"{e['subject']} ({e['tables']}): {texts.number(e['writing_tasks'])} tasks wrote "
        f"{texts.size(e['output_bytes'])}, each a file or more of {texts.size(mean)} on average. "
        "Spark counts the opening of a file like 4 MiB that it reads. What is at stake is the "
        "tasks that wrote them; each query that reads them pays, too."
    )


def _spilling(e: Figures) -> str:
    return (
        f"{texts.size(e['disk_spill_bytes'])} went to disk after shuffles, most of it in stage "
        f"{e['stage_id']}, whose {texts.plural(e['num_tasks'], 'task')} read "
        f"{texts.size(per_task(e))} each. The query's joins sort."
    )


def _expanding(e: Figures) -> str:
    why = "each row takes long"
    if e["has_python"]:
        why = "each row is handed to Python"
    elif e["multiplies"]:
        why = "rows become many"
    return (
        f"{_stage(e)}, where {e['places']} could have run at once. "
        f"Spark sizes tasks by what they read, and {why} there."
    )


def _wrong_broadcast(e: Figures) -> str:
    return (
        f"{e['subject']}: Spark broadcast {e['tables']} for its estimate of "
        f"{texts.size(e['estimated_bytes'])}, and it had {texts.size(e['measured_bytes'])}."
    )


def _failed_broadcast(e: Figures) -> str:
    return (
        f"{e['subject']}: Spark broadcast {e['tables']} for a guess of "
        f"{texts.size(e['estimated_bytes'])}, and the query failed: {e['error'].strip()}"
    )


def _range_join(e: Figures) -> str:
    return (
        f"{e['subject']}: Spark broadcast {e['tables']} of {texts.size(e['estimated_bytes'])} "
        f"for a join with a condition beside its keys. {_stage(e)}."
    )


def _flipping(e: Figures) -> str:
    return (
        f"{texts.plural(e['runs'], 'run')} with {e['way']} had {texts.duration(e['median_ms'])} of "
        f"task time at the median, and {texts.plural(e['best_runs'], 'run')} with {e['best_way']} "
        f"{texts.duration(e['best_median_ms'])}. No run of the former was below that."
    )


def _coalesce(e: Figures) -> str:
    return (
        f"{_stage(e)}, on {texts.plural(e['cores'], 'core')}. A coalesce merges "
        f"{texts.number(e['rdd_partitions'])} partitions into these: what is before it in the "
        "stage is done by as few tasks."
    )


def _one_group(e: Figures) -> str:
    if e["is_whole"]:
        what = "It has a window without PARTITION BY, so that one task has all rows."
    else:
        what = f"One {e['by']} has most of its {texts.number(e['shuffle_read_records'])} rows."
    return f"{_stage(e)}. {what} No task is shorter than the largest {e['by']}."


def _not_in(e: Figures) -> str:
    return (
        f"{_stage(e)}. A NOT IN is true for no row where the other side has a null: Spark compares "
        "each row with all of the other side's."
    )


def _no_keys(e: Figures) -> str:
    return (
        f"{_stage(e)}. A join there has no equality that holds for all of its rows, so Spark "
        f"compares each pair of rows: {e['condition']}"
    )


def _stage(e: Figures) -> str:
    return (
        f"Stage {e['stage_id']} read {texts.size(e['read_bytes'])} in "
        f"{texts.plural(e['num_tasks'], 'task')}, the longest of {texts.duration(e['max_task_ms'])}"
    )


def _median(size: int) -> str:
    return texts.size(size) if size > 1 else "nothing"


_EVIDENCE: dict[str, Callable[[Figures], str]] = {
    "hot_key": _hot_key,
    "tiny_tasks": _tiny_tasks,
    "spilling": _spilling,
    "tiny_blocks": _tiny_blocks,
    "small_files": _small_files,
    "expanding": _expanding,
    "wrong_broadcast": _wrong_broadcast,
    "failed_broadcast": _failed_broadcast,
    "range_join": _range_join,
    "flipping": _flipping,
    "coalesce": _coalesce,
    "one_group": _one_group,
    "not_in": _not_in,
    "no_keys": _no_keys,
}


def _other_coalesce(e: Figures) -> str:
    return (
        f"Write repartition({e['num_tasks']}) instead: it shuffles the rows, and what is before it "
        "keeps a task for each partition."
    )


def _other_group(e: Figures) -> str:
    if e["by"] == "window" and e["is_whole"]:
        return (
            "Give the window a PARTITION BY. Where it has no ORDER BY, aggregate the rows and join "
            "them with the one row of that."
        )
    if e["by"] == "window":
        return (
            "PARTITION BY more columns. Where the window has no ORDER BY, aggregate the rows and "
            "join them with that."
        )
    return "Group by more columns, or aggregate in two steps, the first by a part of each group."


def _other_not_in(_: Figures) -> str:
    return (
        "Write NOT EXISTS with an equality for each column: a hash join. The rows are the same "
        "where neither side has a null there."
    )


def _other_no_keys(e: Figures) -> str:
    if " OR " in e["condition"]:
        return (
            "Write a join for each part of the OR, with its equality as the key, and a UNION of "
            "them, which leaves out pairs that come twice."
        )
    return (
        "Add an equality as a key: for ranges, join on buckets that both sides fall into, and keep "
        "the condition beside that."
    )


_CHANGES: dict[str, Callable[[Figures], str]] = {
    "coalesce": _other_coalesce,
    "one_group": _other_group,
    "not_in": _other_not_in,
    "no_keys": _other_no_keys,
}
