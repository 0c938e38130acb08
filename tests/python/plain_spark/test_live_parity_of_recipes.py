"""Recipes of all of Spark's own rules together, and null: plans equal plain Spark's.

A part of TPC-H and TPC-DS; `make parity` takes all of them. DuckDB is the oracle for the rows.
"""

from __future__ import annotations

import pytest

import parity
import tiers

# Each of Spark's own rules fires in them, and more than once where stages that end together may
# leave one out.
QUERIES = {"tpch": (2, 7, 11)} | ({"tpcds": (80,)} if tiers.ALL else {})
SETTINGS = tiers.share(parity.SETTINGS)
Results = dict[str, list[parity.Result]]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("parity")
    works = {name: parity.of_recipes(name, numbers, SETTINGS) for name, numbers in QUERIES.items()}
    return {
        name: list(parity.run(work, folder / name, 900, tiers.OWN_JVM))
        for name, work in works.items()
    }


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("workload", QUERIES)
def test_plans_equal_plain_sparks(results: Results, workload: str, setting: str) -> None:
    own = [result for result in results[workload] if result.setting == setting]
    assert len(own) == len(QUERIES[workload])
    for result in own:
        for policies, (ours, *plain) in result.differ.items():
            assert ours == plain[0], f"query {result.query}, {policies}"


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("workload", QUERIES)
def test_sparks_own_rules_fired(results: Results, workload: str, setting: str) -> None:
    """Else equal plans would show nothing."""
    fired = parity.fired(results[workload], setting)
    assert not [what for what in parity.FIRES[setting] if not fired[what]], fired


@tiers.LONG
def test_a_policy_of_another_kind_gives_another_plan(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Else equal plans would show nothing: more tasks than Spark's own rule would start."""
    work = parity.of_recipes("tpch", [4], ["splits"])
    more = "named_struct('min_partitions', spark.num_partitions + 1, 'min_partition_bytes', 1L)"
    work = work._replace(policies={"another": {"partition_coalescing": more}})
    (result,) = parity.run(work, tmp_path_factory.mktemp("parity"), timeout_s=300)
    ours, *plain = result.differ["another"]
    assert "AQEShuffleRead" in ours
    assert plain
