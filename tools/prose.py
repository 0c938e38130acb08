"""Looks at the sentences of the pages: `make lint-prose`.

A page fails where its sentences have more words on average than `MEAN`, where one sentence has more
than `LONGEST`, and where one of `WORDS` stands in it. Headings, code blocks and generated parts are
left out. A piece of code between backquotes counts as one word.

`NOT_YET` names the pages that nobody has edited for length. It only shrinks: a page on it that
passes fails until its line is taken out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).resolve().parents[1]
MEAN = 22
LONGEST = 40
# A pattern, and what to write instead. Each is looked for in one sentence, without regard to case.
HEADLESS = r"^(who|what|whoever|whatever)\b(?!.*\?$)"
WORDS = {
    HEADLESS: "begin with a noun: 'a user who', 'the rows that'",
    r"; (who|what|whoever|whatever) (?!.*\?$)": "begin the clause with a noun",
    r"\b(of|for|from|by|beneath) (which|whom)\b": "begin a new sentence with the noun",
    r"\b(is|are|was|were|be|been|gets?) (said|told)\b": "name who says it, or write 'reported'",
    r"\b(what|all that|that) (came|comes|become|became|becomes) of\b": "write 'the outcome of'",
    r"\bno matter[.,]": "write 'does not matter' with its subject",
    r"\b(thereof|therein|whereof|whereby|hereby|lest)\b": "use a plain word",
    r"^(should|were|had) (?!.*\?$)": "begin with 'if'",
}
# Figures of one day belong to docs/evidence/, where these may stand.
NOTES = {
    r"\b(since then|another day,|that (day|night),|on the same day)": "a note of the laboratory",
    r"\bseeds? \d": "a note of the laboratory",
}
NOT_YET: frozenset[str] = frozenset()
GENERATED = re.compile(r"<!-- generated: .*?<!-- end -->", re.DOTALL)


class Sentence(NamedTuple):
    """One sentence of a page, and the line that its paragraph begins in."""

    line: int
    text: str
    in_table: bool = False

    @property
    def words(self) -> int:
        return len(re.findall(r"[^\W_][\w'’.,%-]*", self.text))


def blanked(text: str) -> str:
    """Returns a page without its generated parts; the lines keep their numbers."""
    return GENERATED.sub(lambda m: "\n" * m[0].count("\n"), text)


def plain(inline: Token) -> str:
    """Returns a paragraph's text, with `code` for each piece of code."""
    parts = []
    for child in inline.children or ():
        if child.type == "text":
            parts.append(child.content)
        elif child.type == "code_inline":
            parts.append("code")
        elif child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join("".join(parts).split())


def sentences(text: str) -> Iterator[Sentence]:
    """Yields the sentences of a page.

    >>> [(s.line, s.text) for s in sentences("# A page\\n\\nIt has `x.y`. And 1.5 more.\\n")]
    [(3, 'It has code.'), (3, 'And 1.5 more.')]
    """
    line, kind = 0, ""
    for token in MarkdownIt("commonmark").enable("table").parse(blanked(text)):
        if token.map:
            line = token.map[0] + 1
        if token.type == "inline" and kind not in ("heading_open", "th_open"):
            for part in re.split(r"(?<=[.!?])\)? (?=[A-Z0-9\"'(]|code\b)", plain(token)):
                if re.search(r"[^\W_]", part):
                    yield Sentence(line, part, kind == "td_open")
        kind = token.type


def problems(page: str, text: str) -> Iterator[str]:
    """Yields what is wrong with a page, each with its line."""
    listed = list(sentences(text))
    rules = WORDS if page.startswith("docs/evidence/") else WORDS | NOTES
    for sentence in listed:
        if sentence.words > LONGEST:
            yield f"{page}:{sentence.line}: {sentence.words} words in: {sentence.text}"
        for pattern, advice in rules.items():
            # A cell of a table may be a noun clause: 'what each policy answered'.
            if sentence.in_table and pattern == HEADLESS:
                continue
            if match := re.search(pattern, sentence.text, re.IGNORECASE):
                yield f"{page}:{sentence.line}: '{match[0]}' ({advice}) in: {sentence.text}"
    long = [s.words for s in listed if re.search(r"[.!?:]\)?$", s.text)]
    if long and sum(long) / len(long) > MEAN:
        yield f"{page}:1: {sum(long) / len(long):.1f} words a sentence, more than {MEAN}"


def pages() -> Iterable[Path]:
    folders = ("*.md", "docs/**/*.md", "python/aqepilot/**/*.md")
    return [path for folder in folders for path in sorted(ROOT.glob(folder))]


def main() -> int:
    gone = [page for page in sorted(NOT_YET) if not (ROOT / page).is_file()]
    for page in gone:
        print(f"{page}:1: is not there, so take it out of NOT_YET", file=sys.stderr)
    failed = bool(gone)
    for path in pages():
        page = path.relative_to(ROOT).as_posix()
        listed = list(problems(page, path.read_text("utf-8")))
        if page in NOT_YET:
            listed = [] if listed else [f"{page}:1: passes, so take it out of NOT_YET"]
        failed |= bool(listed)
        for problem in listed:
            print(problem, file=sys.stderr)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
