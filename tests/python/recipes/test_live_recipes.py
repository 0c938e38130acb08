"""A recipe says what Spark's own rule says, on every mix of the facts that the rule reads."""

import itertools
import json

import pytest

import tiers
from aqepilot import catalog, recipes
from aqepilot.session import check_texts

POINT = "dynamic_join_selection"
# Most recipes say the same for each Spark: each text once, under the first minor that has it.
TEXTS = {
    (name, *recipes.get(name, row.minor).texts().items()): (name, row.minor)
    for row in reversed(catalog.spark_minors())
    for name in recipes.names()
}
JOIN_TYPES = ("INNER", "LEFT OUTER", "RIGHT OUTER", "FULL OUTER", "LEFT SEMI", "LEFT ANTI")
RATIO, THRESHOLD = 0.2, 100


def many_empty(side):
    return side["non_empty_ratio"] is not None and 0 < side["non_empty_ratio"] < RATIO


def demotes(facts):
    side, other = facts["side"], facts["other"]
    null_filled = facts["join"]["type"] in ("LEFT OUTER", "RIGHT OUTER", "LEFT ANTI")
    if many_empty(side) and side["can_broadcast"]:
        return not null_filled
    looks_at_other = other["is_plain_stage"] and other["is_finished"]
    if looks_at_other and many_empty(other) and side["can_broadcast"]:
        return null_filled
    return False


def of_3_5(facts):
    """As DynamicJoinSelection.selectJoinStrategy."""
    side = facts["side"]
    if not (side["is_plain_stage"] and side["is_finished"]):
        return None
    advisory = facts["conf"]["advisory_partition_size_in_bytes"]
    prefers = advisory <= THRESHOLD and side["max_bytes"] <= THRESHOLD
    if demotes(facts):
        return "SHUFFLE_HASH" if prefers else "NO_BROADCAST_HASH"
    return "PREFER_SHUFFLE_HASH" if prefers else None


def of_4_3(facts):
    """As 4.3's DemoteBroadcastHashJoin."""
    side = facts["side"]
    is_asked = side["is_plain_stage"] and side["is_finished"]
    return "NO_BROADCAST_HASH" if is_asked and demotes(facts) else None


def of_3_0(facts):
    """As 3.0's DemoteBroadcastHashJoin."""
    side = facts["side"]
    is_asked = side["is_plain_stage"] and side["is_finished"]
    return "NO_BROADCAST_HASH" if is_asked and many_empty(side) else None


def facts_rows():
    stages = [(True, True), (False, True), (True, False), (None, None)]
    for join_type, (plain, finished), ratio, max_bytes, can in itertools.product(
        JOIN_TYPES, stages, (None, 0.0, 0.1, 0.2, 1.0), (100, 101), (True, False)
    ):
        for (plain2, finished2), ratio2, advisory in itertools.product(
            stages, (None, 0.1, 0.2), (100, 101)
        ):
            side = {
                "is_plain_stage": plain,
                "is_finished": finished,
                "non_empty_ratio": ratio,
                "max_bytes": max_bytes,
                "can_broadcast": can,
            }
            other = {
                "is_plain_stage": plain2,
                "is_finished": finished2,
                "non_empty_ratio": ratio2,
            }
            conf = {
                "advisory_partition_size_in_bytes": advisory,
                "max_shuffled_hash_join_local_map_threshold": THRESHOLD,
                "non_empty_partition_ratio_for_broadcast_join": RATIO,
            }
            yield {"join": {"type": join_type}, "side": side, "other": other, "conf": conf}


def facts_schema():
    groups = {}
    for fact in catalog.point(POINT).facts:
        group, field = fact.path.split(".")
        groups.setdefault(group, []).append(f"`{field}`: {fact.type}")
    return ", ".join(f"`{name}`: struct<{', '.join(f)}>" for name, f in groups.items())


@tiers.EIGHTH
@pytest.mark.parametrize(
    ("name", "minor", "rule"),
    [
        ("dynamic_join_selection", "3.5", of_3_5),
        ("dynamic_join_selection", "4.3", of_4_3),
        ("demote_broadcast_hash", "4.3", of_3_0),
    ],
)
def test_the_recipe_answers_as_the_rule(spark, tmp_path, name, minor, rule):
    rows = list(facts_rows())
    path = tmp_path / "facts.json"
    path.write_text("\n".join(json.dumps(row | {"n": n}) for n, row in enumerate(rows)))
    schema = facts_schema().replace("`: struct", "` struct") + ", n int"
    facts = spark.read.schema(schema).json(str(path))
    text = recipes.get(name, minor).points[POINT]
    answers = dict(facts.selectExpr("n", f"{text}\nAS answer").collect())
    expected = {n: rule(row) for n, row in enumerate(rows)}
    assert {n: (answers[n], expected[n]) for n in expected if answers[n] != expected[n]} == {}
    assert len(set(expected.values())) > 1


@pytest.mark.parametrize(("name", "minor"), sorted(TEXTS.values()))
def test_every_recipe_binds(spark, name, minor):
    assert check_texts(spark, recipes.get(name, minor)) == []
