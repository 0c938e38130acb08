"""Fixtures: a Spark with the extension in this process, and jobs under spark-submit.

One JVM for each pytest process; each test gets a session of its own in it (new settings, views and
decisions), and the tables and views that it leaves in the catalog, which all share, are dropped.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import hypothesis
import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

import aqepilot
import distributed_writes
import little
import plans
import scala_objects
import skewed
import submitting
import tiers
import tpch as tpch_data
from aqepilot.cli import main
from aqepilot.submit import conf

# A machine may be busy.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

TPCH_SCALE = 0.01

Plain = Callable[[SparkSession], AbstractContextManager[SparkSession]]
Tpch = Callable[..., SparkSession]
Submit = Callable[..., subprocess.CompletedProcess[str]]
CommandLine = Callable[..., Result]
Doctor = Callable[..., dict[str, dict[str, str]]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` runs some long tests on one Spark only: see `tiers`."""
    items[:] = tiers.select(items)


@pytest.fixture(scope="session")
def spark_jar() -> Path:
    """The jar for the running pyspark."""
    return submitting.spark_jar()


@pytest.fixture(scope="session")
def context_settings() -> dict[str, str]:
    """Settings of a test file that is run alone and wants a context of its own."""
    return {}


@pytest.fixture(scope="session")
def _spark_context(
    spark_jar: Path, tmp_path_factory: pytest.TempPathFactory, context_settings: dict[str, str]
) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    settings = (
        submitting.SETTINGS
        | submitting.QUICK
        | plans.METADATA_IN_FULL
        | tiers.CODE
        | {
            "spark.driver.memory": "2g",
            "spark.jars": str(spark_jar),
            "spark.sql.extensions": submitting.EXTENSION,
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.log.level": "WARN",
            # What misses it hangs, however busy the machine.
            "spark.aqepilot.ask.deadline": "20s",
            "spark.sql.session.timeZone": "UTC",
            # Spark looks 40 times, 15 s apart, whether a stage in barrier mode has its slots.
            "spark.scheduler.barrier.maxConcurrentTasksCheck.interval": "1s",
            "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures": "1",
        }
        | context_settings
    )
    builder = SparkSession.builder.master("local[2]").appName("aqepilot-tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    # py4j would look for it in all jars each time that PySpark says the name.
    jvm: Any = session._jvm
    jvm.functions, jvm.PythonUtils = jvm.functions, jvm.PythonUtils
    yield session
    session.stop()


def reads_logs(session: SparkSession) -> None:
    """Settings of a session that reads small logs."""
    for key, value in (tiers.INTERPRETED | {"spark.sql.shuffle.partitions": "2"}).items():
        session.conf.set(key, value)


@pytest.fixture
def new_session(_spark_context: SparkSession) -> Callable[[], SparkSession]:
    """Makes one more session of its own in the same JVM, the extension live in it."""
    return _spark_context.newSession


@pytest.fixture
def spark(_spark_context: SparkSession, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A classic session of this test's own: local[2], the extension live, no policy."""
    session = _spark_context.newSession()
    if request.node.get_closest_marker("reads_logs"):
        reads_logs(session)
    # A Column is made by the settings of the active session, which would be an earlier test's.
    session._jvm.org.apache.spark.sql.SparkSession.setActiveSession(session._jsparkSession)
    catalog = session._jsparkSession.sharedState().externalCatalog()

    def tables() -> set[str]:
        return set(catalog.listTables("default").mkString("\n").splitlines())

    before = tables()
    yield session
    for name in tables() - before:
        catalog.dropTable("default", name, True, True)
    session.catalog.clearCache()
    if session.conf.get(conf.TOKEN_KEY, None):
        aqepilot.use(session)


@pytest.fixture(scope="session")
def swallowed_faults(_spark_context: SparkSession) -> Callable[[], dict[str, int]]:
    """``swallowed_faults()``: how many faults of ours failed no query, so far, by their place."""
    log = scala_objects.get(_spark_context, "org.apache.spark.sql.aqepilot.record.DecisionLog")

    def faults() -> dict[str, int]:
        # Each counter by itself would be four round trips.
        counters = log.getActive().get().counters().mkString("\n").splitlines()
        pairs = (counter.strip("()").rpartition(",") for counter in counters)
        return {name: int(count) for name, _, count in pairs if name.startswith("errors.")}

    return faults


@pytest.fixture(autouse=True)
def _no_fault_was_swallowed(request: pytest.FixtureRequest) -> Iterator[None]:
    """No fault of ours fails a query, so each test looks whether there was one."""
    if "_spark_context" not in request.fixturenames:
        yield
        return
    faults = request.getfixturevalue("swallowed_faults")
    before = faults()
    yield
    assert faults() == before


@pytest.fixture
def plain() -> Plain:
    """``with plain(spark): ...`` is plain Spark: the same session, every policy off."""

    @contextmanager
    def off(spark: SparkSession) -> Iterator[SparkSession]:
        key = "spark.aqepilot.mode"
        before = spark.conf.get(key, None)
        spark.conf.set(key, "off")
        try:
            yield spark
        finally:
            if before:
                spark.conf.set(key, before)
            else:
                spark.conf.unset(key)

    return off


@pytest.fixture
def executed() -> Callable[[Any], plans.Executed]:
    """``executed(df)`` collects: rows, joins and the canonical final plan."""
    return plans.execute


@pytest.fixture(scope="session")
def _little_files(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("little")
    little.write(_spark_context, folder)
    return folder


@pytest.fixture
def command_line(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    """``command_line("replay", "--log", path)`` runs in the test's session."""

    @contextmanager
    def here(*_: str) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("aqepilot.submit.check.local_session", here)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def little_tables(spark: SparkSession, _little_files: Path) -> SparkSession:
    """The views big, skewed, dense and sparse, in the test's session."""
    little.register(spark, _little_files)
    return spark


@pytest.fixture
def table(spark: SparkSession) -> SparkSession:
    """The view `t` that is written, of twelve tasks, in the test's session."""
    return distributed_writes.register(spark)


@pytest.fixture
def register_little(_little_files: Path) -> Callable[[SparkSession], None]:
    """The same views in any other session."""
    return lambda session: little.register(session, _little_files)


@pytest.fixture(scope="session")
def _skewed_files(_spark_context: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("skewed")
    skewed.write(_spark_context, folder)
    return folder


@pytest.fixture
def skewed_tables(spark: SparkSession, _skewed_files: Path) -> SparkSession:
    """The views l, r and d with large partitions, in the test's session."""
    skewed.register(spark, _skewed_files)
    return spark


@pytest.fixture
def register_skewed(_skewed_files: Path) -> Callable[[SparkSession], None]:
    """The same views in any other session."""
    return lambda session: skewed.register(session, _skewed_files)


@pytest.fixture
def tpch(spark: SparkSession) -> SparkSession:
    """The test's session with the eight TPC-H views at scale factor 0.01."""
    tpch_data.register(spark, TPCH_SCALE)
    return spark


@pytest.fixture
def spark_submit(tmp_path: Path, spark_jar: Path) -> Submit:
    """``spark_submit(script, submit_words, conf=..., ...)``: see `submitting.submit`.

    The job has a JVM of its own if it says what memory or environment that has.
    """
    runs = iter(range(1_000_000))

    def run(script: str, *args: Any, **options: Any) -> subprocess.CompletedProcess[str]:
        needs = {"env", "memory"} & options.keys()
        options.setdefault("own_jvm", tiers.OWN_JVM or bool(needs))
        return submitting.submit(tmp_path / f"submit-{next(runs)}", script, *args, **options)

    return run


@pytest.fixture
def doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """``doctor(words)``: what the command finds, by its code; it runs in the kept JVM."""
    if not tiers.OWN_JVM:

        def submitted(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
            return submitting.in_kept_jvm(command, tmp_path)

        monkeypatch.setattr(
            "aqepilot.submit.doctor.driver.subprocess", SimpleNamespace(run=submitted)
        )

    def run(*submit_words: object) -> dict[str, dict[str, str]]:
        quiet = ("--master", "local[1]", "--conf", "spark.ui.enabled=false")
        words = [str(word) for word in ("doctor", "--json", "--", *quiet, *submit_words)]
        done = CliRunner().invoke(main, words)
        answer = json.loads(done.stdout)
        assert done.exit_code == (0 if answer["is_well"] else 1)
        return {f["code"]: f for f in answer["findings"]}

    return run
