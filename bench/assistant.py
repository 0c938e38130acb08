"""How long an assistant waits for answers about a log that was collected."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import event_logs
import policies
from bench import logs, turns
from bench.figures import Table

# A server reads ahead what is asked for first; an assistant starts it before it has a question.
READ_AHEAD_S = 60.0
# In the order of a session: each once for the first time, and once again.
CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("overview", {}),
    ("findings", {}),
    ("queries", {}),
    ("explain", {"query": 3}),
    ("decisions", {"query": 3}),
    ("costs", {}),
    ("report", {"part": "points"}),
    ("report", {"part": "skewed_shuffles"}),
    ("report", {"part": "stages"}),
    ("experiments", {}),
    ("documentation", {"topic": "skew_join"}),
    ("check", {"policy": 'name = "a"\nmode = "shadow"\nskew_join = "null"\n'}),
    ("replay", {"policy": 'name = "a"\nmode = "shadow"\nskew_join = "null"\n'}),
)


def measure(megabytes: int) -> dict[str, Any]:
    """Returns seconds: to collect logs, until the first answer, and of each tool, asked at once and
    by one who comes later.

    Args:
        megabytes: Of the logs, as text: one real one, as of many applications.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "events").mkdir()
        (folder / "copies").mkdir()
        settings = {
            **event_logs.SETTINGS,
            **policies.conf("'SHUFFLE_HASH'"),
            "spark.eventLog.dir": (folder / "events").as_uri(),
        }
        logs.ran(folder / "job", event_logs.JOB, settings, [str(folder / "a")])
        (log,) = (f for f in (folder / "events").iterdir() if not f.name.startswith("."))
        text = log.read_text("utf-8")
        copies = max(1, megabytes * 1_000_000 // len(text))
        for number in range(copies):
            path = folder / "copies" / f"{log.name}{number}"
            path.write_text(text.replace(log.name, path.name), "utf-8")
        env = {**os.environ, **turns.environment()}
        command = [sys.executable, "-m", "aqepilot"]
        tables = str(folder / "tables")
        words = ["collect", "--log", str(folder / "copies"), "--to", tables]
        began = time.monotonic()
        subprocess.run([*command, *words], check=True, env=env, stdout=subprocess.DEVNULL)
        figures = {
            "megabytes": round(copies * len(text) / 1e6),
            "applications": copies,
            "collect_s": time.monotonic() - began,
        }
        words = [*command[1:], "mcp", "--log", tables]
        at_once = asyncio.run(_asked(command[0], words, env, log.name + "0"))
        later = asyncio.run(_asked(command[0], words, env, log.name + "0", READ_AHEAD_S))
        return figures | at_once | {"after_reading_ahead_s": later["first_and_second_s"]}


def table(figures: dict[str, Any]) -> Table:
    """Returns the figures as a title, a head and rows."""
    title = (
        f"Answers about {figures['megabytes']:,} MB of logs of {figures['applications']} "
        f"applications, collected in {figures['collect_s']:.0f} s"
    )
    start = f"{figures['first_answer_s']:.1f}"
    rows = [
        ("from the start of the server to its first answer", start, "", "", ""),
        (
            "from the start of the server to all findings",
            f"{figures['findings_s']:.1f}",
            "",
            "",
            "",
        ),
    ]
    for name, (first, second) in figures["first_and_second_s"].items():
        later, _ = figures["after_reading_ahead_s"][name]
        seconds = [f"{each:.2f}" for each in (first, later, second)]
        rows.append((name, *seconds, f"{figures['characters'][name]:,}"))
    head = (
        "tool",
        "at once, s",
        f"{READ_AHEAD_S:.0f} s after the start, s",
        "again, s",
        "characters",
    )
    return title, head, rows


async def _asked(
    command: str, words: list[str], env: dict[str, str], app_id: str, wait_s: float = 0.0
) -> dict[str, Any]:
    from mcp import Client, StdioServerParameters

    parameters = StdioServerParameters(command=command, args=words, env=env)
    began = time.monotonic()
    seconds: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    since: dict[str, float] = {}
    async with Client(parameters, read_timeout_seconds=600) as client:
        await asyncio.sleep(wait_s)
        for turn in range(2):
            for name, given_arguments in CALLS:
                arguments = dict(given_arguments)
                if "query" in arguments:
                    arguments["app_id"] = app_id
                asked = time.monotonic()
                result = await client.call_tool(name, arguments)
                label = f"{name} {given_arguments.get('part', '')}".strip()
                seconds.setdefault(label, []).append(time.monotonic() - asked)
                (content,) = result.content
                if result.is_error:
                    raise RuntimeError(content.text)
                sizes[label] = len(content.text)
                if turn == 0 and name in ("overview", "findings"):
                    since[name] = time.monotonic() - began
    return {
        "first_answer_s": since["overview"],
        "findings_s": since["findings"],
        "first_and_second_s": seconds,
        "characters": sizes,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1])), indent=1))
