"""The types of facts and decisions are what the catalogue has."""

import importlib.util
import typing
from pathlib import Path

import pytest

from aqepilot import catalog, decision_columns, points
from aqepilot.worker import plain
from places import ROOT


def generator():
    spec = importlib.util.spec_from_file_location("points_generator", ROOT / "tools" / "points.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_types_are_up_to_date_with_the_catalogue():
    assert generator().page() == Path(points.__file__).read_text("utf-8"), "run `make catalog`"


def test_the_columns_of_decisions_are_what_the_catalogue_says():
    written = Path(decision_columns.__file__).read_text("utf-8")
    assert generator().columns() == written, "run `make catalog`"


def hints(kind):
    return typing.get_type_hints(kind, vars(points))


@pytest.mark.parametrize("point", catalog.points(), ids=lambda point: point.name)
def test_every_fact_and_no_other_is_an_attribute(point):
    facts = getattr(points, point.name.title().replace("_", "") + "Facts")
    paths = [
        f"{group}.{name}" for group, members in hints(facts).items() for name in hints(members)
    ]
    assert sorted(paths) == sorted(fact.path for fact in point.facts)


def test_the_types_are_pythons():
    left = hints(points.SkewJoinLeft)
    assert left["num_mappers"] == int | None
    assert left["non_empty_ratio"] == float | None
    assert left["can_split"] == bool | None
    assert left["tables"] == tuple[str, ...] | None
    assert left["bytes_by_partition_id"] == memoryview | None
    relations = hints(points.JoinReorderChain)["relations"]
    assert relations == tuple[points.JoinReorderChainRelation, ...] | None
    assert hints(points.JoinReorderChainRelation)["filters"] == tuple[str, ...] | None


@pytest.mark.parametrize("point", [p for p in catalog.points() if p.fields], ids=lambda p: p.name)
def test_a_decision_has_every_field_and_says_what_is_decided(point):
    kind = getattr(points, point.name.title().replace("_", ""))
    names = [field.path for field in point.fields]
    assert list(hints(kind)) == names
    assert kind().asdict() == {}
    assert kind(**dict.fromkeys(names, 1)).asdict() == dict.fromkeys(names, 1)
    with pytest.raises(TypeError):
        kind(nothing=1)


def test_a_decision_is_read_only_and_goes_to_the_worker_as_it_is():
    decision = points.SkewJoin(skew_factor=3.0, right_splits=[1, None])
    assert plain(decision) == {"skew_factor": 3.0, "right_splits": [1, None]}
    with pytest.raises(AttributeError):
        decision.force = True


def test_words_are_the_points_words():
    words = catalog.point("dynamic_join_selection").words
    assert typing.get_args(points.DynamicJoinSelection) == tuple(w.word for w in words)
    assert hints(points.JoinSelection)["strategy"] == points.JoinSelectionStrategy | None
