"""The check of the pages' sentences fails on each kind of sentence that it is for."""

import importlib.util

import pytest

from places import ROOT

LONG = "word " * 40 + "word."


def module():
    spec = importlib.util.spec_from_file_location("prose", ROOT / "tools" / "prose.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


PROSE = module()


def problems(text, page="docs/run/x.md"):
    return list(PROSE.problems(page, text))


@pytest.mark.parametrize(
    "planted",
    [
        LONG,
        "Who raises one of the two moves only units from the control to it.",
        "What came later does not count.",
        "Tables are read; what is old is left out.",
        "Two runs at the same time are no matter.",
        "It is a query of which Spark reads a part.",
        "An error is told once.",
        "This is what became of the join.",
        "Should the driver be killed, it ends.",
        "Since then it takes a second.",
        "It ran with seed 1741.",
    ],
)
def test_a_planted_sentence_is_named_with_its_line(planted):
    text = f"# A page\n\nA good sentence. Another one.\n\n- {planted}\n"
    (problem,) = problems(text)
    assert problem.startswith("docs/run/x.md:5: "), problem
    assert not problems(text.replace(planted, "A good sentence."))


def test_a_page_of_long_sentences_fails_as_a_whole():
    text = f"# A page\n\n{' '.join(['Word' + ' word' * 22 + '.'] * 3)}\n"
    assert problems(text) == ["docs/run/x.md:1: 23.0 words a sentence, more than 22"]


def test_code_counts_as_a_word_and_blocks_do_not_count():
    text = f"`{LONG}` is code.\n\n```sh\n{LONG}\n```\n\n## What {LONG}\n\n"
    generated = f"<!-- generated: facts -->\n\n{LONG}\n\n<!-- end -->\n"
    assert not problems(text + generated)


def test_questions_and_cells_of_tables_may_begin_with_what():
    assert not problems("What did it do? It ran.\n")
    assert not problems("| Key | Meaning |\n| --- | --- |\n| a | what each policy answered |\n")


def test_notes_of_the_laboratory_stand_in_evidence():
    text = "Since then it takes a second.\n"
    assert problems(text)
    assert not problems(text, "docs/evidence/x.md")


def test_a_page_that_passes_leaves_the_list_of_those_that_do_not(monkeypatch, capsys):
    monkeypatch.setattr(PROSE, "NOT_YET", frozenset({"README.md", "docs/gone.md"}))
    monkeypatch.setattr(PROSE, "pages", lambda: [ROOT / "README.md"])
    assert PROSE.main() == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/gone.md:1: is not there, so take it out of NOT_YET",
        "README.md:1: passes, so take it out of NOT_YET",
    ]


def test_the_pages_pass():
    assert PROSE.main() == 0
