"""What the site has beside docs/: the pages of the root, README.md as its home, and the Python API.

A hook of mkdocs: `make site`.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HOME = "https://github.com/aqepilot/aqepilot"
ROOT_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "RELEASE.md", "SECURITY.md")
PAGES = {"README.md": "index.md"} | {page: page for page in ROOT_PAGES}


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages that stand at the repository's root, and pdoc's."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        text = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=from_docs(text)))
    for page, text in api():
        files.append(File.generated(config, f"api/{page}", content=text))
    return files


def api() -> Iterator[tuple[str, str]]:
    """Yields the pages of the Python reference, by their names."""
    import pdoc

    sys.path.insert(0, str(ROOT / "python"))
    pdoc.render.configure(docformat="google")
    # Spark is not there, so that pdoc leaves the names of its types as they are.
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pdoc.pdoc("aqepilot", output_directory=Path(folder))
        for path in sorted(Path(folder).rglob("*.html")):
            yield path.relative_to(folder).as_posix(), path.read_text("utf-8")


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
