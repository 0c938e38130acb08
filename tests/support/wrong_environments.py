"""Environments in which a user begins wrongly, and the page's table of what is said in each."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from places import ROOT

PAGE = ROOT / "docs/run/deploy/README.md"
# What Spark's own scripts call.
_TOOLS = (
    "bash",
    "cat",
    "dirname",
    "env",
    "grep",
    "ps",
    "python3",
    "readlink",
    "sed",
    "tr",
    "uname",
)


def table() -> dict[str, list[str]]:
    """Returns what the page says that one sees, by environment."""
    _, _, section = PAGE.read_text("utf-8").partition("## When the environment is wrong")
    rows = re.findall(r"^\| (.+?) \| (.+?) \| .+ \|$", section, re.MULTILINE)[1:]
    return {name: re.findall(r"`(.+?)`", seen) for name, seen in rows if name != "---"}


def tells(environment: str, *printed: str) -> None:
    """Asserts that what commands printed is what the page says, each once, and no stack trace."""
    words = table()[environment]
    assert words, environment
    for text in printed:
        assert "Traceback" not in text, text
        assert any(word in text for word in words), text
    for word in words:
        assert any(word in text for text in printed), (word, printed)


def path_without_java(folder: Path) -> Path:
    """Returns a folder to be the PATH: with what Spark's scripts need of a machine, but no Java."""
    folder.mkdir()
    for tool in _TOOLS:
        if path := shutil.which(tool):
            (folder / tool).symlink_to(path)
    return folder


def add_java_8(folder: Path) -> None:
    """Adds a `java` that says what Java 8 says, and runs Spark 4 as Java 8 does."""
    java = folder / "java"
    java.write_text(
        """#!/bin/sh
case "$*" in
  -version) echo 'openjdk version "1.8.0_402"' >&2 ;;
  *) echo 'java.lang.UnsupportedClassVersionError: class file version 61.0' >&2; exit 1 ;;
esac
"""
    )
    java.chmod(0o755)
