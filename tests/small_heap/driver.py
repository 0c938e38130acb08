"""A small driver that runs what it is given, started again whenever it failed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import processes
import submitting
from small_heap.drawing import SHAPES, Drawn

JOB = Path(__file__).with_name("job.py")
# So many runs a process: what Spark keeps of each query adds up in so small a heap.
RUNS = 40
UNGUARDED = {
    "spark.aqepilot.guard.max_broadcast_bytes": "8g",
    "spark.aqepilot.guard.max_hash_build_bytes": "64g",
    "spark.aqepilot.guard.growth": "1.0",
}


class Driver:
    """A process of `job.py`, spoken to line by line."""

    def __init__(self, data: Path, memory: str, unguarded: bool = False) -> None:
        self._data = data
        self._memory = memory
        self._guards = UNGUARDED if unguarded else {}
        self._process: subprocess.Popen[str] | None = None
        self._left = 0

    def __enter__(self) -> Driver:
        """Starts nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ends the process."""
        self._end()

    def run(self, drawn: Drawn, policies: dict[str, str]) -> dict[str, Any]:
        """Returns a query's `rows` under some policies, or the `error`, and the `decisions`.

        After an error the next run has a new process.
        """
        if self._process is None or self._left == 0:
            self._start()
        assert self._process
        assert self._process.stdin
        assert self._process.stdout
        self._left -= 1
        asked = {"sql": drawn.sql, "settings": drawn.settings, "policies": policies}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        outcome: dict[str, Any]
        try:
            outcome = json.loads(answer)
        except ValueError:
            code = self._process.wait()
            outcome = {"error": f"the driver ended with {code}: {self._last_words()}"}
        if "error" in outcome:
            self._end()
        return outcome

    def _start(self) -> None:
        self._end()
        conf = submitting.SETTINGS | {
            "spark.sql.extensions": submitting.EXTENSION,
            "spark.jars": str(submitting.spark_jar()),
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
            **self._guards,
        }
        # A script under spark-submit has no standard input.
        words = ["--master", "local[2]", "--driver-memory", self._memory, *processes.words(conf)]
        arguments = shlex.join([*words, "pyspark-shell"])
        with self._log().open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(JOB), str(self._data), *sorted(SHAPES)],
                cwd=self._data.parent,
                env=submitting.environment(PYSPARK_SUBMIT_ARGS=arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        stdout: IO[str] | None = self._process.stdout
        assert stdout
        if "ready" not in stdout.readline():
            raise RuntimeError(f"no driver: {self._last_words()}")
        self._left = RUNS

    def _log(self) -> Path:
        return self._data.parent / "driver.log"

    def _last_words(self) -> str:
        lines = [line for line in self._log().read_text("utf-8").splitlines() if "rror" in line]
        return (lines or ["?"])[-1][:300]

    def _end(self) -> None:
        if self._process:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
