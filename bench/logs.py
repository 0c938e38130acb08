"""Reading event logs and replaying decisions, in one process under spark-submit."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import event_logs
import policies
import submitting
from bench import turns

JOB = Path(__file__).parent / "jobs" / "log.py"


def measure(megabytes: int, decisions: int) -> dict[str, Any]:
    """Returns megabytes a second, and decisions a second and core.

    Args:
        megabytes: Of the event log.
        decisions: That are replayed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "events").mkdir()
        settings = {
            **event_logs.SETTINGS,
            **policies.conf("'SHUFFLE_HASH'"),
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }
        ran(folder / "job", event_logs.JOB, settings, [str(folder / "a")])
        (log,) = (f for f in (folder / "events").iterdir() if not f.name.startswith("."))
        words = [str(log), str(megabytes), str(decisions)]
        printed = ran(folder / "bench", JOB.read_text("utf-8"), {}, words)
    figures: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return figures


def ran(folder: Path, script: str, conf: dict[str, str], words: list[str]) -> str:
    """Runs a job under spark-submit and returns what it printed."""
    run = submitting.submit(
        folder,
        script,
        conf=conf,
        job_words=words,
        memory="2g",
        quick=False,
        env=turns.environment(),
        timeout_s=3600,
    )
    if run.returncode:
        raise RuntimeError(run.stderr[-4000:])
    return run.stdout
