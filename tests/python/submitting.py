"""Jobs under the running environment's own spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyspark

from aqepilot import jars

EXTENSION = "io.aqepilot.AqePilotExtension"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.default.parallelism": "2",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.warehouse.dir": "spark-warehouse",
}


def spark_jar() -> Path:
    """Returns the jar for the running pyspark; says how to build it when there is none."""
    return jars.find(pyspark.__version__)


def words(conf: Mapping[str, str]) -> list[str]:
    """Returns the settings as ``--conf`` words.

    >>> words({"spark.aqepilot.mode": "off"})
    ['--conf', 'spark.aqepilot.mode=off']
    """
    return [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]


def submit(
    folder: Path,
    script: str,
    submit_words: Sequence[str] = (),
    *,
    conf: Mapping[str, str] | None = None,
    job_words: Sequence[str] = (),
    extension: bool = True,
    master: str = "local[2]",
    memory: str = "1g",
    env: Mapping[str, str] | None = None,
    timeout_s: float = 180,
) -> subprocess.CompletedProcess[str]:
    """Submits a script's text and returns what it printed and its exit code.

    Args:
        folder: Where the script and what Spark leaves behind go.
        script: The job; it sees no aqepilot but through the words.
        submit_words: For spark-submit, as a user types them.
        conf: Settings, after the words and the quiet ones of this module.
        job_words: For the job, in ``sys.argv[1:]``.
        extension: Adds our jar and extension class.
        master: Where it runs.
        memory: The driver's heap.
        env: Added to the environment.
        timeout_s: When to give up.
    """
    folder.mkdir(parents=True, exist_ok=True)
    job = folder / "job.py"
    job.write_text(script, encoding="utf-8")
    home = Path(pyspark.__file__).parent
    ours = (
        ["--jars", str(spark_jar()), "--conf", f"spark.sql.extensions={EXTENSION}"]
        if extension
        else []
    )
    command = [
        *(str(home / "bin" / "spark-submit"), "--master", master, "--driver-memory", memory),
        *words(SETTINGS),
        *ours,
        *submit_words,
        *words(conf or {}),
        *(str(job), *job_words),
    ]
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "NO_COLOR": "1",
        "TERM": "dumb",
        **(env or {}),
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
