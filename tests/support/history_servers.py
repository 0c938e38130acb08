"""Spark's history server, with our jar on its class path or without."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

import submitting
from processes import free_port

_LOOK_S = 0.2


class History(NamedTuple):
    """A history server that runs.

    Attributes:
        url: Its address.
        listed_s: Seconds from its start until it listed all logs.
    """

    url: str
    listed_s: float

    def get(self, application: str, path: str) -> str:
        """Returns a page of an application; its status where there is none."""
        try:
            with urllib.request.urlopen(f"{self.url}/history/{application}{path}") as page:
                return str(page.read().decode())
        except urllib.error.HTTPError as error:
            return str(error.code)


@contextmanager
def running(logs: Path, log: Path, *, jar: Path | None, quick: bool = True) -> Iterator[History]:
    """Starts a history server on event logs, and ends it.

    Args:
        logs: The folder of the logs, each a file.
        log: Where the server's own log goes.
        jar: What is on its class path; null for nothing.
        quick: Off where time is measured.

    Raises:
        RuntimeError: It ended, or does not list the logs in time; with the end of its log.
    """
    port = free_port()
    options = {
        "spark.history.fs.logDirectory": logs.as_uri(),
        "spark.history.ui.port": str(port),
        "spark.ui.port": str(port),
    }
    own = {"SPARK_DAEMON_CLASSPATH": str(jar)} if jar else {}
    if quick:
        own |= {"SPARK_DAEMON_JAVA_OPTS": submitting.COMPILED_ONCE, "SPARK_DAEMON_MEMORY": "512m"}
    environment = submitting.environment(
        SPARK_HISTORY_OPTS=" ".join(f"-D{key}={value}" for key, value in options.items()), **own
    )
    program = Path(pyspark.__file__).parent / "bin/spark-class"
    words = [str(program), "org.apache.spark.deploy.history.HistoryServer"]
    there = len(list(logs.iterdir()))
    began = time.monotonic()
    with (
        log.open("w") as out,
        subprocess.Popen(words, stdout=out, stderr=out, env=environment) as server,
    ):
        try:
            url = f"http://127.0.0.1:{port}"
            while len(_listed(url)) < there:
                if server.poll() is not None or time.monotonic() > began + 300:
                    raise RuntimeError(log.read_text("utf-8", errors="replace")[-3000:])
                time.sleep(_LOOK_S)
            yield History(url, time.monotonic() - began)
        finally:
            server.terminate()


def _listed(url: str) -> list[Any]:
    """The applications that it lists; none while it starts."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/applications") as answer:
            return list(json.load(answer))
    except (OSError, ValueError):
        return []
