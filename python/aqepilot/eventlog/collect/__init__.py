"""Event logs collected into tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aqepilot.eventlog.collect.destinations import Destination, Folder, check, is_catalog
from aqepilot.eventlog.collect.namespaces import Namespace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_destination(
    spark: SparkSession, to: str | Path, table_format: str | None = None
) -> Destination:
    """Returns the tables in a folder, or in `catalog:NAMESPACE`.

    Args:
        spark: Any session.
        to: Where they are, or are to be.
        table_format: The format of tables that a catalog has yet to make; null for its default.

    Raises:
        AqePilotError: There can be none such; says what to do.
    """
    check(to, table_format)
    return Namespace(spark, str(to), table_format) if is_catalog(to) else Folder(spark, str(to))
