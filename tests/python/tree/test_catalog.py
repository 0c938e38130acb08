"""What Python says of points, facts and settings is what the catalogue has."""

import re

import pytest

import each_point
from aqepilot import AqePilotError, catalog


def test_every_entry_has_a_meaning():
    for point in catalog.points():
        assert point.summary
        assert all(word.meaning for word in point.words)
        assert all(fact.meaning and fact.type for fact in point.facts)
        assert len({fact.path for fact in point.facts}) == len(point.facts)
    assert all(setting.meaning for setting in catalog.settings())
    for table in (catalog.reasons(), catalog.problems(), catalog.fates()):
        assert table
        assert all(table.values())


def test_names_are_what_the_documents_promise():
    assert all(re.fullmatch("[A-Z][A-Z_]*", code) for code in catalog.reasons())
    assert set(catalog.fates()) == {"adopted", "refused_by_cost", "no_change", "superseded", "gone"}
    assert all(setting.key.startswith("spark.aqepilot.") for setting in catalog.settings())
    assert {setting.where for setting in catalog.settings()} <= {"any", "submitted"}


def test_every_point_has_a_row_whose_policies_change_the_plan():
    assert set(each_point.ROWS) == set(catalog.point_names())
    for plain, one, two in (row.effects for row in each_point.ROWS.values()):
        assert one not in (plain, two)


def test_an_unknown_point_lists_the_known():
    with pytest.raises(AqePilotError, match=r"there are: .*dynamic_join_selection"):
        catalog.point("skew")
