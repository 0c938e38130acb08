"""The command `aqepilot` in a process of its own."""

import subprocess
import sys
from pathlib import Path

import aqepilot
import submitting


def aqepilot_command(*words, **environment):
    path = str(Path(aqepilot.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-m", "aqepilot", *map(str, words)],
        env=submitting.environment(short=True, PYTHONPATH=path, **environment),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
