"""The site's home page and changelog: README.md and CHANGELOG.md, whose links begin at the root.

A hook of mkdocs: `make site`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "CHANGELOG.md"}


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that stand at the repository's root."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=from_docs(text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """The README is the home page, to the pages in docs/ too."""
    return markdown.replace("](../README.md", "](index.md")


def from_docs(text: str) -> str:
    """Returns a page of the root with its links as from within docs/.

    >>> from_docs("[a page](docs/policies.md) and [what changed](CHANGELOG.md)")
    '[a page](policies.md) and [what changed](CHANGELOG.md)'
    """
    return re.sub(r"\]\(docs/", "](", text)
