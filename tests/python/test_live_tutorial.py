"""The tutorial's files and commands, run one after the other; what it shows is what they print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import aqepilot
import submitting
import tiers

pytestmark = tiers.on("3.5")

PAGE = Path(__file__).parents[2] / "docs/tutorial.md"
BLOCK = re.compile(r'^```(\w+)(?: title="(.+?)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
VARIES = "^Its cores waited|Superseded"
MARK = "==== the page's next output"


def plain(text: str) -> list[str]:
    """The lines without what differs from run to run.

    That is numbers with their units, a rule's id, and where a stage waited; and which side of a
    join is measured first: what is known of the other by then, and whether an answer is given anew.
    """
    text = re.sub(r"\([0-9a-f]{12}\)", "(id)", text)
    text = re.sub(r"\d[\d.,:-]*(?: (?:ms|s|min|B|KiB|MiB|GiB)\b)?", "N", text)
    text = re.sub(r" \(N times\.\)|; other N.*|[^ ]*/(?=control\.json)", "", text)
    lines = (" ".join(line.split()) for line in text.splitlines())
    return sorted({line for line in lines if line and not re.search(VARIES, line)})


def test_each_command_prints_what_the_tutorial_shows(tmp_path: Path) -> None:
    commands, shown = ["set -e"], []
    for kind, title, body in BLOCK.findall(PAGE.read_text("utf-8")):
        if title:
            file = tmp_path / title
            file.parent.mkdir(exist_ok=True)
            file.write_text(body)
        elif kind == "sh":
            commands.append(body)
        else:
            assert kind == "text"
            commands.append(f"echo {MARK!r}")
            shown.append(body)
    done = subprocess.run(
        ["bash", "-c", "\n".join(commands)],
        cwd=tmp_path,
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
    printed = done.stdout.split(f"{MARK}\n")
    assert [plain(text) for text in shown] == [plain(text) for text in printed[:-1]], done.stdout
