"""What a replay changes, put together by query and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from aqepilot import texts
from aqepilot.display import Column, Folded, Table, folded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_KEYS = ("point", "fingerprint", "before", "after")


def grouped(asked: DataFrame, queries: DataFrame, named: Mapping[str, Sequence[str]]) -> DataFrame:
    """Returns one row per point, fingerprint, answer before and answer after.

    Args:
        asked: `Replay.asked`.
        queries: Of the log, with their task time.
        named: By each fact that the policies name, the points at which they do.
    """
    from pyspark.sql import functions

    # By number: a value of text is ordered as text.
    columns = {path: (f"_least{i}", f"_most{i}") for i, path in enumerate(named)}
    ends = [
        functions.expr(f"{way}({_value(path)})").alias(name)
        for path, names in columns.items()
        for way, name in zip(("min", "max"), names, strict=True)
    ]
    per_query = (
        asked.where("changed")
        .groupBy(*_KEYS, "log", "execution_id")
        .agg(
            functions.count("*").alias("asked"),
            functions.count("unknown").alias("unknown"),
            *ends,
        )
    )
    again = [
        functions.expr(f"{way}({name})").alias(name)
        for names in columns.values()
        for way, name in zip(("min", "max"), names, strict=True)
    ]
    at_stake = queries.select("log", "execution_id", "task_ms")
    changes = (
        per_query.join(at_stake, ["log", "execution_id"], "left")
        .groupBy(*_KEYS)
        .agg(
            functions.sum("asked").alias("asked"),
            functions.sum("unknown").alias("unknown"),
            functions.countDistinct("log", "execution_id").alias("queries"),
            functions.coalesce(functions.sum("task_ms"), functions.lit(0)).alias("task_ms"),
            *again,
        )
    )
    entries = ", ".join(
        f"CASE WHEN point IN ({_texts(named[path])}) THEN "
        f"struct('{path}' AS key, {_range(*names)} AS value) END"
        for path, names in columns.items()
    )
    known = f"cast(array({entries}) AS array<struct<key: string, value: string>>)"
    facts = functions.expr(f"map_from_entries(filter({known}, e -> e IS NOT NULL))")
    return (
        changes.withColumn("facts", facts)
        .drop(*(name for names in columns.values() for name in names))
        .orderBy(functions.desc("task_ms"), *_KEYS)
    )


def table(rows: Sequence[Any], has_more: bool) -> Table:
    """Returns rows of `Replay.changes` as a table.

    Args:
        rows: The rows.
        has_more: Whether there are others, with less at stake.
    """
    numbers = ("Asked", "Not known", "Queries", "Task time")
    return Table(
        "Answers that would be others, those with most task time first"
        if rows
        else "No answer would be another one.",
        [Column(name) for name in ("Point", "Fingerprint", "Before", "After")]
        + [Column(name, is_number=True) for name in numbers]
        + [Column("Facts", in_terminal=False)],
        [
            (
                row["point"],
                (row["fingerprint"] or "not known")[:12],
                folded(row["before"] or "null"),
                folded(row["after"] or "null"),
                *(texts.number(row[name]) for name in ("asked", "unknown", "queries")),
                texts.duration(row["task_ms"]),
                Folded(
                    texts.plural(len(row["facts"]), "fact"),
                    "\n".join(f"{path}: {value or 'null'}" for path, value in row["facts"].items()),
                )
                if row["facts"]
                else None,
            )
            for row in rows
        ],
        note="There are more in `changes`." if has_more else "",
    )


def _value(path: str) -> str:
    text = f"named['{path}']"
    return (
        f"CASE WHEN {text} IS NOT NULL THEN "
        f"named_struct('n', try_cast({text} AS double), 't', {text}) END"
    )


def _range(least: str, most: str) -> str:
    return (
        f"CASE WHEN {least}.t = {most}.t THEN {least}.t "
        f"WHEN {least}.t IS NOT NULL THEN concat({least}.t, ' to ', {most}.t) END"
    )


def _texts(points: Sequence[str]) -> str:
    return ", ".join(f"'{text}'" for text in points)
