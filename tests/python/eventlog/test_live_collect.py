"""Collecting event logs into tables: nothing missing and nothing twice, whenever it is killed."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import event_logs
import tiers
from aqepilot import Log, read_log
from aqepilot.errors import AqePilotError
from aqepilot.eventlog import lines as log_lines
from aqepilot.eventlog.collect.namespaces import Namespace
from aqepilot.eventlog.collect.tables import Collected, collect
from aqepilot.eventlog.frames import columns
from collecting import FRAMES, differences, lines
from conftest import CommandLine

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

CATALOG = "catalog:collected"


def counts(spark: SparkSession, to: Path | str) -> dict[str, Counter[str]]:
    return counts_of(read_log(spark, to))


def counts_of(log: Log) -> dict[str, Counter[str]]:
    def ids(name: str) -> DataFrame:
        return getattr(log, name).selectExpr(f"'{name}' AS name", "app_id")

    # One action instead of three.
    all_ids = ids("applications").union(ids("queries")).union(ids("decisions")).collect()
    return {
        name: Counter(row.app_id for row in all_ids if row.name == name)
        for name in ("applications", "queries", "decisions")
    }


def expected(*apps: str, queries: int = 2) -> dict[str, Counter[str]]:
    each = Counter(dict.fromkeys(apps, queries))
    return {"applications": Counter(apps), "queries": each, "decisions": each}


@pytest.fixture
def logs(spark: SparkSession, tmp_path: Path) -> Path:
    folder = tmp_path / "logs" / "day 1 {x}"
    event_logs.written(spark, lines("app-1"), folder / "app-1")
    event_logs.written(spark, lines("app-2"), folder / "app-2.zstd", "zstd")
    event_logs.rolled(spark, lines("app-3"), folder, "app-3")
    return tmp_path / "logs"


@pytest.fixture
def catalog(spark: SparkSession) -> Iterator[str]:
    """A namespace of the session's catalog that is not there yet."""
    yield CATALOG
    spark.sql("DROP DATABASE IF EXISTS collected CASCADE")


LONG_FOLDER, LONG_CATALOG = (pytest.param(to, marks=tiers.LONG) for to in ("folder", "catalog"))


