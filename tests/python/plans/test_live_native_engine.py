"""Beside a native engine: its operators are understood, or the record says that they came first.

The engine here is one of Comet's names, whose operators do what Spark's do. Comet itself:
`make native-engines`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import compiled
import places
import submitting
import tiers
from aqepilot import recipes

pytestmark = tiers.on("3.5")

HERE = places.SUPPORT
ENGINE = "org.apache.comet.CometSparkSessionExtensions"
SETTINGS = {
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.aqepilot.ask.deadline": "20s",
    # What the engine leaves to Spark.
    "spark.engine.leaves": "LEFT OUTER",
}
SPLIT = "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> 2), 'force', true)"
POLICIES: dict[str, dict[str, str]] = {
    "plain": {},
    "decided": {"shuffle_partitions": "7", "skew_join": SPLIT, "partition_coalescing": "NULL"},
    "native_joins": recipes.get("native_joins", spark="3.5").texts(),
}
ADOPTED = ("APPLIED", "adopted")

Json = dict[str, Any]


@pytest.fixture(scope="module")
def engine_jar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = (HERE / "native_engine.scala").read_text("utf-8")
    return compiled.jar(tmp_path_factory.mktemp("engine"), source)


def run(engine_jar: Path, folder: Path, *extensions: str) -> Json:
    conf = SETTINGS | {
        "spark.jars": f"{submitting.spark_jar()},{engine_jar}",
        "spark.sql.extensions": ",".join(extensions),
    }
    script = (HERE / "native_engine_job.py").read_text("utf-8")
    words = [json.dumps(POLICIES)]
    lines = submitting.lines(
        folder, script, 300, conf=conf, job_words=words, extension=False, own_jvm=False
    )
    (line,) = [line for line in lines if line.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


@pytest.fixture(scope="module")
def first(engine_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What came of it where aqepilot stands before the engine."""
    return run(engine_jar, tmp_path_factory.mktemp("first"), submitting.EXTENSION, ENGINE)


@pytest.fixture(scope="module")
def last(engine_jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Json:
    """What came of it where the engine stands before."""
    return run(engine_jar, tmp_path_factory.mktemp("last"), ENGINE, submitting.EXTENSION)


def decisions(one: Json, point: str) -> list[Json]:
    return [d for d in one["decisions"] if d["point"] == point]


@pytest.mark.parametrize("order", ["first", "last"])
def test_the_rows_are_plain_sparks(order: str, request: pytest.FixtureRequest) -> None:
    own = request.getfixturevalue(order)
    for name in POLICIES:
        for query in ("inner", "outer", "semi"):
            assert own[f"{name}, {query}"]["rows"] == own[f"plain, {query}"]["rows"]


def test_what_an_engine_runs_is_read_as_sparks_own(first: Json) -> None:
    one = first["decided, inner"]
    assert "CometSortMergeJoin" in one["plan"]
    assert "CometShuffleExchange" in one["plan"]
    shuffles = decisions(one, "shuffle_partitions")
    assert shuffles
    assert {(d["reason"], d["fate"]) for d in shuffles} == {ADOPTED}
    (split,) = decisions(one, "skew_join")
    assert (split["reason"], split["fate"]) == ADOPTED
    assert split["final_strategy"].startswith("SortMergeJoin, ")


def test_the_engine_is_a_fact_and_so_is_whether_it_takes_a_join(first: Json) -> None:
    asked = {}
    for query in ("inner", "outer"):
        sides = decisions(first[f"native_joins, {query}"], "dynamic_join_selection")
        facts = json.loads([d["facts"] for d in sides if d["facts"]][-1])
        assert facts["conf"]["engine"] == "COMET"
        asked[query] = (facts["side"].get("engine_hashes"), facts["join"].get("engine_merges"))
    assert asked == {"inner": (True, True), "outer": (False, False)}


def test_no_engine_is_asked_about_a_side_that_no_hash_join_builds_from(first: Json) -> None:
    taken = {
        d["side"]: json.loads(d["facts"])["side"]["engine_hashes"]
        for d in decisions(first["native_joins, semi"], "dynamic_join_selection")
        if d["facts"] and json.loads(d["facts"])["other"]["is_finished"]
    }
    assert taken == {"left": False, "right": True}
    status = first["native_joins, status"]
    assert not [row for row in status if row["name"].startswith("errors.")]


def test_joins_that_the_engine_takes_are_hash_joins_from_the_smaller_side(first: Json) -> None:
    decided = decisions(first["native_joins, inner"], "dynamic_join_selection")
    assert ("right", "SHUFFLE_HASH", *ADOPTED, "ShuffledHashJoin BuildRight") in {
        (d["side"], d["answer"], d["reason"], d["fate"], d["final_strategy"]) for d in decided
    }
    assert "CometHashJoin" in first["native_joins, inner"]["plan"]
    assert all(
        d["answer"] is None
        for d in decisions(first["native_joins, outer"], "dynamic_join_selection")
    )


def test_an_engine_that_comes_first_is_in_the_record_and_in_the_status(last: Json) -> None:
    one = last["decided, inner"]
    for point in ("shuffle_partitions", "skew_join"):
        assert {d["reason"] for d in decisions(one, point)} == {"ENGINE_FIRST"}
        (detail,) = {d["detail"] for d in decisions(one, point)}
        assert "io.aqepilot.AqePilotExtension first in spark.sql.extensions" in detail
        (row,) = [
            row for row in last["decided, status"] if (row["kind"], row["name"]) == ("point", point)
        ]
        assert row["value"] == "off"
        assert row["detail"] == detail
    problems = [row for row in last["decided, status"] if row["kind"] == "problem"]
    assert {row["name"] for row in problems} == {"POINT_OFF"}
    assert decisions(last["native_joins, inner"], "dynamic_join_selection")[-1]["fate"] == "adopted"


def test_no_point_is_off_where_aqepilot_stands_first(first: Json) -> None:
    points = [row for row in first["decided, status"] if row["kind"] == "point"]
    assert {row["value"] for row in points} == {"live"}
