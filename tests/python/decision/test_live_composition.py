"""Beside an extension with a rule of each kind, before or after ours: its work stands."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pyspark
import pytest

import compiled
import parity
import places
import plans
import skewed
import submitting
import tiers
from aqepilot import recipes

pytestmark = tiers.on("3.5")

PLATFORM = "platform.Extension"
ORDERS = {
    "before": f"{PLATFORM},{submitting.EXTENSION}",
    "after": f"{submitting.EXTENSION},{PLATFORM}",
}
ADAPTIVE = "spark.sql.adaptive."
JOIN = "SELECT count(*), sum(hash(l.k, l.v, r.w)) FROM l JOIN r ON l.k = r.k"
GROUPED = "SELECT k, count(*) FROM l GROUP BY k"
COALESCES = {ADAPTIVE + "coalescePartitions.enabled": "true"}
FEW = "named_struct('target_bytes', 100000000, 'min_partitions', 1)"
MERGE = "named_struct('strategy', 'SHUFFLE_MERGE')"
SPLIT = skewed.struct(
    left_splits="transform(left.bytes_by_partition_id, (b, i) -> if(i = 5, 3, 1))"
)


class Case(NamedTuple):
    """A query, and what the other extension's rules are to do beside it."""

    name: str
    sql: str
    does: str = ""
    settings: Mapping[str, str] = MappingProxyType({})
    point: str = ""
    decision: str = ""

    @property
    def policies(self) -> dict[str, dict[str, str]]:
        """A policy that would have it otherwise."""
        return {"otherwise": {self.point: self.decision}} if self.point else {}


