"""A JVM that is kept, in which jobs are submitted one after the other.

To start a JVM, and to load and compile in it what any job needs of Spark, takes five to six seconds
of a core; a further job in it takes less than one, without its Python. spark-submit's own class
runs it there, each with a class loader for its jars, so our classes are loaded anew, and what it
leaves is taken away: its context, its system properties, its log level.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway

import scala_objects

MEMORY = "2g"


class KeptJvm:
    """Starts the JVM.

    Args:
        environment: What it and its jobs have as their environment.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kept-jvm-")
        self._out, self._err = (Path(self._folder.name, name) for name in ("stdout", "stderr"))
        arguments = {"PYSPARK_SUBMIT_ARGS": f"--driver-memory {MEMORY} pyspark-shell"}
        with (
            mock.patch.dict(os.environ, {**environment, **arguments}, clear=True),
            self._out.open("wb") as out,
            self._err.open("wb") as err,
        ):
            options = {"stdout": out, "stderr": err, "cwd": self._folder.name}
            self._gateway = launch_gateway(popen_kwargs=options)
        self._process: subprocess.Popen[bytes] = self._gateway.proc
        # What py4j does in one thread it does in one of the JVM's.
        self._thread = ThreadPoolExecutor(1)
        jvm = self._gateway.jvm
        self._jvm: Any = jvm
        self._properties = jvm.java.lang.System.getProperties().clone()
        atexit.register(self.end)
        self._clean_up()

    def submit(
        self, arguments: Sequence[str], folder: Path, timeout_s: float, python_path: str
    ) -> subprocess.CompletedProcess[str]:
        """Submits a job and returns what it printed and its exit code.

        Args:
            arguments: What spark-submit takes.
            folder: Where the job runs.
            timeout_s: When to end the JVM.
            python_path: Where else the job's Python finds modules.

        Raises:
            subprocess.TimeoutExpired: It ran for longer; this JVM takes no more jobs.
        """
        python = folder / "python"
        path = ":".join(["$PYTHONPATH", *filter(None, [python_path])])
        python.write_text(
            f"""#!/bin/sh
cd '{folder}'
PYTHONPATH="{path}" exec '{sys.executable}' "$@"
"""
        )
        python.chmod(0o755)
        job = next(
            place
            for place, word in enumerate(arguments)
            if word.endswith(".py") and arguments[place - 1] != "--py-files"
        )
        runs = ["--conf", f"spark.pyspark.driver.python={python}"]
        command = [*arguments[:job], *runs, *arguments[job:]]
        starts = [file.stat().st_size for file in (self._out, self._err)]
        try:
            code = self._thread.submit(self._run, command, folder).result(timeout_s)
        except NotInTime:
            self.end()
            raise subprocess.TimeoutExpired(command, timeout_s) from None
        out, err = (
            file.read_bytes()[start:].decode("utf-8", errors="replace")
            for file, start in zip((self._out, self._err), starts, strict=True)
        )
        return subprocess.CompletedProcess(command, code, out, err)

    @property
    def is_there(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        # Else py4j tells it of each object that is thrown away here, and logs that it is gone.
        with suppress(Exception):
            self._gateway.shutdown()
        self._process.kill()
        self._process.wait()
        self._thread.shutdown(wait=False)
        self._folder.cleanup()

    def _run(self, command: Sequence[str], folder: Path) -> int:
        array = self._gateway.new_array(self._jvm.java.lang.String, len(command))
        for place, word in enumerate(command):
            array[place] = word
        thread = self._jvm.java.lang.Thread.currentThread()
        loader = thread.getContextClassLoader()
        # Where Hadoop finds relative paths.
        self._jvm.java.lang.System.setProperty("user.dir", str(folder))
        try:
            self._jvm.org.apache.spark.deploy.SparkSubmit().doSubmit(array)
        except Py4JJavaError as error:
            thrown = error.java_exception
            if thrown.getClass().getSimpleName() == "SparkUserAppException":
                return int(thrown.exitCode())
            thrown.printStackTrace()
            return 1
        finally:
            self._clean_up()
            thread.setContextClassLoader(loader)
        return 0

    def _clean_up(self) -> None:
        jvm = self._jvm
        for thread in jvm.java.lang.Thread.getAllStackTraces().keySet():
            # It passes on what the job printed.
            if thread.getName() == "redirect output":
                thread.join()
        context = scala_objects.of_jvm(jvm, "org.apache.spark.SparkContext")
        if context.getActive().isDefined():
            context.getActive().get().stop()
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()
        jvm.java.lang.System.setProperties(self._properties.clone())
        # Then the levels that the job, and before all jobs Spark's shell, have set are read anew.
        scala_objects.of_jvm(jvm, "org.apache.spark.internal.Logging").uninitialize()
        jvm.org.apache.logging.log4j.LogManager.getContext(False).reconfigure()


_kept: list[KeptJvm] = []


def submit(
    environment: Mapping[str, str],
    arguments: Sequence[str],
    folder: Path,
    timeout_s: float,
    python_path: str,
) -> subprocess.CompletedProcess[str]:
    """Submits a job in this process' kept JVM, which is started where there is none.

    Args:
        environment: Of a JVM that is started for this, and of all jobs in it.
        arguments: As for `KeptJvm.submit`; so are the others.
    """
    if not _kept or not _kept[0].is_there:
        _kept[:] = [KeptJvm(environment)]
    return _kept[0].submit(arguments, folder, timeout_s, python_path)
