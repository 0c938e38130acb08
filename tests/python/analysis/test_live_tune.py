"""`aqepilot tune` on queries that run: a gain that is there, none, a kill, other rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import aqepilot
import tiers
from aqepilot.analysis.tune.evidence import Choice, Evidence, Proposal, Try
from aqepilot.analysis.tune.runs import SparkRuns
from conftest import CommandLine

pytestmark = tiers.on("4.3")

# In Spark's order the join of a with b comes first, and c leaves nearly nothing of it.
QUERY = """SELECT count(*), sum(hash(a.id, b.id)) FROM numbers a, numbers b, few c
WHERE a.k = b.k AND a.id = c.id"""
LONG = """SELECT max(hash(a.id, b.id, c.id)) FROM numbers a, numbers b, numbers c
WHERE a.k = b.k AND b.k = c.k"""


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    numbers = spark.range(0, 8_000, 1, 1).selectExpr("id", "id % 50 AS k")
    numbers.write.mode("overwrite").saveAsTable("numbers")
    spark.range(0, 5, 1, 1).write.mode("overwrite").saveAsTable("few")
    return spark


def smallest_first(
    choices: Sequence[Choice], starts: Sequence[Proposal], tries: Sequence[Try], limit: int
) -> Proposal | None:
    """Tries the order that begins with the smallest table, and nothing else."""
    (chain,) = [one for one in choices if one.point == "join_reorder"]
    order = next(answer for answer in chain.answers if answer[0] == 2)
    return None if tries else chain.proposal(order)


def test_a_real_gain_becomes_a_policy_for_this_query_and_no_other(
    tables: SparkSession, command_line: CommandLine, tmp_path: Path
) -> None:
    file, out, page = tmp_path / "q.sql", tmp_path / "q.toml", tmp_path / "q.html"
    file.write_text(QUERY)
    words = ("--search", f"{__name__}:smallest_first", "--rounds", "8", "--page", page, "--json")
    run = command_line("tune", file, "--out", out, *words)
    answer = json.loads(run.stdout)
    assert (run.exit_code, answer["policy"], answer["tries"]) == (0, str(out), 1), run.output
    assert answer["fresh"]["verdict"] == "faster"
    assert "Tuning of q" in page.read_text()

    policy = aqepilot.Policy.from_file(out)
    assert list(policy.points) == ["join_reorder"]
    plain = tables.sql(QUERY).collect()
    aqepilot.use(tables, policy)
    assert tables.sql(QUERY).collect() == plain
    tables.sql(QUERY.replace("a.id = c.id", "a.id = c.id AND b.id = c.id")).collect()
    decided = [d for d in aqepilot.decisions(tables) if d.policy == policy.name]
    assert [d.reason for d in decided] == ["APPLIED"]

    again = aqepilot.tune(tables, "SELECT nothing", out)  # its evidence is there
    assert again.evidence == Evidence.read(tmp_path / "q.json")


def test_a_run_is_cancelled_when_its_time_is_over_and_other_rows_are_seen(
    tables: SparkSession,
) -> None:
    runs = SparkRuns(tables, QUERY)
    _, has_same_rows, offered, _ = runs.begin()
    assert has_same_rows
    proposal = smallest_first(offered, (), (), 1)
    assert proposal is not None
    assert runs.first(proposal.answers, 60_000).outcome == "ran"
    runs._rows = [(1, 2)]
    assert runs.first(proposal.answers, 60_000).outcome == "rows_differ"
    runs._query = LONG
    ran = runs.timed((), 300.0)
    assert (ran.outcome, ran.ms) == ("timed_out", 300.0)
    assert tables.sql("SELECT count(*) FROM few").first()[0] == 5


def test_without_a_decision_there_is_nothing_to_tune(tables: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(aqepilot.AqePilotError, match="nothing can be tuned"):
        aqepilot.tune(tables, "SELECT id FROM few", tmp_path / "q.toml")
