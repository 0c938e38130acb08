"""The schemas of collected tables, and frames as these want them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from aqepilot.eventlog.frames import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


def ddl(name: str) -> str:
    """Returns the schema of a table in SQL: what `columns` has, and what it is kept by.

    Args:
        name: The table.
    """
    more = "bytes bigint, batch string" if name == "applications" else "batch string, date date"
    return f"{columns.ddl(columns.FRAMES[name])}, {more}"


def missing(there: DataType, wanted: DataType, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields what a schema lacks, as ALTER TABLE ADD COLUMNS names it, and its type in SQL.

    Args:
        there: The schema, or the type of a column.
        wanted: What it should be.
        path: The column that these are types of; empty for schemas.
    """
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(there, ArrayType) and isinstance(wanted, ArrayType):
        yield from missing(there.elementType, wanted.elementType, f"{path}element.")
    elif isinstance(there, StructType) and isinstance(wanted, StructType):
        for field in wanted.fields:
            own = f"{path}`{field.name}`"
            if field.name in there.names:
                yield from missing(there[field.name].dataType, field.dataType, f"{own}.")
            else:
                yield own, field.dataType.simpleString()


def shaped(frame: DataFrame, schema: StructType) -> DataFrame:
    """Selects the columns of a schema, in its order; what is missing, also of structs, is null."""
    from pyspark.sql import functions

    columns = []
    for field in schema.fields:
        own = f"`{field.name}`"
        if field.name in frame.columns:
            text = _shaped(own, frame.schema[field.name].dataType, field.dataType)
        else:
            text = _null(field.dataType)
        columns.append(functions.expr(text).alias(field.name))
    return frame.select(*columns)


def _shaped(value: str, there: DataType, wanted: DataType) -> str:
    """Returns a value in SQL as another type, by the names of its fields."""
    from pyspark.sql.types import ArrayType, StructType

    if isinstance(there, ArrayType) and isinstance(wanted, ArrayType):
        element = _shaped("x", there.elementType, wanted.elementType)
        return value if element == "x" else f"transform({value}, x -> {element})"
    if not isinstance(there, StructType) or not isinstance(wanted, StructType):
        return value
    if there.names == wanted.names:
        return value
    fields = []
    for field in wanted.fields:
        own = f"{value}.`{field.name}`"
        is_there = field.name in there.names
        text = (
            _shaped(own, there[field.name].dataType, field.dataType)
            if is_there
            else _null(field.dataType)
        )
        fields.append(f"'{field.name}', {text}")
    return f"IF({value} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _null(kind: DataType) -> str:
    return f"CAST(NULL AS {kind.simpleString()})"
