"""TPC-DS data, queries and DuckDB's answers to them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import generated

if TYPE_CHECKING:
    import duckdb
    from pyspark.sql import SparkSession

TABLES = (
    *("call_center", "catalog_page", "catalog_returns", "catalog_sales", "customer"),
    *("customer_address", "customer_demographics", "date_dim", "household_demographics"),
    *("income_band", "inventory", "item", "promotion", "reason", "ship_mode", "store"),
    *("store_returns", "store_sales", "time_dim", "warehouse", "web_page", "web_returns"),
    *("web_sales", "web_site"),
)
MEMORY = "2GB"
SPARKS_NULL_ORDER = "nulls_first_on_asc_last_on_desc"


def files(scale: float) -> Path:
    """Returns the folder with one Parquet file for each table, generated at the first call."""
    return generated.folder(f"tpcds-sf{scale:g}", lambda folder: _generate(scale, folder))


def day(scale: float, number: int) -> Path:
    """Returns the folder with the tables of a day: the second one, 1, has a fifth less data."""
    rows = scale * (1 - 0.2 * number)
    name = f"tpcds-sf{scale:g}-2026-11-0{number + 1}"
    return generated.folder(name, lambda folder: _generate(rows, folder))


def _generate(scale: float, folder: Path) -> None:
    database = folder / "generating.duckdb"
    with _duckdb(str(database)) as connection:
        connection.execute(f"SET memory_limit = '{MEMORY}'")
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"CALL dsdgen(sf = {scale:g})")
        for table in TABLES:
            connection.execute(f"COPY {table} TO '{folder / table}.parquet' (FORMAT parquet)")
    database.unlink()


def register(spark: SparkSession, scale: float) -> None:
    """Makes a temporary view of each table."""
    generated.register(spark, files(scale))


@cache
def queries() -> dict[int, str]:
    """Returns the 99 queries by number, without the closing semicolon, as Spark takes them."""
    return {number: _for_spark(text) for number, text in _texts().items()}


def _for_spark(text: str) -> str:
    """Spark quotes names with backticks; in double quotes it reads a string.

    >>> _for_spark('SELECT 1 AS "31-60 days"')
    'SELECT 1 AS `31-60 days`'
    """
    return re.sub(r'"([^"]*)"', r"`\1`", text)


@cache
def answer(number: int, scale: float) -> list[tuple[Any, ...]]:
    """Returns DuckDB's rows of a query over the same files."""
    with _duckdb() as connection:
        connection.execute(f"SET default_null_order = '{SPARKS_NULL_ORDER}'")
        for table in TABLES:
            path = files(scale) / f"{table}.parquet"
            connection.execute(f"CREATE TEMP VIEW {table} AS SELECT * FROM '{path}'")
        return connection.execute(_texts()[number]).fetchall()


@cache
def _texts() -> dict[int, str]:
    with _duckdb() as connection:
        rows = connection.execute("SELECT query_nr, query FROM tpcds_queries() ORDER BY 1")
        return {number: text.strip().removesuffix(";") for number, text in rows.fetchall()}


def _duckdb(database: str = ":memory:") -> duckdb.DuckDBPyConnection:
    import duckdb
    import duckdb_extension_tpcds

    package = Path(duckdb_extension_tpcds.__file__).parent
    connection = duckdb.connect(database)
    connection.execute(f"LOAD '{next(package.rglob('tpcds.duckdb_extension'))}'")
    return connection
