"""On a vendor's Spark that lacks what we use no query fails, and the status says what is off.

A sample of `make vendor-forks`: what `Health` looks for, and what has failed queries before.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import tiers

sys.path.append(str(Path(__file__).parents[1]))

from vendor_forks import outcome, running

SQL = "org.apache.spark.sql."
ALL = {
    "join_reorder",
    "write_distribution",
    "join_selection",
    "shuffle_partitions",
    "dynamic_join_selection",
    "skew_join",
    "cost_evaluation",
    "partition_coalescing",
}
# What a Spark lacks, and the points that are off then; None: the others say what was left to Spark.
LACKS: dict[str, set[str] | None] = {
    f"probe {SQL}SparkSessionExtensions.injectPreCBORule": {"join_reorder", "write_distribution"},
    f"probe {SQL}SparkSessionExtensions.injectQueryPostPlannerStrategyRule": {
        "shuffle_partitions",
        "skew_join",
        "partition_coalescing",
    },
    f"probe {SQL}execution.SparkStrategies.JoinSelection": {"join_selection"},
    f"probe {SQL}execution.adaptive.ShufflePartitionsUtil.createSkewPartitionSpecs": {"skew_join"},
    f"probe {SQL}execution.adaptive.CostEvaluator.evaluateCost": {"cost_evaluation"},
    # A hook that nobody looks for: the others are registered all the same.
    "method org.apache.spark.sql.SparkSessionExtensions.injectRuntimeOptimizerRule"
    "(Lscala.Function1;)V": {"dynamic_join_selection"},
    # What a rule has to do is not what it does.
    "override org.apache.spark.sql.catalyst.rules.Rule.apply(Lorg.apache.spark.sql.catalyst.trees."
    "TreeNode;)Lorg.apache.spark.sql.catalyst.trees.TreeNode;": ALL - {"cost_evaluation"},
    "override org.apache.spark.sql.execution.adaptive.CostEvaluator.evaluateCost"
    "(Lorg.apache.spark.sql.execution.SparkPlan;)"
    "Lorg.apache.spark.sql.execution.adaptive.Cost;": {"cost_evaluation"},
    # These failed every session, and with it every query.
    "method org.apache.spark.internal.Logging.$init$(Lorg.apache.spark.internal.Logging;)V": None,
    "method org.apache.spark.network.util.JavaUtils.timeStringAsMs(Ljava.lang.String;)J": None,
    "class org.apache.spark.internal.Logging": None,
    "class org.apache.spark.network.util.JavaUtils": None,
    "method org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer.child()"
    "Lorg.apache.spark.sql.catalyst.plans.logical.LogicalPlan;": None,
    # This would have stopped the SparkContext: it ends with a listener that throws an Error.
    "class org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart": None,
    # This failed where a plan's cost was to be Spark's own.
    "class org.apache.spark.sql.internal.SessionState": None,
    # And this took all points away, and the status that would have said so.
    "method org.apache.spark.package$.SPARK_VERSION()Ljava.lang.String;": None,
}
CASES = tiers.share(LACKS)
STEPS = "session,skew,order,status,decisions"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    runner = running.Runner(tmp_path_factory.mktemp("forks") / "forks")
    forks = [running.Fork(name, STEPS, False) for name in CASES]
    return {each["fork"]: each for each in runner.run(forks)}


@pytest.mark.parametrize("lacks", CASES)
def test_no_query_fails_and_the_status_says_what_is_off(
    found: dict[str, dict[str, Any]], lacks: str
) -> None:
    went = found[lacks]
    assert went["failed"] == {}
    assert went["thrown"] or went["probed"]
    assert outcome.of(went) not in outcome.BAD
    points = [line.split("|") for line in went["said"]["status"] if line.startswith("point|")]
    assert len(points) == len(ALL)
    off = {name: why for _, name, state, why in points if state == "off"}
    if LACKS[lacks] is not None:
        assert set(off) == LACKS[lacks]
        for why in off.values():
            assert re.search(r"this Spark \([\d.]+\) (lacks|does not fit: )", why)
