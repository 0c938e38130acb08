"""The recipes of the planning decisions: what they say, and what they do to executed plans."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import aqepilot
import little
import policies
import tiers
from aqepilot import catalog, recipes
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

Facts = dict[str, dict[str, Any]]
BUILDS_LEFT = ("INNER", "CROSS", "RIGHT OUTER")
BUILDS_RIGHT = ("INNER", "CROSS", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI", "EXISTENCE")
TYPES = dict.fromkeys([*BUILDS_LEFT, *BUILDS_RIGHT, "FULL OUTER"])


def of_3_0(facts: Facts) -> tuple[str | None, str | None]:
    """As JoinSelection of Spark 3.0, which let both kinds of hash joins build the same sides."""
    join, left, right = facts["join"], facts["left"], facts["right"]
    sides = {"LEFT": left, "RIGHT": right}
    builds = {"LEFT": BUILDS_LEFT, "RIGHT": BUILDS_RIGHT}
    inner = join["type"] in ("INNER", "CROSS")

    def smaller(is_small: Callable[[str], bool]) -> str | None:
        fit = [name for name in sides if is_small(name)]
        if len(fit) == 2:
            return "RIGHT" if right["size_in_bytes"] <= left["size_in_bytes"] else "LEFT"
        return fit[0] if fit else None

    def broadcasts(name: str) -> bool:
        side = sides[name]
        return side["broadcasts_by_size"] and side["run_time_hint"] != "NO_BROADCAST_HASH"

    def hashes(name: str) -> bool:
        side, other = sides[name], sides["RIGHT" if name == "LEFT" else "LEFT"]
        return side["hashes_by_size"] and side["size_in_bytes"] * 3 <= other["size_in_bytes"]

    if join["key_count"]:
        side = smaller(lambda name: join["type"] in builds[name] and broadcasts(name))
        if side:
            return "BROADCAST", side
        side = smaller(lambda name: join["type"] in builds[name] and hashes(name))
        if side and not facts["conf"]["prefer_sort_merge_join"]:
            return "SHUFFLE_HASH", side
        if join["can_merge"]:
            return "SHUFFLE_MERGE", None
        return ("SHUFFLE_REPLICATE_NL", None) if inner else (None, None)
    fit = [name for name in sides if sides[name]["broadcasts_by_size"]]
    if fit:
        return "BROADCAST", fit[0] if len(fit) == 1 else None
    return ("SHUFFLE_REPLICATE_NL" if inner else "BROADCAST"), None


def selections() -> Iterator[Facts]:
    both = (True, False)
    for kind, keys, merges, prefers, small, large in itertools.product(
        TYPES, (0, 2), both, both, (100, 300, 1000), (100, 300, 1000)
    ):
        for by_size, hashes, hint in itertools.product(
            itertools.product(both, both),
            itertools.product(both, both),
            (None, "NO_BROADCAST_HASH"),
        ):
            sides = {
                name: {
                    "size_in_bytes": size,
                    "broadcasts_by_size": by_size[i],
                    "hashes_by_size": hashes[i],
                    "run_time_hint": hint if i == 0 else None,
                    "can_broadcast": kind in builds,
                    "can_shuffle_hash": kind in builds or kind.endswith("OUTER"),
                }
                for i, (name, size, builds) in enumerate(
                    [("left", small, BUILDS_LEFT), ("right", large, BUILDS_RIGHT)]
                )
            }
            join = {"type": kind, "key_count": keys, "can_merge": merges, "is_null_aware": False}
            yield {"join": join, **sides, "conf": {"prefer_sort_merge_join": prefers}}


def test_the_recipe_of_3_0_answers_as_the_rule(spark: SparkSession, tmp_path: Path) -> None:
    rows = list(selections())
    path = tmp_path / "facts.json"
    path.write_text("\n".join(json.dumps(row | {"n": n}) for n, row in enumerate(rows)))
    groups: dict[str, list[str]] = {}
    for fact in catalog.point("join_selection").facts:
        group, field = fact.path.split(".")
        groups.setdefault(group, []).append(f"`{field}`: {fact.type}")
    schema = ", ".join(f"`{name}` struct<{', '.join(f)}>" for name, f in groups.items())
    facts = spark.read.schema(f"{schema}, n int").json(str(path))
    text = recipes.get("join_selection_3_0").texts()["join_selection"]
    struct = "named_struct('strategy', {}, 'build_side', CAST(NULL AS STRING))"
    text = re.sub(r"(?<=THEN |ELSE )'[A-Z_]+'", lambda word: struct.format(word[0]), text)
    answers = dict(facts.selectExpr("n", f"{text}\nAS answer").collect())
    strategies = {n: tuple(answer) if answer else (None, None) for n, answer in answers.items()}
    differ = {
        n: (strategies[n], of_3_0(row))
        for n, row in enumerate(rows)
        if strategies[n] != of_3_0(row)
    }
    assert differ == {}
    assert len(set(strategies.values())) == 8


@pytest.fixture
def star(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A table of facts and three of dimensions: a large one, a small one, a filtered one."""
    folder = tmp_path_factory.mktemp("star")
    tables = {
        "facts": "SELECT id % 100 AS a, id % 40 AS b, id % 60 AS c, id AS v FROM range(20000)",
        "large": "SELECT id AS a, sha2(string(id), 256) AS la FROM range(400)",
        "small": "SELECT id AS b, id AS sb FROM range(40)",
        "filtered": "SELECT id AS c, id % 6 AS fc FROM range(60)",
    }
    for name, sql in tables.items():
        spark.sql(sql).coalesce(1).write.parquet(str(folder / name))
        spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
    little.settings(spark, {"spark.sql.shuffle.partitions": "2"})
    return spark


