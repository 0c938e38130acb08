"""`aqepilot bench`: which arm is faster is told from runs, and each arm has its own policies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import DataFrame, SparkSession

import plans
import tiers
from aqepilot.analysis.bench import queries
from aqepilot.analysis.bench.pairs import Paired, bench
from aqepilot.cli import main as cli
from aqepilot.errors import AqePilotError, PolicyError
from commands import aqepilot_command

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

BROADCASTS = {"name": "broadcasts", "join_selection": "'BROADCAST'"}
Taking = Callable[[float, float], Callable[[SparkSession], None]]
JOIN = "SELECT a.n, b.n AS m FROM rows a JOIN rows b ON a.k = b.k"


@pytest.fixture
def tables(spark: SparkSession) -> SparkSession:
    spark.sql("SELECT id AS n, id % 7 AS k FROM range(50)").createOrReplaceTempView("rows")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    return spark


def is_plain(spark: SparkSession) -> bool:
    return spark.conf.get("spark.aqepilot.mode", None) == "off"


@pytest.fixture
def taking(monkeypatch: pytest.MonkeyPatch) -> Taking:
    """``taking(plain, treated)``: a query that takes so long in each arm, give or take 5 %.

    By a clock that nothing else of this machine moves.
    """
    now, noise = [0.0], random.Random(1)
    clock = SimpleNamespace(perf_counter=lambda: now[0])
    monkeypatch.setattr("aqepilot.analysis.bench.pairs.time", clock)

    def query(plain: float, treated: float) -> Callable[[SparkSession], None]:
        def run(spark: SparkSession) -> None:
            now[0] += (plain if is_plain(spark) else treated) * noise.uniform(0.95, 1.05)

        return run

    return query


def last(spark: SparkSession, query: Any, **how: Any) -> Paired:
    *_, result = bench(spark, {"q": query}, [BROADCASTS], seed=1, warm_up=0, **how)
    return result


def test_each_arm_has_its_policies_and_the_sessions_views_and_settings(
    tables: SparkSession,
) -> None:
    ran: dict[bool, set[str]] = {True: set(), False: set()}

    def query(spark: SparkSession) -> None:
        df = spark.sql(JOIN)
        df.collect()
        ran[is_plain(spark)] |= {text.split()[0] for text in plans.strategies(df)}

    result = last(tables, query, rounds=2)
    assert result.queries[0].error is None
    assert ran == {True: {"SortMergeJoin"}, False: {"BroadcastHashJoin"}}
    assert result.queries[0].applied == 1
    assert tables.conf.get("spark.aqepilot.policies", None) is None


def test_a_dataframe_is_run_and_thrown_away(tables: SparkSession) -> None:
    counted = tables.sparkContext.accumulator(0)

    def query(spark: SparkSession) -> DataFrame:
        count = spark.udf.register("count_row", lambda k: counted.add(1) or k, "long")
        return spark.table("rows").select(count("k"))

    result = last(tables, query, rounds=1)
    assert result.queries[0].error is None
    assert counted.value == 100


@pytest.mark.parametrize(
    ("treated", "verdict"), [(0.02, "faster"), (0.18, "slower"), (0.06, "same")]
)
def test_it_ends_when_the_verdict_is_clear(
    tables: SparkSession, taking: Taking, treated: float, verdict: str
) -> None:
    result = last(tables, taking(0.06, treated), rounds=60, margin=0.3)
    assert result.verdict == verdict
    assert result.rounds < 60
    assert bool(result.harmed) == (verdict == "slower")


def test_it_goes_on_for_the_verdict_on_each_query_if_told_to(
    tables: SparkSession, taking: Taking
) -> None:
    each = {"better": taking(0.06, 0.01), "worse": taking(0.01, 0.02)}
    *_, result = bench(tables, each, [BROADCASTS], rounds=12, all_rounds=True, seed=1)
    assert (result.rounds, result.verdict) == (12, "faster")
    assert [verdict.query for verdict in result.harmed] == ["worse"]


def test_after_the_last_round_it_may_be_open(tables: SparkSession, taking: Taking) -> None:
    result = last(tables, taking(0.02, 0.02), rounds=3)
    assert (result.rounds, result.verdict) == (3, "open")


def test_a_query_that_fails_with_the_policies_only_breaks_it(tables: SparkSession) -> None:
    def query(spark: SparkSession) -> None:
        if not is_plain(spark):
            raise ValueError("no\nwhole trace")

    result = last(tables, query, rounds=5)
    assert (result.rounds, result.verdict) == (1, "broken")
    assert result.queries[0].error == "no"


def test_a_query_that_fails_anyway_breaks_nothing(tables: SparkSession) -> None:
    result = last(tables, "SELECT nothing FROM rows", rounds=2)
    assert result.verdict == "open"
    assert result.queries[0].control_ms is None
    assert (result.queries[0].control_errors, result.queries[0].treatment_errors) == (2, 2)


def test_two_policies_are_compared(tables: SparkSession) -> None:
    merges = {"name": "merges", "join_selection": "'SHUFFLE_MERGE'"}
    result = last(
        tables, lambda s: s.conf.get("spark.aqepilot.policies"), control=[merges], rounds=1
    )
    assert result.queries[0].error is None


def test_orders_are_turned_round(tables: SparkSession, taking: Taking, tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    each = {name: taking(1, 1) for name in "ab"}
    for _ in bench(tables, each, [BROADCASTS], rounds=4, warm_up=1, seed=3, runs=file):
        pass
    runs = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(runs) == 20
    for name in "ab":
        first = [
            next(run["arm"] for run in runs if (run["round"], run["query"]) == (number, name))
            for number in range(5)
        ]
        assert {*first[0:2]} == {*first[2:4]} == {"control", "treatment"}


def test_what_is_wrong_is_said_before_anything_runs(tables: SparkSession) -> None:
    def never(spark: SparkSession) -> None:
        raise AssertionError

    with pytest.raises(PolicyError):
        next(bench(tables, {"q": never}, [{"name": "p", "join_selection": "no_such.fact"}]))
    with pytest.raises(AqePilotError, match="no query"):
        next(bench(tables, {}, [BROADCASTS]))
    with pytest.raises(AqePilotError, match="cannot write"):
        next(bench(tables, {"q": never}, [BROADCASTS], runs="/no/such/folder/runs"))


def test_a_setup_that_fails_says_where(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "setup.sql"
    file.write_text("SELECT 1;\nSELECT nothing;\n")
    with pytest.raises(AqePilotError, match=r"statement 2 \(SELECT nothing\) fails"):
        queries.set_up(spark, file)
    file.write_bytes(b"\xff")
    with pytest.raises(AqePilotError, match="not UTF-8"):
        queries.set_up(spark, file)


def test_tables_are_files_and_folders(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(str(tmp_path / "folder"))
    spark.range(4).coalesce(1).write.parquet(str(tmp_path / "named.parquet"))
    (tmp_path / "other").mkdir()
    assert queries.register(spark, tmp_path) == ["folder", "named"]
    assert spark.sql("SELECT * FROM folder JOIN named USING (id)").count() == 3
    with pytest.raises(AqePilotError, match="no Parquet files"):
        queries.register(spark, tmp_path / "other")


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["bench", *map(str, words)])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "join.sql").write_text(f"-- a join\n{JOIN};\n")
    (tmp_path / "policy.toml").write_text('name = "broadcasts"\njoin_selection = "\'BROADCAST\'"\n')
    return tmp_path


def test_bad_files_are_named(files: Path) -> None:
    (files / "empty").mkdir()
    (files / "two.sql").write_text("SELECT 1;\nSELECT 2;\n")
    (files / "join.sql").write_text("")
    policy = ("--policy", files / "policy.toml")
    names = ("empty", "two.sql", "queries", "join.sql")
    done = run(*(files / name for name in names), *policy)
    assert done.exit_code == 1
    for text in ("no *.sql", "here are 2", "here are 0", "another file is called join"):
        assert text in done.output
    assert run(files / "queries", *policy, "--conf", "x=1").exit_code == 2
    assert run(files / "none.sql", *policy).exit_code == 2


def test_the_command_tells_what_it_found(files: Path) -> None:
    """A Spark of its own, as a user starts it."""
    (files / "setup.sql").write_text(
        "CREATE TEMPORARY VIEW rows AS\n"
        "SELECT id AS n, id % 7 AS k FROM range(50);\n"
        "CREATE TEMPORARY VIEW unread AS SELECT 1;\n"
    )
    done = aqepilot_command(
        *("bench", files / "queries", "--setup", files / "setup.sql"),
        *("--policy", files / "policy.toml", "--runs", files / "runs.jsonl", "--json"),
        *("--conf", "spark.sql.autoBroadcastJoinThreshold=-1", "--master", "local[1]"),
        *("--rounds", 2, "--warm-up", 1, "--seed", 1),
    )
    answer = json.loads(done.stdout)
    assert answer["rounds"] == 2
    assert answer["log_ratio"]["lower"] is None
    assert [(query["query"], query["applied"]) for query in answer["queries"]] == [("join", 1)]
    assert done.returncode == 0
    assert len((files / "runs.jsonl").read_text().splitlines()) == 6
