"""The costs of policies decide which plan AQE goes on with; without one they are Spark's own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import little
import policies
import scala_objects
import tiers
from aqepilot import recipes
from plans import Executed
from rows import assert_same_rows

pytestmark = tiers.ON_ONE

POINT = "cost_evaluation"
Run = Callable[[DataFrame], Executed]

# `dense` turns out to be small enough for a broadcast when its shuffle has run.
BROADCASTS = little.SORT_MERGE | {"spark.sql.adaptive.autoBroadcastJoinThreshold": "1MB"}
# The partition of key 0 is split; the aggregate above then needs a shuffle more.
SKEWED = little.SORT_MERGE | {
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "256KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "256KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "2",
}
SKEWED_BY_KEY = (
    f"SELECT x.k, count(*) AS n, max(x.v) AS v FROM ({little.SKEWED_DENSE}) x GROUP BY x.k"
)
FORCE = "spark.sql.adaptive.forceOptimizeSkewedJoin"
BROADCASTS_ARE_DEAR = "spark.cost + plan.broadcast_hash_joins * 100"


def use(spark: SparkSession, text: str, name: str = "test", mode: str = "enforce") -> None:
    spark.conf.set("spark.aqepilot.policies", name)
    spark.conf.set(f"spark.aqepilot.policy.{name}.{POINT}", text)
    spark.conf.set(f"spark.aqepilot.policy.{name}.mode", mode)


def decisions(spark: SparkSession) -> list[Any]:
    return [d for d in policies.decisions(spark) if d.point == POINT]


def before_and_after(
    spark: SparkSession, executed: Run, plain: Any, sql: str, text: str, mode: str = "enforce"
) -> tuple[Executed, Executed]:
    with plain(spark):
        before = executed(spark.sql(sql))
    assert decisions(spark) == []
    use(spark, text, mode=mode)
    after = executed(spark.sql(sql))
    assert_same_rows(after.rows, before.rows)
    return before, after


def test_a_dear_replan_is_refused(little_tables: SparkSession, executed: Run, plain: Any) -> None:
    spark = little_tables
    little.settings(spark, BROADCASTS)
    before, after = before_and_after(spark, executed, plain, little.BIG_DENSE, BROADCASTS_ARE_DEAR)
    assert before.strategies == ["BroadcastHashJoin BuildRight"]
    assert after.strategies == ["SortMergeJoin"]
    refused = [d for d in decisions(spark) if float(d.answer) >= 100]
    assert refused
    for d in refused:
        assert (d.reason, d.applied, d.fate) == ("APPLIED", True, "adopted")
        assert (d.spark_strategy, d.final_strategy) == ("the re-plan", "the plan it had")
        assert d.subject.endswith("re-plan")
        assert d.tables == "big+dense"


def dear_replans(spark: SparkSession) -> DataFrame:
    """A query whose cost evaluator counts shuffles, while its re-plans split skew for one more."""
    spark.conf.set(FORCE, "false")
    df = spark.sql(SKEWED_BY_KEY)
    df._jdf.queryExecution().executedPlan()
    spark.conf.set(FORCE, "true")
    return df


def test_a_replan_that_adds_a_shuffle_is_adopted(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, SKEWED)
    with plain(spark):
        before = executed(dear_replans(spark))
    use(spark, "spark.cost - least(spark.cost, plan.skew_joins * 5)")
    after = executed(dear_replans(spark))
    assert_same_rows(after.rows, before.rows)
    assert [j.skewed for j in before.joins] == [False]
    assert [j.skewed for j in after.joins] == [True]
    adopted = [d for d in decisions(spark) if d.fate == "adopted"]
    assert {d.final_strategy for d in adopted} == {"the re-plan"}
    assert {d.spark_strategy for d in adopted} == {"the plan it had"}
    # What Spark would have done is the same for both plans that it compares.
    assert {d.subject.rpartition(", ")[2] for d in adopted} == {"current", "re-plan"}


@tiers.EIGHTH
@pytest.mark.parametrize("forced", ["false", "true"])
@pytest.mark.parametrize(
    "text",
    [
        "NULL",
        "spark.cost",
        recipes.get("simple_cost_evaluator").points[POINT],
        "1 / plan.nested_loop_joins",
        "-1e9",
    ],
    ids=["null", "spark.cost", "recipe", "fails", "negative"],
)
def test_sparks_own_cost_gives_sparks_own_plan(
    little_tables: SparkSession,
    executed: Run,
    plain: Any,
    forced: str,
    text: str,
) -> None:
    spark = little_tables
    is_forced = forced == "true"
    little.settings(spark, SKEWED if is_forced else BROADCASTS)
    spark.conf.set(FORCE, forced)
    sql = SKEWED_BY_KEY if is_forced else little.BIG_DENSE
    before, after = before_and_after(spark, executed, plain, sql, text)
    assert after.plan == before.plan
    assert [j.skewed for j in after.joins] == [is_forced]
    recorded = decisions(spark)
    assert recorded
    if text in ("spark.cost", recipes.get("simple_cost_evaluator").points[POINT]):
        assert {(d.reason, d.fate) for d in recorded} == {("APPLIED", "no_change")}
        assert all(d.answer == d.spark_answer for d in recorded)
    reason = {
        "NULL": "NULL_ANSWER",
        "1 / plan.nested_loop_joins": "EVALUATION_FAILED",
        "-1e9": "APPLIED" if is_forced else "OUT_OF_RANGE",
    }
    assert {d.reason for d in recorded} == {reason.get(text, "APPLIED")}


def test_a_plan_without_an_answer_costs_what_spark_says(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """The current plan has no answer, the re-plan's is on the same scale."""
    spark = little_tables
    little.settings(spark, BROADCASTS)
    dearer = "CASE WHEN NOT plan.is_current THEN spark.current_cost + {} END"
    before, after = before_and_after(
        spark, executed, plain, little.BIG_DENSE, dearer.format("0.01")
    )
    assert (before.strategies, after.strategies) == (
        ["BroadcastHashJoin BuildRight"],
        ["SortMergeJoin"],
    )
    use(spark, dearer.format(0))
    assert executed(spark.sql(little.BIG_DENSE)).strategies == before.strategies


