"""Compiles the Scala part, and runs it on imitated Sparks in one JVM after the other."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyspark

import submitting
from vendor_forks import job

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
# Each imitated Spark leaves some 6 MB of classes behind, which Spark keeps until the JVM ends.
FORKS_OF_ONE_JVM = 120
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "sun.nio.ch", "sun.util.calendar"),
)
LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.nowhere.ref = nowhere
appender.nowhere.type = Null
appender.nowhere.name = nowhere
"""


class Fork(NamedTuple):
    """An imitated Spark: what it lacks, the steps of the job that come to it, whether none does."""

    name: str
    steps: str
    is_idle: bool


class Runner:
    """The compiled Scala part, in a folder of its own."""

    def __init__(self, folder: Path, jar: Path | None = None) -> None:
        self.folder = folder
        self.jar = jar or submitting.spark_jar()
        self.started = 0
        sources = [str(p) for p in sorted(Path(__file__).parent.glob("*.scala"))]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "classes").mkdir()
        compiler = ["-Xss4m", *submitting.COMPILED_ONCE.split(), "-cp", f"{SPARK_JARS}/*"]
        words = ["scala.tools.nsc.Main", "-usejavacp", "-nowarn", "-d", "classes"]
        subprocess.run([_java(), *compiler, *words, *sources], cwd=folder, check=True)
        (folder / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
        (folder / "job.json").write_text(json.dumps(job.as_json()), encoding="utf-8")

    def plan(self) -> tuple[list[Fork], list[dict[str, Any]]]:
        """Returns all that Spark may lack, and how the job went on a Spark that lacks nothing.

        And on one that lacks all that the job does not come to.
        """
        found = list(self._run("plan"))
        forks = [Fork(f["fork"], f["steps"], f["is_idle"]) for f in found if "steps" in f]
        return forks, [f for f in found if "steps" not in f]

    def run(self, forks: Sequence[Fork]) -> Iterator[dict[str, Any]]:
        """Yields how the job went on each, in their order."""
        for at in range(0, len(forks), FORKS_OF_ONE_JVM):
            lines = self.folder / "forks.txt"
            some = forks[at : at + FORKS_OF_ONE_JVM]
            lines.write_text("\n".join(f"{f.name}\t{f.steps}" for f in some), encoding="utf-8")
            yield from self._run(str(lines))

    def _run(self, what: str) -> Iterator[dict[str, Any]]:
        self.started += 1
        folder = self.folder / f"jvm-{self.started}"
        folder.mkdir()
        thrown = folder / "exceptions.log"
        command = [
            *(_java(), "-Xmx900m", "-Xss4m", *shlex.split(submitting.SHORT_JVM)),
            f"-Xlog:exceptions=info:file={thrown}:none:filesize=0",
            *(f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in OPENED),
            # Without generated code a query of a few rows takes half of the time.
            "-Dspark.testing=true",
            f"-Dlog4j2.configurationFile={self.folder / 'log4j2.properties'}",
            f"-Djava.io.tmpdir={folder}",
            # As spark-submit has it, so that the JVM takes the archive of Spark's classes.
            *("-cp", f"{SPARK_JARS.with_name('conf')}/:{SPARK_JARS}/*:{self.folder / 'classes'}"),
            "org.apache.spark.sql.vendorforks.VendorForks",
            *(str(self.jar), str(self.folder / "job.json"), str(folder / "tables")),
            *(str(thrown), what),
        ]
        with (
            (folder / "stderr").open("w") as errors,
            subprocess.Popen(
                command,
                cwd=folder,
                env=submitting.environment(),
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            ) as jvm,
        ):
            for line in jvm.stdout or ():
                if line.startswith("FOUND "):
                    yield json.loads(line[6:])
        if jvm.returncode:
            raise RuntimeError((folder / "stderr").read_text("utf-8")[-4000:])
        shutil.rmtree(folder)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
