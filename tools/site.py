"""The site's pages that stand at the root, as README.md its home page: their links begin there.

A hook of mkdocs: `make site`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = "https://github.com/aqepilot/aqepilot"
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md")
PAGES = {"README.md": "index.md"} | {page: page for page in ROOT_PAGES}


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that stand at the repository's root."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=from_docs(text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The pages of the root stand beside the folders of docs/; the README is the home page."""
    return to_root(markdown, page.file.src_uri.count("/"))


def to_root(text: str, depth: int) -> str:
    """Returns a page of docs/, that many folders down, with its links to the root as from docs/.

    >>> to_root("[home](../../README.md), [deployment](../run/README.md)", 1)
    '[home](../index.md), [deployment](../run/README.md)'
    """
    up = "../" * depth
    text = text.replace(f"]({up}../README.md", f"]({up}index.md")
    return re.sub(rf"\]\({re.escape(up)}\.\./(?=[A-Z]+\.md)", f"]({up}", text)


def from_docs(text: str) -> str:
    """Returns a page of the root with its links as from within docs/.

    >>> from_docs("[a page](docs/write/policies.md) and [what changed](CHANGELOG.md)")
    '[a page](policies.md) and [what changed](CHANGELOG.md)'
    >>> from_docs("[how](.github/x.yml)")
    '[how](https://github.com/aqepilot/aqepilot/blob/main/.github/x.yml)'
    """
    text = re.sub(r"\]\((?=\.github/)", f"]({HOME}/blob/main/", text)
    text = text.replace("](README.md", "](index.md")
    return re.sub(r"\]\(docs/", "](", text)