STAR = """
SELECT v, la, sb, fc FROM large JOIN facts ON large.a = facts.a JOIN small ON facts.b = small.b
  JOIN filtered ON facts.c = filtered.c
WHERE fc = 1"""


def use(spark: SparkSession, name: str) -> None:
    for point, text in recipes.get(name).texts().items():
        spark.conf.set(f"spark.aqepilot.policy.{name}.{point}", text)
    spark.conf.set("spark.aqepilot.policies", name)


def test_most_selective_first_begins_with_facts_and_joins_the_filtered_table_next(
    star: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    little.settings(star, {"spark.sql.autoBroadcastJoinThreshold": "10MB"})
    with plain(star):
        without = executed(star.sql(STAR))
    assert {*without.joins[-1].left, *without.joins[-1].right} == {"large", "facts"}
    use(star, "most_selective_first")
    ran = executed(star.sql(STAR))
    assert_same_rows(ran.rows, without.rows)
    assert {*ran.joins[-1].left, *ran.joins[-1].right} == {"facts", "filtered"}
    (made,) = policies.decisions(star)
    assert (made.reason, made.answer, made.fate) == ("APPLIED", "[1,3,2,0]", "adopted")


@tiers.EIGHTH
@pytest.mark.parametrize("loose", ["v <> fc", "((v = 7 AND fc = 1) OR (v = 8 AND fc = 2))"])
def test_most_selective_first_joins_last_what_no_equality_joins(
    star: SparkSession, executed: Callable[..., Executed], loose: str
) -> None:
    """Joined next, as a filter makes it the most selective, it would multiply the facts' rows."""
    use(star, "most_selective_first")
    executed(
        star.sql(
            f"""SELECT v, la, sb FROM facts JOIN filtered ON {loose} JOIN large ON large.a = facts.a
                JOIN small ON facts.b = small.b AND small.sb = filtered.fc WHERE fc < 5"""
        )
    )
    (made,) = policies.decisions(star)
    # Then `small` joins it to the facts by an equality.
    assert (made.reason, made.answer) == ("APPLIED", "[0,3,1,2]")


def test_no_broadcast_of_guesses_waits_for_what_an_explode_made(
    star: SparkSession, plain: Callable[..., Any], executed: Callable[..., Executed]
) -> None:
    """Tables are broadcast by their files' size, and what joins leave as Spark has it."""
    little.settings(
        star,
        {
            "spark.sql.autoBroadcastJoinThreshold": "10MB",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        },
    )
    sql = """SELECT v, fc FROM facts LEFT JOIN (
               SELECT b AS k, fc FROM small JOIN filtered ON b = c WHERE fc = 1) ON b = k"""
    use(star, "no_broadcast_of_guesses")
    executed(star.sql(sql))
    assert not any(d.applied for d in policies.decisions(star))
    sql = """SELECT v, fc FROM facts LEFT JOIN (
               SELECT c AS k, fc FROM filtered LATERAL VIEW explode(array(1, 2)) AS x) ON c = k"""
    with plain(star):
        without = executed(star.sql(sql))
    assert [s.split()[0] for s in without.strategies] == ["BroadcastHashJoin"]
    ran = executed(star.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert [s.split()[0] for s in ran.strategies] == ["SortMergeJoin"]
    # Of the first planning; once sizes are measured, Spark leaves the join so by itself.
    assert {d.fate for d in policies.decisions(star) if d.applied} == {"adopted"}
    star.conf.unset("spark.sql.adaptive.autoBroadcastJoinThreshold")
    ran = executed(star.sql(sql))
    assert_same_rows(ran.rows, without.rows)
    assert [s.split()[0] for s in ran.strategies] == ["BroadcastHashJoin"]


def test_explain_tells_decisions_in_the_order_in_which_they_happened(star: SparkSession) -> None:
    little.settings(
        star,
        {
            "spark.sql.autoBroadcastJoinThreshold": "-1",
            "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
        },
    )
    texts = {
        "join_reorder": "-double(candidate.position)",
        "join_selection": "'SHUFFLE_MERGE'",
        "shuffle_partitions": "3",
        "dynamic_join_selection": "CASE WHEN side.is_left THEN 'SHUFFLE_HASH' END",
        "partition_coalescing": "named_struct('keep', true)",
    }
    for point, text in texts.items():
        star.conf.set(f"spark.aqepilot.policy.all.{point}", text)
    star.conf.set("spark.aqepilot.policies", "all")
    df = star.sql(STAR)
    df.explain()
    df.collect()
    lines = [
        next(point for point in texts if f", {point}: " in line)
        for line in str(aqepilot.explain(star)).splitlines()[1:]
    ]
    assert list(dict.fromkeys(lines)) == list(texts)
    assert lines.count("join_reorder") == 1
