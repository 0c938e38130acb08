"""The bench of suggestions and of the event log: what counts as help, and whose bytes are whose."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bench.reported import JOBS, trials
from bench.suggestion_tables import AGAIN, FASTER, PLAIN, SAME, SLOWER, WITH, verdict

from aqepilot.analysis.findings import KINDS
from bench import first_query, overhead, suggestion_tables, suggestions

Seconds = list[float | None]


def runs(plain: Seconds, ours: Seconds, again: Seconds) -> dict[str, list[dict[str, Any]]]:
    return {
        way: [{"seconds": s, "error": s is None, "adopted": 1} for s in seconds]
        for way, seconds in ((PLAIN, plain), (WITH, ours), (AGAIN, again))
    }


@pytest.mark.parametrize(
    ("plain", "ours", "again", "expected"),
    [
        ([2.0, 2.0, 2.1], [1.9, 1.9, 1.9], [2.0, 2.0, 2.0], FASTER),
        ([2.0, 2.0, 2.0], [1.96, 1.96, 1.96], [2.0, 2.0, 2.0], SAME),
        ([2.0, 2.2, 2.0], [1.95, 1.95, 1.95], [2.2, 2.0, 2.2], SAME),
        ([2.0, 2.0, 9.0], [2.2, 2.2, 2.2], [2.0, 2.0, 2.0], SLOWER),
        ([None, None], [9.0, 9.0], [None, None], FASTER),
        ([2.0, 2.0], [1.0, None], [2.0, 2.0], SLOWER),
    ],
)
def test_a_suggestion_helps_by_more_than_the_noise_or_where_a_query_fails_without(
    plain: Seconds, ours: Seconds, again: Seconds, expected: str
) -> None:
    assert verdict(runs(plain, ours, again)).word == expected


def test_suggestions_are_counted_once_and_those_about_counters_apart() -> None:
    suggestion = {"kind": "hot_key", "stake_ms": 9000, "queries": 3, "asked": 3, "changed": 1}
    of_queries = {
        "of": "queries",
        "runs": {"a": runs([2.0], [1.0], [2.0]), "b": runs([1.0], [1.0], [1.0])},
    }
    of_counters = {"of": "counters", "runs": {"counter: c": runs([1.0], [2.0], [1.0])}}
    made = [suggestion | of_queries, suggestion | of_counters, suggestion | {"of": "x", "runs": {}}]
    counts = {"hot_key": {"queries": 2, "counters": 1, "suggestions": made[:2]}}
    each, totals = suggestion_tables.tables(counts, 1)
    assert totals[2] == [("hot_key", "2", "1", "1", "0", "0", "1", "1")]
    (unmeasured, _) = suggestion_tables.tables({"t": counts["hot_key"] | {"suggestions": made}}, 1)
    for _, head, rows in (each, totals, unmeasured):
        assert {len(row) for row in rows} == {len(head)}


def test_reported_jobs_have_findings_that_there_are_and_a_row_each() -> None:
    assert {job.finding for job in JOBS.values()} <= set(KINDS)
    suggestion: dict[str, Any] = {
        name: {"suggestions": {trials.BARE: [], trials.ASKED: []}, "runs": []} for name in JOBS
    }
    ran = [
        {"way": way, "seconds": seconds, "error": None, "files": {"one_file": 1}}
        for way, seconds in ((suggestion_tables.PLAIN, 8.0), (suggestion_tables.WITH, 2.0),
                             (suggestion_tables.AGAIN, 8.0))
    ]  # fmt: skip
    own = {"kind": "coalesce", "policy": None, "point": None}
    suggestion["coalesce_1"] = {
        "suggestions": {trials.BARE: [own], trials.ASKED: [own]},
        "runs": ran,
    }
    rows = {row[0]: row for row in trials.table(suggestion)}
    assert {len(row) for row in rows.values()} == {len(trials.HEAD)}
    assert rows["coalesce_1"][2:8] == ("coalesce", "coalesce", "the change", "8.0", "2.0", "-75 %")
    assert rows["series"][2:5] == ("nothing", "nothing", "")


def test_every_workload_of_suggestions_has_queries_and_counters_of_shapes() -> None:
    assert suggestions.chosen([], []) == list(suggestions.WORKLOADS)
    assert suggestions.chosen(["explode", "balanced"], ["2 rows of each"]) == ["explode"]


def test_a_job_of_one_query_is_compared_with_plain_spark_and_first_asks_with_later_ones() -> None:
    seconds = {"plain": [6.0, 6.0, 8.0], "balanced": [6.3, 6.3, 8.4], "installed": [6.0, 6.0, 8.0]}
    asked = [[("skew_join", 30_000.0), ("skew_join", 2000.0)], [("skew_join", 10_000.0)]]
    (jobs, asks) = first_query.tables({"small": {"seconds": seconds, "asked": asked}})
    assert [row[:3] for row in jobs[2]] == [
        ("plain", "6.00", ""),
        ("balanced", "6.30", "+5.0 %"),
        ("installed", "6.00", "+0.0 %"),
    ]
    assert asks[2] == [("skew_join", "20.0", "12.0", "28.0", "2.0")]
    for _, head, rows in (jobs, asks):
        assert {len(row) for row in rows} == {len(head)}


def test_lines_of_aqepilot_are_counted_apart(tmp_path: Path) -> None:
    ours = '{"Event":"io.aqepilot.log.AqePilotDecision","facts":"x"}\n'
    learnt = '{"Event":"io.aqepilot.log.AqePilotQueryClosed","subPlans":[{"rows":7}]}\n'
    sparks = '{"Event":"SparkListenerTaskEnd","of":"io.aqepilot"}\n'
    log = tmp_path / "log"
    log.write_text(sparks + ours + sparks + learnt, "utf-8")
    assert overhead.lines(log) == {
        **{"others": 2 * len(sparks), "ours": len(ours + learnt), "events": 2},
        "history": len('[{"rows":7}]'),
    }


def test_times_are_told_by_what_is_without_events() -> None:
    ran = {
        way: {"1": [[s, s, s]], "2": [[s, s, s]]}
        for way, s in zip(overhead.WAYS, (1.0, 1.1, 1.155, 1.21, 1.2), strict=True)
    }
    ((_, head, rows),) = overhead.tables({"seconds": ran}, 1)
    assert {len(row) for row in rows} == {len(head)}
    assert [row[3] for row in rows[:5]] == [
        *("-9.09 %", "+0.00 %", "+5.00 %", "+10.00 %", "+9.09 %"),
    ]
