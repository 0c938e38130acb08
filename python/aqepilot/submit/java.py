"""The Java that Spark would start with here: whether there is one, and whether it is new enough."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from aqepilot.errors import AqePilotError, Problem
from aqepilot.submit import jars


def require() -> None:
    """Does nothing where Spark finds a Java that it runs on.

    Raises:
        AqePilotError: There is none, or it is too old; says what to do.
    """
    if wrong := problem():
        raise AqePilotError(wrong)


def problem() -> Problem | None:
    """Returns what is wrong with the Java that Spark would take; null where that is not known."""
    spark = jars.installed_spark()
    if spark is None or _may_be_named_elsewhere(spark):
        return None
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(Path(home, "bin", "java") if home else "java")
    if java is None:
        where = f"JAVA_HOME is {home}, without a bin/java" if home else "no java is on the PATH"
        message = (
            f"Spark needs Java, and there is none here: {where}. Install Java 17, or point "
            "JAVA_HOME at one that is installed."
        )
        return Problem("JAVA_NOT_FOUND", message)
    version = _version(java)
    least = 8 if jars.minor_of(spark.version).startswith("3.") else 17
    if version is None or version >= least:
        return None
    message = (
        f"Spark {spark.version} needs Java {least} or newer, and {java} is Java {version}. "
        "Install Java 17, and point JAVA_HOME at it."
    )
    return Problem("JAVA_TOO_OLD", message)


@cache
def _version(java: str) -> int | None:
    """Asks a Java for its version, once; null where it does not tell."""
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    return int(match[1]) if match else None


def _may_be_named_elsewhere(spark: jars.Spark) -> bool:
    """Whether Spark runs a script of the user's first, which may set JAVA_HOME."""
    folders = [os.environ.get("SPARK_CONF_DIR"), spark.home and spark.home / "conf"]
    return any(Path(folder, "spark-env.sh").is_file() for folder in folders if folder)
