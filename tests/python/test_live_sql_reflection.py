"""SQL's `java_method` and `reflect` reach nothing of ours, so that Python stays forbidden."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import scala_objects
import test_static_methods
from aqepilot.conf import TOKEN_KEY
from aqepilot.submit import class_files

TEXT = "python:evil:f"
NULL = "CAST(NULL AS STRING)"
TOKEN = "0123456789abcdef" * 2
JOIN = "SELECT count(*) FROM range(100) a JOIN range(100) b ON a.id = b.id"
# A setter that a Scala object inherits is one of its class' static methods.
SETTERS = ("set", "lazySet", "setPlain", "setOpaque", "setRelease", "getAndSet")
PYTHON = "org.apache.spark.sql.aqepilot.policy.python"
COSTS = "org.apache.spark.sql.execution.adaptive.AqePilotCostEvaluator"


def calls(folder: Path) -> list[str]:
    """What SQL alone did: arguments of `java_method`."""
    token, python = f"'{TOKEN}'", f"'{sys.executable}'"
    return [
        f"'{PYTHON}.SessionFunctions', 'allow', {token}, {NULL}, '{TEXT}', '{folder}', {python}",
        f"'{PYTHON}.SessionFunctions', 'rest', {token}",
        f"'{PYTHON}.WorkerProcess', 'start', 'x', {python}, 1L",
        "'org.apache.spark.sql.aqepilot.settings.AqePilotConf', 'register'",
        *(f"'{COSTS}', '{setter}', 'x'" for setter in SETTERS),
        f"'{COSTS}', 'compareAndSet', {NULL}, 'x'",
    ]


def in_ways(given: str) -> list[str]:
    """An object's own methods, of the class whose name ends in $, are not static."""
    of_class, rest = given.split(", ", 1)
    return [
        f"{of_class}, {rest}",
        f"{of_class[:-1]}$', {rest}",
        f"{of_class[:-1]}$Factory$', {rest}",
    ]


def is_reached(spark: SparkSession, call: str) -> bool:
    """Calls a method: one without a result gives 'null', and try_reflect NULL for what fails."""
    try:
        return spark.sql(f"SELECT {call} FROM VALUES (1)").collect()[0][0] is not None
    except Exception:
        return False


@pytest.fixture
def reflecting(spark: SparkSession) -> list[str]:
    names = ["java_method", "reflect"]
    return names if spark.version.startswith("3.") else [*names, "try_reflect"]


@pytest.fixture
def unchanged(
    new_session: Callable[[], SparkSession], tmp_path: Path
) -> Callable[[SparkSession], None]:
    """Looks whether Python is forbidden still, and whether queries run."""
    imported = tmp_path / "imported"
    Path(tmp_path, "evil.py").write_text(
        f"open({str(imported)!r}, 'w').close()\ndef f(facts):\n    return None\n", encoding="utf-8"
    )

    def look(spark: SparkSession) -> None:
        check = f"SELECT code FROM aqepilot_check('skew_join', '{TEXT}')"
        assert [row.code for row in spark.sql(check).collect()] == ["PYTHON_NOT_ALLOWED"]
        assert not imported.exists()
        for session in (spark, new_session()):
            assert [tuple(row) for row in session.sql(JOIN).collect()] == [(100,)]

    return look


def test_python_stays_forbidden(
    new_session: Callable[[], SparkSession],
    reflecting: list[str],
    unchanged: Callable[[SparkSession], None],
    tmp_path: Path,
) -> None:
    """A client that has only SQL cannot allow a function, nor break other sessions' queries."""
    spark = new_session()
    spark.sql(f"SET {TOKEN_KEY}={TOKEN}")
    tried = [
        f"{function}({given})"
        for function in reflecting
        for call in calls(tmp_path)
        for given in in_ways(call)
    ]
    assert [call for call in tried if is_reached(spark, call)] == []
    assert all(is_reached(spark, f"{f}('java.lang.Math', 'abs', -3)") for f in reflecting)
    unchanged(spark)


def test_what_spark_finds_is_harmless(
    new_session: Callable[[], SparkSession],
    reflecting: list[str],
    unchanged: Callable[[SparkSession], None],
) -> None:
    """Of all classes of the jar, Spark's own look-up finds what is listed, and that is harmless."""
    spark = new_session()
    spark.sql(f"SET {TOKEN_KEY}={TOKEN}")
    assert spark._jvm is not None
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    source = Path(__file__).with_name("StaticMethods.java")
    compiler.cook(source.read_text("utf-8"))
    looking = compiler.getClassLoader().loadClass(source.stem).newInstance()
    classes = jvm.java.util.ArrayList()
    for name in sorted({m.owner for m in class_files.methods(_jar(spark))}):
        classes.add(name)
    found = [line.split("\t") for line in looking.found(classes)]
    assert {f"{owner}.{name}" for owner, name, *_ in found} == test_static_methods.HARMLESS
    for owner, name, *types in found:
        values = [
            [f"CAST({value} AS {type})" for value in ("1", "NULL")]
            if type != "STRING"
            else ["'x'", f"'{TOKEN}'", NULL]
            for type in types
        ]
        for function, *given in itertools.product(reflecting, *values):
            is_reached(spark, f"{function}({', '.join([repr(owner), repr(name), *given])})")
    unchanged(spark)


def _jar(spark: SparkSession) -> Path:
    health = scala_objects.get(spark, "org.apache.spark.sql.aqepilot.decision.Health")
    return Path(health.jars().apply(0))
