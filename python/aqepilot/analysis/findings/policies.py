"""A policy to try for each finding that one helps."""

from __future__ import annotations

import json

from aqepilot import recipes
from aqepilot.analysis.findings import KINDS, Found
from aqepilot.analysis.findings.evidence import per_task

_ADVISORY = 64 << 20
# Below that the recipe hot_keys leaves a partition whole.
_HOT_BYTES = 1 << 20
_WORDS = {
    "SortMergeJoin": "SHUFFLE_MERGE",
    "ShuffledHashJoin": "SHUFFLE_HASH",
    "BroadcastHashJoin": "BROADCAST",
}


def policy(found: Found) -> tuple[str, str] | None:
    """A decision point and a policy file; null where none would fit."""
    e = found.evidence
    if found.kind == "flipping":
        best = set(e["best_way"].split(", "))
        word = _WORDS.get(next(iter(best))) if len(best) == 1 else None
        return _file(found, "join_selection", f"'{word}'") if word else None
    if found.kind == "wrong_broadcast":
        tables = e["tables"].replace("\\", "\\\\").replace("'", "\\'")
        return _file(found, "join_selection", _UNLIKE_ESTIMATE.format(tables=tables))
    if found.kind == "spilling":
        if per_task(e) > _ADVISORY:
            number = -(-e["shuffle_read_bytes"] // (16 << 20))
            return _file(
                found, "shuffle_partitions", f"greatest(shuffles.num_partitions, {number})"
            )
        target = max(1 << 20, per_task(e) // 4)
        text = f"named_struct('target_bytes', {target}L)"
        return _file(found, "partition_coalescing", text)
    if found.kind == "expanding" and not e["has_recipe"]:
        return _file(found, "partition_coalescing", _A_TASK_FOR_EACH_SLOT)
    recipe = {
        "hot_key": "hot_keys",
        "tiny_tasks": "right_sized_shuffles",
        "tiny_blocks": "right_sized_shuffles",
        "small_files": "compact_files",
        "expanding": "expanding_stages",
        "failed_broadcast": "no_broadcast_of_guesses",
        "range_join": "no_broadcast_of_range_joins",
    }.get(found.kind)
    if recipe is None:
        return None
    ((point, text),) = recipes.get(recipe).points.items()
    if found.kind == "hot_key" and (e["max_bytes"] or _HOT_BYTES) < _HOT_BYTES:
        # As its tasks take so long for what they read, smaller parts are worth their start.
        text = text.replace("'1MB'", f"'{_kb(e['max_bytes'] // 2)}'")
        text = text.replace("'256KB'", f"'{_kb(e['max_bytes'] // 16)}'")
    of_application = found.kind == "tiny_tasks" and e["is_cached"]
    return _file(found, point, text, of_application)


def _kb(size: int) -> str:
    return f"{max(1, size >> 10)}KB"


_UNLIKE_ESTIMATE = """
CASE WHEN join.can_merge AND spark.strategy = 'BROADCAST' AND spark.reason = 'SIZE'
  AND array_join(IF(spark.build_side = 'LEFT', left.tables, right.tables), ', ') = '{tables}'
  AND IF(spark.build_side = 'LEFT', left.estimate_from, right.estimate_from) <> 'STAGE'
THEN 'SHUFFLE_MERGE' END
"""


_A_TASK_FOR_EACH_SLOT = """
CASE WHEN conf.coalesce_partitions_enabled AND NOT stage.is_write
  AND spark.num_partitions < least(cluster.default_parallelism, shuffle.row_count div 100)
THEN named_struct(
  'min_partitions', least(cluster.default_parallelism, int(shuffle.row_count div 100)),
  -- Half of a task's share: Spark adds to a neighbour what is less.
  'min_partition_bytes', greatest(aqepilot_bytes('1KB'),
    shuffle.shuffle_bytes div (2 * cluster.default_parallelism)))
END
"""


def _file(found: Found, point: str, text: str, of_application: bool = False) -> tuple[str, str]:
    name = f"{found.kind}_{(found.fingerprint or 'of_application')[:14]}"
    fact, value = "fingerprint", found.fingerprint
    # What is cached is planned outside of the queries that read it.
    if value is None or of_application:
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
