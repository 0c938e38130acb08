"""A policy reads what a person writes, and says everything that is wrong with it, and where."""

import pytest

from aqepilot import Policy, PolicyError
from aqepilot.policies import as_policies, sql_text

POINT = "dynamic_join_selection"
GOOD = '''# ours
name = "sales"
when = 'query.app_name = "x"'

dynamic_join_selection = """
  CASE WHEN side.\\u006dax_bytes < 3 THEN \\
     'x' END
  -- the end
"""
'''


def test_file_keywords_and_mapping_make_the_same_policy(tmp_path):
    path = tmp_path / "sales.toml"
    path.write_text(f'name = "sales"\nmode = "shadow"\n{POINT} = "null"\n')
    by_keywords = Policy(name="sales", mode="shadow", dynamic_join_selection="null")
    assert Policy.from_file(path) == by_keywords
    assert Policy.from_dict({"name": "sales", "mode": "shadow", POINT: "null"}) == by_keywords
    assert Policy(name="sales", mode="shadow", points={POINT: "null"}) == by_keywords


def test_settings_carry_the_text_with_its_comments_and_line_breaks():
    text = "CASE -- ${spark.app.name}\n  WHEN true THEN 'é\\n' END"
    policy = Policy(name="p", when="true", mode="off", dynamic_join_selection=f"\n {text} \n")
    assert policy.to_conf() == {
        "spark.aqepilot.policy.p.dynamic_join_selection": text,
        "spark.aqepilot.policy.p.when": "true",
        "spark.aqepilot.policy.p.mode": "off",
    }


def test_what_is_not_given_is_not_set():
    assert list(Policy(name="p", dynamic_join_selection="null").to_conf()) == [
        "spark.aqepilot.policy.p.dynamic_join_selection"
    ]


def test_revision_follows_the_text_and_when_but_not_the_name():
    revision = Policy(name="p", dynamic_join_selection="null").revision(POINT)
    assert Policy(name="q", mode="off", dynamic_join_selection="null ").revision(POINT) == revision
    assert Policy(name="p", dynamic_join_selection="NULL").revision(POINT) != revision
    assert Policy(name="p", when="x", dynamic_join_selection="null").revision(POINT) != revision


@pytest.mark.parametrize(
    "text",
    ["'x' || \"y\"", "a\\b", "'''", "1\r\n2", "\x07\x7f", "\t1\n-- é\u2028x", "it ends with '"],
)
def test_what_is_written_as_a_file_is_read_as_the_same_policy(text):
    policy = Policy(
        name="p",
        mode="shadow",
        when=f"query.app_name = {text}",
        expires="2027-01-31",
        points={POINT: text, "skew_join": "null"},
    )
    assert Policy.from_toml(policy.to_toml(f"about\x07 {text}\n\nmore")) == policy


def test_a_text_in_sql_may_have_any_character():
    assert sql_text("it's\\ \0001") == r"'it\'s\\ \0001'"


def test_every_error_of_a_file_is_told_with_its_place():
    text = f'# c\nmode = "shadw"\n"when" = 3\n  whn = "x"\n{POINT} = " "\n'
    with pytest.raises(PolicyError) as caught:
        Policy.from_toml(text, "sales.toml")
    problems = {(p.where, p.code, p.suggestions) for p in caught.value.problems}
    assert problems == {
        ("sales.toml:1:1", "POLICY_KEY_MISSING", ()),
        ("sales.toml:2:1", "MODE_INVALID", ("shadow",)),
        ("sales.toml:3:1", "POLICY_TEXT_INVALID", ()),
        ("sales.toml:4:3", "POLICY_KEY_UNKNOWN", ("when",)),
        ("sales.toml:5:1", "POLICY_TEXT_INVALID", ()),
    }


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [
        ({"name": "Sales", POINT: "x"}, "POLICY_TEXT_INVALID", "lower-case"),
        ({"name": "sales"}, "POLICY_EMPTY", POINT),
        ({"name": "a.b", POINT: "x"}, "POLICY_TEXT_INVALID", "lower-case"),
        ({"name": "a", POINT: "x\0y"}, "POLICY_TEXT_INVALID", "NUL"),
        ({"name": "a", POINT: 7}, "POLICY_TEXT_INVALID", "not int"),
        ({"name": "a", "dynamic_joinselection": "x"}, "POLICY_KEY_UNKNOWN", POINT),
        ({"name": "a", "mode": 3, POINT: "x"}, "MODE_INVALID", "off, shadow, enforce"),
        ({POINT: "x"}, "POLICY_KEY_MISSING", "name"),
    ],
)
def test_a_bad_policy_says_what_is_wrong_and_what_is_allowed(policy, code, words):
    with pytest.raises(PolicyError) as caught:
        Policy.from_dict(policy)
    (problem,) = caught.value.problems
    assert problem.code == code
    assert words in str(problem)


def test_bad_toml_names_line_and_column():
    with pytest.raises(PolicyError, match=r"sales\.toml:2:8: this is not TOML") as caught:
        Policy.from_toml('name = "a"\nmode = \n', "sales.toml")
    assert '"""' in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(PolicyError, match=r"no\.toml: cannot read"):
        Policy.from_file(tmp_path / "no.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(PolicyError, match=r"not UTF-8 \(byte 8\)"):
        Policy.from_file(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("key", "line", "column", "place"),
    [
        (POINT, None, None, "sales.toml:5:1"),
        (POINT, 1, 1, "sales.toml:6:3"),
        (POINT, 1, 18, "sales.toml:6:25"),  # behind an escape of six characters
        (POINT, 1, 35, "sales.toml:7:6"),  # behind a folded line break
        (POINT, 2, 3, "sales.toml:8:3"),
        ("when", 1, 7, "sales.toml:3:15"),
    ],
)
def test_a_place_in_a_text_is_a_place_in_the_file(key, line, column, place):
    assert Policy.from_toml(GOOD, "sales.toml").place(key, line, column) == place


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_line_ends_do_not_change_policy_or_places(ends):
    policy = Policy.from_toml(GOOD.replace("\n", ends), "sales.toml")
    assert policy.revision(POINT) == Policy.from_toml(GOOD).revision(POINT)
    assert policy.place(POINT, 2, 3) == "sales.toml:8:3"


def test_a_policy_without_a_file_has_places_too():
    policy = Policy(name="p", dynamic_join_selection="x")
    assert policy.place(POINT, 2, 3) == f"p.{POINT}:2:3"


def test_errors_of_all_policies_come_at_once(tmp_path):
    with pytest.raises(PolicyError) as caught:
        as_policies(
            [
                {"name": "A", POINT: "x"},
                tmp_path / "no.toml",
                {"name": "b", POINT: "x"},
                Policy(name="b", dynamic_join_selection="y"),
            ]
        )
    assert [p.code for p in caught.value.problems] == [
        "POLICY_TEXT_INVALID",
        "FILE_UNREADABLE",
        "POLICY_NAME_TWICE",
    ]
