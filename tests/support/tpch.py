"""TPC-H data, queries and DuckDB's answers to them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import generated

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

TABLES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")
# Spark's averages and quotients are decimals of 6 digits, DuckDB's are doubles.
ORACLE_REL_TOL = 1e-5


def files(scale: float) -> Path:
    """Returns the folder with one Parquet file for each table, generated at the first call."""
    return generated.folder(f"tpch-sf{scale:g}", lambda folder: _generate(scale, folder))


def _generate(scale: float, folder: Path) -> None:
    command = [_generator(), "parquet", "-s", f"{scale:g}", "--output-dir", str(folder)]
    subprocess.run(command, check=True, capture_output=True)


def _generator() -> str:
    beside = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which("tpchgen-cli")
    if path is None:
        raise FileNotFoundError(f"no tpchgen-cli: {sys.executable} -m pip install tpchgen-cli")
    return path


def register(spark: SparkSession, scale: float) -> None:
    """Makes a temporary view of each table."""
    generated.register(spark, files(scale))


@cache
def queries() -> dict[int, str]:
    """Returns the 22 queries by number, without the closing semicolon; Spark takes them as is."""
    rows = _duckdb().execute("SELECT query_nr, query FROM tpch_queries() ORDER BY 1").fetchall()
    return {number: text.strip().removesuffix(";") for number, text in rows}


@cache
def answer(number: int, scale: float) -> list[tuple[Any, ...]]:
    """Returns DuckDB's rows of a query over the same files."""
    connection = _duckdb().cursor()
    for table in TABLES:
        path = files(scale) / f"{table}.parquet"
        connection.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM '{path}'")
    return connection.execute(queries()[number]).fetchall()


@cache
def _duckdb() -> duckdb.DuckDBPyConnection:
    import duckdb
    import duckdb_extension_tpch

    package = Path(duckdb_extension_tpch.__file__).parent
    connection = duckdb.connect()
    connection.execute(f"LOAD '{next(package.rglob('tpch.duckdb_extension'))}'")
    return connection
