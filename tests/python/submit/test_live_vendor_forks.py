"""On a vendor's Spark that lacks what we use no query fails, and the status says what is off.

The jar that a job runs with refers to something that no Spark has: see `gapped_jar`. What `aqepilot
doctor --spark-home` reads out of the same jar has to name what the running driver says is off.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

import gapped_jar
import places
import skewed
import submitting
import tiers
from aqepilot.submit import jars
from aqepilot.submit.doctor import links
from gapped_jar import Gap

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
# Spark's own class loader keeps our class for this: so such a job has a JVM of its own.
NO_COSTS = Gap(f"{SQL}execution.adaptive.CostEvaluator", "evaluateCost", is_overridden=True)
# What a Spark lacks, and the points that are off then; None: what fails is left to Spark or said.
GAPS: dict[Gap, set[str] | None] = {
    Gap(f"{SQL}SparkSessionExtensions", "injectPreCBORule"): {"join_reorder", "write_distribution"},
    Gap(f"{SQL}SparkSessionExtensions", "injectQueryPostPlannerStrategyRule"): {
        "shuffle_partitions",
        "skew_join",
        "partition_coalescing",
    },
    Gap(f"{SQL}execution.SparkStrategies", "JoinSelection"): {"join_selection"},
    Gap(f"{SQL}execution.adaptive.ShufflePartitionsUtil", "createSkewPartitionSpecs"): {
        "skew_join"
    },
    # A hook that nobody looks for: the others are registered all the same.
    Gap(f"{SQL}SparkSessionExtensions", "injectRuntimeOptimizerRule"): {"dynamic_join_selection"},
    # What the objects of these two are made with: the others are loaded all the same.
    Gap(f"{SQL}types.MetadataBuilder", "putBoolean"): {"join_selection", "write_distribution"},
    # A class of ours that the facts of one point alone need.
    Gap(f"{SQL}aqepilot.points.dynamic_join_selection.ReplannedJoin"): {"dynamic_join_selection"},
    # What a rule has to do is not what it does.
    Gap(f"{SQL}catalyst.rules.Rule", "apply", is_overridden=True): ALL - {"cost_evaluation"},
    NO_COSTS: {"cost_evaluation"},
    # These failed every session, and with it every query.
    Gap("org.apache.spark.internal.Logging", "$init$"): None,
    Gap("org.apache.spark.network.util.JavaUtils", "timeStringAsMs"): None,
    Gap("org.apache.spark.internal.Logging"): None,
    Gap("org.apache.spark.network.util.JavaUtils"): None,
    Gap(f"{SQL}catalyst.plans.logical.ReturnAnswer", "child"): None,
    # This would have stopped the SparkContext: it ends with a listener that throws an Error.
    Gap(f"{SQL}execution.ui.SparkListenerSQLExecutionStart"): None,
    # This failed where a plan's cost was to be Spark's own.
    Gap(f"{SQL}internal.SessionState"): None,
    # And this took all points away, and the status that would have said so.
    Gap("org.apache.spark.package", "SPARK_VERSION"): None,
}
CASES = tiers.share(GAPS, parts=2)
POLICIES = {
    "join_reorder": "-double(candidate.position)",
    "join_selection": "CASE WHEN size(array_intersect(left.tables, array('d'))) > 0"
    " THEN 'SHUFFLE_HASH' ELSE 'SHUFFLE_MERGE' END",
    "shuffle_partitions": "CASE WHEN shuffles.feeds = array('AGGREGATE') THEN 3 ELSE 5 END",
    "dynamic_join_selection": "CASE WHEN NOT side.is_left THEN 'SHUFFLE_HASH' END",
    "skew_join": skewed.struct(
        left_splits="transform(left.bytes_by_partition_id, (b, i) -> if(i = 1, 2, null))",
        force="true",
    ),
    "cost_evaluation": "spark.cost + plan.broadcast_hash_joins * 100",
    "partition_coalescing": "named_struct('target_bytes', 4096L, 'min_partitions', 1)",
    "write_distribution": "true",
}
SETTINGS = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "8KB",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.files.maxPartitionBytes": "1MB",
    "spark.sql.files.openCostInBytes": "1MB",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1KB",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "4KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "4KB",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.5",
}
OURS = {
    "spark.sql.extensions": submitting.EXTENSION,
    "spark.aqepilot.policies": "all",
    "spark.aqepilot.ask.deadline": "20s",
    **{f"spark.aqepilot.policy.all.{point}": text for point, text in POLICIES.items()},
}
JOB = (places.SUPPORT / "gapped_job.py").read_text("utf-8")


def run(folder: Path, tables: Path, jar: Path | None, own_jvm: bool = False) -> dict[str, Any]:
    """Runs the job with a jar of ours; as plain Spark, which writes the tables."""
    done = submitting.submit(
        folder,
        JOB,
        ["--jars", str(jar)] if jar else [],
        conf=SETTINGS | (OURS if jar else {}),
        job_words=[str(tables), "status" if jar else "write"],
        extension=False,
        own_jvm=own_jvm or tiers.OWN_JVM,
    )
    match = re.search(r"^FOUND (.*)$", done.stdout, re.MULTILINE)
    assert match, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(match[1])
    return answer | {"log": done.stderr}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, tables: Path) -> dict[str, Any]:
    return run(tmp_path_factory.mktemp("plain"), tables, None)


@pytest.fixture
def gapped(tmp_path: Path) -> Callable[[Gap], Path]:
    def make(gap: Gap) -> Path:
        whole = submitting.spark_jar()
        gapped_jar.with_gap(whole, gap, tmp_path / whole.name)
        return tmp_path / whole.name

    return make


@pytest.mark.parametrize("gap", CASES, ids=lambda gap: f"{gap.owner}.{gap.name}".strip("."))
def test_no_query_fails_and_the_status_and_the_doctor_say_what_is_off(
    plain: dict[str, Any],
    tables: Path,
    gapped: Callable[[Gap], Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    gap: Gap,
) -> None:
    jar = gapped(gap)
    answer = run(tmp_path / "job", tables, jar, own_jvm=gap == NO_COSTS)
    assert answer["rows"] == plain["rows"]
    points = {name: (state, why) for kind, name, state, why in answer["status"] if kind == "point"}
    assert set(points) == ALL
    off = {name: why for name, (state, why) in points.items() if state == "off"}
    if GAPS[gap] is not None:
        assert set(off) == GAPS[gap]
        problems = [text for _, name, _, text in answer["status"] if name == "POINT_OFF"]
        assert sorted(problems) == sorted(f"{name} is off: {why}" for name, why in off.items())
        assert all(re.search(f"WARN .*aqepilot.*{name}", answer["log"]) for name in off)
    for why in off.values():
        assert re.search(r"this Spark \([\d.]*\) (lacks|does not fit: )", why)
    monkeypatch.setattr(jars, "find", lambda *_: jar)
    checked = links.check(Path(pyspark.__file__).parent)
    assert checked.missing
    named = {point for lacking in checked.missing for point in lacking.points}
    assert named >= set(off)
    if GAPS[gap] is not None:
        assert named == set(off)
