r"""Texts that users may give to what they can name, and that no page, terminal or answer obeys.

Each that could make an element names the attribute ``data-injected`` or calls ``injected(1)``, by
which `elements` and, in a browser, `IN_PAGE` find it. None has a NUL, so that all can be settings
and words of a command.
"""

from __future__ import annotations

import json
from html.parser import HTMLParser
from itertools import chain

import places

CASES = places.CASES / "injections.json"
STRINGS = tuple(chain(*json.loads(CASES.read_text("utf-8")).values()))
assert len(STRINGS) == len(set(STRINGS)) == 50

# What a script of a browser's test evaluates: what of these became an element, or would run; of the
# whole page, or within elements.
IN_PAGE = """(within = 'html') => [
  ...document.querySelectorAll(`${within} [data-injected]`),
  ...[...document.querySelectorAll(`${within} *`)].filter(e => [...e.attributes].some(
    a => /^on/.test(a.name) && /injected/.test(a.value)
      || /^(href|src|action|data|xlink:href)$/.test(a.name)
        && /^\\s*(javascript:|data:text|\\/\\/injected)/i.test(a.value))),
].map(e => e.outerHTML.slice(0, 200))"""
# Before a page is opened: what runs is kept.
LISTENER = "window.ran = []; window.injected = n => window.ran.push(n);"


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.injected: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            text = (value or "").strip().lower()
            if (
                name == "data-injected"
                or (name.startswith("on") and "injected" in text)
                or (
                    name in ("href", "src", "action", "data", "xlink:href")
                    and text.startswith(("javascript:", "data:text", "//injected"))
                )
            ):
                self.injected.append(self.get_starttag_text() or tag)
                return

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)


def elements(html: str) -> list[str]:
    """Returns the elements of a page that are made of one of these texts.

    >>> elements(f"<p title='a'>{STRINGS[1]}</p>")
    ['<img data-injected src=x onerror=injected(1)>']
    >>> elements("<p>&lt;img data-injected&gt;</p>")
    []
    """
    parser = _Elements()
    parser.feed(html)
    parser.close()
    return parser.injected
