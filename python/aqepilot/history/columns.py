"""The columns of a pack, which the driver reads by these names and types."""

from __future__ import annotations

from aqepilot.eventlog.frames.columns import LogColumn

VERSION = 1
# A driver keeps no more signatures, and a larger file would only take longer to read.
MOST_SIGNATURES = 100_000

COLUMNS = tuple(
    LogColumn(*column)
    for column in (
        ("version", "int", f"{VERSION}: a driver reads no pack of another version"),
        ("signature", "bigint", "the signature's 8 bytes as a signed number"),
        ("form", "string", "`SAME`: the sub-plan with its literals; `SHAPE`: without, where that "
         "makes a difference"),
        ("kind", "string", "`PLAN`, `SHUFFLE` or `QUERY`, as in the table sub_plans; `HELD`: "
         "history of this signature is not used"),
        ("run_ms", "bigint", "when the query ended, milliseconds since 1970; of `HELD`, the run "
         "that proved slower"),
        ("input_bytes", "bigint", "as in sub_plans, and so are all columns from here to "
         "`failures`; null in `HELD`"),
        ("row_count", "bigint", "rows"),
        ("bytes", "bigint", "size in memory"),
        ("shuffle_bytes", "bigint", "size of the shuffle, compressed"),
        ("partitions", "int", "partitions of the shuffle"),
        ("max_partition_bytes", "bigint", "size of the largest of them"),
        ("median_partition_bytes", "bigint", "their median size"),
        ("input_rows", "bigint", "rows that went into a partial aggregate"),
        ("task_ms", "bigint", "run time of tasks, milliseconds"),
        ("read_bytes", "bigint", "what these tasks read"),
        ("read_rows", "bigint", "rows that these tasks read"),
        ("spilled_bytes", "bigint", "what these tasks spilled"),
        ("peak_memory_bytes", "bigint", "execution memory of a task"),
        ("failures", "int", "attempts that failed; of a query, 1 where it failed"),
        ("decided", "boolean", "whether a policy that reads history decided on it in that run, "
         "and the query ran as decided or failed; null in `HELD`"),
        ("held_until_ms", "bigint", "until when history of this signature is not used, "
         "milliseconds since 1970; null but in `HELD`"),
        ("reason", "string", "why not; null but in `HELD`"),
    )
)  # fmt: skip
# Those of sub_plans that a pack has under the same names.
MEASURED = tuple(
    column.name
    for column in COLUMNS[COLUMNS.index(next(c for c in COLUMNS if c.name == "input_bytes")) :]
    if column.name not in ("decided", "held_until_ms", "reason")
)
