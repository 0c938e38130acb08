"""The one file that touches the py4j gateway: for what settings and SQL cannot carry.

That is a JVM that runs before the session is made (under spark-submit it is there before the script
begins, so `spark.jars` set by the script comes too late for the driver's class path), Python
functions, which only the driver's own Python may bring, and PySpark's Columns.
"""

from __future__ import annotations

import os
import secrets
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot.errors import AqePilotError, NotLiveError, Problem
from aqepilot.submit.conf import TOKEN_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def require_spark() -> None:
    """Does nothing where this Python has a Spark that it can start.

    Raises:
        AqePilotError: It has no pyspark, or the client of Spark Connect alone.
    """
    try:
        from pyspark import SparkContext  # noqa: F401
    except ImportError:
        is_client = find_spec("pyspark") is not None
        lacks = (
            "this Python has pyspark's client alone, which starts no Spark. For a Spark Connect "
            "server name it, by SparkSession.builder.remote or SPARK_REMOTE; else this needs"
            if is_client
            else "this needs"
        )
        message = f"{lacks} pyspark in this Python: pip install 'pyspark==<the version your "
        raise AqePilotError(Problem("SPARK_NOT_FOUND", f"{message}jobs run on>'.")) from None


def is_running() -> bool:
    """Returns whether this Python has a JVM already, its own or spark-submit's."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def submitted_conf() -> dict[str, str]:
    """Returns the configuration that the running JVM was started with."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def running_conf() -> dict[str, str] | None:
    """Returns the configuration of the running Spark context; null when none runs.

    Raises:
        AqePilotError: This Python has no Spark to run.
    """
    require_spark()
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    return dict(context.getConf().getAll()) if context is not None else None


def add_to_class_path(jar: str | Path) -> None:
    """Adds a jar to the class path of the driver that runs, for classes not yet looked up."""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm = SparkContext._jvm
    if jvm is not None:
        url = jvm.java.io.File(str(jar)).toURI().toURL()
        jvm.java.lang.Thread.currentThread().getContextClassLoader().addURL(url)


class Session(NamedTuple):
    """A session for which this Python brings functions.

    Attributes:
        token: What its setting `spark.aqepilot.python.token` is or will be.
        spark: The session, whose end is the functions' end; null for the driver's end.
    """

    token: str
    spark: SparkSession | None

    def register(self, name: str, pickled: bytes) -> str:
        """Gives the driver a pickled function; returns the policy text that stands for it.

        Raises:
            NotLiveError: The jar of this driver knows no Python functions.
        """
        text: str = _session_functions().register(
            self.token, self._java(), name, pickled, _path(), sys.executable
        )
        return text

    def allow(self, text: str) -> None:
        """Lets the session use a text `python:<module>:<function>`.

        Raises:
            NotLiveError: The jar of this driver knows no Python functions.
        """
        _session_functions().allow(self.token, self._java(), text, _path(), sys.executable)

    def rest(self) -> None:
        """Ends the session's processes until one of its functions is asked again."""
        _session_functions().rest(self.token)

    def _java(self) -> Any:
        return None if self.spark is None else self.spark._jsparkSession


def session(spark: SparkSession) -> Session:
    """Returns a classic session with its token, or with a new one, which it does not have yet."""
    return Session(spark.conf.get(TOKEN_KEY, None) or secrets.token_hex(16), spark)


def next_session() -> Session:
    """Returns what a builder will give: the session that is there, or a new one."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    return Session(secrets.token_hex(16), None) if active is None else session(active)


def sql_of(spark: SparkSession, column: Column) -> str:
    """Returns a Column of a classic session as Spark writes it in SQL."""
    jvm_column: Any = column._jc
    if spark.version.startswith("3."):
        return str(jvm_column.expr().sql())
    session: Any = spark._jsparkSession
    return str(session.expression(jvm_column).sql())


def _session_functions() -> Any:
    from py4j.java_gateway import JavaClass  # type: ignore[import-untyped]
    from pyspark import SparkContext

    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    # The instance has the methods: static ones could be called from SQL, by java_method.
    companion = getattr(jvm.org.apache.spark.sql.aqepilot.policy.python, "SessionFunctions$")
    if not isinstance(companion, JavaClass):
        message = (
            "the driver's aqepilot jar knows no Python functions: it is not the one that came with "
            "this Python package (`aqepilot jar` prints its path)."
        )
        raise NotLiveError(Problem("JAR_WITHOUT_PYTHON", message))
    return getattr(companion, "MODULE$").ofDriver()


def _path() -> str:
    """Where this Python imports from, for another one that is started elsewhere."""
    return os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
