"""The places of a TOML file agree with what a TOML parser reads."""

from pathlib import Path

import pytest

from aqepilot import AqePilotError, toml
from aqepilot.toml import Places, tomllib

DOCUMENTS = [
    'a = \'x\'\nb = "y\\t\\u00e9\\"z"\n',
    "a = '''\nx'y''\n'''\nb = 1\n",
    'a = """\nx\\\n   y ""z"""\nb = 2\n',
    'a = """x"""""\nb = "1"\n',
    'n = [1, "]",\n 2] # c\n"b" = \'b = "no"\'\n',
    'a = ""\nb = """"""\nc = """\n"""\n',
    "# a = 'no'\n\n  a   =  'x' # b = 'no'\nb = true\n[t]\na = 'other'\n",
    "n = { a = 'x', b = [1,\n 2] }\nb = 'last'\n",
]


@pytest.mark.parametrize("text", DOCUMENTS)
def test_keys_and_strings_are_those_of_the_parser(text):
    parsed = {k: v for k, v in tomllib.loads(text).items() if k != "t"}
    places = Places(text)
    assert list(places.values) == list(parsed)
    for key, value in parsed.items():
        if isinstance(value, str):
            assert len(places.values[key].offsets) == len(value) + 1
            for char, offset in zip(value, places.values[key].offsets, strict=False):
                assert char == text[offset] or text[offset] == "\\"


def test_a_key_that_is_not_there_is_the_file():
    assert Places("a = 1\n").place("b") == (1, 1)


def test_a_character_past_the_end_is_the_end():
    assert Places("a = 'xy'\n").place("a", 99) == (1, 8)


def test_keys_of_a_table_have_places_too() -> None:
    places = Places('a = 1\n[other]\nname = 1\n[experiment]\nname = "x"\n', "experiment")
    assert places.place("name") == (5, 1)
    assert places.place("name", 0) == (5, 9)
    assert places.place("missing") == (4, 1)


def test_what_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"name = '\xff'\n")
    for name, words in (("a.toml", "the prices' file is not UTF-8"), ("b.toml", "cannot read")):
        with pytest.raises(AqePilotError, match=words) as caught:
            toml.read(tmp_path / name, "the prices' file")
        assert caught.value.problems[0].code == "FILE_UNREADABLE"
