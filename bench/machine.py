"""Where a benchmark ran."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys

import pyspark

from aqepilot import __version__


def describe() -> dict[str, str | int | float]:
    """Returns what a reader needs to judge the figures."""
    java = os.path.join(os.environ["JAVA_HOME"], "bin", "java") if _java_home() else "java"
    version = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count() or 0,
        "memory_gb": round(memory / 2**30, 1),
        "load_1min": round(os.getloadavg()[0], 1),
        "os": platform.system(),
        "java": next(iter(version.stderr.splitlines()), "?"),
        "spark": pyspark.__version__,
        "python": platform.python_version(),
        "aqepilot": __version__,
        "command": " ".join(["python -m bench", *sys.argv[1:]]),
    }


def _java_home() -> bool:
    return bool(os.environ.get("JAVA_HOME"))


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            match = re.search(r"model name\s*:\s*(.+)", lines.read())
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()
