"""A control file on a file system that Spark reaches by Hadoop's classes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from aqepilot.control.lock import LOCK, LockedFile
from aqepilot.control.store import failed
from aqepilot.errors import first_line
from aqepilot.hadoop import is_object_store, is_thrown, jvm_with, rename_over

_OBJECT_SETTLES_S = 3.0
# Of a file whose checksum is another's.
_READS = 20


class HadoopFile(LockedFile):
    """A file on a Hadoop file system, by Spark's own classes in a JVM without a Spark context."""

    settles_after_s = 1.0
    created_after_s = 0.0

    def __init__(self, uri: str, conf: Mapping[str, str]) -> None:
        self._uri = uri
        self._is_object = is_object_store(uri)
        if self._is_object:
            self.settles_after_s = self.created_after_s = _OBJECT_SETTLES_S
        self._jvm = jvm_with(tuple(sorted(conf.items())))
        spark = self._jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()
        self._conf = self._jvm.org.apache.hadoop.conf.Configuration(spark)
        # A JVM that runs already was started with other settings.
        for key, value in conf.items():
            self._conf.set(key.removeprefix("spark.hadoop."), value)
        self._path = self._jvm.org.apache.hadoop.fs.Path(uri)
        with self._telling("reached"):
            self._fs = self._path.getFileSystem(self._conf)

    def _text(self, suffix: str) -> str | None:
        with self._telling("read"):
            # Of a file of this machine Hadoop keeps the checksum in another file, and replaces
            # one after the other: who reads may come between.
            for _ in range(_READS - 1):
                try:
                    return self._read(suffix)
                except Exception as error:
                    if not is_thrown(error, "ChecksumException"):
                        raise
                time.sleep(0.05)
            if suffix == LOCK:
                # Two created it at once, which a file system of one machine lets them: neither has
                # it, and what one of them put there fails the other's checksum for good.
                self._delete(suffix)
                return None
            return self._read(suffix)

    def _read(self, suffix: str) -> str | None:
        try:
            stream = self._fs.open(self._beside(suffix))
        except Exception as error:
            if is_thrown(error, "FileNotFound", "NoSuchFile"):
                return None
            raise
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _create(self, suffix: str, text: str) -> bool:
        path = self._beside(suffix)
        with self._telling("written"):
            try:
                self._write(path, text, overwrite=False)
            except Exception as error:
                # A file system need not say by the exception's class that the file is there.
                if is_thrown(error, "AlreadyExists") or self._fs.exists(path):
                    return False
                raise
        return True

    def _delete(self, suffix: str) -> None:
        with self._telling("written"):
            self._fs.delete(self._beside(suffix), False)

    def _modified_s(self, suffix: str) -> float | None:
        with self._telling("read"):
            try:
                status = self._fs.getFileStatus(self._beside(suffix))
            except Exception as error:
                if is_thrown(error, "FileNotFound", "NoSuchFile"):
                    return None
                raise
            return float(status.getModificationTime()) / 1000

    def _put(self, text: str, check: Callable[[], None]) -> None:
        with self._telling("written"):
            if self._is_object:
                check()
                self._write(self._path, text, overwrite=True)
                return
            written = self._beside(f".{uuid4().hex}")
            self._write(written, text, overwrite=False)
            try:
                check()
                try:
                    rename_over(self._jvm, self._conf, written, self._path)
                except Exception as error:
                    if not is_thrown(error, "UnsupportedFileSystem"):
                        raise
                    # No AbstractFileSystem is known for the scheme, and FileSystem's own rename
                    # need not replace a file.
                    self._write(self._path, text, overwrite=True)
            finally:
                self._fs.delete(written, False)

    def _beside(self, suffix: str) -> Any:
        return self._path.suffix(suffix)

    def _write(self, path: Any, text: str, *, overwrite: bool) -> None:
        stream = self._fs.create(path, overwrite)
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    @contextmanager
    def _telling(self, what: str) -> Iterator[None]:
        from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

        try:
            yield
        except Py4JJavaError as error:
            raise failed(what, self._uri, first_line(error)) from error
