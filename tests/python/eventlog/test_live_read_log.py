"""Reading event logs: of every form, whole or broken, and figures as Spark's own store has them."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow
import pytest
from pyspark.sql import SparkSession

import aqepilot
import event_logs
import policies
import submitting
import tiers
from aqepilot import Log, read_log
from aqepilot.analysis import slots
from aqepilot.errors import AqePilotError
from aqepilot.eventlog import files
from aqepilot.eventlog.frames import read_files

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

FRAMES = (
    *("applications", "decisions", "queries", "stages", "policies", "experiments", "sub_plans"),
)
PACKAGE = {"PYTHONPATH": str(Path(aqepilot.__file__).parent.parent)}
Rows = dict[str, list[dict[str, Any]]]
# Whole logs of all codecs are read in one of the tests.
FURTHER = [pytest.param(codec, marks=tiers.LONG) for codec in ("lz4", "snappy")]


class Ran(NamedTuple):
    """A job with its log and what its own Spark said of it."""

    lines: list[str]
    app: str
    store: dict[str, Any]
    decisions: list[dict[str, Any]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("log")
    events = folder / "events"
    events.mkdir()
    run = submitting.submit(
        folder / "job",
        event_logs.JOB,
        conf={
            **event_logs.SETTINGS,
            **policies.conf("'SHUFFLE_HASH'", "loads"),
            "spark.eventLog.dir": events.as_uri(),
        },
        job_words=[str(folder / "a")],
        own_jvm=tiers.OWN_JVM,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    printed = [line.partition(" ") for line in run.stdout.splitlines()]
    (log,) = (f for f in events.iterdir() if not f.name.startswith("."))
    return Ran(
        log.read_text().splitlines(),
        log.name,
        next(json.loads(rest) for word, _, rest in printed if word == "store"),
        [json.loads(rest) for word, _, rest in printed if word == "decision"],
    )


def rows(log: Log, *names: str) -> Rows:
    """Rows without their log, in an order."""
    frames = {}
    for name in names or FRAMES:
        frame = getattr(log, name).drop("log")
        frames[name] = sorted(
            (row.asDict(recursive=True) for row in frame.collect()),
            key=lambda row: json.dumps(row, default=str),
        )
    return frames


@pytest.fixture(scope="module")
def log_file(ran: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plain") / ran.app
    path.write_text("".join(f"{line}\n" for line in ran.lines))
    return path


@pytest.fixture(scope="module")
def expected(log_file: Path, _spark_context: SparkSession) -> Rows:
    return rows(read_log(_spark_context, log_file))


def test_what_the_log_says_of_the_application(ran: Ran, expected: Rows) -> None:
    (app,) = expected["applications"]
    assert (app["app_id"], app["lines"], app["unreadable_lines"]) == (ran.app, len(ran.lines), 0)
    assert app["started"] < app["ended"]
    assert [(e["id"], e["cores"], e["removed"]) for e in app["executors"]] == [("driver", 2, None)]
    assert app["problem"] is None


def test_decisions_are_those_of_the_live_view(ran: Ran, expected: Rows) -> None:
    """Facts, fates and claimed queries included."""
    decided = expected["decisions"]
    # How many records a join has depends on whether its sides end together.
    sides = {(d["execution_id"], d["side"]) for d in decided}
    assert sides == {(n, side) for n, _ in sides for side in ("left", "right")}
    assert len(sides) == 12
    assert {d["point"] for d in decided} == {policies.POINT}
    live = {d["decision_id"]: d for d in ran.decisions}
    assert {d["decision_id"] for d in decided} == set(live)
    for decision in decided:
        # toJSON leaves nulls out.
        known = {k: v for k, v in decision.items() if v is not None and k in DECIDED}
        assert known == {k: v for k, v in live[decision["decision_id"]].items() if k in DECIDED}
    assert any(d["fate"] == "adopted" for d in decided)


DECIDED = {
    *("decision_id", "execution_id", "fingerprint", "point", "join_id", "side", "tables"),
    *("facts_id", "facts", "policy", "revision", "mode", "answer", "spark_answer"),
    *("spark_strategy", "applied", "reason", "detail", "fate", "final_strategy", "subject"),
}


def test_figures_of_stages_are_those_of_sparks_status_store(ran: Ran, expected: Rows) -> None:
    of_store = {
        "num_tasks": "numTasks",
        "failed_tasks": "numFailedTasks",
        "killed_tasks": "numKilledTasks",
        "task_ms": "executorRunTime",
        "gc_ms": "jvmGcTime",
        "input_bytes": "inputBytes",
        "output_bytes": "outputBytes",
        "shuffle_read_bytes": "shuffleReadBytes",
        "shuffle_write_bytes": "shuffleWriteBytes",
        "memory_spill_bytes": "memoryBytesSpilled",
        "disk_spill_bytes": "diskBytesSpilled",
        "name": "name",
    }
    stages = {(s["stage_id"], s["stage_attempt_id"]): s for s in expected["stages"]}
    ended = [s for s in ran.store["stages"] if s["status"] in ("COMPLETE", "FAILED")]
    assert len(ended) > 20
    assert sum(s["shuffleReadBytes"] for s in ended) > 0 < sum(s["outputBytes"] for s in ended)
    assert sum(s["numFailedTasks"] for s in ended) > 0
    for stage in ended:
        figures = stages[stage["stageId"], stage["attemptId"]]
        assert {n: figures[n] for n in of_store} == {n: stage[key] for n, key in of_store.items()}
        assert figures["cpu_ms"] == stage["executorCpuTime"] // 1_000_000
        assert (figures["failure"] is not None) == (stage["status"] == "FAILED")


def test_tasks_of_stages_fill_no_more_slots_than_there_were(expected: Rows) -> None:
    """The driver says that a task is finished after it has given its slot to the next."""
    several = 0
    for stage in expected["stages"]:
        tasks = stage["task_slot_ms"]
        assert sum(tasks) + stage["lost_slot_ms"] == stage["slot_ms"]
        assert min(1, len(tasks)) <= stage["slots"] <= min(2, len(tasks))
        if tasks and stage["completed"]:
            layout = slots.lay_out(tasks, stage["slots"])
            assert max(tasks) <= layout.span_ms <= sum(tasks)
            assert sum(tasks) <= stage["slots"] * layout.span_ms
            assert stage["waiting_ms"] <= stage["slots"] * max(tasks)
            several += len(tasks) > 2
    assert several > 10


def test_figures_of_queries_are_those_of_sparks_status_store(ran: Ran, expected: Rows) -> None:
    queries = {q["execution_id"]: q for q in expected["queries"]}
    stages_of_job = {j["jobId"]: j["stageIds"] for j in ran.store["jobs"]}
    stages = {s["stageId"]: s for s in ran.store["stages"] if s["status"] in ("COMPLETE", "FAILED")}
    assert len(ran.store["sql"]) >= 20
    assert {e["id"] for e in ran.store["sql"]} <= set(queries)
    with_tasks = 0
    for execution in ran.store["sql"]:
        query = queries[execution["id"]]
        assert query["wall_ms"] == execution["duration"]
        assert query["description"] == execution["description"]
        assert query["succeeded"] == (execution["status"] == "COMPLETED")
        jobs = execution["successJobIds"] + execution["failedJobIds"]
        own = [stages[s] for job in jobs for s in stages_of_job[job] if s in stages]
        with_tasks += bool(own)
        assert query["stages"] == len(own)
        assert query["task_ms"] == sum(s["executorRunTime"] for s in own)
        assert query["shuffle_write_bytes"] == sum(s["shuffleWriteBytes"] for s in own)
        assert query["output_bytes"] == sum(s["outputBytes"] for s in own)
        assert query["failed_tasks"] == sum(s["numFailedTasks"] for s in own)
        assert query["executor_core_ms"] == 2 * query["wall_ms"]
        assert query["slot_ms"] >= query["task_ms"]
    assert with_tasks >= 18


def test_a_query_has_the_figures_of_its_closing_event(ran: Ran, expected: Rows) -> None:
    queries = {q["execution_id"]: q for q in expected["queries"]}
    closed = event_logs.closed(ran.lines)
    assert len(closed) >= 5
    for execution, figures in closed.items():
        query = queries[execution]
        assert {name: query[name] for name in figures} == figures
        assert (query["asked_us"] > 0) == (query["decisions"] > 0)
        assert query["planning_ms"] > 0 or not query["decisions"]
        assert query["executor_memory_mib_s"] is None, "the driver is the executor"
    assert sum(queries[execution]["decisions"] > 0 for execution in closed) >= 5
    others = [query for execution, query in queries.items() if execution not in closed]
    assert {query["planning_ms"] for query in others} == {None}
    assert any((query["max_over_median"] or 0) > 1 for query in queries.values())


def test_joins_are_those_of_the_final_plan(expected: Rows) -> None:
    joins = [q["joins"] for q in expected["queries"] if q["decisions"]]
    assert ["ShuffledHashJoin BuildRight"] in joins
    assert all(join.startswith(("ShuffledHashJoin Build", "SortMergeJoin")) for (join,) in joins)


def test_joins_are_found_in_the_stages_that_ran_them(expected: Rows) -> None:
    """By the generated code that both name: a plan has joins, and a stage has times."""
    joined = [q for q in expected["queries"] if q["decisions"] and q["join_nodes"]]
    types = {join["type"] for q in joined for join in q["join_nodes"]}
    assert types == {"Inner", "LeftOuter", "RightOuter", "FullOuter", "LeftSemi"}
    for query in joined:
        assert [join["operator"] for join in query["join_nodes"]] == [
            name.partition(" ")[0] for name in query["joins"]
        ]
        own = [s for s in expected["stages"] if s["execution_id"] == query["execution_id"]]
        for join in query["join_nodes"]:
            assert any(join["scope"] in s["operators"] for s in own)


def test_stages_say_what_is_in_them(expected: Rows) -> None:
    stages = [s for s in expected["stages"] if s["execution_id"] is not None]
    assert any("Window" in s["operators"] for s in stages)
    assert {s["has_shuffled"] for s in stages if s["shuffle_read_bytes"]} == {True}
    assert any(not s["has_shuffled"] for s in stages)
    read = [s for s in stages if s["shuffle_read_records"]]
    assert all(0 < s["max_task_records"] <= s["shuffle_read_records"] for s in read)
    assert {s["writing_tasks"] for s in stages if s["output_bytes"]} == {2}
    assert all(s["rdd_partitions"] >= s["num_tasks"] for s in stages)


@pytest.mark.parametrize("codec", ["zstd", *FURTHER])
def test_compressed_logs(
    codec: str, ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    event_logs.written(spark, ran.lines, tmp_path / f"{ran.app}.{codec}", codec)
    assert rows(read_log(spark, tmp_path)) == expected


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_rolled_logs(
    codec: str | None, ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    log = event_logs.rolled(spark, ran.lines, tmp_path, ran.app, codec)
    whole_log = read_log(spark, tmp_path)
    assert rows(whole_log) == expected
    assert {row.log for row in whole_log.queries.select("log").collect()} == {log.as_uri()}


def test_a_compact_file_stands_for_those_before_it(
    ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    log = event_logs.rolled(spark, ran.lines, tmp_path, ran.app)
    first, second = (log / f"events_{n}_{ran.app}" for n in (1, 2))
    compact = log / f"{second.name}.compact"
    compact.write_text(first.read_text() + second.read_text())
    assert rows(read_log(spark, tmp_path), "applications", "queries") == {
        name: expected[name] for name in ("applications", "queries")
    }


@pytest.mark.parametrize("codec", [None, "zstd", *FURTHER])
def test_a_log_in_progress_that_is_cut_off(
    codec: str | None, ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    """All whole lines are read, however it is compressed; the cut is counted."""
    suffix = f".{codec}" if codec else ""
    log = tmp_path / f"{ran.app}{suffix}.inprogress"
    event_logs.written(spark, ran.lines, log, codec)
    data = log.read_bytes()
    cut = len(data) * 3 // 4
    if not codec:
        cut = data.rindex(b"\n", 0, cut) + len('\n{"Event":')
    log.write_bytes(data[:cut])
    whole_log = read_log(spark, tmp_path)
    (app,) = rows(whole_log, "applications")["applications"]
    assert app["ended"] is None
    assert app["unreadable_lines"] == 1 or (codec and app["unreadable_lines"] == 0)
    assert (app["problem"] is not None) == (codec is not None)
    assert app["lines"] > len(ran.lines) // 2
    queries = rows(whole_log, "queries")["queries"]
    assert [q for q in queries if q["ended"]]
    if not codec:
        whole = data[:cut].decode().splitlines()[:-1]
        assert app["lines"] == len(whole) + 1
        started = {json.loads(e)["executionId"] for e in whole if "SQLExecutionStart" in e[:90]}
        assert {q["execution_id"] for q in queries} == started


def test_broken_lines_are_counted_and_the_others_are_read(
    ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    middle = len(ran.lines) // 2
    broken = ['{"Event":"SparkListenerTaskEnd","Stage ID":', "no event", "[1]", "\x00\x01", "{}"]
    lines = [*ran.lines[:middle], *broken, *ran.lines[middle:]]
    event_logs.written(spark, lines, tmp_path / ran.app)
    frames = rows(read_log(spark, tmp_path))
    (app,) = frames.pop("applications")
    assert app["unreadable_lines"] == len(broken)
    assert frames == {name: expected[name] for name in FRAMES if name != "applications"}


def test_a_file_that_breaks_off_while_it_is_read_is_told(
    ran: Ran, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark goes on with the next file, without a word."""
    log = event_logs.rolled(spark, ran.lines, tmp_path, ran.app)
    whole_log = read_log(spark, tmp_path)
    assert whole_log.applications.first().problem is None
    listed = files.find(spark, [tmp_path])
    grown = [file._replace(bytes=file.bytes + 100 * ("_2_" in file.path)) for file in listed]
    (app,) = read_files(spark, grown).applications.collect()
    size = (log / f"events_2_{ran.app}").stat().st_size
    assert app.problem == f"events_2_{ran.app}: only {size} of {size + 100} bytes could be read."
    assert app.lines == len(ran.lines)


