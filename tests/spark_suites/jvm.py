"""ScalaTest's Runner in a JVM of its own, set up as Spark's build sets up its tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

PACKAGE = "org.apache.spark.sql."
RESOURCES = Path("sql", "core", "src", "test", "resources")
HERE = Path(__file__).parent
# Most suites are short: what the JVM compiles twice they never win back.
QUICK = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m", "-XX:+UseSerialGC"]
# What Spark's own launcher opens on Java 17 and later.
OPENED = (
    *("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio"),
    *("java.util", "java.util.concurrent", "java.util.concurrent.atomic", "jdk.internal.ref"),
    *("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar"),
)
# As in project/SparkBuild.scala of Spark, which has the same values for every minor.
TESTING = {
    "spark.testing": "1",
    "spark.port.maxRetries": "100",
    "spark.master.rest.enabled": "false",
    "spark.memory.debugFill": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.unsafe.exceptionOnMemoryLeak": "true",
    "spark.hadoop.hadoop.security.key.provider.path": "test:///",
    "sun.io.serialization.extendedDebugInfo": "false",
    "io.netty.tryReflectionSetAccessible": "true",
    "jdk.reflect.useDirectMethodHandle": "false",
}
# Each SparkContext writes its counters when it stops, aqepilot's among them.
SINK = "spark.metrics.conf.driver.sink.csv."


class Suites(NamedTuple):
    """Spark's suites of one minor, laid out as they look for themselves.

    Attributes:
        minor: Spark's minor.
        version: The release on Maven.
        scala: Its Scala binary version.
        class_path: Jars of that Spark, of its tests and of what they need.
        home: What stands for Spark's source tree: the tests' resources.
        has: Names of the test classes in it, without their package's beginning.
    """

    minor: str
    version: str
    scala: str
    class_path: list[str]
    home: Path
    has: frozenset[str]


def suites(folder: Path, minor: str) -> Suites:
    """Returns a minor's suites; lays out their resources the first time."""
    jars = (folder / "classpath.txt").read_text("utf-8").split()
    (tests,) = [jar for jar in jars if Path(jar).match("spark-sql_*-tests.jar")]
    resources = folder / "home" / RESOURCES
    with zipfile.ZipFile(tests) as jar:
        names = jar.namelist()
        if not resources.is_dir():
            unpacked = folder / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)
            jar.extractall(unpacked, [name for name in names if not name.endswith(".class")])
            resources.parent.mkdir(parents=True, exist_ok=True)
            unpacked.rename(resources)
    beginning = PACKAGE.replace(".", "/")
    classes = (
        name.removeprefix(beginning).removesuffix(".class").replace("/", ".")
        for name in names
        if name.startswith(beginning) and name.endswith(".class") and "$" not in name
    )
    _, scala, version = re.split(
        "[_-]", Path(tests).stem.removesuffix("-tests").removeprefix("spark-")
    )
    return Suites(minor, version, scala, jars, folder / "home", frozenset(classes))


def run(
    own: Suites,
    names: Iterable[str],
    only: Sequence[str],
    settings: Mapping[str, str],
    jar: Path | None,
    folder: Path,
    timeout_s: float,
) -> None:
    """Runs suites; leaves JUnit files in `folder`/xml, counters in counters/ and both logs.

    Args:
        own: Spark's suites.
        names: Those that run.
        only: Of each, the tests whose names hold one of these; none for all.
        settings: Spark settings, given as system properties.
        jar: Our jar; null for plain Spark.
        folder: Made anew; also the JVM's working directory.
        timeout_s: After this the JVM is ended.

    Raises:
        SystemExit: ScalaTest could not start the suites.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for made in ("xml", "counters", "tmp"):
        (folder / made).mkdir(parents=True)
    folder = folder.resolve()
    properties = TESTING | {
        "java.io.tmpdir": str(folder / "tmp"),
        "log4j2.configurationFile": str(HERE / "log4j2.properties"),
        "spark.test.home": str(own.home.resolve()),
        SINK + "class": "org.apache.spark.metrics.sink.CsvSink",
        SINK + "directory": str(folder / "counters"),
        SINK + "period": "1",
        SINK + "unit": "days",
        **settings,
    }
    # The directory goes first: suites read their resources as files, which those in a jar are not.
    class_path = [str((own.home / RESOURCES).resolve()), *own.class_path]
    words = [
        *("-ea", "-Xmx3g", "-Xss4m", *QUICK),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED),
        *(f"-D{key}={value}" for key, value in properties.items()),
        *("-cp", os.pathsep.join([*class_path, *([str(jar.resolve())] if jar else [])])),
        *("org.scalatest.tools.Runner", "-oDW", "-u", str(folder / "xml")),
    ]
    for name in names:
        words += ["-s", PACKAGE + name]
        for part in only:
            words += ["-z", part]
    arguments = folder / "java.args"
    arguments.write_text("\n".join(map(quoted, words)), "utf-8")
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    environment = {
        "SPARK_TESTING": "1",
        # Spark's tests of Python functions start `python3`: they are not run, on any machine.
        "PYSPARK_PYTHON": "none",
        "PYSPARK_DRIVER_PYTHON": "none",
        # For the executors of local-cluster; they need no jar of ours.
        "SPARK_DIST_CLASSPATH": os.pathsep.join(class_path),
        "SPARK_SCALA_VERSION": own.scala,
    }
    with (folder / "scalatest.txt").open("w", encoding="utf-8") as out:
        try:
            subprocess.run(
                [java, f"@{arguments}"],
                cwd=folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            print(f"ended after {timeout_s:.0f} s", file=out)


def quoted(word: str) -> str:
    """Returns a word as java's argument files want it, line breaks included.

    >>> print(quoted('-Da="b" \\n\\\\'))
    "-Da=\\"b\\" \\n\\\\"
    """
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
