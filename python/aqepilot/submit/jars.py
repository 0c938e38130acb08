"""Which of the wheel's jars fits a Spark."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from aqepilot import catalog
from aqepilot.__about__ import __version__
from aqepilot.errors import JarError, Problem
from aqepilot.submit.doctor.probe import JAR_NAME

# The package's own jars.
FOLDER = Path(__file__).parents[1] / "jars"


class Spark(NamedTuple):
    """A Spark installation.

    Attributes:
        version: Its version with the vendor's suffix, e.g. ``3.5.6-amzn-1``.
        scala: Its Scala version, e.g. ``2.12``; null when not known.
        home: Its folder; null when there is none here.
    """

    version: str
    scala: str | None
    home: Path | None = None


def minor_of(version: str) -> str:
    """Returns the minor of a Spark version, vendors' suffixes dropped.

    Args:
        version: E.g. ``3.5.6-amzn-1``, ``3.5.3.0-fabric`` or ``4.3``.

    Raises:
        JarError: It does not begin with two numbers.

    >>> minor_of("3.5.6-amzn-1")
    '3.5'
    """
    match = re.match(r"\s*v?(\d+)\.(\d+)(?![\d])", version)
    if match is None:
        message = f"{version!r} is no Spark version; give it as 3.5 or 3.5.9."
        raise JarError(Problem("SPARK_VERSION_INVALID", message))
    return f"{match[1]}.{match[2]}"


def installed_spark() -> Spark | None:
    """Returns the Spark that a session of this Python would run on; null when there is none.

    That is ``SPARK_HOME``, else the installed pyspark. Starts nothing.
    """
    home = os.environ.get("SPARK_HOME")
    if not home:
        spec = find_spec("pyspark")
        if spec is None or not spec.submodule_search_locations:
            return None
        home = spec.submodule_search_locations[0]
    return spark_in(Path(home))


def spark_in(home: Path) -> Spark | None:
    """Returns the Spark in a folder, by the names of its jars; null when there is none."""
    for jar in sorted((home / "jars").glob("spark-core_*.jar")):
        match = re.fullmatch(r"spark-core_(\d+\.\d+)-(.+)\.jar", jar.name)
        if match:
            return Spark(match[2], match[1], home)
    return None


def available(folder: Path = FOLDER) -> list[Path]:
    """Returns the jars that this package carries."""
    return sorted(path for path in folder.glob("*.jar") if JAR_NAME.fullmatch(path.name))


def find(spark: str | None = None, scala: str | None = None, folder: Path = FOLDER) -> Path:
    """Returns the jar for a Spark.

    Args:
        spark: Its version, vendor's suffix or patch release included or not; null for the
            installed one.
        scala: Its Scala version, ``2.12`` or ``2.13``; null for the installed Spark's, else for
            the one that Apache's pyspark of that minor has.
        folder: Where the jars are.

    Raises:
        JarError: None fits, or no Spark was named and none is installed; lists what there is.
    """
    here = installed_spark()
    if spark is None:
        if here is None:
            message = (
                "no Spark is installed here (no SPARK_HOME, no pyspark); say which one the jobs "
                "run on, e.g. --spark 3.5."
            )
            raise JarError(Problem("SPARK_NOT_FOUND", message))
        spark = here.version
    minor = minor_of(spark)
    if scala is None:
        of_minor = [row.scala for row in catalog.spark_minors() if row.minor == minor]
        same = here is not None and minor_of(here.version) == minor
        scala = here.scala if here and same else next(iter(of_minor), None)
    fitting = [
        path
        for path in available(folder)
        if (match := JAR_NAME.fullmatch(path.name)) and match.group(1, 2) == (minor, scala)
    ]
    ours = [path for path in fitting if path.name.endswith(f"-{__version__}.jar")]
    if fitting:
        return (ours or fitting)[-1]
    there = ", ".join(
        f"{match[1]} on Scala {match[2]}"
        for path in available(folder)
        if (match := JAR_NAME.fullmatch(path.name))
    )
    on = f" on Scala {scala}" if scala else ""
    message = f"there is no jar for Spark {minor}{on} (asked for {spark}); " + (
        f"there are: {there}. Run the jobs on one of these Sparks, or without aqepilot."
        if there
        else f"this installation has no jars at all ({folder}): build them with `make jars` or "
        "install the wheel."
    )
    raise JarError(Problem("JAR_NOT_FOUND", message))


def coordinates(jar: Path) -> str:
    """Returns what Maven calls a jar of this package.

    >>> coordinates(Path("jars/aqepilot-spark-3.5_2.12-0.1.0.jar"))
    'io.aqepilot:aqepilot-spark-3.5_2.12:0.1.0'
    """
    name, _, version = jar.name.removesuffix(".jar").rpartition("-")
    return f"io.aqepilot:{name}:{version}"


def row_of(jar: Path) -> tuple[str, str]:
    """Returns the Spark minor and the Scala version that a jar of this package is for.

    >>> row_of(Path("jars/aqepilot-spark-3.5_2.12-0.1.0.jar"))
    ('3.5', '2.12')
    """
    match = JAR_NAME.fullmatch(jar.name)
    assert match is not None
    return match[1], match[2]
