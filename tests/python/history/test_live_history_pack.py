"""A pack holds what the newest runs measured, is replaced as a whole, and depends on logs alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import event_logs
import made_logs
import tiers
from aqepilot import Log, history, read_log
from aqepilot.errors import AqePilotError
from aqepilot.eventlog.frames import columns as log_columns
from aqepilot.history import columns, decided, holding
from conftest import CommandLine

pytestmark = [tiers.on("4.3"), tiers.READS_LOGS]

BEGIN = datetime(2026, 11, 1, 2, tzinfo=timezone.utc)
FINGERPRINT = "f00d" * 16
SIDE, SHUFFLE, SHAPE = "00000000000000aa", "ffffffffffffff01", "00000000000000cc"
LEARNED = "CASE WHEN right.history.rows_p50 < 10 THEN 'BROADCAST' END"
Rows = list[dict[str, Any]]


def at(day: float) -> datetime:
    return BEGIN + timedelta(days=day)


def signed(name: str) -> int:
    return int.from_bytes(bytes.fromhex(name), "big", signed=True)


class Days:
    """Runs of one query, a log for each, as a made log."""

    def __init__(self, **more: Any) -> None:
        self.more = more
        self.frames: dict[str, Rows] = {"sub_plans": [], "decisions": [], "queries": []}
        self.policies: Rows = []

    def run(
        self,
        day: float,
        task_ms: int | None = 1000,
        by: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Days:
        """Adds a run.

        Args:
            day: When it ended.
            task_ms: Its task time; null for a run whose driver was gone before the end.
            by: What its one decision by history differs in; null for a run without.
            more: Values of all of its sub-plans.
        """
        log = {"log": f"file:///logs/app-{day}", "app_id": f"app-{day}"}
        own = {**log, "time": at(day), "fingerprint": FINGERPRINT, "input_bytes": 500}
        own |= self.more | more
        if task_ms is not None:
            self.frames["sub_plans"] += [
                {**own, "kind": "QUERY", "same": FINGERPRINT[:16], "shape": FINGERPRINT[:16],
                 "task_ms": task_ms},
                {**own, "same": SIDE, "shape": SHAPE, "row_count": 7 + int(day), "bytes": 90},
                {**own, "kind": "SHUFFLE", "same": SHUFFLE, "shape": SHUFFLE, "row_count": 5,
                 "shuffle_bytes": 40, "partitions": 3, "task_ms": 20, "read_bytes": 40},
            ]  # fmt: skip
        ended = at(day) if task_ms is not None else None
        self.frames["queries"].append({**log, "fingerprint": FINGERPRINT, "ended": ended})
        if by is not None:
            known = {"signature": SIDE, "runs": 2, "match": "SAME"} | by.get("history", {})
            unseen = {"signature": SHUFFLE, "runs": None}
            facts = made_logs.facts(
                query={"job": own.get("job", "daily.sales"), "history": {"runs": 2}},
                left={"history": unseen}, right={"size_in_bytes": 5, "history": known},
            )  # fmt: skip
            decision = {
                **log, "time": at(day), "fingerprint": FINGERPRINT, "point": "join_selection",
                "policy": "learned", "revision": "r1", "answer": "BROADCAST", "applied": True,
                "reason": "OK", "fate": "adopted", "facts": facts,
            }  # fmt: skip
            changed = {key: value for key, value in by.items() if key not in ("history", "text")}
            self.frames["decisions"].append(decision | changed)
            policy = {"policy": "learned", "point": "join_selection", "revision": "r1"}
            self.policies.append({**log, **policy, "text": by.get("text", LEARNED)})
        return self

    def log(self, spark: SparkSession) -> Log:
        return made_logs.log(spark, policies=self.policies, **self.frames)


def rows(spark: SparkSession, path: Path) -> Rows:
    return [row.asDict() for row in spark.read.parquet(str(path)).collect()]


def held(pack: history.Pack) -> dict[tuple[str, str], float]:
    """Until which day each signature is held."""
    return {(one.signature, one.form): (one.until - BEGIN) / timedelta(days=1) for one in pack.held}


@pytest.fixture
def to(tmp_path: Path) -> Path:
    return tmp_path / "history.parquet"


def test_a_pack_has_its_columns_in_order_and_one_file(spark: SparkSession, to: Path) -> None:
    Days().run(0).run(1).log(spark).history(to)
    assert to.is_file()
    assert [file.name for file in to.parent.iterdir()] == [to.name]
    schema = spark.read.parquet(str(to)).schema
    assert [(f.name, f.dataType.simpleString()) for f in schema] == [
        (column.name, column.type) for column in columns.COLUMNS
    ]
    packed = rows(spark, to)
    assert {row["version"] for row in packed} == {1}
    order = [(row["signature"], row["form"], row["kind"], -row["run_ms"]) for row in packed]
    assert order == sorted(order)
    # Of the side in both forms; the others have no literals.
    of_runs = [(signed(SIDE), "SAME"), (signed(SHAPE), "SHAPE"), (signed(SHUFFLE), "SAME")]
    of_runs.append((signed(FINGERPRINT[:16]), "SAME"))
    assert sorted((row["signature"], row["form"]) for row in packed) == sorted(2 * of_runs)


def test_a_row_is_what_the_run_measured(spark: SparkSession, to: Path) -> None:
    Days().run(3).log(spark).history(to)
    (row,) = (row for row in rows(spark, to) if row["kind"] == "SHUFFLE")
    own = {"version": 1, "signature": -255, "form": "SAME", "kind": "SHUFFLE", "decided": False}
    own |= {"run_ms": round(at(3).timestamp() * 1000), "input_bytes": 500, "row_count": 5}
    own |= {"shuffle_bytes": 40, "partitions": 3, "task_ms": 20, "read_bytes": 40}
    assert {name: value for name, value in row.items() if value is not None} == own


def test_the_newest_runs_of_each_signature_are_kept(spark: SparkSession, to: Path) -> None:
    days = Days()
    for day in range(13):
        days.run(day)
    pack = days.log(spark).history(to, runs=10)
    counts = [row["row_count"] for row in rows(spark, to) if row["signature"] == signed(SIDE)]
    assert counts == [7 + day for day in range(12, 2, -1)]
    assert (pack.oldest, pack.newest) == (at(3), at(12))


def test_a_shape_pools_the_runs_of_all_literals(spark: SparkSession, to: Path) -> None:
    days = Days()
    for day in range(4):
        days.run(day)
    for row in days.frames["sub_plans"]:
        if row["same"] == SIDE:
            row["same"] = f"{row['time'].day:016x}"
    days.log(spark).history(to, runs=3)
    packed = rows(spark, to)
    assert [row["row_count"] for row in packed if row["form"] == "SHAPE"] == [10, 9, 8]
    assert len([row for row in packed if row["form"] == "SAME" and row["kind"] == "PLAN"]) == 4


def test_a_pack_holds_no_more_signatures_than_a_driver_keeps(
    spark: SparkSession, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "MOST_SIGNATURES", 4)
    days = Days().run(5)
    days.frames["sub_plans"].append({"time": at(1), "same": "0" * 16, "shape": "0" * 16})
    pack = days.log(spark).history(to)
    assert pack.signatures == 4
    assert 0 not in {row["signature"] for row in rows(spark, to)}


def test_a_run_of_a_signature_takes_less_than_200_bytes(spark: SparkSession, to: Path) -> None:
    days = Days().run(0)
    log = days.log(spark)
    kinds = "CASE WHEN id % 3 = 0 THEN 'PLAN' ELSE 'SHUFFLE' END AS kind"
    figures = {
        column.name: f"CAST(xxhash64(id, run, '{column.name}') & 268435455 AS {column.type})"
        for column in log_columns.SUB_PLANS
        if column.name in columns.MEASURED
    }
    names = {"same": "hex(xxhash64(id))", "shape": "hex(xxhash64(id, 1))"}
    fixed = {"log": "concat('l', run)", "execution_id": "id", "fingerprint": "sha2(id || '', 256)"}
    fixed |= {"time": f"timestamp '{at(0):%Y-%m-%d}' + make_dt_interval(run)"}
    fixed |= {name: f"lower(lpad({text}, 16, '0'))" for name, text in names.items()}
    texts = [f"{text} AS {name}" for name, text in (fixed | figures).items()]
    many = (
        spark.range(2000)
        .selectExpr("id", "explode(sequence(1, 10)) AS run")
        .selectExpr(*texts, kinds, *("'j' AS job", "'r' AS run", "'a' AS app_id"))
    )
    wanted = log.sub_plans
    big = many.unionByName(wanted.limit(0), allowMissingColumns=True).select(*wanted.columns)
    log.replace(sub_plans=big).history(to)
    pack = history.read(spark, to)
    (count,) = (sum(kind.rows for kind in pack.kinds),)
    assert (pack.signatures, count) == (4000, 40_000)
    assert to.stat().st_size <= 200 * count


def test_of_one_team_s_jobs(spark: SparkSession, to: Path) -> None:
    days = Days().run(0, job="daily.sales").run(1, job="daily.stock").run(2, job="hourly.sales")
    log = days.log(spark)
    for globs, expected in (
        (["daily.*"], {0, 1}),
        ("*.sales", {0, 2}),
        (["daily.stock", "hourly.[!x]ales"], {1, 2}),
    ):
        log.history(to, jobs=globs)
        assert {row["row_count"] - 7 for row in rows(spark, to) if row["bytes"]} == expected
    before = to.read_bytes()
    with pytest.raises(AqePilotError, match="no sub-plan of a job like weekly") as refused:
        log.history(to, jobs=["weekly", "DAILY.*"])
    assert refused.value.problems[0].code == "HISTORY_EMPTY"
    assert to.read_bytes() == before


def test_what_one_team_s_jobs_prove_is_not_another_s(spark: SparkSession, to: Path) -> None:
    days = Days().run(0).run(1).run(2, 9000, {}, job="other").run(3, None, {}, job="other").run(4)
    log = days.log(spark)
    assert held(log.history(to, jobs=["daily.*"])) == {}
    assert held(log.history(to, jobs=["*"])) != {}


def test_a_run_that_history_made_slower_is_held(spark: SparkSession, to: Path) -> None:
    pack = Days().run(0).run(1).run(2, 2500, {}).log(spark).history(to)
    query = (FINGERPRINT[:16], "SAME")
    assert held(pack) == {(SIDE, "SAME"): 3.5, query: 3.5}
    assert {one.reason for one in pack.held} == {
        f"query {FINGERPRINT[:12]}: 2.5 times the task time of 2 runs without history: not used "
        "for 1 day of runs"
    }
    packed = rows(spark, to)
    (row,) = (row for row in packed if row["kind"] == "HELD" and row["signature"] == signed(SIDE))
    assert row["held_until_ms"] == round(at(3.5).timestamp() * 1000)
    assert row["decided"] is None
    marks = {(r["signature"], r["form"]): r["decided"] for r in packed
             if r["run_ms"] == row["run_ms"] and r["kind"] != "HELD"}  # fmt: skip
    assert marks == {
        (signed(SIDE), "SAME"): True, (signed(SHAPE), "SHAPE"): True,
        (signed(SHUFFLE), "SAME"): False, (signed(query[0]), "SAME"): True,
    }  # fmt: skip
    assert not any(r["decided"] for r in packed if r["run_ms"] < row["run_ms"])


def test_what_was_found_by_its_shape_is_held_by_its_shape(spark: SparkSession, to: Path) -> None:
    by_shape = {"history": {"match": "SHAPE"}}
    pack = Days().run(0).run(1).run(2, 2500, by_shape).log(spark).history(to)
    assert {name for name, _ in held(pack).items()} == {
        (SHAPE, "SHAPE"), (FINGERPRINT[:16], "SAME"),
    }  # fmt: skip


def test_decisions_that_had_to_do_without_history_are_counted(spark: SparkSession) -> None:
    withheld = {"history": {"runs": None, "match": None, "held": "slower, for 1 day"}}
    days = Days().run(0).run(1, by=withheld | {"applied": False}).run(2, by=withheld).run(3, by={})
    (row,) = decided.withheld(days.log(spark).decisions).collect()
    assert (row.signature, row.reason, row.decisions) == (SIDE, "slower, for 1 day", 2)


@pytest.mark.parametrize(
    "by",
    [
        pytest.param({"fate": "superseded"}, id="another decision replaced it"),
        pytest.param({"applied": False}, id="shadow"),
        pytest.param({"answer": None}, id="no answer"),
        pytest.param({"text": "CASE WHEN right.size_in_bytes < 9 THEN 'x' END"}, id="text"),
    ],
)
def test_what_history_did_not_decide_is_not_judged(
    spark: SparkSession, to: Path, by: Mapping[str, Any]
) -> None:
    pack = Days().run(0).run(1).run(2, 2500, by).log(spark).history(to)
    assert pack.held == ()
    assert not any(row["decided"] for row in rows(spark, to))


def test_the_history_of_a_set_of_relations_is_history_too(spark: SparkSession, to: Path) -> None:
    days = Days().run(0).run(1).run(2, 2500, {})
    (decision,) = days.frames["decisions"]
    decision["facts"] = decision["facts"].replace(
        '"right":{"size_in_bytes":5,"history"', '"candidate":{"joined_history"'
    )
    assert (SIDE, "SAME") in held(days.log(spark).history(to))


def test_a_python_function_may_read_history(spark: SparkSession, to: Path) -> None:
    pack = Days().run(0).run(1).run(2, 2500, {"text": "python:m:f"}).log(spark).history(to)
    assert pack.held


def test_a_run_that_failed_is_held_though_it_has_no_fate(spark: SparkSession, to: Path) -> None:
    days = Days().run(0).run(2, 10, {"fate": None}, failures=1)
    pack = days.log(spark).history(to)
    assert (SIDE, "SAME") in held(pack)
    assert "a run by it failed" in pack.held[0].reason


def test_a_driver_that_was_gone_before_the_end_has_failed(spark: SparkSession, to: Path) -> None:
    """Where the same query ran later: else it may still run."""
    days = Days().run(0).run(1).run(2, None, {"fate": None})
    assert held(days.log(spark).history(to)) == {}
    days.run(2.1)
    pack = days.log(spark).history(to)
    assert held(pack)[SIDE, "SAME"] == 3.5
    assert "a run by it failed" in pack.held[0].reason


def test_what_is_held_no_longer_is_left_out(spark: SparkSession, to: Path) -> None:
    days = Days().run(0).run(1).run(2, 2500, {}).run(3)
    assert held(days.log(spark).history(to))
    days.run(4)
    pack = days.log(spark).history(to)
    assert held(pack) == {}
    assert [kind.kind for kind in pack.kinds] == ["PLAN", "QUERY", "SHUFFLE"]


def test_a_pack_depends_on_the_log_alone(spark: SparkSession, to: Path) -> None:
    log = Days().run(0).run(1).run(2, 2500, {}).log(spark)
    log.history(to)
    first = rows(spark, to)
    log.history(to)
    assert rows(spark, to) == first


def test_a_pack_is_replaced_as_a_whole(
    spark: SparkSession, to: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that reads it meanwhile has the old one; a build that fails leaves that."""
    Days().run(0).log(spark).history(to)
    before = to.read_bytes()
    (to.parent / f".{to.name}.crc").write_text("of a file that somebody put there")
    with to.open("rb") as reader:
        Days().run(0).run(1).log(spark).history(to)
        assert reader.read() == before
    assert to.read_bytes() != before
    assert len(rows(spark, to)) == 8
    now = to.read_bytes()

    def dies(*_: object) -> None:
        raise OSError("no space is left")

    with monkeypatch.context() as patched:
        patched.setattr("aqepilot.history.pack._Place._put", dies)
        with pytest.raises(AqePilotError, match="cannot be written: no space is left"):
            Days().run(5).log(spark).history(to)
    assert to.read_bytes() == now
    assert [file.name for file in to.parent.iterdir()] == [to.name]


