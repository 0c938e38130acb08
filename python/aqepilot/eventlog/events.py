"""Events of Spark's event logs as rows: only the fields that are asked for are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import lines
from aqepilot.eventlog.files import LogFile, log_column
from aqepilot.eventlog.frames.columns import LogColumn

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, GroupedData, SparkSession

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
OURS = "io.aqepilot.log.AqePilot"
BEGIN = '{"Event":"'
_CORRUPT = "_corrupt"


def read(spark: SparkSession, files: Sequence[LogFile], schemas: dict[str, str]) -> DataFrame:
    """Reads the events of some kinds.

    Args:
        spark: The session.
        files: Files of event logs.
        schemas: By the event's name, its fields in SQL; fields of the same name have one type.

    Returns:
        One row per event that could be read: `log`, `place` (rises with the events of a log),
        `event` (its name) and the fields; null where an event has no such field.
    """
    from pyspark.sql import functions

    fields = {name: kind for schema in schemas.values() for name, kind in _fields(schema)}
    schema = ", ".join(f"`{name}` {kind}" for name, kind in fields.items())
    begun = lines.read(spark, files, [f'{BEGIN}{name}"' for name in schemas])
    parsed = begun.where("problem IS NULL").select(
        log_column(functions.col("file")).alias("log"),
        lines.place().alias("place"),
        json(functions.col("value"), f"Event string, {schema}").alias("e"),
    )
    whole = parsed.where(f"e.{_CORRUPT} IS NULL AND e.Event IS NOT NULL")
    own = (f"e.`{name}` AS `{name}`" for name in fields)
    return whole.selectExpr("log", "place", "e.Event AS event", *own)


def json(value: Column, schema: str) -> Column:
    """Parses an event; its field `_corrupt` is not null where that failed."""
    from pyspark.sql import functions

    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    return functions.from_json(value, f"{schema}, `{_CORRUPT}` string", options)


def shaped(frame: DataFrame, columns: Sequence[LogColumn]) -> DataFrame:
    """Selects what is documented, in its order and with its types."""
    return frame.selectExpr(*(f"CAST(`{c.name}` AS {c.type}) AS `{c.name}`" for c in columns))


def schema(fields: Mapping[str, str]) -> str:
    """Returns fields, by name with their types, as a schema in SQL."""
    return ", ".join(f"`{name}` {kind}" for name, kind in fields.items())


def field(column: str) -> str:
    """Returns the field of our events that is a column.

    >>> field("spark_answer"), field("asked_us")
    ('sparkAnswer', 'askedMicros')
    """
    first, *more = column.replace("_us", "_micros").split("_")
    return first + "".join(word.title() for word in more)


def renamed(frame: DataFrame, fields: Iterable[str]) -> DataFrame:
    """Names fields of our events as our columns, and makes a timestamp of `time`."""
    from pyspark.sql import functions

    snake = {name: re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name) for name in fields}
    snake = {name: column.replace("_micros", "_us") for name, column in snake.items()}
    time = functions.timestamp_millis("time")
    return frame.withColumn("time", time).withColumnsRenamed(snake)


def aggregated(groups: GroupedData, figures: Mapping[str, str]) -> DataFrame:
    """Aggregates by expressions in SQL, each under its name."""
    return groups.agg(*named(figures))


def named(texts: Mapping[str, str]) -> list[Column]:
    """Returns expressions in SQL as Columns, each under its name."""
    return [expr(f"{text} AS `{name}`") for name, text in texts.items()]


def expr(text: str) -> Column:
    """Returns an expression in SQL as a Column."""
    from pyspark.sql import functions

    return functions.expr(text)


def when(event: str, value: str, prefix: str = "SparkListener") -> str:
    """Returns a value in SQL, null but for one kind of event."""
    return f"CASE WHEN event = '{prefix}{event}' THEN {value} END"


def time(millis: str) -> str:
    """Returns milliseconds since 1970 in SQL as a timestamp."""
    return f"timestamp_millis({millis})"


def _fields(schema: str) -> list[tuple[str, str]]:
    """The outermost fields of a schema in SQL, each ``name type``; names may be in backquotes.

    >>> _fields("`Stage ID` bigint, `a` struct<b: int, c: int>")
    [('Stage ID', 'bigint'), ('a', 'struct<b: int, c: int>')]
    """
    parts: list[str] = [""]
    depth = 0
    for char in schema:
        depth += {"<": 1, ">": -1}.get(char, 0)
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    pairs = (field.strip().lstrip("`").partition("` ") for field in parts)
    return [(name, kind) for name, _, kind in pairs]