def test_decisions_have_whole_facts_whatever_their_events_share(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What every point has is once in a query's events; in schema version 1 in each."""

    def decided(number: int, execution: int | None, facts_id: str, **fields: Any) -> str:
        return event_logs.event(
            "io.aqepilot.log.AqePilotDecision",
            **{"time": number, "decisionId": number, "sessionId": "s", "executionId": execution},
            **{"point": "skew_join", "factsId": facts_id, "mode": "enforce", "applied": False},
            **{"reason": "NULL_ANSWER", "askedMicros": 1.0},
            **fields,
        )

    lines = [
        decided(1, 7, "a", facts='{"left":1}', commonFactsId="c", commonFacts='{"conf":1}'),
        decided(2, 7, "a"),
        decided(3, 7, "b", facts='{"left":2}', commonFactsId="c"),
        decided(4, 7, "d", facts='{"left":3}', commonFactsId="e", commonFacts='{"conf":2}'),
        decided(5, None, "a", facts='{"left":4}', commonFactsId="c", commonFacts='{"conf":3}'),
        decided(6, 8, "a", facts='{"conf":4,"left":5}'),
        decided(7, 8, "b", facts='{"left":6}', commonFactsId="lost"),
        decided(8, 8, "lost"),
    ]
    event_logs.written(spark, lines, tmp_path / "app-1")
    decisions = read_log(spark, tmp_path).decisions.orderBy("decision_id").collect()
    assert [row.facts for row in decisions] == [
        *('{"conf":1,"left":1}', '{"conf":1,"left":1}', '{"conf":1,"left":2}'),
        *('{"conf":2,"left":3}', '{"conf":3,"left":4}', '{"conf":4,"left":5}', None, None),
    ]


def test_a_cartesian_product_is_a_join(spark: SparkSession, tmp_path: Path) -> None:
    plan = {
        "nodeName": "CartesianProduct",
        "simpleString": "CartesianProduct",
        "children": [{"nodeName": "SortMergeJoin(skew=true)", "children": []}],
    }
    sql = "org.apache.spark.sql.execution.ui.SparkListenerSQL"
    start = event_logs.event(f"{sql}ExecutionStart", executionId=1, time=5, sparkPlanInfo=plan)
    event_logs.written(spark, [start], tmp_path / "app-1")
    (query,) = read_log(spark, tmp_path).queries.collect()
    assert query.joins == ["CartesianProduct", "SortMergeJoin"]
    assert [(join.operator, join.scope) for join in query.join_nodes] == [
        ("CartesianProduct", "CartesianProduct"), ("SortMergeJoin", "SortMergeJoin(skew=true)"),
    ]  # fmt: skip


def test_many_applications_at_once(
    ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    """With a file that is no log beside them."""
    for n, codec in enumerate((None, "zstd", "lz4", "snappy")):
        app = f"app-{n}"
        suffix = f".{codec}" if codec else ""
        own = event_logs.renamed(ran.lines, ran.app, app)
        event_logs.written(spark, own, tmp_path / f"day={n % 2}" / f"{app}{suffix}", codec)
    (tmp_path / "notes.txt").write_text("not a log\n")
    (tmp_path / "empty").touch()
    log = read_log(spark, tmp_path)
    apps = {a["app_id"]: a for a in rows(log, "applications")["applications"]}
    assert set(apps) == {None, "app-0", "app-1", "app-2", "app-3"}
    assert (apps[None]["lines"], apps[None]["unreadable_lines"]) == (1, 1)
    for name in ("queries", "stages", "decisions"):
        counts = getattr(log, name).groupBy("app_id").count().collect()
        assert dict(counts) == {f"app-{n}": len(expected[name]) for n in range(4)}


READ_QUERIES = """
import sys
from pyspark.sql import SparkSession
from aqepilot import read_log
spark = SparkSession.builder.getOrCreate()
for path in sys.argv[1:]:
    for row in read_log(spark, path).queries.where("execution_id = 10000").collect():
        print("large", row.description, row.ended)
    print("queries", read_log(spark, path).queries.count())
spark.stop()
"""


def test_a_large_event(ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path) -> None:
    """It takes memory of its own size several times, whatever the size of its log."""
    megabytes = 200 if tiers.ALL else 20
    large = event_logs.event(
        "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart",
        executionId=10_000,
        description="large",
        physicalPlanDescription="x" * (megabytes << 20),
        time=1_700_000_000_000,
    )
    lines = [*ran.lines, large]
    plain = event_logs.written(spark, lines, tmp_path / "plain" / ran.app)
    packed = tmp_path / "packed" / f"{ran.app}.zstd"
    packed.parent.mkdir()
    pyarrow.output_stream(packed, compression="zstd").write(plain.read_bytes())
    run = submitting.submit(
        tmp_path / "job",
        READ_QUERIES,
        job_words=[str(plain), str(packed)],
        extension=False,
        env=PACKAGE,
        master="local[1]",
        memory="2g",
        timeout_s=400,
        own_jvm=tiers.OWN_JVM,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    queries = len(expected["queries"]) + 1
    assert run.stdout.splitlines() == ["large large None", f"queries {queries}"] * 2


def test_a_log_without_aqepilot(
    ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    """Queries and stages have the same figures as with it."""
    plain = [line for line in ran.lines if "io.aqepilot.log" not in line[:40]]
    event_logs.written(spark, plain, tmp_path / ran.app)
    frames = rows(read_log(spark, tmp_path))
    assert frames["decisions"] == frames["policies"] == []
    assert frames["stages"] == expected["stages"]
    ours = {
        "fingerprint": None,
        "decisions": 0,
        "dropped_events": None,
        "job": None,
        "run": None,
        "attempt": None,
        "planning_ms": None,
        "asked_us": None,
    }

    def in_order(queries: list[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(query, default=str) for query in queries)

    assert in_order(frames["queries"]) == in_order([q | ours for q in expected["queries"]])


def test_queries_with_decisions_say_which_run_of_which_job_they_are(expected: Rows) -> None:
    (application,) = expected["applications"]
    runs = {(q["job"], q["run"], q["attempt"]) for q in expected["queries"] if q["decisions"]}
    assert runs == {(application["app_name"], application["app_id"], None)}


def test_whatever_the_session_sets(
    log_file: Path, expected: Rows, new_session: Callable[[], SparkSession]
) -> None:
    session = new_session()
    for key, value in {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.files.maxPartitionBytes": "256k",
    }.items():
        session.conf.set(key, value)
    assert rows(read_log(session, log_file)) == expected


def test_nothing_there(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(AqePilotError, match="no event log in"):
        read_log(spark, tmp_path)
    with pytest.raises(AqePilotError, match=r"there is nothing at .*gone"):
        read_log(spark, tmp_path / "gone")


NOT_PERMITTED = """
import sys
from pyspark.sql import SparkSession
from aqepilot import read_log
spark = SparkSession.builder.getOrCreate()
try:
    read_log(spark, sys.argv[1] + "/closed")
except Exception as error:
    print(type(error).__name__, error)
log = read_log(spark, sys.argv[1] + "/open")
print("queries", log.queries.count())
for row in log.applications.orderBy("log").collect():
    print("log", row.log.rpartition("/")[2], row.lines, row.problem)
spark.stop()
"""


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv, to be no super-user")
def test_what_may_not_be_read(
    ran: Ran, expected: Rows, spark: SparkSession, tmp_path: Path
) -> None:
    """A folder is refused by name; a file among others does not cost these."""
    event_logs.written(spark, ran.lines, tmp_path / "open" / ran.app)
    other = event_logs.written(spark, ran.lines, tmp_path / "open" / "app-1")
    (tmp_path / "closed").mkdir()
    capabilities = "-dac_override,-dac_read_search"
    launcher = ["setpriv", f"--bounding-set={capabilities}", f"--inh-caps={capabilities}"]
    command, environment = submitting.prepared(
        tmp_path / "job",
        NOT_PERMITTED,
        job_words=[str(tmp_path)],
        extension=False,
        env=PACKAGE,
    )
    other.chmod(0)
    (tmp_path / "closed").chmod(0)
    try:
        run = subprocess.run(
            [*launcher, *command],
            cwd=tmp_path / "job",
            env=environment,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    finally:
        (tmp_path / "closed").chmod(0o700)
    assert run.returncode == 0, run.stderr[-3000:]
    assert "AqePilotError" in run.stdout
    assert "may not be read" in run.stdout
    assert "closed" in run.stdout
    assert f"queries {len(expected['queries'])}" in run.stdout
    shown = [line.split(" ", 3)[1:] for line in run.stdout.splitlines() if line.startswith("log ")]
    assert [ran.app, str(len(ran.lines)), "None"] in shown
    ((_, lines, problem),) = [row for row in shown if row[0] == "app-1"]
    assert lines == "0"
    assert "may not be read" in problem
