"""Recipes are policies, one for each of Spark's own rules."""

import pytest

from aqepilot import AqePilotError, catalog, recipes

MINORS = [row.minor for row in catalog.spark_minors()]


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("name", recipes.names())
def test_each_recipe_is_a_policy_for_each_spark(name, minor):
    policy = recipes.get(name, spark=minor)
    assert policy.name == name
    assert policy.mode is None
    assert recipes.text(name, minor).startswith("# NOTE ")


PARTS = {
    "balanced": (
        "right_sized_shuffles",
        "expanding_stages",
        "hot_keys",
        "no_broadcast_of_range_joins",
    ),
    "learned": ("learned_joins", "learned_order", "learned_partitions", "learned_skew"),
}


@pytest.mark.parametrize(("name", "parts"), PARTS.items())
def test_a_recipe_of_several_has_the_points_of_its_parts(name, parts):
    points = {}
    for part in parts:
        theirs = recipes.get(part, "4.3").points
        assert not points.keys() & theirs.keys()
        points |= theirs
    assert recipes.get(name, "4.3").points == points


def test_only_the_older_rule_prefers_hash_to_merge():
    for minor in MINORS:
        text = recipes.get("dynamic_join_selection", minor).points["dynamic_join_selection"]
        assert ("PREFER_SHUFFLE_HASH" in text) == (minor != "4.3")


def test_vendor_versions_have_their_minors_recipe():
    assert recipes.text("dynamic_join_selection", "3.5.6-amzn-1") == recipes.text(
        "dynamic_join_selection", "3.5"
    )


def test_an_unknown_recipe_has_the_nearest():
    with pytest.raises(AqePilotError, match="Did you mean demote_broadcast_hash"):
        recipes.text("demote_broadcast")


def test_a_spark_without_recipes_says_which_have():
    with pytest.raises(AqePilotError, match=r"3\.0; there are for 3\.5"):
        recipes.text("demote_broadcast_hash", "3.0")
