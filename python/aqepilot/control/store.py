"""Where a control file is: how it is read and replaced without losing another writer's change."""

from __future__ import annotations

import fcntl
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from aqepilot.errors import AqePilotError, Problem

_LOCAL = re.compile(r"file:|(?![A-Za-z][\w+.-]*:)")
# A store of objects: a write is there whole when it is closed, and a rename is a copy.
_OBJECTS = {"s3", "s3a", "s3n", "gs", "oss", "obs", "cosn", "swift"}
_STALE_LOCK_S = 60.0
_LOCK_TRIES_S = 120.0


class Store(ABC):
    """One control file.

    Attributes:
        settles_after_s: How long after a write to look whether another has replaced it.
    """

    settles_after_s: float

    @abstractmethod
    def read(self) -> str | None:
        """Returns the file's text; null where there is no file.

        Raises:
            AqePilotError: It cannot be read.
        """

    @abstractmethod
    def replace(self, change: Callable[[str | None], str]) -> None:
        """Replaces the text by what ``change`` makes of it, while other writers wait.

        Raises:
            AqePilotError: It cannot be written.
        """


def of_path(path: str, conf: Mapping[str, str]) -> Store:
    """Returns the file of this machine, or of a Hadoop file system for a URI with a scheme.

    >>> of_path("control.json", {}).__class__.__name__
    'LocalFile'
    """
    if not _LOCAL.match(path):
        return HadoopFile(path, conf)
    return LocalFile(Path(unquote(urlsplit(path).path) if path.startswith("file:") else path))


class LocalFile(Store):
    """A file of this machine: writers wait for each other, and readers see a file old or new."""

    settles_after_s = 0.0

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str | None:
        """See `Store.read`."""
        try:
            return self._path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise _failed("read", self._path, error) from error

    def replace(self, change: Callable[[str | None], str]) -> None:
        """See `Store.replace`."""
        try:
            with self._path.with_name(self._path.name + ".lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                text = change(self.read())
                written = self._path.with_name(f".{self._path.name}.{uuid4().hex}")
                try:
                    with written.open("w", encoding="utf-8") as file:
                        file.write(text)
                        file.flush()
                        os.fsync(file.fileno())
                    written.replace(self._path)
                finally:
                    written.unlink(missing_ok=True)
        except OSError as error:
            raise _failed("written", self._path, error) from error


class HadoopFile(Store):
    """A file on a Hadoop file system, by Spark's own classes in a JVM without a Spark context."""

    settles_after_s = 1.0

    def __init__(self, uri: str, conf: Mapping[str, str]) -> None:
        self._uri = uri
        self._jvm = _jvm(tuple(sorted(conf.items())))
        spark = self._jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()
        self._conf = self._jvm.org.apache.hadoop.conf.Configuration(spark)
        # A JVM that runs already was started with other settings.
        for key, value in conf.items():
            self._conf.set(key.removeprefix("spark.hadoop."), value)
        self._path = self._jvm.org.apache.hadoop.fs.Path(uri)
        with self._telling("reached"):
            self._fs = self._path.getFileSystem(self._conf)

    def read(self) -> str | None:
        """See `Store.read`."""
        with self._telling("read"):
            return self._text(self._path)

    def replace(self, change: Callable[[str | None], str]) -> None:
        """See `Store.replace`."""
        with self._telling("written"), self._lock() as is_held:
            text = change(self._text(self._path))
            is_held()
            if urlsplit(self._uri).scheme in _OBJECTS:
                self._write(self._path, text, overwrite=True)
                return
            written = self._beside(f".{uuid4().hex}")
            self._write(written, text, overwrite=False)
            try:
                is_held()
                self._rename(written)
            finally:
                self._fs.delete(written, False)

    def _rename(self, written: Any) -> None:
        rename = self._jvm.org.apache.hadoop.fs.Options.Rename
        options = self._jvm.java.lang.reflect.Array.newInstance(rename.OVERWRITE.getClass(), 1)
        options[0] = rename.OVERWRITE
        files = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(
            self._path.toUri(), self._conf
        )
        files.rename(written, self._path, options)

    @contextmanager
    def _lock(self) -> Iterator[Callable[[], None]]:
        """Holds a file that is there for one writer; gives what fails if another took it over."""
        lock, own = self._beside(".lock"), uuid4().hex
        end = time.monotonic() + _LOCK_TRIES_S
        while not self._is_created(lock, own):
            if self._age_s(lock) > _STALE_LOCK_S:
                self._fs.delete(lock, False)
            elif time.monotonic() > end:
                message = f"{lock.toString()} is held by another writer for {_LOCK_TRIES_S:.0f} s."
                raise AqePilotError(Problem("CONTROL_NOT_WRITTEN", message, self._uri))
            else:
                time.sleep(0.2)

        def is_held() -> None:
            if self._text(lock) != own:
                message = "another writer took over, as this one had been halted: try again."
                raise AqePilotError(Problem("CONTROL_NOT_WRITTEN", message, self._uri))

        try:
            yield is_held
        finally:
            if self._text(lock) == own:
                self._fs.delete(lock, False)

    def _is_created(self, lock: Any, own: str) -> bool:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            self._write(lock, own, overwrite=False)
        except Py4JJavaError as error:
            if "AlreadyExists" in str(error.java_exception.getClass().getName()):
                return False
            if self._fs.exists(lock):
                return False
            raise
        return self._text(lock) == own

    def _age_s(self, lock: Any) -> float:
        """How old it is, by the file system's own clock."""
        now = self._beside(f".{uuid4().hex}")
        self._write(now, "", overwrite=False)
        try:
            if not self._fs.exists(lock):
                return 0.0
            times = [self._fs.getFileStatus(f).getModificationTime() for f in (now, lock)]
            return float(times[0] - times[1]) / 1000
        finally:
            self._fs.delete(now, False)

    def _beside(self, suffix: str) -> Any:
        return self._path.suffix(suffix)

    def _text(self, path: Any) -> str | None:
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _write(self, path: Any, text: str, *, overwrite: bool) -> None:
        stream = self._fs.create(path, overwrite)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError

        try:
            yield
        except Py4JJavaError as error:
            raise _failed(what, self._uri, error.java_exception.toString()) from error


@cache
def _jvm(conf: tuple[tuple[str, str], ...]) -> Any:
    """A JVM with Spark's classes and settings, as spark-submit would give them to a driver."""
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
    settings = SparkConf(loadDefaults=False)
    for key, value in conf:
        settings.set(key, value)
    return launch_gateway(settings).jvm  # type: ignore[no-untyped-call]


def _failed(what: str, path: object, error: object) -> AqePilotError:
    message = f"the control file cannot be {what}: {error}"
    return AqePilotError(Problem("CONTROL_UNREACHABLE", message, str(path)))