@pytest.fixture(params=[LONG_FOLDER, "catalog"])
def to(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where tables may be."""
    is_folder = request.param == "folder"
    return str(tmp_path / "to") if is_folder else request.getfixturevalue("catalog")


@pytest.mark.parametrize("to", [LONG_FOLDER, "catalog"], indirect=True)
def test_tables_hold_what_the_logs_do(spark: SparkSession, logs: Path, to: str) -> None:
    """And a further run adds what is new."""
    assert collect(spark, logs, to) == Collected(3, 0, 0, 0, 0)
    assert collect(spark, logs, to) == Collected(0, 3, 0, 0, 0)
    tables, plain = read_log(spark, to), read_log(spark, logs)
    assert differences(tables, plain) == []
    of_day = tables.queries.where("date = DATE'2025-11-22'")
    assert of_day.count() == 3
    plan = of_day._jdf.queryExecution().executedPlan().toString()
    assert "PartitionFilters: [isnotnull(date" in plan
    if to == CATALOG:
        # A folder for each batch: Spark's own for a table is shared by two runs at once.
        (batch,) = spark.sql("SHOW PARTITIONS collected.applications").collect()
        days = [f"{batch[0]}/date=2025-11-{day}" for day in (22, 23)]
        assert [row[0] for row in spark.sql("SHOW PARTITIONS collected.queries").collect()] == days
    event_logs.written(spark, [*lines("app-4"), "cut"], logs / "app-4")
    assert collect(spark, logs, to) == Collected(1, 3, 0, 1, 0)
    assert counts(spark, to) == expected("app-1", "app-2", "app-3", "app-4")


def test_killed_before_it_is_done(
    spark: SparkSession, logs: Path, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What killed runs had written is not seen, and is there once after a run that ends."""
    event_logs.written(spark, lines("app-0"), tmp_path / "before" / "app-0")
    collect(spark, tmp_path / "before", to)
    writer = type(spark.range(1).write)
    parquet = writer.parquet

    frames = FRAMES if tiers.ALL else FRAMES[-1:]
    for killed_at in frames if to == CATALOG else (*frames, "applications"):

        def dying(
            self: object, path: str, *args: object, at: str = killed_at, **options: object
        ) -> None:
            if f"/{at}/" in path:
                # What a killed writer leaves behind: files of tasks, none of them renamed.
                parquet(self, f"{path}/_temporary/0/task_1", *args, **options)
                raise KeyboardInterrupt
            parquet(self, path, *args, **options)

        with monkeypatch.context() as patched:
            patched.setattr(writer, "parquet", dying)
            with pytest.raises(KeyboardInterrupt):
                collect(spark, logs, to)
        assert counts(spark, to) == expected("app-0"), killed_at
    if to == CATALOG:
        # All is written, and the catalog has not been told of the applications.
        register = Namespace._register

        def killed(self: Namespace, name: str, path: str, batch: str) -> None:
            if name == "applications":
                raise KeyboardInterrupt
            register(self, name, path, batch)

        with monkeypatch.context() as patched:
            patched.setattr(Namespace, "_register", killed)
            with pytest.raises(KeyboardInterrupt):
                collect(spark, logs, to)
        assert counts(spark, to) == expected("app-0")
    assert collect(spark, logs, to).logs == 3
    assert counts(spark, to) == expected("app-0", "app-1", "app-2", "app-3")


def test_a_log_in_progress_is_left_until_it_ends_or_is_old(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs, to = tmp_path / "logs", tmp_path / "to"
    event_logs.written(spark, lines("app-1"), logs / "app-1.inprogress")
    rolled = event_logs.rolled(spark, lines("app-2"), logs, "app-2")
    (rolled / "appstatus_app-2").rename(rolled / "appstatus_app-2.inprogress")
    assert collect(spark, logs, to) == Collected(0, 0, 2, 0, 0)
    (logs / "app-1.inprogress").rename(logs / "app-1")
    assert collect(spark, logs, to) == Collected(1, 0, 1, 0, 0)
    for part in rolled.iterdir():
        os.utime(part, (time.time() - 90_000,) * 2)
    assert collect(spark, logs, to) == Collected(1, 1, 0, 0, 0)
    assert counts(spark, to) == expected("app-1", "app-2")


def test_a_log_that_grew_or_moved_counts_once(spark: SparkSession, tmp_path: Path) -> None:
    logs, to = tmp_path / "logs", tmp_path / "to"
    event_logs.written(spark, lines("app-1"), logs / "app-1")
    collect(spark, logs, to)
    # By date, and one file for the rows of applications: they are there wholly or not at all.
    (applications,) = to.glob("applications/batch=*/*.parquet")
    assert list(to.glob("queries/batch=*/date=2025-11-22/*.parquet"))
    assert spark.read.parquet(str(applications)).first().bytes > 0
    event_logs.written(spark, lines("app-1", queries=3), logs / "app-1")
    assert collect(spark, logs, to).logs == 1
    assert counts(spark, to) == expected("app-1", queries=3)
    (logs / "app-1").rename(logs / "moved")
    assert collect(spark, logs, to).logs == 1
    assert counts(spark, to) == expected("app-1", queries=3)


def test_tables_of_folders_and_catalogs_and_logs_are_read_together(
    spark: SparkSession, logs: Path, tmp_path: Path, catalog: str
) -> None:
    """Nothing is left out, and what is in several of them counts once."""
    others = tmp_path / "others"
    event_logs.written(spark, lines("app-4"), others / "app-4")
    collect(spark, logs, tmp_path / "to")
    collect(spark, others, catalog)
    event_logs.written(spark, lines("app-5"), others / "app-5")
    both = read_log(spark, [tmp_path / "to", catalog, others])
    assert counts_of(both) == expected(*(f"app-{n}" for n in range(1, 6)))
    assert "date" not in both.queries.columns
    two = read_log(spark, [tmp_path / "to", catalog])
    assert counts_of(two) == expected(*(f"app-{n}" for n in range(1, 5)))
    assert two.queries.where("date IS NOT NULL").count() == 8


@pytest.mark.parametrize("to", [LONG_FOLDER, "catalog"], indirect=True)
def test_tables_of_an_older_aqepilot(
    spark: SparkSession, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They get the columns that they lack; fields that a catalog cannot add are told."""
    older, newer = tmp_path / "older", tmp_path / "newer"
    event_logs.written(spark, lines("app-1"), older / "app-1")
    event_logs.written(spark, lines("app-2"), newer / "app-2")
    with monkeypatch.context() as before:
        kept = [column for column in columns.QUERIES if column.name != "description"]
        before.setitem(columns.FRAMES, "queries", tuple(kept))
        collect(spark, older, to)
    assert read_log(spark, to).queries.select("description").count() == 2
    collect(spark, newer, to)
    described = read_log(spark, to).queries.where("description = 'q'")
    assert {row.app_id for row in described.collect()} >= {"app-2"}
    more = [
        column._replace(type=column.type.replace("cores: int", "cores: int, more: int"))
        for column in columns.APPLICATIONS
    ]
    monkeypatch.setitem(columns.FRAMES, "applications", tuple(more))
    executors = read_log(spark, to).applications.select("executors").collect()
    assert [(one.id, one.cores, one.more) for row in executors for one in row[0]] == [
        ("1", 2, None)
    ] * 2
    if to == CATALOG:
        with pytest.raises(AqePilotError, match=r"lacks `executors`\.element\.`more` int"):
            collect(spark, newer, to)


def test_what_cannot_be_read_is_told_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is in the tables with its problem, and is not read again before somebody says so."""
    logs, to = tmp_path / "logs", tmp_path / "to"
    event_logs.written(spark, lines("app-1"), logs / "app-1")
    damaged = event_logs.written(spark, lines("app-2"), logs / "app-2.zstd", "zstd")
    whole = damaged.read_bytes()
    damaged.write_bytes(b"?" + whole[1:])
    assert collect(spark, logs, to)[:3] == (2, 0, 0)
    assert collect(spark, logs, to) == Collected(0, 2, 0, 0, 0)
    damaged.write_bytes(whole)
    assert collect(spark, logs, to).logs == 0
    monkeypatch.setattr("aqepilot.eventlog.lines._text", nothing_of(damaged))
    damaged.write_bytes(whole + b"x")
    assert collect(spark, logs, to) == Collected(0, 1, 0, 0, 1)
    assert "nothing of it could be read" in problem_of(read_log(spark, to), damaged)
    monkeypatch.undo()
    assert collect(spark, logs, to) == Collected(0, 2, 0, 0, 0)
    assert collect(spark, logs, to, again=True)[:3] == (1, 1, 0)
    assert "nothing" not in problem_of(read_log(spark, to), damaged)
    assert counts(spark, to) == expected("app-1", "app-2")


def problem_of(log: Log, path: Path) -> str:
    (row,) = log.applications.where(f"endswith(log, '{path.name}')").collect()
    return str(row.problem)


def nothing_of(path: Path) -> Callable[..., DataFrame]:
    """Spark leaves out a file that may not be read, without a word."""
    read = log_lines._text

    def reading(spark: SparkSession, paths: list[str], suffix: str) -> DataFrame:
        others = [one for one in paths if not one.endswith(path.name)]
        rows = read(spark, others or paths, suffix)
        return rows if others else rows.where("false")

    return reading


@pytest.mark.parametrize("to", ["folder", LONG_CATALOG], indirect=True)
def test_two_at_once_count_once(
    spark: SparkSession, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins before the first has ended."""
    event_logs.written(spark, lines("app-1"), tmp_path / "logs" / "app-1")
    monkeypatch.setattr("aqepilot.eventlog.collect.tables._known", lambda *_: set())
    collect(spark, tmp_path / "logs", to)
    collect(spark, tmp_path / "logs", to)
    assert counts(spark, to) == expected("app-1")


@pytest.mark.parametrize(
    ("to", "table_format", "message"),
    [
        ("catalog:", None, "names no namespace"),
        ("catalog:a..b", None, "names no namespace"),
        (
            "catalog:spark_catalog",
            None,
            "name a namespace of it, e.g. catalog:spark_catalog.aqepilot",
        ),
        ("catalog:none.collected", None, "there is no catalog none in this session: set spark.sql"),
        (CATALOG, "parket", "use delta, iceberg, parquet. Did you mean parquet"),
        (CATALOG, "delta", "cannot be made; add the package"),
        ("folder", "delta", "takes no format: leave it out, or name a namespace"),
        ("delta", None, "is a table of Delta Lake"),
        ("catalog:other", None, "the table queries there is not one that aqepilot made: it has no"),
        ("catalog:flat", None, "the table queries there .* is not partitioned by batch first"),
    ],
)
def test_what_can_hold_no_tables_is_told_before_anything_is_written(
    spark: SparkSession,
    tmp_path: Path,
    catalog: str,
    to: str,
    table_format: str | None,
    message: str,
) -> None:
    event_logs.written(spark, lines("app-1", queries=0), tmp_path / "logs" / "app-1")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    made = {"catalog:other": "a int", "catalog:flat": "log string, batch string"}.get(to)
    if made:
        spark.sql(f"CREATE DATABASE {to[8:]}")
        spark.sql(f"CREATE TABLE {to[8:]}.queries ({made}) USING parquet")
    where = to if to.startswith("catalog:") else tmp_path / to
    try:
        with pytest.raises(AqePilotError, match=message):
            collect(spark, tmp_path / "logs", where, table_format=table_format)
    finally:
        if made:
            spark.sql(f"DROP DATABASE {to[8:]} CASCADE")
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_holds_no_tables_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AqePilotError, match=r"there are no tables .* is in memory"):
        read_log(spark, "catalog:nothing")
    (tmp_path / "delta" / "_delta_log").mkdir(parents=True)
    (tmp_path / "delta" / "date=2025-11-22").mkdir()
    (tmp_path / "delta" / "date=2025-11-22" / "part-0.parquet").write_bytes(b"PAR1")
    with pytest.raises(AqePilotError, match="is a table of Delta Lake"):
        read_log(spark, tmp_path / "delta")
    with pytest.raises(AqePilotError, match="no logs to collect"):
        collect(spark, CATALOG, tmp_path / "to")


def test_the_command_makes_no_tables_that_end_with_it(
    command_line: CommandLine, tmp_path: Path
) -> None:
    done = command_line("collect", "--log", tmp_path, "--to", CATALOG)
    assert done.exit_code == 1
    assert "set spark.sql.catalogImplementation to hive" in done.output
    done = command_line("collect", "--log", tmp_path, "--to", tmp_path, "--format", "delta")
    assert (done.exit_code, done.output[:15]) == (1, "error: a folder")
