"""Says in one line what this machine lacks to build aqepilot. Runs on any Python 3."""

import os
import re
import shutil
import subprocess
import sys

JAVA_WANTED = (17, 21)
# The environments, while the last of them is built, and what the tests write.
GB_OF_ALL = 8
# One environment while it is built, and room for its tests.
GB_OF_ONE = 2


def python_problem():
    if sys.version_info[:2] < (3, 10):
        return (
            "Python 3.10 or newer is needed, found %d.%d (%s): install one, or name it with"
            " make PYTHON=python3.11" % (sys.version_info[0], sys.version_info[1], sys.executable)
        )
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        return (
            "Python's venv module is needed, %s lacks it: install it (on Debian or Ubuntu:"
            " apt-get install python3-venv)" % sys.executable
        )
    return None


def java_problem():
    """The compiler is asked, not `java`: a JRE runs Spark but cannot build the jars."""
    home = os.environ.get("JAVA_HOME")
    javac = os.path.join(home, "bin", "javac") if home else "javac"
    try:
        output = subprocess.check_output([javac, "-version"], stderr=subprocess.STDOUT).decode()
    except (OSError, subprocess.CalledProcessError):
        output = ""
    match = re.search(r"javac (?:1\.)?(\d+)", output)
    if match and int(match.group(1)) in JAVA_WANTED:
        return None
    return (
        "Java 17 or 21 (a JDK) is needed, found %s: install one (on Debian or Ubuntu:"
        " apt-get install openjdk-17-jdk-headless) or point JAVA_HOME at it"
        % (match.group(0) if match else "no %s" % javac)
    )


def disk_problem():
    free = shutil.disk_usage(".").free / 1e9
    if free >= GB_OF_ONE:
        return None
    return (
        "%d GB of free disk are needed (all of `make test` takes %d), found %.1f in %s: free some,"
        " or build on another disk" % (GB_OF_ONE, GB_OF_ALL, free, os.getcwd())
    )


if __name__ == "__main__":
    sys.exit(python_problem() or java_problem() or disk_problem())
