"""Draws session settings at which adaptive execution has much to decide, and policies.

A policy's answers depend on facts through a hash with a salt: they differ between the joins, sides
and shuffles of a query, change as stages end, and are the same whenever the example is run again.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyspark
from hypothesis import strategies as st

import fuzz_partitioned
import plans
import skewed
from fuzz_drawing import one_in, one_of, weighted
from fuzz_tables import IS_SPARK_4

# Spark takes a name that it does not know (4.3's, on 3.5) as a setting that nobody reads.
_ALWAYS = {
    # Each file is one map task.
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
    # The text of each new plan, which nobody reads here.
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxMetadataStringLength": "100",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.sql.debug.maxToStringFields": "1",
    "spark.sql.cartesianProductExec.buffer.in.memory.threshold": "64",
    # What absurd answers are refused by, and tests need not wait for.
    "spark.aqepilot.guard.max_partitions": "60",
}
# At Spark's own defaults every join here were a broadcast, and 200 tasks read a shuffle.
_DEFAULTS = {
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
# Together they make Spark take a shuffled hash join for a sort-merge join at run time.
_HASHED = {
    "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled": "true",
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "1MB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "500",
}
_MAYBE: dict[str, list[str]] = {
    "spark.sql.shuffle.partitions": ["3", "2", "3", "2", "4", "1", "7"],
    "spark.sql.adaptive.coalescePartitions.initialPartitionNum": ["4", "2", "5"],
    "spark.sql.autoBroadcastJoinThreshold": ["-1", "-1", "-1", "-1", "500", "2KB", "10MB"],
    "spark.sql.adaptive.autoBroadcastJoinThreshold": ["-1", "500", "3KB", "1MB"],
    "spark.sql.adaptive.coalescePartitions.enabled": ["true", "false"],
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": ["true", "false"],
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": ["1", "100", "1KB"],
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": ["100", "500", "2KB", "64MB"],
    "spark.sql.adaptive.localShuffleReader.enabled": ["true", "false"],
    "spark.sql.adaptive.skewJoin.enabled": ["true", "true", "false"],
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": ["1.0", "1.2", "2", "5"],
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": ["50", "200", "1KB"],
    "spark.sql.adaptive.forceOptimizeSkewedJoin": ["true", "false"],
    "spark.sql.adaptive.forceApply": ["true"],
    "spark.sql.adaptive.nonEmptyPartitionRatioForBroadcastJoin": ["0", "0.2", "0.9"],
    "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": ["0", "500", "1MB"],
    "spark.sql.adaptive.convertSortMergeJoinToShuffledHashJoin.enabled": ["true", "false"],
    "spark.sql.adaptive.costEvaluator.countLocalSort.enabled": ["true", "false"],
    "spark.sql.adaptive.optimizeSkewsInRebalancePartitions.enabled": ["true", "false"],
    "spark.sql.adaptive.rebalancePartitionsSmallPartitionFactor": ["0.2", "0.9"],
    "spark.sql.ansi.enabled": ["true", "false"],
    "spark.sql.cbo.enabled": ["true"],
    "spark.sql.cbo.planStats.enabled": ["true"],
    "spark.sql.cbo.joinReorder.enabled": ["true", "false"],
    "spark.sql.cbo.joinReorder.dp.star.filter": ["true"],
    "spark.sql.cbo.starSchemaDetection": ["true"],
    "spark.sql.cbo.starJoinFTRatio": ["0.3"],
    "spark.sql.join.preferSortMergeJoin": ["true", "false"],
    "spark.sql.requireAllClusterKeysForCoPartition": ["true", "false"],
    "spark.sql.execution.replaceHashWithSortAgg": ["true"],
    "spark.sql.execution.useObjectHashAggregateExec": ["false"],
    "spark.sql.sources.bucketing.enabled": ["true", "false"],
    "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly": ["false"],
    "spark.sql.optimizer.canChangeCachedPlanOutputPartitioning": ["true", "false"],
    "spark.sql.unionOutputPartitioning": ["true", "false"],
    "spark.sql.sortMergeJoinExecBuffer.in.memory.threshold": ["10"],
    "spark.aqepilot.guard.max_broadcast_bytes": ["512KB", "512KB", "500"],
    "spark.aqepilot.guard.max_hash_build_bytes": ["512KB", "512KB", "500"],
    **fuzz_partitioned.MAYBE,
}

if IS_SPARK_4:
    # Without reuse, plain 3.5 plans some joins with an empty relation anew for ever. A bloom
    # filter's subquery may wait for ever for one of partition pruning, which explains the first
    # (SPARK-57041).
    _MAYBE["spark.sql.exchange.reuse"] = ["false"]
    _MAYBE["spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold"] = ["0"]


@st.composite
def settings(draw: st.DrawFn) -> dict[str, str]:
    """Draws session settings; half of them are left at Spark's defaults."""
    which = draw(st.integers(0, 2 ** len(_MAYBE) - 1))
    chosen = {
        key: one_of(draw, values)
        for number, (key, values) in enumerate(_MAYBE.items())
        if which >> number & 1
    }
    chosen = _DEFAULTS | chosen
    if not draw(st.integers(0, 11)):
        chosen |= _HASHED
    if draw(st.integers(0, 19)):
        chosen |= plans.INTERPRETED
    return fuzz_partitioned.settled(_ALWAYS | fuzz_partitioned.ALWAYS | chosen)


