"""What stages cost beside their work, read off the ends of their tasks, and told of queries."""

from __future__ import annotations

import doctest
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from pyspark.sql import SparkSession

import aqepilot
import event_logs
import made_logs
import tiers
from aqepilot import Log, read_log
from aqepilot.analysis import log as log_module
from aqepilot.analysis.explanation.query import most_expensive
from aqepilot.errors import AqePilotError
from conftest import CommandLine

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

SQL = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
BEGAN = 1_763_800_000_000
Command = Callable[..., Result]


def task(stage: int, launch: int, finish: int, run: int | None, **more: Any) -> str:
    """The end of a task, in milliseconds since the log began; no `run`, no metrics."""
    reason = more.get("reason", "Success")
    metrics = {
        "Executor Run Time": run,
        "Memory Bytes Spilled": more.get("spilled", 0),
        "Disk Bytes Spilled": more.get("spilled", 0),
    }
    return event_logs.event(
        "SparkListenerTaskEnd",
        **{"Stage ID": stage, "Stage Attempt ID": more.get("attempt", 0)},
        **{"Task End Reason": {"Reason": reason}},
        **{"Task Info": {"Launch Time": BEGAN + launch, "Finish Time": BEGAN + finish}},
        **({} if run is None else {"Task Metrics": metrics}),
    )


def stage(number: int, tasks: int, attempt: int = 0) -> str:
    info = {"Stage ID": number, "Stage Attempt ID": attempt, "Stage Name": "s"}
    return event_logs.event(
        "SparkListenerStageSubmitted",
        **{"Stage Info": info | {"Number of Tasks": tasks, "Submission Time": BEGAN}},
        Properties={"spark.sql.execution.id": "1"},
    )


LINES = [
    event_logs.event(
        "SparkListenerApplicationStart",
        **{"App Name": "n", "App ID": "app-1", "Timestamp": BEGAN, "User": "u"},
    ),
    event_logs.event(f"{SQL}ExecutionStart", executionId=1, description="sales", time=BEGAN),
    stage(1, 5),
    # Two slots: the second is free at 1000, 1100 and 1200, and has nothing after 1300.
    task(1, 0, 5000, 4900),
    task(1, 0, 1000, 900, spilled=7),
    task(1, 1000, 1100, 20),
    task(1, 1100, 1200, 30),
    task(1, 1200, 1300, 20),
    task(1, 1300, 1500, 150, reason="ExceptionFailure"),
    # Killed before it ran: Spark's DAGScheduler.postTaskEnd gives no metrics.
    task(1, 1500, 1507, None, reason="TaskKilled"),
    stage(1, 1, attempt=1),
    task(1, 6000, 6400, 390, attempt=1),
    event_logs.event(f"{SQL}ExecutionEnd", executionId=1, time=BEGAN + 9000, errorMessage=""),
]


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "app-1"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def log(spark: SparkSession, log_file: Path) -> Log:
    return read_log(spark, log_file)


@pytest.fixture
def command(spark: SparkSession, log_file: Path, command_line: CommandLine) -> Command:
    return lambda name, *words: command_line(name, "--log", log_file, *words)


def test_stages_say_what_their_tasks_cost(log: Log) -> None:
    first, again = log.stages.orderBy("stage_attempt_id").collect()
    assert first.task_slot_ms == [1000, 5000, 100, 100, 100]
    assert first.slots == 2
    assert first.waiting_ms == 5000 - 1300
    assert first.lost_slot_ms == 207
    assert first.spilled_slot_ms == 1000
    assert (first.tasks, first.killed_tasks) == (7, 1)
    assert first.task_ms == 4900 + 900 + 20 + 30 + 20 + 150
    assert (first.tiny_tasks, first.tiny_start_ms) == (3, 80 + 70 + 80)
    assert (again.slots, again.waiting_ms, again.task_slot_ms) == (1, 0, [400])


def test_costs_of_a_query_are_those_of_its_stages(log: Log) -> None:
    costs = log.costs(slots=5)
    (query,) = costs.queries.collect()
    assert (query.description, query.slot_ms) == ("sales", 6507 + 400)
    assert (query.waiting_ms, query.starting_ms, query.spilled_ms) == (3700, 230, 1000)
    assert query.retried_ms == 207 + 400
    # On their own two slots, and on five: the long task is then alone from 1000 on.
    assert query.own_span_ms == 5000 + 400
    assert query.span_ms == 5000 + 400
    assert query.span_waiting_ms == 4000 + 3 * 4900
    (fingerprint,) = costs.fingerprints.collect()
    assert (fingerprint.key, fingerprint.queries) == ("described: sales", 1)
    assert "span_ms" not in log.costs().queries.columns


