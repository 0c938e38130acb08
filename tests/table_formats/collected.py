"""`aqepilot collect` into catalogs: tables of Delta Lake, Iceberg and Parquet hold what logs do."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from unittest import mock

from pyspark.sql import SparkSession

import submitting
from aqepilot import read_log
from aqepilot.eventlog.collect.namespaces import Namespace
from aqepilot.eventlog.collect.tables import Collected, collect
from aqepilot.eventlog.frames import columns
from collecting import FRAMES, differences, lines

NAMESPACES = {"delta": "catalog:of_{}", "iceberg": "catalog:ice.of_{}", "parquet": "catalog:pq_{}"}
# Columns and fields that an older aqepilot did not have.
OLDER = {"queries": ("description", None), "applications": ("executors", ", removed: timestamp")}


def failures(names: Sequence[str], formats: Mapping[str, str], folder: Path) -> int:
    """Prints what is wrong with tables of each format; returns how much that is.

    Args:
        names: The formats, beside Parquet.
        formats: Settings of a Spark that has them.
        folder: Where it runs.
    """
    shutil.rmtree(folder, ignore_errors=True)
    builder = SparkSession.builder.master("local[2]").appName("table-formats")
    own = {
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.databricks.delta.snapshotPartitions": "2",
    }
    for key, value in (submitting.SETTINGS | submitting.QUICK | dict(formats) | own).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    count = 0
    for name in (*names, "parquet"):
        for step in (one_after_another, two_at_once):
            failed = list(step(spark, name, folder / name / step.__name__))
            count += len(failed)
            words = step.__name__.replace("_", " ")
            print(f"collected, {name}, {words}, Spark {spark.version}: {len(failed)} failures")
            print(*failed, sep="\n", end="\n" * bool(failed), flush=True)
    spark.stop()
    return count


def one_after_another(spark: SparkSession, name: str, folder: Path) -> Iterator[str]:
    """Runs of an older aqepilot, runs that are killed, and runs that end."""
    logs, to = folder / "logs", NAMESPACES[name].format("runs")
    written(logs, "app-1")
    # The session's own catalog adds no fields to the structs of Parquet tables.
    with older("queries", *(["applications"] if name != "parquet" else [])):
        yield from unlike(collect(spark, logs, to, table_format=name), 1, 0)
    yield from not_null(spark, to)
    written(logs, "app-2")
    for killed_at in (FRAMES[0], FRAMES[-1], "applications"):
        with killed(killed_at), suppress(KeyboardInterrupt):
            collect(spark, logs, to)
        apps = [row.app_id for row in read_log(spark, to).applications.collect()]
        if apps != ["app-1"]:
            yield f"killed at {killed_at}: {apps}"
    yield from unlike(collect(spark, logs, to), 1, 1)
    yield from unlike(collect(spark, logs, to), 0, 2)
    # It is read again, and wholly now.
    written(logs, "app-1", queries=3)
    yield from unlike(collect(spark, logs, to), 1, 1)
    tables = read_log(spark, to)
    yield from differences(tables, read_log(spark, logs))
    of_day = tables.queries.where("date = DATE'2025-11-22'")
    plan = of_day._jdf.queryExecution().executedPlan().toString()
    pruned = re.findall(r"(?:PartitionFilters: \[|filters=|filters: )[^\n]{0,20}date[^,\n]*", plan)
    if of_day.count() != 2 or not pruned:
        yield f"not pruned by date: {plan}"


def two_at_once(spark: SparkSession, name: str, folder: Path) -> Iterator[str]:
    """Runs in two threads, each of which makes the tables."""
    logs, to = folder / "logs", NAMESPACES[name].format("two")
    for n in range(3):
        written(logs, f"app-{n}")
    sessions = [spark.newSession() for _ in range(2)]
    with ThreadPoolExecutor() as pool:
        runs = [pool.submit(collect, one, logs, to, table_format=name) for one in sessions]
    yield from (str(run.exception()) for run in runs if run.exception())
    yield from differences(read_log(spark, to), read_log(spark, logs))


def written(logs: Path, app: str, queries: int = 2) -> Path:
    """Writes a log."""
    logs.mkdir(parents=True, exist_ok=True)
    (logs / app).write_text("".join(f"{line}\n" for line in lines(app, queries)), "utf-8")
    return logs / app


def unlike(tables: Collected, logs: int, known: int) -> Iterator[str]:
    """Says what a run did that it should not have."""
    if tables != Collected(logs, known, 0, 0, 0):
        yield f"{tables} instead of {logs} logs, {known} known"


def not_null(spark: SparkSession, to: str) -> Iterator[str]:
    """Says what tables of an older aqepilot have that it did not know."""
    log = read_log(spark, to)
    if log.queries.where("description IS NULL").count() != 2:
        yield f"queries of an older aqepilot: {log.queries.collect()}"
    if log.applications.where("executors[0].removed IS NULL AND executors[0].id = 1").count() != 1:
        yield f"applications of an older aqepilot: {log.applications.collect()}"


@contextmanager
def older(*names: str) -> Iterator[None]:
    """Tables are made, and rows written, without what is in OLDER."""
    tables = {}
    for name in names:
        lacking, field = OLDER[name]
        tables[name] = tuple(
            column._replace(type=column.type.replace(field or "", ""))
            for column in columns.FRAMES[name]
            if field or column.name != lacking
        )
    with mock.patch.dict(columns.FRAMES, tables):
        yield


@contextmanager
def killed(at: str) -> Iterator[None]:
    """A run is killed when it has written a table, and before Parquet's catalog knows of that."""
    add, register = Namespace.add, Namespace._register

    def dying(self: Namespace, name: str, *rest: object) -> None:
        if name == at == "applications":
            raise KeyboardInterrupt
        add(self, name, *rest)  # type: ignore[arg-type]
        if name == at:
            raise KeyboardInterrupt

    def unregistered(self: Namespace, name: str, *rest: str) -> None:
        if name == at:
            raise KeyboardInterrupt
        register(self, name, *rest)

    with (
        mock.patch.object(Namespace, "add", dying),
        mock.patch.object(Namespace, "_register", unregistered),
    ):
        yield
