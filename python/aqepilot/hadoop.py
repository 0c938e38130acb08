"""Files on any file system that Spark reaches by Hadoop's classes."""

from __future__ import annotations

from functools import cache
from typing import Any
from urllib.parse import urlsplit

from aqepilot.errors import AqePilotError, Problem
from aqepilot.submit import java

# A store of objects: a write is there whole when it is closed, a rename is a copy, and two writers
# may create one object.
_OBJECTS = {"s3", "s3a", "s3n", "gs", "oss", "obs", "cosn", "swift"}


def is_object_store(uri: str) -> bool:
    """Returns whether a write to this URI is one upload, seen as a whole when it ends.

    >>> [is_object_store(uri) for uri in ("s3a://lake/history.parquet", "hdfs:///a", "/a")]
    [True, False, False]
    """
    return urlsplit(uri).scheme in _OBJECTS


def is_thrown(error: Exception, *names: str) -> bool:
    """Returns whether an error comes from the JVM and its class's name has one of these."""
    thrown = getattr(error, "java_exception", None)
    return thrown is not None and any(n in str(thrown.getClass().getName()) for n in names)


def rename_over(jvm: Any, conf: Any, written: Any, path: Any) -> None:
    """Renames a file to another path, whose file it replaces at once.

    Args:
        jvm: The JVM with Hadoop's classes.
        conf: Hadoop's `Configuration`.
        written: The `Path` of the file.
        path: The `Path` that it gets, on the same file system.

    Raises:
        Py4JJavaError: It cannot be; `UnsupportedFileSystemException` where Hadoop has no
            `AbstractFileSystem` for the scheme.
    """
    rename = jvm.org.apache.hadoop.fs.Options.Rename
    options = jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
    options[0] = rename.OVERWRITE
    files = jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), conf)
    files.rename(written, path, options)


@cache
def jvm_with(conf: tuple[tuple[str, str], ...]) -> Any:
    """Returns a JVM with Spark's classes, and settings as spark-submit would give a driver.

    Args:
        conf: The settings; a JVM that runs already has its own.

    Raises:
        AqePilotError: This Python has no pyspark, or there is no Java.
    """
    try:
        from pyspark import SparkConf, SparkContext
        from pyspark.java_gateway import launch_gateway
    except ImportError:
        message = (
            "a control file on a Hadoop file system is reached by Spark's classes, and this "
            "Python has no pyspark: pip install pyspark, or give a path of this machine."
        )
        raise AqePilotError(Problem("PYSPARK_MISSING", message)) from None
    if SparkContext._gateway is not None:
        return SparkContext._gateway.jvm
    java.require()
    settings = SparkConf(loadDefaults=False)
    for key, value in conf:
        settings.set(key, value)
    return launch_gateway(settings).jvm  # type: ignore[no-untyped-call]
