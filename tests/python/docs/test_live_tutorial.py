"""The tutorial's files and commands, run one after the other; what it shows is what they print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import aqepilot
import places
import submitting
import tiers
from conftest import CommandLine

pytestmark = [tiers.on("3.5"), tiers.READS_LOGS]

PAGE = places.ROOT / "docs/start/tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
VARIES = "^Its cores waited|Superseded"
# The page's job takes half a minute, of which it waits for most.
SMALLER = {
    "range(400_000)": "range(40_000)",
    "id % 4000": "id % 1200",
    "sleep(0.005)": "sleep(0.001)",
}


def plain(text: str) -> list[str]:
    """The lines without what differs from run to run.

    That is numbers with their units, a rule's id, and where a stage waited; and which side of a
    join is measured first: what is known of the other by then, and whether an answer is given anew.
    How much is spilled comes of the memory.
    """
    text = re.sub(r"\([0-9a-f]{12}\)", "(id)", text)
    text = re.sub(r"\d[\d.,:-]*(?: (?:ms|s|min|B|KiB|MiB|GiB)\b)?", "N", text)
    text = text.replace(", N spilled to disk", "")
    text = re.sub(r"; other N.*", ".", text)
    text = re.sub(r" \(N times\.\)|[^ ]*/(?=control\.json)", "", text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return sorted({line for line in lines if line and not re.search(VARIES, line)})


def page() -> str:
    text = PAGE.read_text("utf-8")
    if tiers.ALL:
        return text
    for words, less in SMALLER.items():
        assert text.count(words) == 1, words
        text = text.replace(words, less)
    return text


# What reads logs or asks Spark does so in the test's own session: a JVM for each takes a minute.
HERE = () if tiers.ALL else ("aqepilot explain", "aqepilot check")


def test_each_command_prints_what_the_tutorial_shows(
    tmp_path: Path, command_line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exports, printed, shown = list[str](), [""], list[str]()

    def shell(command: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", "\n".join([*exports, command])],
            env=submitting.environment(
                short=True,
                PYTHONPATH=str(Path(aqepilot.__file__).parents[1]),
                PATH=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            ),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def here(command: str) -> str:
        # The JVM's working directory is another one.
        words = [str(tmp_path / w) if w.startswith("logs/") else w for w in shlex.split(command)]
        done = command_line(*words[1:])
        assert done.exit_code == 0, done.output
        return done.stdout

    for kind, title, body in BLOCK.findall(page()):
        if title:
            Path(title).parent.mkdir(exist_ok=True)
            Path(title).write_text(body)
        elif kind == "sh":
            for command in body.splitlines():
                if command.startswith("export "):
                    exports.append(command)
                else:
                    printed[-1] += (here if command.startswith(HERE) else shell)(command)
        else:
            assert kind == "text"
            shown.append(body)
            printed.append("")
    assert [plain(text) for text in shown] == [plain(text) for text in printed[:-1]], printed