class Answers(NamedTuple):
    """What is drawn at a point.

    Attributes:
        facts: SQL texts that answers depend on.
        values: Answers that are no structs, as SQL.
        fields: The fields of an answer that is a struct, and their values as SQL.
        together: Fields that do much together: two of three structs are of these.
    """

    facts: list[str]
    values: list[str]
    fields: dict[str, list[str]]
    together: Sequence[list[str]] = ()


def _numbers(type_name: str, *values: object) -> list[str]:
    return [f"CAST({value} AS {type_name})" for value in values]


_BYTES = (100, 1000, "{side}.median_bytes", "{side}.max_bytes - 1", 1, "NULL", 2**62, -5)
_EACH = "transform({side}.bytes_by_partition_id, (b, i) -> "
_SPLITS = [
    *[_EACH + "2)"] * 8,
    *[_EACH + "CAST(pmod(hash(i, {salt}), 4) AS INT) + 1)"] * 8,
    _EACH + "if(i = 1, 3, CAST(NULL AS INT)))",
    _EACH + "if(b > {side}.median_bytes, 9, 1))",
    _EACH + "1000000)",
    _EACH + "0)",
    "array(2, 3)",
    "CAST(array() AS ARRAY<INT>)",
    "CAST(NULL AS ARRAY<INT>)",
]
_REVERSED = "transform(chain.relations, r -> chain.num_relations - 1 - r.position)"
_ROTATED = "transform(chain.relations, r -> CAST(pmod(r.position + 1, chain.num_relations) AS INT))"
_SWAPPED = "transform(chain.relations, r -> if(r.position < 2, 1 - r.position, r.position))"
POINTS = {
    "join_reorder": Answers(
        ["candidate.position", "candidate.tables", "joined.num_relations", "chain.num_relations"],
        [
            *["-double(candidate.position)", "double(pmod(hash(candidate.tables), 7))"] * 2,
            *["double(pmod(candidate.position + 2, chain.num_relations))"] * 2,
            *("double(candidate.size_in_bytes)", "-double(candidate.size_in_bytes)"),
            *("double(candidate.filter_count)", "0D", "NULL", "double('NaN')"),
        ],
        {},
    ),
    "join_selection": Answers(
        ["join.type", "left.tables", "right.tables", "join.is_replan", "left.size_in_bytes"],
        [
            *("'BROADCAST'", "'SHUFFLE_HASH'", "'SHUFFLE_MERGE'", "'SHUFFLE_REPLICATE_NL'"),
            *("'NONSENSE'", "NULL"),
        ],
        {
            "strategy": [
                *["'BROADCAST'", "'SHUFFLE_HASH'"] * 3,
                *("'SHUFFLE_MERGE'", "'SHUFFLE_REPLICATE_NL'", "CAST(NULL AS STRING)"),
            ],
            "build_side": ["'LEFT'", "'RIGHT'", "'LEFT'", "'RIGHT'", "CAST(NULL AS STRING)"],
        },
        [["strategy", "build_side"]],
    ),
    "dynamic_join_selection": Answers(
        ["join.type", "side.is_left", "side.tables", "side.row_count", "other.row_count"],
        [
            *("'BROADCAST'", "'SHUFFLE_HASH'", "'PREFER_SHUFFLE_HASH'", "'SHUFFLE_MERGE'"),
            *("'BROADCAST'", "'SHUFFLE_HASH'", "'NO_BROADCAST_HASH'", "NULL", "'NONSENSE'"),
        ],
        {},
    ),
    "shuffle_partitions": Answers(
        ["shuffles.keys", "shuffles.feeds", "shuffles.tables", "shuffles.known_bytes"],
        [
            *("1", "2", "3", "7", "12", "shuffles.num_partitions * 2", "shuffles.num_partitions"),
            *("NULL", "shuffles.num_partitions + 1", "0", "-1", "2147483647", "61"),
            "shuffles.num_partitions * 2147483647",
        ],
        {},
    ),
    "cost_evaluation": Answers(
        ["plan.is_current", "plan.shuffles", "plan.finished_shuffles", "plan.broadcasts"],
        [
            *("spark.cost", "spark.cost + 1", "0D", "1D", "-spark.cost", "NULL", "double('NaN')"),
            *("if(plan.is_current, 9D, 1D)", "if(plan.is_current, 1D, 9D)", "spark.cost - 1"),
            "double(plan.shuffles + plan.broadcasts)",
            "double(10 - plan.shuffles)",
        ],
        {},
    ),
    "skew_join": Answers(
        ["join.type", "join.strategy", "left.tables", "right.tables", "left.shuffle_bytes"],
        ["NULL"],
        {
            "skew_factor": _numbers("DOUBLE", 1.0, 0.5, 1.3, 3, 1.1, "NULL", 2, "'NaN'"),
            **{
                f"{side}_{what}_bytes": [
                    value.format(side=side) for value in _numbers("BIGINT", *_BYTES)
                ]
                for side in ("left", "right")
                for what in ("threshold", "target")
            },
            "max_splits": _numbers("INT", 2, 3, 1000000, 1, 4, "NULL", 0),
            "force": ["true", "false", "CAST(NULL AS BOOLEAN)"],
            "left_splits": [s.replace("{side}", "left") for s in _SPLITS],
            "right_splits": [s.replace("{side}", "right") for s in _SPLITS],
        },
        [
            *(["left_splits"], ["left_splits", "force"]),
            *(["right_splits"], ["right_splits", "force"]),
            *(["left_splits", "right_splits"], ["left_splits", "right_splits", "force"]),
            ["skew_factor", "left_threshold_bytes", "left_target_bytes", "force"],
            ["skew_factor", "right_threshold_bytes", "right_target_bytes", "force"],
        ],
    ),
    "partition_coalescing": Answers(
        ["stage.num_shuffles", "stage.is_final", "shuffle.tables", "shuffle.row_count"],
        ["NULL"],
        {
            "target_bytes": _numbers("BIGINT", 1024, 3000, 20000, 2**40, 1500, "NULL", 6000, 1, 0),
            "min_partition_bytes": _numbers("BIGINT", 1, 1000, 100000, 3000, "NULL", 0),
            "min_partitions": _numbers("INT", 1, 2, 9, 4, "NULL", 1000000, 0),
            "local_read": ["true", "false", "CAST(NULL AS BOOLEAN)"],
            "keep": ["true", "false", "CAST(NULL AS BOOLEAN)"],
        },
        # One partition holds all that a local read would part.
        [
            *[["local_read", "keep"]] * 2,
            *(["local_read", "target_bytes"], ["keep"], ["target_bytes", "min_partition_bytes"]),
            ["min_partitions", "min_partition_bytes"],
        ],
    ),
    "write_distribution": Answers(
        ["write.columns", "write.dynamic_columns", "input.size_in_bytes", "input.last_shuffle"],
        ["NULL"],
        {
            "rebalance": [*["true"] * 5, "false", "CAST(NULL AS BOOLEAN)"],
            "columns": [
                *["CAST(NULL AS ARRAY<STRING>)", "CAST(array() AS ARRAY<STRING>)"] * 2,
                *("slice(write.columns, 1, 1)", "write.columns", "reverse(write.columns)"),
                *("write.dynamic_columns", "array('nonsense')"),
            ],
            "target_bytes": _numbers("BIGINT", 1024, 3000, 2**40, "NULL", 1500, 1),
        },
        [["rebalance", "columns"], ["rebalance"], ["rebalance", "columns", "target_bytes"]],
    ),
}