# The order of rules with numbers is Spark's: a filter that is in the plan at first ends with 7010.
KINDS = Case(
    "a rule of each kind",
    "SELECT /*+ PLATFORM */ k, w FROM (SELECT k, w, n FROM r WHERE n + 7000 > 5 AND n + 7100 > 6"
    " SORT BY n)",
    # Else a plan without a shuffle is not adaptive.
    settings={ADAPTIVE + "forceApply": "true"},
)
NESTED = Case("another query", JOIN, "nested", point="shuffle_partitions", decision="5")
CASES = (
    KINDS,
    Case("reads", GROUPED, "reads", COALESCES, "partition_coalescing", FEW),
    Case("splits", JOIN, "split", point="skew_join", decision=SPLIT),
    Case("splits of Spark's", JOIN, "", skewed.SPLITS),
    Case("takes splits back", JOIN, "whole", skewed.SPLITS, "skew_join", SPLIT),
    Case("numbers", JOIN, "numbers", point="shuffle_partitions", decision="5"),
    NESTED,
    Case("hash joins", JOIN, "hash"),
    Case("hints", JOIN, "hint", point="dynamic_join_selection", decision="'SHUFFLE_MERGE'"),
    Case("hints for a strategy", JOIN, "hint", point="join_selection", decision=MERGE),
    Case("plans joins", JOIN, "plans", point="join_selection", decision=MERGE),
)
JOINS = ("hint", "plans")
DECIDED = [case for case in CASES if case.point and case is not NESTED and case.does not in JOINS]
# What Spark asks of all extensions again until none changes the plan, or of the first that answers.
EITHER = [case for case in CASES if case.does in JOINS]
NAMES = [case.name for case in CASES]
# What each does is in the plan.
SEEN = {
    "a rule of each kind": "7010",
    "reads": "ShuffleQueryStage",
    "splits": "PartialReducerPartitionSpec(0,0,1,0)",
    "splits of Spark's": "SortMergeJoin(skew=true)",
    "takes splits back": "SortMergeJoin ",
    "numbers": ", 7), ENSURE_REQUIREMENTS",
    "another query": ", 8), ENSURE_REQUIREMENTS",
    "hash joins": "ShuffledHashJoin",
    "hints": "ShuffledHashJoin",
    "hints for a strategy": "ShuffledHashJoin",
    "plans joins": "BuildLeft",
}
SETS = ("none", "nothing", "recipes") if tiers.ALL else ("recipes",)
Results = dict[tuple[str, str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, spark_jar: Path) -> Results:
    """What each query came to, by order of the extensions, case and policies."""
    folder = tmp_path_factory.mktemp("composition")
    here = places.SUPPORT
    source = (here / "other_extension.scala").read_text("utf-8")
    platform = compiled.jar(folder, source)
    texts = dict[str, str]()
    for name in parity.SPARKS_OWN:
        texts |= recipes.get(name, spark=pyspark.__version__).texts()
    policies = {"none": {}, "nothing": dict.fromkeys(texts, "NULL"), "recipes": texts}
    policies = {name: policies[name] for name in SETS}
    decided = {"alone": [], "before": [*DECIDED, *EITHER, NESTED], "after": EITHER}
    orders = {
        order: {
            "extensions": extensions,
            "cases": [
                case._asdict()
                | {"settings": dict(case.settings)}
                | {"policies": case.policies if case in decided[order] else {}}
                for case in CASES
            ],
            "policies": policies if order != "alone" else {"none": {}},
        }
        for order, extensions in {"alone": PLATFORM, **ORDERS}.items()
    }
    lines = submitting.lines(
        folder / "job",
        (here / "composition_job.py").read_text("utf-8"),
        600,
        conf=plans.METADATA_IN_FULL
        | plans.INTERPRETED
        | {"spark.jars": f"{platform},{spark_jar}", "spark.log.level": "WARN"},
        extension=False,
        job_words=[json.dumps({"folder": str(folder / "tables"), "orders": orders})],
        env={"PYTHONPATH": os.pathsep.join([str(here), os.getenv("PYTHONPATH", "")])},
        master="local[1]",
        own_jvm=tiers.OWN_JVM,
    )
    answers: Results = {}
    for line in lines:
        if line.startswith("RESULT "):
            order, case, which, result = json.loads(line.removeprefix("RESULT "))
            answers[order, case, which] = result
    return answers


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", NAMES)
def test_the_other_extension_did_something(results: Results, name: str) -> None:
    """Else equal plans would show nothing."""
    alone = results["alone", name, "none"]
    assert SEEN[name] in alone["plan"]
    if name == KINDS.name:
        expected = {"pre-operator optimization": int(pyspark.__version__ >= "4.3"), "join": 0}
        assert {kind: n for kind, n in alone["did"].items() if n != 1} == {
            kind: n for kind, n in expected.items() if n != 1
        }
        assert "LocalSort" in alone["plan"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("policies", SETS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", NAMES)
def test_it_does_the_same_beside_ours(
    results: Results, name: str, order: str, policies: str
) -> None:
    alone, beside = results["alone", name, "none"], results[order, name, policies]
    assert beside["plan"] == alone["plan"]
    assert beside["rows"] == alone["rows"]
    assert beside["did"] == alone["did"]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", DECIDED, ids=lambda case: case.name)
def test_a_decision_does_not_overrule_it(results: Results, case: Case) -> None:
    alone, beside = (
        results["alone", case.name, "none"],
        results["before", case.name, "otherwise"],
    )
    assert beside["plan"] == alone["plan"]
    assert beside["reasons"] == [[case.point, "OTHER_EXTENSION"]]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", EITHER, ids=lambda case: case.name)
def test_a_decision_on_a_join_does_not_overrule_it_in_either_order(
    results: Results, case: Case, order: str
) -> None:
    alone, beside = (
        results["alone", case.name, "none"],
        results[order, case.name, "otherwise"],
    )
    assert beside["plan"] == alone["plan"]
    assert beside["did"] == alone["did"]
    # A strategy that stands before ours leaves nothing to ask about.
    is_asked = case.does != "plans" or order == "after"
    assert ([case.point, "OTHER_EXTENSION"] in beside["reasons"]) == is_asked


@pytest.mark.timeout(900)
def test_a_query_that_runs_meanwhile_does_not_mix_with_the_one_that_is_planned(
    results: Results,
) -> None:
    """Else what that one's author wants of its result would be asked of this plan."""
    alone = results["alone", NESTED.name, "none"]
    beside = results["before", NESTED.name, "otherwise"]
    assert beside["plan"] == alone["plan"].replace(", 8), ENSURE", ", 5), ENSURE")
    assert beside["reasons"] == [[NESTED.point, "APPLIED"]]
    assert beside["rows"] == alone["rows"]