def test_shadow_is_recorded_and_changes_nothing(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    spark = little_tables
    little.settings(spark, BROADCASTS)
    before, after = before_and_after(
        spark, executed, plain, little.BIG_DENSE, BROADCASTS_ARE_DEAR, mode="shadow"
    )
    assert after.plan == before.plan
    assert {(d.reason, d.applied, d.fate) for d in decisions(spark)} == {("SHADOW", False, None)}


def test_the_first_answer_wins(little_tables: SparkSession, executed: Run) -> None:
    spark = little_tables
    little.settings(spark, BROADCASTS)
    use(spark, "CASE WHEN plan.broadcast_hash_joins > 0 THEN 50 END", "first")
    use(spark, "7.5", "second")
    spark.conf.set("spark.aqepilot.policies", "first,second")
    assert executed(spark.sql(little.BIG_DENSE)).strategies == ["SortMergeJoin"]
    of_replans = {(d.policy, d.answer) for d in decisions(spark) if "re-plan" in d.subject}
    assert ("first", "50.0") in of_replans
    assert {d.policy for d in decisions(spark) if "current" in d.subject} == {"second"}


def test_the_facts_tell_the_plans_apart(little_tables: SparkSession, executed: Run) -> None:
    spark = little_tables
    little.settings(spark, SKEWED)
    use(spark, "NULL")
    executed(dear_replans(spark))
    current, replan = (json.loads(d.facts) for d in decisions(spark)[-2:])
    assert current["plan"]["is_current"] is True
    assert current.get("current") is None
    assert current["plan"]["sort_merge_joins"] == 1
    assert current["plan"]["shuffles"] == current["spark"]["cost"] == 0
    assert replan["plan"]["is_current"] is False
    assert replan["current"] == current["plan"]
    assert (replan["plan"]["shuffles"], replan["plan"]["new_shuffles"]) == (1, 1)
    assert (replan["plan"]["skew_joins"], replan["plan"]["local_sorts"]) == (1, 3)
    assert (replan["spark"]["cost"] // 1, replan["spark"]["current_cost"] // 1) == (1, 0)
    assert replan["plan"]["finished_shuffles"] == 2
    assert replan["plan"]["known_bytes"] > little.ROWS * 64
    assert replan["plan"]["estimated_bytes"] > 0
    assert (replan["spark"]["counts_local_sorts"] is None) == (spark.version < "4.3")


def test_nothing_is_asked_twice_about_the_same(little_tables: SparkSession, executed: Run) -> None:
    spark = little_tables
    little.settings(spark, BROADCASTS)
    use(spark, "NULL")
    executed(spark.sql(f"{little.BIG_DENSE} ORDER BY v"))
    seen = [json.dumps([d.facts, d.answer]) for d in decisions(spark)]
    assert 2 <= len(seen) == len(set(seen))


def test_a_policy_refuses_a_replan_that_adds_a_shuffle(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """Splitting the skewed join would cost the aggregate above it a shuffle."""
    spark = little_tables
    little.settings(spark, SKEWED)
    text = "CASE WHEN plan.new_shuffles > 0 THEN greatest(spark.cost, spark.current_cost) + 1 END"
    spark.conf.set(FORCE, "true")
    before, after = before_and_after(spark, executed, plain, SKEWED_BY_KEY, text)
    assert [j.skewed for j in before.joins] == [True]
    assert [j.skewed for j in after.joins] == [False]
    assert {d.fate for d in decisions(spark) if d.applied} == {"adopted"}


def test_a_forced_skew_join_comes_before_all_costs(
    little_tables: SparkSession, executed: Run, plain: Any
) -> None:
    """`skew_join`'s `force`: this join is split at the price of a shuffle, whatever it costs."""
    spark = little_tables
    little.settings(spark, SKEWED)
    with plain(spark):
        before = executed(dear_replans(spark))
        assert [j.skewed for j in before.joins] == [False]
        df = dear_replans(spark)
        plan = df._jdf.queryExecution().executedPlan().executedPlan()
        while plan.getClass().getSimpleName() != "SortMergeJoinExec":
            plan = plan.children().head()
        states = scala_objects.get(spark, "org.apache.spark.sql.aqepilot.plans.joins.JoinState")
        states.of(plan).get().force()
        after = executed(df)
        assert [j.skewed for j in after.joins] == [True]
        assert_same_rows(after.rows, before.rows)
        assert executed(dear_replans(spark)).plan == before.plan


def test_re_plans_that_spark_finds_dearer_are_adopted_64_times(
    little_tables: SparkSession,
) -> None:
    """Each may add shuffles, whose end leads to the next re-plan: a query has to end."""
    spark = little_tables
    use(spark, "if(plan.is_current, 10, 5)")
    spark.createDataFrame([], "a int")  # makes this session the thread's active one
    cheap, dear = (
        df._jdf.queryExecution().sparkPlan()
        for df in (spark.range(9), spark.range(9).repartition(3))
    )
    name = "org.apache.spark.sql.aqepilot.points.cost_evaluation.PolicyCostEvaluator"
    assert scala_objects.get(spark, name).MaxOverruled() == 64
    point: Any = spark._jvm.org.apache.spark.sql.aqepilot.points.cost_evaluation
    evaluator = point.PolicyCostEvaluator(spark._jsc.sc().conf())

    def adopted(i: int, current: Any, candidate: Any) -> bool:
        spark.conf.set("spark.sql.shuffle.partitions", i + 1)  # a fact, so that it is asked anew
        cost = evaluator.evaluateCost(current)
        return bool(evaluator.evaluateCost(candidate).compare(cost) < 0)

    assert [adopted(i, cheap, dear) for i in range(66)] == [True] * 64 + [False] * 2
    replans = [d for d in decisions(spark) if d.subject.endswith("re-plan")]
    assert [d.reason for d in replans] == ["APPLIED"] * 64 + ["OVERRULED_TOO_OFTEN"] * 2
    assert adopted(66, dear, cheap)
    assert decisions(spark)[-1].reason == "APPLIED"