# This release has no hook for them.
if pyspark.__version__ == "3.5.0":
    for _point in ("partition_coalescing", "shuffle_partitions", "skew_join"):
        del POINTS[_point]


@st.composite
def texts(draw: st.DrawFn, more: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Draws texts for each point, of which sets of policies take some: to compile one takes longer
    than to plan a small query.

    Args:
        draw: Draws.
        more: By point, SQL texts of facts that answers depend on, beside those of `POINTS`.
    """
    each = {point: _texts(point, more.get(point, [])) for point in POINTS}
    return {point: [draw(one), draw(one)] for point, one in each.items()}


# Functions of the points' names, which give one answer after the other, whatever the facts. What
# has to be decided alike, by our rules or by Spark's, must not hang on equal answers.
BY_TURNS = """
from itertools import cycle

SPLITS = [[2, 2, 2, 2], [1, 1, 1, 1]]
ANSWERS = {
    "join_selection": [
        {"strategy": "SHUFFLE_HASH", "build_side": "RIGHT"},
        {"strategy": "SHUFFLE_MERGE"},
        {"strategy": "BROADCAST", "build_side": "RIGHT"},
        None,
    ],
    "dynamic_join_selection": ["SHUFFLE_HASH", "SHUFFLE_MERGE", None, "BROADCAST"],
    "shuffle_partitions": [3, 2, None, 5],
    "cost_evaluation": [1.0, 9.0, None],
    "skew_join": [{"left_splits": s, "right_splits": s, "force": True} for s in SPLITS],
    "partition_coalescing": [{"local_read": True}, {"keep": True}, {"target_bytes": 3000}],
    "write_distribution": [{"rebalance": True}, None, {"rebalance": True, "columns": []}],
}
TURNS = {point: cycle(answers) for point, answers in ANSWERS.items()}
TURN = cycle([0, 1, 2])


def join_reorder(facts):
    order = list(range(facts.chain.num_relations))
    turn = next(TURN)
    return order if not turn else order[:1] + order[:0:-1] if turn == 1 else order[::-1]


def _of(point):
    return lambda facts: next(TURNS[point])


for _point in ANSWERS:
    globals()[_point] = _of(_point)
"""


@st.composite
def policies(draw: st.DrawFn, points: dict[str, list[str]]) -> dict[str, str]:
    """Draws one or two policies for all decision points, as settings."""
    drawn = {}
    names = draw(st.sampled_from([["first"], ["first", "second"], ["second", "first"]]))
    for name, point in itertools.product(names, POINTS):
        if draw(st.integers(0, 5 if len(names) == 1 else 1)):
            text = f"python:by_turns:{point}" if one_in(draw, 20) else one_of(draw, points[point])
            drawn[f"spark.aqepilot.policy.{name}.{point}"] = text
    named = [name for name in names if any(f".{name}." in key for key in drawn)]
    for name in named:
        mode = draw(st.sampled_from(["", "", "", "", "", "", "enforce", "shadow"]))
        if mode:
            drawn[f"spark.aqepilot.policy.{name}.mode"] = mode
    drawn["spark.aqepilot.policies"] = ",".join(named)
    return drawn


@st.composite
def _texts(draw: st.DrawFn, point: str, more: list[str]) -> str:
    """Draws a policy's text: one of up to four answers, by a hash of facts."""
    facts, values, fields, together = POINTS[point]
    facts = facts + more
    answers = st.sampled_from(values) if values else st.nothing()
    if point == "join_reorder" and not draw(st.integers(0, 3)):
        # Whole orders: an answer of another type, asked for once.
        facts = ["chain.num_relations", "chain.conditions"]
        answers = st.sampled_from(
            [_REVERSED, _REVERSED, _ROTATED, _ROTATED, _SWAPPED, "CAST(NULL AS ARRAY<INT>)"]
        )
    if fields:
        # The same in each branch, whose types must agree.
        names = draw(st.lists(st.sampled_from(list(fields)), min_size=1, max_size=3, unique=True))
        if together and draw(st.integers(0, 2)):
            names = draw(st.sampled_from(together))
        structs = st.tuples(*(st.sampled_from(fields[name]) for name in names)).map(
            lambda chosen: skewed.struct(**dict(zip(names, chosen, strict=True)))
        )
        answers = weighted({structs: 6, answers: 1})
    salt = draw(st.integers(0, 99))
    drawn = draw(st.lists(answers, min_size=1, max_size=4))
    if set(drawn) == {"NULL"}:
        return "NULL"
    by = draw(st.lists(st.sampled_from(facts), min_size=1, unique=True))
    whens = " ".join(f"WHEN {i} THEN {answer}" for i, answer in enumerate(drawn))
    text = f"CASE pmod(hash({', '.join(by)}, {salt}), {len(drawn)}) {whens} END"
    return (text if len(drawn) > 1 else drawn[0]).replace("{salt}", str(salt))
