"""Jobs under the running environment's own spark-submit."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

import kept_jvm
import processes
import tiers
from aqepilot.submit import jars

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
# Spark's classes, loaded and verified before; `make` has quick_starts.py write it. Where a class
# path begins with another folder, the JVM does without it.
ARCHIVE = Path(sys.prefix, "spark-classes.jsa")
COMPILED_ONCE = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
SHORT_JVM = COMPILED_ONCE + (
    f' "-XX:SharedArchiveFile={ARCHIVE}" -Xlog:cds*=off'
    if ARCHIVE.is_file() and ARCHIVE.stat().st_size
    else ""
)
OF_A_JOB = {"PYSPARK_DRIVER_PYTHON": sys.executable, "NO_COLOR": "1", "TERM": "dumb"}
# Else much of the time goes into compiling what runs a few times, into keeping, counting and
# writing out the plans of hundreds of queries for Spark's UI, and into zeroing and collecting
# buffers for many more rows than these: a page alone, one or more for each sort, hash table and
# aggregation, is 16 MB by default.
QUICK = {
    "spark.driver.extraJavaOptions": SHORT_JVM,
    "spark.executor.extraJavaOptions": SHORT_JVM,
    "spark.buffer.pageSize": "256k",
    "spark.shuffle.file.buffer": "4k",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "100",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
}


def spark_jar() -> Path:
    """Returns the jar for the running pyspark; says how to build it when there is none."""
    return jars.find(pyspark.__version__)


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
    quick: bool = True,
    env: Mapping[str, str] | None = None,
    timeout_s: float = 400,
    own_jvm: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Submits a script's text and returns what it printed and its exit code.

    Args:
        folder: As for `prepared`; so are all but these.
        timeout_s: When to give up.
        own_jvm: Whether a JVM is started for it; else it runs in the one of this process that is
            kept for jobs, and of ``env`` may have ``PYTHONPATH`` only.
    """
    command, environment = prepared(
        folder,
        script,
        submit_words,
        conf=conf,
        job_words=job_words,
        extension=extension,
        master=master,
        memory=memory,
        quick=quick,
        env=env,
    )
    if not own_jvm:
        (path,) = (env or {"PYTHONPATH": ""}).values()
        return in_kept_jvm(command, folder, timeout_s, path)
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


def in_kept_jvm(
    command: Sequence[str], folder: Path, timeout_s: float = 400, python_path: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs a command of spark-submit in the JVM of this process that is kept for jobs.

    ``python_path`` is where else the job's Python finds modules.
    """
    of_all = environment(short=True, **OF_A_JOB)
    return kept_jvm.submit(of_all, command[1:], folder, timeout_s, python_path)


def lines(
    folder: Path, script: str, timeout_s: float, *, own_jvm: bool = True, **options: Any
) -> Iterator[str]:
    """Submits a script's text and yields each line that it prints as it comes.

    Args:
        folder: As for `prepared`.
        script: The job.
        timeout_s: When to kill it.
        own_jvm: As for `submit`; where it has none, the lines come when it has ended.
        options: As for `prepared`.

    Raises:
        RuntimeError: The job failed or took too long.
    """
    if not own_jvm:
        done = submit(folder, script, timeout_s=timeout_s, own_jvm=False, **options)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}:\n{done.stderr[-4000:]}")
        yield from done.stdout.splitlines()
        return
    command, environment = prepared(folder, script, **options)
    with (
        Path(folder, "stderr").open("w+", encoding="utf-8") as stderr,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=stderr, text=True
        ) as job,
    ):
        timer = threading.Timer(timeout_s, job.kill)
        timer.start()
        try:
            yield from job.stdout or ()
            job.wait()
        finally:
            timer.cancel()
            job.kill()
        if job.returncode:
            stderr.seek(0)
            raise RuntimeError(f"exit code {job.returncode}:\n{stderr.read()[-4000:]}")


def prepared(
    folder: Path,
    script: str,
    submit_words: Sequence[str] = (),
    *,
    conf: Mapping[str, str] | None = None,
    job_words: Sequence[str] = (),
    extension: bool = True,
    master: str = "local[2]",
    memory: str = "1g",
    quick: bool = True,
    env: Mapping[str, str] | None = None,
) -> tuple[list[str], dict[str, str]]:
    """Writes a script's text and returns the command and environment that submit it.

    Args:
        folder: Where the script and what Spark leaves behind go.
        script: The job; it sees no aqepilot but through the words.
        submit_words: For spark-submit, as a user types them.
        conf: Settings, after the words and the quiet ones of this module.
        job_words: For the job, in ``sys.argv[1:]``.
        extension: Adds our jar and extension class.
        master: Where it runs.
        memory: The driver's heap.
        quick: For many little queries, which ``make test`` interprets; off where time is measured.
        env: Added to the environment.
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
        *processes.words(SETTINGS | (QUICK | tiers.INTERPRETED if quick else {})),
        *ours,
        *submit_words,
        *processes.words(conf or {}),
        *(str(job), *job_words),
    ]
    return command, environment(**(OF_A_JOB | dict(env or {})))


def environment(short: bool = False, **more: str) -> dict[str, str]:
    """Returns the environment for a process that starts the running pyspark's Spark.

    Args:
        short: Makes a JVM that works for some seconds only start faster; a job's settings can, too.
        more: Added to it.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    return {
        **kept,
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        # Of the JVM that puts the command line of the other one together.
        "SPARK_LAUNCHER_OPTS": COMPILED_ONCE,
        **({"SPARK_SUBMIT_OPTS": SHORT_JVM} if short else {}),
        **more,
    }
