"""Each point's events in Spark's event log are byte for byte those of a golden log."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pyspark
import pytest

import each_point
import places
import submitting
from aqepilot.submit.jars import minor_of

# Set, it writes the golden log anew: for changes of the log that are meant.
NEW = "AQEPILOT_NEW_GOLDEN"
GOLDEN = places.TESTS / "golden" / f"{minor_of(pyspark.__version__)}.jsonl"
DECISION, CLOSED = "io.aqepilot.log.AqePilotDecision", "io.aqepilot.log.AqePilotQueryClosed"
JOB = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import each_point, skewed

spark = SparkSession.builder.getOrCreate()
skewed.write(spark, Path(sys.argv[1]))
skewed.register(spark, Path(sys.argv[1]))
for point, row in each_point.ROWS.items():
    each_point.use(spark, {point: row.one})
    spark.sparkContext.setJobDescription(point)
    each_point.run(spark, row.query)
spark.stop()
"""
# Of a query that is planned again, how often and with which stages at hand is a race of its tasks.
FIRST = (*each_point.PLANNING, "shuffle_partitions")
# What differs in another run of the same job: its ids, its folders, its clocks.
VOLATILE = (
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "…"),
    (r"\blocal-\d+", "local-…"),
    (r"file:/[^\s,\"\]\\]*/", "file:/…/"),
    (r'("time"|"askedMicros"|"decisionId"|_memory_bytes\\"):[\d.]+', r"\1:0"),
    (r'"factsId":"[^"]*"', '"factsId":"…"'),
    # How often two plans were compared: which of two shuffles ends first is a race.
    (r'("subject":"plan \d+)\.\d+', r"\1.…"),
    # Fingerprints and what is named by a hash of them: the path of a table is part of it.
    (r'"([0-9a-f]{64}|[0-9a-f]{16})\b', '"…'),
    (r'\\"[0-9a-f]{64}\b', r"\"…"),
)


def golden(log: Path) -> list[str]:
    """Returns one decision of each point with its fate, without what differs in another run."""
    kept: dict[str, str] = {}
    fates: dict[int, str] = {}
    common = ""
    for line in log.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == CLOSED:
            fates |= {fate.pop("decisionId"): json.dumps(fate) for fate in event["fates"]}
        elif event["Event"] == DECISION and event["reason"] == "APPLIED":
            line, _, facts = line.partition(',"commonFacts":')
            common = common or facts
            if event["point"] not in FIRST or event["point"] not in kept:
                kept[event["point"]] = line + "}"
    lines = [f"{line} {fates[json.loads(line)['decisionId']]}" for line in kept.values()]
    lines.append(common.removesuffix("}"))
    for pattern, instead in VOLATILE:
        lines = [re.sub(pattern, instead, line) for line in lines]
    return lines


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("golden")
    (folder / "log").mkdir()
    run = submitting.submit(
        folder / "job",
        JOB,
        conf=each_point.SETTINGS
        | {
            "spark.aqepilot.ask.deadline": "20s",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.dir": (folder / "log").as_uri(),
        },
        env={"PYTHONPATH": str(places.SUPPORT)},
        job_words=[str(folder / "tables")],
        own_jvm=True,
    )
    assert run.returncode == 0, run.stderr[-5000:]
    (log,) = (folder / "log").iterdir()
    return golden(log)


def test_decisions_and_fates_are_those_of_the_golden_log(events: list[str]) -> None:
    if NEW in os.environ:
        GOLDEN.write_text("\n".join(events) + "\n")
    assert events == GOLDEN.read_text().splitlines()


def test_each_point_has_a_decision_in_it(events: list[str]) -> None:
    assert [
        line for point in each_point.POINTS for line in events if f'"point":"{point}"' in line
    ] == (events[:-1])
