"""Facts made for tests are what a function is given: whole, typed, read-only."""

import array
import json

import pytest

from aqepilot import AqePilotError, catalog
from aqepilot.testing import as_json, facts, made_facts

POINTS = catalog.point_names()


def problems(point="skew_join", **groups):
    with pytest.raises(AqePilotError) as caught:
        facts(point, **groups)
    return caught.value.problems


@pytest.mark.parametrize("point", POINTS)
def test_every_fact_is_there_and_none_until_given(point):
    nothing = facts(point)
    for fact in catalog.point(point).facts:
        group, name = fact.path.split(".")
        assert getattr(getattr(nothing, group), name) is None


def test_facts_are_read_only():
    made = facts("skew_join", left={"num_mappers": 3})
    with pytest.raises(AttributeError, match="read-only"):
        made.left.num_mappers = 4
    with pytest.raises(AttributeError, match="did you mean num_mappers"):
        _ = made.left.num_maper


def test_sizes_are_viewed_without_copying():
    sizes = facts("skew_join", left={"bytes_by_partition_id": range(3)}).left.bytes_by_partition_id
    assert (sizes.format, sizes.readonly, sizes.tolist()) == ("q", True, [0, 1, 2])
    numpy = pytest.importorskip("numpy")
    assert numpy.shares_memory(numpy.asarray(sizes), numpy.asarray(sizes))
    again = facts("skew_join", left={"bytes_by_partition_id": numpy.asarray(sizes)})
    assert again.left.bytes_by_partition_id == sizes


@pytest.mark.parametrize(
    ("sizes", "median", "p90", "p99", "ratio"),
    [
        ([], 1, None, None, None),
        ([0, 0], 1, 0, 0, 0.0),
        ([7], 7, 7, 7, 1.0),
        ([9, 4], 6, 9, 9, 1.0),
        ([100, 0, 10, 30], 20, 100, 100, 0.75),
        (list(range(200, 0, -1)), 100, 180, 198, 1.0),
    ],
)
def test_what_follows_from_the_sizes_is_as_the_jvm_has_it(sizes, median, p90, p99, ratio):
    left = facts("skew_join", left={"bytes_by_partition_id": sizes}).left
    assert (left.num_partitions, left.shuffle_bytes) == (len(sizes), sum(sizes))
    assert left.max_bytes == max(sizes, default=0)
    assert (left.median_bytes, left.p90_bytes, left.p99_bytes) == (median, p90, p99)
    assert left.non_empty_ratio == ratio


def test_what_is_given_is_kept_and_other_groups_stay_unknown():
    made = facts("skew_join", left={"bytes_by_partition_id": [1, 2], "max_bytes": 50})
    assert (made.left.max_bytes, made.left.shuffle_bytes) == (50, 3)
    assert made.right.max_bytes is None


def test_structs_in_arrays_are_facts_too():
    relations = [{"position": 0, "tables": ["sales"]}, {"row_count": 5}]
    first, second = facts("join_reorder", chain={"relations": relations}).chain.relations
    assert (first.position, first.tables, first.row_count) == (0, ("sales",), None)
    assert (second.row_count, second.filters) == (5, None)


def test_unknown_groups_and_facts_have_the_nearest_all_at_once():
    nested = [{"positon": 1}]
    problems_there = problems(
        "join_reorder", chian={}, joined={"row_cout": 1}, chain={"relations": nested}
    )
    assert {p.code for p in problems_there} == {"FACT_UNKNOWN"}
    assert {p.suggestions[0] for p in problems_there} == {
        "chain",
        "joined.row_count",
        "chain.relations[0].position",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_mappers", "3"),
        ("num_mappers", True),
        ("num_mappers", 1.0),
        ("num_mappers", 1 << 31),
        ("shuffle_bytes", 1 << 63),
        ("non_empty_ratio", "0.5"),
        ("non_empty_ratio", False),
        ("can_split", 1),
        ("tables", "sales"),
        ("tables", [1]),
        ("bytes_by_partition_id", 7),
        ("bytes_by_partition_id", [1, None]),
        ("bytes_by_partition_id", [1.5]),
    ],
)
def test_a_value_of_another_type_is_refused(name, value):
    (problem,) = problems(left={name: value})
    assert problem.code == "FACT_INVALID"
    assert f"left.{name}" in problem.message


def test_a_struct_that_is_none_is_refused():
    (problem,) = problems("join_reorder", chain={"relations": [3]})
    assert "chain.relations[0] is a mapping" in problem.message


def test_an_unknown_point_has_the_nearest():
    (problem,) = problems("skew_joins")
    assert problem.suggestions == ("skew_join",)


def test_a_recorded_decisions_facts_make_facts():
    recorded = {"left": {"bytes_by_partition_id": [1, 2, 3], "max_bytes": 3}, "join": {"id": 1}}
    assert facts("skew_join", **recorded).left.median_bytes == 2


def test_json_has_what_is_known():
    sizes = array.array("q", [5, 1])
    groups = {"left": {"bytes_by_partition_id": sizes, "tables": ["a"]}, "join": {"type": "INNER"}}
    known = json.loads(as_json(facts("skew_join", **groups)))
    assert known["left"]["bytes_by_partition_id"] == [5, 1]
    assert known["left"]["tables"] == ["a"]
    assert known["join"] == {"type": "INNER"}
    assert known["conf"] == {}


@pytest.mark.parametrize("point", POINTS)
def test_made_facts_are_the_same_each_time_and_go_from_all_to_nothing(point):
    made = made_facts(point, 20)
    assert [as_json(f) for f in made] == [as_json(f) for f in made_facts(point, 20)]
    assert len({as_json(f) for f in made}) == 20
    for group, name in (fact.path.split(".") for fact in catalog.point(point).facts):
        assert getattr(getattr(made[0], group), name) is not None
        if group not in ("query", "conf", "cluster"):
            assert getattr(getattr(made[-1], group), name) is None


def test_made_facts_agree_with_themselves():
    for made in made_facts("skew_join", 20):
        if made.left.bytes_by_partition_id is not None:
            assert made.left.max_bytes == max(made.left.bytes_by_partition_id)
    for made in made_facts("join_reorder", 20)[:-1]:
        if made.chain.relations is not None:
            positions = [relation.position for relation in made.chain.relations]
            assert positions == list(range(made.chain.num_relations))