def test_tables_of_before_say_that_they_do_not_know(log: Log) -> None:
    from pyspark.sql import functions

    null = functions.lit(None)
    of_before = log.stages.withColumns(
        {"task_slot_ms": null.cast("array<int>"), "slots": null, "waiting_ms": null.cast("bigint")}
    )
    (costs,) = log.replace(stages=of_before).costs(slots=3).fingerprints.collect()
    assert (costs.not_known, costs.waiting_ms, costs.span_ms) == (2, None, None)


def test_the_command_costs(command: Command, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text("currency = 'EUR'\nper_core_hour = 3600\n")
    shown = command("costs", "--slots", "5", "--prices", str(prices))
    assert shown.exit_code == 0, shown.output
    for text in ("sales", "3.7 s", "3.70 EUR", "607 ms", "0.6070 EUR", "5.4 s", "On 5"):
        assert text in shown.stdout
    assert "is an estimate" in shown.stderr
    (row,) = json.loads(command("costs", "--json", "--prices", str(prices)).stdout)
    assert row["cost"]["waiting_ms"] == 3.7


def test_the_command_explain(command: Command) -> None:
    shown = command("explain", "--query", "1")
    assert shown.exit_code == 0, shown.output
    assert "Query 1 (sales): the log has no decision of aqepilot's on it." in shown.stdout
    assert "It ended well after 9.0 s" in shown.stdout
    assert "It had 1 stage tried again, 1 failed task, 1 killed task." in shown.stdout
    assert "waited most in stage 1: 3.7 s in all" in shown.stdout
    listed = command("explain")
    assert listed.stdout.splitlines()[1].split() == [
        *("1", "app-1", "9.0", "s", "6.4", "s", "0", "sales")
    ]
    missing = command("explain", "--query", "7")
    assert missing.exit_code == 1
    assert "the logs have no query 7" in missing.stderr


def test_a_query_in_words(spark: SparkSession) -> None:
    """What Spark knew, what was decided, and what came of it."""
    facts = made_logs.facts(
        query={"description": "sales"},
        side={"size_in_bytes": 2 << 20, "row_count": 1234, "max_bytes": 1 << 20},
    )
    decision = {
        "policy": "p", "answer": "SHUFFLE_HASH", "applied": True, "reason": "APPLIED",
        "fate": "adopted", "final_strategy": "ShuffledHashJoin BuildLeft", "facts": facts,
        "spark_strategy": "SortMergeJoin",
    }  # fmt: skip
    query = {"wall_ms": 2000, "succeeded": False, "error": "out of\nmemory", "joins": ["A", "B"]}
    log = made_logs.log(spark, decisions=[decision], queries=[query, {"log": "l2", "app_id": "b"}])
    sentences = log.explain(1, "app-1")
    for sentence in (
        "Query 1 (sales): 1 decision, 1 applied.",
        "policy `p` said SHUFFLE_HASH; Spark would have planned SortMergeJoin. Adopted",
        "Spark knew: side 2.0 MiB, 1,234 rows, the largest 1.0 MiB.",
        "It failed after 2.0 s: 1.0 s of task time",
        "Spark said: out of",
        "Its last plan joins by A, B.",
    ):
        assert sentence in sentences
    assert {row.app_id for row in most_expensive(log)} == {"app-1", "b"}
    assert [row.app_id for row in most_expensive(log, app_id="b")] == ["b"]
    with pytest.raises(AqePilotError, match="several applications have a query 1: app-1, b"):
        log.explain(1)


def test_the_examples_of_the_log_are_so(
    spark: SparkSession, log_file: Path, tmp_path: Path
) -> None:
    names = {"aqepilot": aqepilot, "spark": spark, "logs": log_file, "folder": tmp_path}
    names["log"] = aqepilot.read_log(spark, log_file)
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    examples = [test for test in finder.find(log_module, globs=names) if test.examples]
    assert len(examples) == 12
    for example in examples:
        assert runner.run(example).failed == 0, example.name
