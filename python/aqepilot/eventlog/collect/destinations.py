"""Where collected tables are: in a folder, or in a namespace of one of Spark's catalogs.

Rows are added in batches. What is added of applications is seen wholly or not at all: it is one
file, one commit of Delta Lake or Iceberg, or one partition that is added to a catalog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from aqepilot.errors import AqePilotError, Problem, nearest
from aqepilot.eventlog import files
from aqepilot.eventlog.collect import schemas

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PREFIX = "catalog:"
FORMATS = ("delta", "iceberg", "parquet")
PART = re.compile(r"`([^`]+)`|([^.`\s]+)")
_NAMESPACE = re.compile(rf"(?:{PART.pattern})(?:\.(?:{PART.pattern}))*")
_FILE_OF_TABLE = re.compile(r"(.*?)(?:/[^/=]+=[^/]*)*/[^/]+\.parquet")
# Enough for the tables of aqepilot; each costs a look at the file system.
_MOST_FOLDERS = 6


class Destination(Protocol):
    """Tables by the names of `frames.columns.FRAMES`, as `schemas.ddl` has them."""

    def prepare(self) -> None:
        """Makes the tables ready to be added to.

        Raises:
            AqePilotError: They cannot be; says what to do.
        """

    def add(self, name: str, rows: DataFrame, batch: str) -> None:
        """Adds rows to a table; those of applications last.

        Args:
            name: The table.
            rows: The rows, without `batch`.
            batch: What this batch is called.
        """

    def rows(self, name: str) -> DataFrame | None:
        """Returns the rows of a table; null where there is none such."""

    def lost(self) -> str | None:
        """Says why the tables end with the session; null when they do not."""


def is_catalog(to: str | Path) -> bool:
    """Returns whether this is a namespace of a catalog, and neither a folder nor a log."""
    return str(to).startswith(PREFIX)


def check(to: str | Path, table_format: str | None = None) -> None:
    """Tells what is wrong with these words, before any Spark is asked.

    Raises:
        AqePilotError: They name no tables; says what would.
    """
    if is_catalog(to) and not _NAMESPACE.fullmatch(str(to).removeprefix(PREFIX)):
        message = (
            f"{to} names no namespace: write {PREFIX}CATALOG.NAMESPACE, or {PREFIX}DATABASE for a "
            "database of the session's own catalog; a name with dots or blanks in backquotes."
        )
        raise AqePilotError(Problem("NAMESPACE_MALFORMED", message))
    if table_format is not None and table_format not in FORMATS:
        message = f"tables cannot be of the format {table_format}: use {', '.join(FORMATS)}."
        suggestions = nearest(table_format, FORMATS)
        raise AqePilotError(Problem("FORMAT_UNKNOWN", message, suggestions=suggestions))
    if table_format is not None and not is_catalog(to):
        message = (
            "a folder has Parquet tables and takes no format: leave it out, or name a namespace "
            f"of a catalog, e.g. {PREFIX}lake.aqepilot."
        )
        raise AqePilotError(Problem("FORMAT_WITHOUT_CATALOG", message))


def refuse_delta(spark: SparkSession, folders: Iterable[str]) -> None:
    """Tells of a folder that is a table of Delta Lake's: its files alone are not its rows.

    Raises:
        AqePilotError: There is one.
    """
    for folder in folders:
        if files.is_there(spark, f"{folder}/_delta_log"):
            message = (
                f"{folder} is a table of Delta Lake, which is written and read through a catalog: "
                f"write {PREFIX}NAMESPACE instead of the folder."
            )
            raise AqePilotError(Problem("DELTA_WITHOUT_CATALOG", message))


def refuse_delta_files(spark: SparkSession, paths: Iterable[str]) -> None:
    """Does so of the folders of what looks like files of tables among these paths.

    Raises:
        AqePilotError: There is one.
    """
    folders = {match[1] for path in paths if (match := _FILE_OF_TABLE.fullmatch(path))}
    refuse_delta(spark, sorted(folders)[:_MOST_FOLDERS])


def write(rows: DataFrame, path: str) -> None:
    """Writes Parquet into a folder: by date, or as one file where there is none."""
    if "date" in rows.columns:
        rows.write.partitionBy("date").parquet(path)
    else:
        rows.coalesce(1).write.option("maxRecordsPerFile", 0).parquet(path)


class Folder:
    """Parquet in `<folder>/<table>/batch=<batch>/date=<date>/`."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark, self._path = spark, path

    def __str__(self) -> str:
        return self._path

    def prepare(self) -> None:
        """See `Destination`."""
        refuse_delta(self._spark, (self._path, f"{self._path}/applications"))

    def add(self, name: str, rows: DataFrame, batch: str) -> None:
        """See `Destination`."""
        write(rows, f"{self._path}/{name}/batch={batch}")

    def rows(self, name: str) -> DataFrame | None:
        """See `Destination`."""
        try:
            return self._spark.read.schema(schemas.ddl(name)).parquet(f"{self._path}/{name}")
        except Exception as error:
            if files.is_not_there(error):
                return None
            raise

    def lost(self) -> str | None:
        """See `Destination`."""
        return None
