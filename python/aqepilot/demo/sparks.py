"""A Spark of the wanted minor, and jobs submitted to it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from aqepilot import catalog
from aqepilot.errors import AqePilotError, Problem
from aqepilot.submit import jars, java

LAST_LINES = 15
_QUIET = (
    "--driver-memory=2g",
    "--conf=spark.ui.enabled=false",
    "--conf=spark.ui.showConsoleProgress=false",
    "--conf=spark.log.level=WARN",
    "--conf=spark.driver.host=127.0.0.1",
)


class Spark(NamedTuple):
    """A Spark to submit to: its version, its folder and the Python for its jobs."""

    version: str
    home: Path
    python: Path


class Run(NamedTuple):
    """A finished job: what it printed and how long spark-submit took, in seconds."""

    output: str
    wall_s: float


def find(minor: str | None, folder: Path) -> Spark:
    """Returns a Spark of that minor.

    The installed one if it is of that minor, else this repository's environment of it, else one
    that is made in `folder` with pip.

    Args:
        minor: E.g. ``4.3``; null for the installed one, or the newest if none is.
        folder: Where to make an environment.

    Raises:
        AqePilotError: The minor is not supported, or pip failed.
    """
    here = jars.installed_spark()
    if here and here.home and (minor is None or jars.minor_of(here.version) == minor):
        return Spark(here.version, here.home, Path(sys.executable))
    newest = {row.minor: row.newest for row in catalog.spark_minors()}
    minor = minor or list(newest)[-1]
    if minor not in newest:
        message = f"there is no demo for Spark {minor}; there is for {', '.join(newest)}."
        raise AqePilotError(Problem("SPARK_VERSION_INVALID", message))
    version = newest[minor]
    places = [Path(".envs"), folder / "envs"]
    for place in places:
        spark = _in_environment(place / f"spark-{version}", version)
        if spark:
            return spark
    return _made(folder / "envs" / f"spark-{version}", version)


def _in_environment(environment: Path, version: str) -> Spark | None:
    python = environment.absolute() / "bin" / "python"
    homes = environment.absolute().glob("lib/python*/site-packages/pyspark/bin/spark-submit")
    home = next((path.parents[1] for path in homes), None)
    return Spark(version, home, python) if home else None


def _made(environment: Path, version: str) -> Spark:
    print(f"installing pyspark {version} into {environment} (about 450 MB, once)", flush=True)
    python = environment / "bin" / "python"
    for command in (
        [sys.executable, "-m", "venv", str(environment)],
        [str(python), "-m", "pip", "install", "--quiet", f"pyspark=={version}", "setuptools"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            message = (
                f"cannot install pyspark {version}: pip install 'pyspark=={version}' into this "
                f"Python, or set SPARK_HOME to a Spark that is here. pip said:\n{_end(done.stderr)}"
            )
            raise AqePilotError(Problem("DEMO_SET_UP_FAILED", message))
    spark = _in_environment(environment, version)
    if spark is None:
        message = f"pyspark {version} was installed, but {environment} has no spark-submit."
        raise AqePilotError(Problem("DEMO_SET_UP_FAILED", message))
    return spark


def submit(
    spark: Spark,
    words: Sequence[str],
    script: Path,
    args: Sequence[str],
    master: str = "local[2]",
) -> Run:
    """Runs a script under spark-submit.

    Raises:
        AqePilotError: It failed; has the last lines that it printed.
    """
    command = [
        *(str(spark.home / "bin" / "spark-submit"), "--master", master),
        *(*_QUIET, *words),
        *(str(script), *args),
    ]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    environment = kept | {
        "SPARK_HOME": str(spark.home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": str(spark.python),
        "PYSPARK_DRIVER_PYTHON": str(spark.python),
    }
    start = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - start
    if done.returncode:
        java.require()
        # spark-submit prints what the job's Python says on its own standard output.
        output = _end(f"{done.stderr}\n{done.stdout}")
        message = f"{script.name} failed under Spark {spark.version}:\n{output}"
        raise AqePilotError(Problem("DEMO_RUN_FAILED", message))
    return Run(done.stdout, wall_s)


def _end(text: str) -> str:
    telling = [line for line in text.strip().splitlines() if " INFO " not in line]
    return "\n".join(telling[-LAST_LINES:])
