"""Says in one line what this machine lacks to build aqepilot. Runs on any Python 3."""

import importlib.util
import os
import re
import subprocess
import sys

JAVA_WANTED = (17, 21)


def java_home_tool(name):
    home = os.environ.get("JAVA_HOME")
    return os.path.join(home, "bin", name) if home else name


def java_problem():
    """The compiler is asked, not `java`: a JRE runs Spark but cannot build the jars."""
    try:
        said = subprocess.run(
            [java_home_tool("javac"), "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
        ).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        said = ""
    found = re.search(r"javac (?:1\.)?(\d+)", said)
    if found and int(found.group(1)) in JAVA_WANTED:
        return None
    seen = "found " + found.group(0) if found else "found no javac"
    return (
        "Java 17 or 21 (a JDK) is needed, {}: install one (on Debian or Ubuntu:"
        " apt-get install openjdk-17-jdk-headless) or point JAVA_HOME at it".format(seen)
    )


def python_problem():
    if sys.version_info < (3, 10):
        return (
            "Python 3.10 or newer is needed, found {}.{} ({}): install one, or name it with"
            " make PYTHON=python3.11".format(sys.version_info[0], sys.version_info[1], sys.executable)
        )
    if importlib.util.find_spec("ensurepip") is None:
        return (
            "Python's venv module is needed and {} lacks it: on Debian or Ubuntu:"
            " apt-get install python3-venv".format(sys.executable)
        )
    return None


if __name__ == "__main__":
    sys.exit(python_problem() or java_problem())
