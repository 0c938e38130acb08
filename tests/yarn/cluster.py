"""A YARN of one node on this machine, and what is submitted to it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

import aqepilot
import submitting

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
START_S = 120
MOST_S = 300
HERE = Path(__file__).parent
# Little memory for each container: a driver, an executor, and the driver of another attempt.
DEFAULTS = {
    "spark.driver.memory": "640m",
    "spark.executor.memory": "512m",
    "spark.yarn.am.memory": "512m",
    "spark.executor.instances": "1",
    "spark.executor.cores": "2",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.eventLog.rolling.enabled": "false",
    "spark.yarn.jars": f"local:{SPARK_JARS}/*",
    "spark.yarn.maxAppAttempts": "1",
}


class Ran(NamedTuple):
    """What came of a job.

    Attributes:
        code: Of spark-submit.
        output: What spark-submit and a driver in client mode printed.
        application: YARN's name for it; null where YARN was not asked.
        answers: What the job wrote, by its attempt.
        events: The event log of each attempt, oldest first.
        containers: What the containers printed, a driver in cluster mode among them.
    """

    code: int
    output: str
    application: str | None
    answers: dict[int, dict[str, Any]]
    events: list[list[dict[str, Any]]]
    containers: str

    def the(self) -> dict[str, Any]:
        """Returns what the only attempt found."""
        assert self.code == 0, self.output[-3000:] + self.containers[-3000:]
        (one,) = self.answers.values()
        return one


class Cluster:
    """A YARN that runs.

    Attributes:
        folder: Of all that is submitted.
        wrong_jar: Ours for another Spark.
    """

    def __init__(self, folder: Path, wrong_jar: Path) -> None:
        self.folder = folder
        self.wrong_jar = wrong_jar
        (folder / "events").mkdir()
        values = DEFAULTS | {
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.yarn.stagingDir": (folder / "staging").as_uri(),
        }
        (folder / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{key} {value}\n" for key, value in values.items()), "utf-8"
        )

    def environment(self, **more: str) -> dict[str, str]:
        """Returns what a machine that submits to it has, and nothing of the sources' tree."""
        conf = str(self.folder / "conf")
        own = submitting.environment(HADOOP_CONF_DIR=conf, SPARK_CONF_DIR=conf)
        return {key: value for key, value in own.items() if key != "PYTHONPATH"} | more

    def aqepilot(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs our command line where jobs are submitted."""
        path = str(Path(aqepilot.__file__).parents[1])
        return subprocess.run(
            [sys.executable, "-m", "aqepilot", *words],
            cwd=self.folder,
            env=self.environment(PYTHONPATH=path, NO_COLOR="1", TERM="dumb"),
            capture_output=True,
            text=True,
            timeout=MOST_S,
            check=False,
        )

    def submit(
        self,
        name: str,
        words: Sequence[str] = (),
        *,
        mode: str = "cluster",
        job: Path = HERE / "job.py",
        words_of_job: Sequence[str] | None = None,
        asked: Mapping[str, Any] | None = None,
        meanwhile: Callable[[Path], None] | None = None,
    ) -> Ran:
        """Submits a job and waits for its end.

        Args:
            name: Of the folder that it writes to.
            words: For spark-submit.
            mode: Where the driver runs.
            job: Its script.
            words_of_job: For the script, instead of the folder and what it is asked.
            asked: What the script is to do.
            meanwhile: Called with the folder while the job runs.
        """
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode]
        command += ["--name", name, *words, str(job)]
        command += words_of_job or [str(folder), json.dumps(asked or {})]
        with (
            (folder / "said").open("w") as out,
            subprocess.Popen(
                command,
                cwd=folder,
                env=self.environment(PYSPARK_DRIVER_PYTHON=sys.executable),
                stdout=out,
                stderr=subprocess.STDOUT,
            ) as running,
        ):
            try:
                if meanwhile is not None:
                    meanwhile(folder)
                code = running.wait(MOST_S)
            finally:
                running.kill()
        text = (folder / "said").read_text("utf-8", "replace")
        named = re.search(r"application_\d+_\d+", text)
        application = named[0] if named else None
        return Ran(
            code,
            text,
            application,
            {int(p.stem): json.loads(p.read_text("utf-8")) for p in sorted(folder.glob("*.json"))},
            [_events(p) for p in sorted((self.folder / "events").glob(f"{application}*"))],
            "\n".join(
                f"{p.parent.name}/{p.name}\n{p.read_text('utf-8', 'replace')}"
                for p in sorted(self.folder.glob(f"target/**/{application}/container_*/std*"))
            ),
        )


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@contextmanager
def running(folder: Path, jars: Sequence[str], wrong_jar: Path) -> Iterator[Cluster]:
    """Starts it in a new folder and ends it.

    Raises:
        RuntimeError: It did not start; with the end of its log.
    """
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "conf").mkdir(parents=True)
    home = os.environ.get("JAVA_HOME") or str(Path(shutil.which("java") or "").resolve().parents[1])
    os.environ["JAVA_HOME"] = home
    command = [
        *(f"{home}/bin/java", "-Xmx512m", "--add-opens=java.base/java.lang=ALL-UNNAMED"),
        *("-cp", os.pathsep.join([*jars, f"{SPARK_JARS}/*"]), str(HERE / "Cluster.java"), "conf"),
    ]
    with (
        (folder / "cluster.log").open("w") as log,
        subprocess.Popen(
            command,
            cwd=folder,
            env=submitting.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            assert process.stdout
            assert process.stdin
            if "READY" not in process.stdout.readline():
                end = (folder / "cluster.log").read_text("utf-8", "replace")[-3000:]
                raise RuntimeError(f"the cluster did not start:\n{end}")
            yield Cluster(folder, wrong_jar)
            process.stdin.close()
            process.wait(60)
        finally:
            process.kill()
