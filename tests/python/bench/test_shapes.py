"""The bench of shapes: each is complete, tasks are told apart, failures are shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bench.shapes
import pytest
from bench.shapes import SHAPES
from bench.shapes import runs as shape_runs
from bench.shapes.tasks import by_group

from aqepilot import recipes
from bench import options, parts


def job(group: str, *stages: int) -> dict[str, Any]:
    properties = {"spark.jobGroup.id": group}
    return {"Event": "SparkListenerJobStart", "Stage IDs": stages, "Properties": properties}


def task(stage: int, ms: int, reason: str = "Success") -> dict[str, Any]:
    return {
        "Event": "SparkListenerTaskEnd",
        "Stage ID": stage,
        "Task End Reason": {"Reason": reason},
        "Task Info": {"Launch Time": 1000, "Finish Time": 1000 + ms},
        "Task Metrics": {"Disk Bytes Spilled": 7},
    }


def test_the_longest_task_is_compared_with_those_of_its_stage(tmp_path: Path) -> None:
    log = tmp_path / "log"
    events = [job("a", 0, 1), job("b", 2), task(0, 10), task(1, 4000), task(1, 500), task(1, 500)]
    events += [task(2, 100, "ExceptionFailure")]
    log.write_text("\n".join(json.dumps(event, separators=(",", ":")) for event in events))
    longest = by_group(log)
    assert longest["a"] == (4, 5.01, 4.0, 8.0, 28, 0)
    assert longest["b"].failed == 1


def test_the_command_knows_the_shapes() -> None:
    assert set(SHAPES) <= set(options.NAMES)
    assert "shapes" in parts.PARTS


def test_a_run_that_failed_is_shown_and_compared_with_nothing() -> None:
    tasks = {"longest_s": 1.0, "over_median": 1.0, "seconds": 2.0, "count": 3, "spilled_bytes": 0}
    good = {"seconds": 2.0, "adopted": 1, "error": None, "tasks": tasks}
    bad = {"seconds": 9.0, "adopted": 0, "error": "too much", "tasks": None}
    plain, recipe = shape_runs.table(
        {"q": {shape_runs.PLAIN: [bad, bad], shape_runs.RECIPE: [good, good]}}
    )
    assert plain[:3] == ("q", "plain", "fails: too much")
    assert recipe[1:4] == ("recipe", "2.00", "")
    assert len(plain) == len(recipe) == len(shape_runs.HEAD)


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_says_what_is_seen_and_has_recipes_and_counter_shapes(name: str) -> None:
    shape = SHAPES[name]
    module = getattr(bench.shapes, name)
    assert "Spark's UI" in module.__doc__
    assert "Counter-shape" in module.__doc__
    assert shape.counters
    assert set(shape.recipes) <= set(recipes.names())
    assert shape_runs.ways(name)[shape_runs.RECIPE]["spark.aqepilot.policies"]
    assert shape.slots in (2, 16)
    # `--queries` takes them by commas.
    assert not [query for query in (*shape.queries, *shape.counters) if "," in query]
