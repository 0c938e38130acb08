"""Test data that is generated once, in a folder that all test processes share."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import places

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = places.ROOT / ".data"


def folder(name: str, generate: Callable[[Path], None]) -> Path:
    """Returns the folder of this name, filled by ``generate`` at the first call.

    A folder that is there is complete: it is filled under another name.
    """
    made = DATA / name
    if made.is_dir():
        return made
    DATA.mkdir(exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=DATA, prefix=f"{name}."))
    try:
        generate(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(made)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        if not made.is_dir():  # unless another process was faster
            raise
    return made


def register(spark: SparkSession, tables: Path) -> None:
    """Makes a temporary view of each Parquet file of the folder."""
    for path in sorted(tables.glob("*.parquet")):
        spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)


def analyse(spark: SparkSession, tables: Path) -> None:
    """Makes a table with statistics of each Parquet file of the folder, for all sessions."""
    for path in sorted(tables.glob("*.parquet")):
        if not spark.catalog.tableExists(path.stem):
            spark.sql(f"CREATE TABLE {path.stem} USING parquet LOCATION '{path}'")
            spark.sql(f"ANALYZE TABLE {path.stem} COMPUTE STATISTICS FOR ALL COLUMNS")


def in_groups(tables: Path, rows: int) -> Path:
    """Returns a copy of the tables in row groups of so many rows, for several map tasks to read."""
    import duckdb

    def copy(to: Path) -> None:
        for path in tables.glob("*.parquet"):
            rewritten = f"'{to / path.name}' (FORMAT parquet, ROW_GROUP_SIZE {rows})"
            duckdb.execute(f"COPY (FROM '{path}') TO {rewritten}")

    return folder(f"{tables.name}-groups-of-{rows}", copy)