def test_a_pack_has_no_place_in_a_folder_or_a_file(spark: SparkSession, tmp_path: Path) -> None:
    log = Days().run(0).log(spark)
    with pytest.raises(AqePilotError, match="it is a folder"):
        log.history(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(AqePilotError, match="cannot be written"):
        log.history(tmp_path / "file" / "history.parquet")


def closed(day: int, *sub_plans: Any, **more: Any) -> str:
    fields = {"time": round(at(day).timestamp() * 1000), "executionId": day, "job": "j"}
    fields |= {"fingerprint": FINGERPRINT, "subPlans": list(sub_plans)} | more
    return event_logs.event("io.aqepilot.log.AqePilotQueryClosed", schemaVersion=2, **fields)


def test_of_event_logs_and_of_what_else_lies_there(
    spark: SparkSession, tmp_path: Path, to: Path
) -> None:
    """Lines cut off, logs without aqepilot, values that nobody of ours wrote."""
    started = event_logs.event("SparkListenerApplicationStart", **{"App ID": "a", "Timestamp": 5})
    side = {"kind": "PLAN", "same": SIDE, "shape": SHAPE, "rows": 7}
    foreign = [
        {**side, "same": "0xyz"}, {**side, "kind": "OTHER"}, {**side, "shape": None}, None, {},
        {**side, "same": "'; DROP"},
    ]  # fmt: skip
    whole = closed(1, side, *foreign)
    event_logs.written(spark, [started, whole, closed(2, side)[:-9]], tmp_path / "logs" / "a")
    event_logs.written(spark, [started.replace('"a"', '"b"')], tmp_path / "logs" / "b")
    event_logs.written(spark, ["no log", '{"Event":"x"'], tmp_path / "logs" / "c")
    event_logs.written(
        spark,
        [started.replace('"a"', '"d"'), closed(3, subPlans=None), closed(4, subPlans="x")],
        tmp_path / "logs" / "d",
    )
    read_log(spark, tmp_path / "logs").history(to)
    assert [(row["signature"], row["row_count"]) for row in rows(spark, to)] == [
        (signed(SIDE), 7), (signed(SHAPE), 7),
    ]  # fmt: skip


@pytest.fixture
def logs(spark: SparkSession, tmp_path: Path) -> Path:
    side = {"kind": "PLAN", "same": SIDE, "shape": SIDE, "rows": 7}
    lines = [closed(day, side) for day in range(3)]
    return event_logs.written(spark, lines, tmp_path / "logs" / "a").parent


def test_the_commands(command_line: CommandLine, logs: Path, to: Path) -> None:
    built = command_line("history", "build", "--from", str(logs), "--to", str(to), "--runs", "2")
    assert built.exit_code == 0, built.output
    assert "1 signature" in built.stdout
    shown = command_line("history", "show", str(to))
    assert shown.stdout == built.stdout
    assert "Runs from 2026-11-02 02:00 UTC to 2026-11-03 02:00 UTC" in shown.stdout
    packed = json.loads(command_line("history", "show", str(to), "--json").stdout)
    assert packed["kinds"] == [{"kind": "PLAN", "signatures": 1, "rows": 2}]
    assert packed["size_bytes"] == to.stat().st_size
    assert packed["held"] == []
    none = command_line("history", "build", "--from", str(logs), "--to", str(to), "--job", "x*")
    assert none.exit_code == 1
    assert "spark.aqepilot.history.learn=true" in none.stderr


def test_the_command_shows_what_is_held(
    spark: SparkSession, command_line: CommandLine, to: Path
) -> None:
    Days().run(0).run(1).run(2, 2500, {}).log(spark).history(to)
    shown = " ".join(command_line("history", "show", str(to)).stdout.split())
    assert f"{SIDE} SAME 2026-11-04 14:00 UTC query {FINGERPRINT[:12]}: 2.5 times" in shown


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "HISTORY_NOT_FOUND"),
        (b"no Parquet at all", "HISTORY_DAMAGED"),
        ("SELECT 1 AS version", "HISTORY_DAMAGED"),
        ("later", "HISTORY_VERSION"),
    ],
)
def test_what_is_no_pack_is_told(
    spark: SparkSession, command_line: CommandLine, to: Path, content: Any, code: str
) -> None:
    if content == "later":
        Days().run(0).log(spark).history(to.with_suffix(".old"))
        there = spark.read.parquet(str(to.with_suffix(".old")))
        there.withColumn("version", there.version + 1).write.parquet(str(to))
    elif isinstance(content, bytes):
        to.write_bytes(content)
    elif content:
        spark.sql(content).write.parquet(str(to))
    with pytest.raises(AqePilotError) as refused:
        history.read(spark, to)
    assert refused.value.problems[0].code == code
    assert command_line("history", "show", str(to)).exit_code == 1


def test_the_function_travels_by_value() -> None:
    """Executors have no aqepilot."""
    assert holding.held_rows([(0, 1, 1, False, [])], 1.2) == []
