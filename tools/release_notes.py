"""Prints what the changelog says of a release: the workflow `release` makes its page of it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

CHANGELOG = Path(__file__).resolve().parents[1] / "CHANGELOG.md"


def notes(text: str, version: str) -> str:
    """Returns the part of a changelog about a version.

    >>> notes("# Changelog\\n\\n## 0.2.0\\n\\nTwo.\\n\\n## 0.1.0\\n\\nOne.\\n", "v0.2.0")
    'Two.'
    """
    number = version.removeprefix("v")
    match = re.search(rf"^## {re.escape(number)}\b.*?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if match is None or not match[1].strip():
        sys.exit(f"{CHANGELOG.name} says nothing under '## {number}'")
    return match[1].strip()


if __name__ == "__main__":
    print(notes(CHANGELOG.read_text("utf-8"), sys.argv[1]))
