"""The one file that touches the py4j gateway: a JVM that runs before the session is made.

Under spark-submit the JVM is there before the script begins, so `spark.jars` set by the script
comes too late for the driver's class path.
"""

from __future__ import annotations

import os
from pathlib import Path


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
    """Returns the configuration of the running Spark context; null when none runs."""
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
