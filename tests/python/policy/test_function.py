"""Python functions as policies: checked where they are defined, pickled as UDFs are."""

import functools
import pickle
import subprocess
import sys
import threading

import pytest

import aqepilot
from aqepilot import AqePilotError, PolicyError
from aqepilot.function import is_imported, pickled
from aqepilot.testing import facts


def choose(facts):
    return "SHUFFLE_HASH" if facts.side.is_left else None


class Chooser:
    def __call__(self, facts):
        return None


def test_a_marked_function_is_the_function_itself():
    marked = aqepilot.policy("dynamic_join_selection")(choose)
    try:
        assert marked is choose
        assert marked.aqepilot_point == "dynamic_join_selection"
        assert marked(facts("dynamic_join_selection", side={"is_left": True})) == "SHUFFLE_HASH"
    finally:
        del choose.aqepilot_point


def test_an_unknown_point_has_the_nearest():
    with pytest.raises(AqePilotError) as caught:
        aqepilot.policy("skew_jion")
    (problem,) = caught.value.problems
    assert problem.suggestions == ("skew_join",)
    assert "partition_coalescing" in problem.message


def test_the_decorator_without_a_point_says_how_to_write_it():
    with pytest.raises(PolicyError, match=r'@aqepilot\.policy\("skew_join"\)'):
        aqepilot.policy(choose)


@pytest.mark.parametrize(
    "function",
    [lambda: None, lambda a, b: None, lambda *, facts: None, 7],
    ids=["none", "two", "keyword", "no function"],
)
def test_what_cannot_be_called_with_the_facts_alone_is_refused(function):
    with pytest.raises(PolicyError) as caught:
        aqepilot.policy("skew_join")(function)
    (problem,) = caught.value.problems
    assert problem.code == "FUNCTION_INVALID"
    assert "(facts)" in problem.message


@pytest.mark.parametrize(
    "function",
    [
        choose,
        lambda facts, factor=3: None,
        lambda *all: None,
        functools.partial(lambda factor, facts: None, 3),
        Chooser(),
        max,
    ],
    ids=["def", "default", "any", "partial", "object", "C"],
)
def test_whatever_takes_the_facts_is_pickled(function):
    assert pickle.loads(pickled("skew_join", function).code) is not None


def test_a_closure_is_pickled_with_its_values():
    least = 1 << 20

    def closure(facts):
        return "BROADCAST" if facts.side.size_in_bytes < least else None

    name, code = pickled("dynamic_join_selection", closure)
    assert name == "closure"
    small = facts("dynamic_join_selection", side={"size_in_bytes": 5})
    assert pickle.loads(code)(small) == "BROADCAST"


def test_a_function_of_another_point_is_refused():
    marked = aqepilot.policy("skew_join")(lambda facts: None)
    with pytest.raises(PolicyError, match="a policy for skew_join, not for join_reorder") as caught:
        pickled("join_reorder", marked)
    assert caught.value.problems[0].code == "FUNCTION_FOR_ANOTHER_POINT"
    assert pickled("skew_join", marked)


def test_what_cannot_be_pickled_says_what_it_is_and_what_to_do():
    lock = threading.Lock()

    def locked(facts):
        with lock:
            return "BROADCAST"

    with pytest.raises(PolicyError, match=r"locked cannot be pickled.*lock.*plain value") as caught:
        pickled("skew_join", locked)
    assert caught.value.problems[0].code == "FUNCTION_NOT_PICKLABLE"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python:a.b:c", True),
        ("python:pickled:f", True),
        ("python:pickled:f:00", False),
        ("'python:a:b'", False),
        ("x", False),
    ],
)
def test_a_text_that_names_a_modules_function_is_told(text, words):
    assert is_imported(text) is words


def test_marking_a_function_loads_nothing_heavy():
    script = (
        "import sys, aqepilot; "
        "f = aqepilot.policy('skew_join')(lambda facts: None); "
        "print({'pyspark', 'pydantic', 'click', 'rich', 'numpy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
