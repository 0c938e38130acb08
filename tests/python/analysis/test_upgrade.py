"""What is different between two logs is named, and what is not is not."""

from __future__ import annotations

import random

import pytest

from aqepilot.analysis.upgrade import compared, times
from aqepilot.analysis.upgrade.compared import Pair
from aqepilot.analysis.upgrade.outcomes import Outcome, Runs
from aqepilot.analysis.upgrade.settings import all_changes, changes


def runs(query: str = "q", number: int = 5, description: str | None = "d") -> Runs:
    return Runs(query, query, description, number, (1000,) * number, 1000.0, number)


def outcome(way: str, number: int = 5, kind: str = "strategy", subject: str = "a b") -> Outcome:
    return Outcome("q", kind, subject, way, way, "a ⋈ b", number)


PAIR = Pair(runs(), runs(), True)


def test_a_strategy_that_all_runs_changed_is_a_change() -> None:
    (change,) = compared.changes([outcome("SMJ")], [outcome("BHJ")], PAIR)
    assert (change.kind, change.before, change.after) == ("strategy", "SMJ", "BHJ")
    assert (change.before_runs, change.after_runs) == ((5, 5), (5, 5))
    assert change.p < 0.01


@pytest.mark.parametrize("after", [[outcome("SMJ")], [outcome("SMJ", 3), outcome("BHJ", 2)], []])
def test_what_ran_likewise_and_what_flips_by_chance_is_none(after: list[Outcome]) -> None:
    before = [outcome("SMJ", 4), outcome("BHJ", 1)]
    assert compared.changes(before, after, PAIR) == []


def test_a_flip_that_is_no_chance_is_a_change() -> None:
    before = [outcome("SMJ", 49), outcome("BHJ", 1)]
    after = [outcome("BHJ", 49), outcome("SMJ", 1)]
    (change,) = compared.changes(before, after, Pair(runs(number=50), runs(number=50), True))
    assert change.p < 1e-9


def test_a_shuffle_that_is_new_is_named_unless_joins_are_in_another_order() -> None:
    there = outcome("4", kind="number", subject="s1")
    new = outcome("2", kind="number", subject="s2")
    (change,) = compared.changes([there], [there, new], PAIR)
    assert (change.kind, change.before, change.after) == ("shuffle", None, "2")
    order = [outcome(text, kind="order", subject="r") for text in ("x y z", "y x z")]
    (change,) = compared.changes([there, order[0]], [there, new, order[1]], PAIR)
    assert change.kind == "order"


def test_queries_are_paired_by_fingerprint_and_else_by_a_description_of_their_own() -> None:
    before = [runs("f1"), runs("f2", description="only"), runs("f3", description="two")]
    after = [runs("f1"), runs("f4", description="only")]
    after += [runs("f5", description="two"), runs("f6", description="two")]
    paired = compared.pairs(before, after)
    names = {(one.before.query, one.after.query, one.is_same) for one in paired}
    assert names == {("f1", "f1", True), ("f2", "f4", False)}


def test_of_queries_that_are_as_they_were_hardly_a_page_calls_one_slower() -> None:
    chance = random.Random(48)
    wrong = 0
    for _ in range(60):
        pages = []
        for _ in range(30):
            sides = [[chance.lognormvariate(7, 0.15) for _ in range(5)] for _ in range(2)]
            pages.append(times.difference(*sides))
        wrong += any(one.is_worse(0) or one.is_better(0) for one in times.together(pages))
    assert wrong <= 8


def test_a_query_that_takes_twice_as_long_is_slower_among_many() -> None:
    chance = random.Random(48)
    noise = [
        times.difference(*([chance.lognormvariate(7, 0.1) for _ in range(5)] for _ in "ab"))
        for _ in range(98)
    ]
    slow = times.difference(
        [chance.lognormvariate(7, 0.1) for _ in range(5)],
        [chance.lognormvariate(7.7, 0.1) for _ in range(5)],
    )
    found_slow = times.together([*noise, slow])[-1]
    assert found_slow.is_worse(0.1)
    assert found_slow.lower is not None
    assert found_slow.lower > 1.5


def test_one_run_says_nothing_of_times() -> None:
    one = times.difference([1000], [2000, 2100])
    assert (one.p, one.lower) == (None, None)
    assert not one.is_worse(0.1)


def test_a_rule_that_lost_its_name_is_named_where_jobs_exclude_it() -> None:
    rule = "org.apache.spark.sql.execution.adaptive.DynamicJoinSelection"
    job = {"spark.sql.adaptive.optimizer.excludedRules": rule}
    first = changes("3.5.9", "4.3.0", job)[0]
    assert (first.name, first.harms, first.since) == (rule, True, "4.3")
    assert "DemoteBroadcastHashJoin" in first.instead[0]
    assert not any(one.harms for one in changes("3.5.9", "4.2.1", job))


def test_a_default_is_named_unless_the_job_sets_it_and_only_between_the_releases() -> None:
    def names(*versions: str, **job: str) -> set[str]:
        conf = {key.replace("_", "."): value for key, value in job.items()}
        return {one.name for one in changes(*versions, conf)}

    assert "spark.sql.ansi.enabled" in names("3.5.9", "4.0.5")
    assert "spark.sql.ansi.enabled" not in names("3.5.9", "4.0.5", spark_sql_ansi_enabled="true")
    assert "spark.sql.ansi.enabled" not in names("4.0.5", "4.3.0")
    assert names("4.3.0", "4.3.0") == set()
    assert len({(one.kind, one.name) for one in all_changes()}) == len(all_changes())
