"""Python functions that a session's own Python gives as policies, in a running Spark."""

import hashlib
import sys

import pytest

import aqepilot
import little
import tiers
from aqepilot import PolicyError, function, points

pytestmark = tiers.on("3.5")

POINT = "dynamic_join_selection"
TEXT = f"spark.aqepilot.policy.session.{POINT}"


def run_decided(spark):
    little.settings(spark, little.SORT_MERGE)
    rows = spark.sql(little.BIG_DENSE).collect()
    assert len(rows) == little.ROWS
    return {(d.side, d.policy, d.answer, d.reason) for d in aqepilot.decisions(spark)}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module that this Python can import; nobody has imported it yet."""

    def written(name, source):
        (tmp_path / f"{name}.py").write_text(source)
        return tmp_path

    monkeypatch.syspath_prepend(tmp_path)
    return written


def test_a_closure_decides(little_tables):
    word = "SHUFFLE_HASH"

    @aqepilot.policy(POINT)
    def hash_left(facts):
        return word if facts.side.is_left else None

    aqepilot.use(little_tables, dynamic_join_selection=hash_left)
    assert ("left", "session", "SHUFFLE_HASH", "APPLIED") in run_decided(little_tables)


def test_its_text_tells_its_name_and_its_pickle(spark):
    def choose(facts):
        return None

    aqepilot.use(spark, dynamic_join_selection=choose)
    code = function.pickled(POINT, choose).code
    digest = hashlib.sha256(code).hexdigest()
    assert spark.conf.get(TEXT) == f"python:pickled:choose:{digest}"
    aqepilot.use(spark)
    assert spark.conf.get(TEXT, None) is None


def test_other_values_in_a_closure_are_another_text(spark):
    texts = set()
    for least in (1, 2):
        aqepilot.use(spark, dynamic_join_selection=lambda facts, least=least: None)
        texts.add(spark.conf.get(TEXT))
    assert len(texts) == 2


def test_every_point_takes_a_function_and_its_typed_decision(spark):
    def split(facts: points.SkewJoinFacts) -> points.SkewJoin | None:
        return points.SkewJoin(skew_factor=2.0, left_splits=None)

    answers = {
        "skew_join": split,
        "join_selection": lambda facts: points.JoinSelection(strategy="BROADCAST"),
        "partition_coalescing": lambda facts: points.PartitionCoalescing(local_read=False),
        "dynamic_join_selection": lambda facts: "SHUFFLE_HASH",
        "shuffle_partitions": lambda facts: 7,
        "cost_evaluation": lambda facts: 1.5,
        "join_reorder": lambda facts: [1, 0, 2],
        "write_distribution": lambda facts: points.WriteDistribution(rebalance=False),
    }
    shown = {
        "skew_join": '{"skew_factor":2.0}',
        "join_selection": '{"strategy":"BROADCAST"}',
        "partition_coalescing": '{"local_read":false}',
        "dynamic_join_selection": "SHUFFLE_HASH",
        "shuffle_partitions": "7",
        "cost_evaluation": "1.5",
        "join_reorder": "[1,0,2]",
        "write_distribution": '{"rebalance":false}',
    }
    aqepilot.use(spark, **answers)
    for point in answers:
        facts = aqepilot.testing.as_json(aqepilot.testing.made_facts(point)[0])
        text = spark.conf.get(f"spark.aqepilot.policy.session.{point}")
        sql = "SELECT answer, reason FROM aqepilot_decide(:point, :text, :facts)"
        row = spark.sql(sql, args={"point": point, "text": text, "facts": facts}).first()
        assert row.answer == shown[point], row


@pytest.mark.parametrize("point", aqepilot.catalog.point_names())
def test_a_function_sees_the_facts_that_testing_makes(spark, point):
    def seen(value):
        if isinstance(value, memoryview):
            return [value.format, value.readonly, *value]
        if isinstance(value, tuple):
            return ("tuple", *map(seen, value))
        is_plain = value is None or isinstance(value, (str, bool, int, float))
        return value if is_plain else {name: seen(getattr(value, name)) for name in value}

    made = aqepilot.testing.made_facts(point, 3)[1]
    expected = seen(made)

    def choose(facts):
        facts_seen = seen(facts)
        if facts_seen != expected:
            differing = [group for group in expected if facts_seen[group] != expected[group]]
            raise ValueError(f"they differ in {differing}")

    aqepilot.use(spark, **{point: choose})
    text = spark.conf.get(f"spark.aqepilot.policy.session.{point}")
    facts = aqepilot.testing.as_json(made)
    sql = "SELECT reason, detail FROM aqepilot_decide(:point, :text, :facts)"
    row = spark.sql(sql, args={"point": point, "text": text, "facts": facts}).first()
    assert (row.reason, row.detail) == ("NULL_ANSWER", None)


def test_a_file_may_name_a_function_that_this_python_can_import(little_tables, module, tmp_path):
    module("given_by_name", "def choose(facts):\n    return 'SHUFFLE_MERGE'\n")
    path = tmp_path / "p.toml"
    path.write_text(f'name = "p"\n{POINT} = "python:given_by_name:choose"\n')
    aqepilot.use(little_tables, path)
    assert ("left", "p", "SHUFFLE_MERGE", "APPLIED") in run_decided(little_tables)
    assert "given_by_name" not in sys.modules


def test_a_function_that_cannot_be_loaded_is_refused_with_its_place(spark, module, tmp_path):
    module("lacks_it", "def choose(facts):\n    return None\n")
    path = tmp_path / "p.toml"
    path.write_text(f'name = "p"\n{POINT} = "python:lacks_it:chose"\n')
    with pytest.raises(PolicyError, match="did you mean choose") as caught:
        aqepilot.use(spark, path, skew_join="python:not_there_at_all:f")
    problems = {(p.code, p.where) for p in caught.value.problems}
    assert problems == {
        ("PYTHON_LOAD_FAILED", f"{path}:2:{len(POINT) + 5}"),
        ("PYTHON_LOAD_FAILED", "session.skew_join:1:1"),
    }
    assert spark.conf.get("spark.aqepilot.policies", None) is None
