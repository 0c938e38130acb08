"""The queries of a bench: files of SQL, and the tables that they read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def read(paths: Iterable[Path]) -> dict[str, str]:
    """Reads files of one statement each; of a folder, its ``*.sql`` in the order of their names.

    Returns:
        Statements by the names of their files, without ``.sql``.

    Raises:
        AqePilotError: A path has nothing to run, or two files have one name; lists all.
    """
    queries: dict[str, str] = {}
    problems: list[Problem] = []
    for path in paths:
        files = sorted(path.glob("*.sql")) if path.is_dir() else [path]
        if not files:
            problems.append(Problem("QUERIES_MISSING", "no *.sql is in this folder.", str(path)))
        for file in files:
            try:
                (sql, *more) = statements(_text(file)) or [""]
            except AqePilotError as error:
                problems += error.problems
                continue
            if not sql or more:
                message = f"a query is one statement, and here are {1 + len(more) if sql else 0}."
                problems.append(Problem("QUERY_INVALID", message, str(file)))
            if file.stem in queries:
                message = f"another file is called {file.stem}, too."
                problems.append(Problem("QUERY_INVALID", message, str(file)))
            queries[file.stem] = sql
    if problems:
        raise AqePilotError(problems)
    return queries


def statements(text: str) -> list[str]:
    r"""Splits SQL where a line ends with a semicolon; lines of comments alone are left out.

    >>> statements("SELECT 1;\n-- two\nSELECT ';';\n")
    ['SELECT 1', "SELECT ';'"]
    """
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("--")]
    parts: list[str] = []
    rest: list[str] = []
    for line in lines:
        if line.rstrip().endswith(";"):
            parts.append("\n".join([*rest, line.rstrip()[:-1]]).strip())
            rest = []
        else:
            rest.append(line)
    return [sql for sql in [*parts, "\n".join(rest).strip()] if sql]


def set_up(spark: SparkSession, file: Path) -> None:
    """Runs the statements of a file one after the other.

    Raises:
        AqePilotError: It cannot be read, or a statement fails; says which one.
    """
    for number, sql in enumerate(statements(_text(file)), start=1):
        try:
            spark.sql(sql)
        except Exception as error:
            why = str(error).strip().splitlines()[0]
            message = f"statement {number} ({sql.splitlines()[0][:60]}) fails: {why}"
            raise AqePilotError(Problem("SETUP_FAILED", message, str(file))) from error


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise AqePilotError(
            Problem("FILE_UNREADABLE", f"cannot read it: {why}.", str(file))
        ) from error


def register(spark: SparkSession, folder: Path) -> list[str]:
    """Makes a temporary view of each Parquet file, and of each folder of Parquet files.

    Returns:
        The views' names: those of files and folders, without ``.parquet``.

    Raises:
        AqePilotError: None are there, or one cannot be read.
    """
    files = [
        path
        for path in sorted(folder.glob("*"))
        if path.suffix == ".parquet" or (path.is_dir() and next(path.rglob("*.parquet"), None))
    ]
    if not files:
        message = "no Parquet files are here, nor folders of such files."
        raise AqePilotError(Problem("TABLES_MISSING", message, str(folder)))
    for path in files:
        try:
            spark.read.parquet(str(path)).createOrReplaceTempView(path.stem)
        except Exception as error:
            message = f"cannot read it: {str(error).strip().splitlines()[0]}"
            raise AqePilotError(Problem("FILE_UNREADABLE", message, str(path))) from error
    return [path.stem for path in files]
