"""The first thing that a newcomer runs: README's own texts, in a driver with Spark's defaults."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
from click.testing import CliRunner

import aqepilot
import places
import submitting
import tiers
from aqepilot.cli import main

PAGE = (places.ROOT / "README.md").read_text("utf-8")
SECTION = PAGE.split("\n## A first policy\n")[1].split("\n## ")[0]


def fence(kind: str, has: str) -> str:
    (text,) = (
        text
        for text in re.findall(rf"^```{kind}\n(.*?)^```", SECTION, re.DOTALL | re.MULTILINE)
        if has in text
    )
    return str(text)


POLICY = fence("toml", 'name = "sales"')
NOTEBOOK = fence("python", "aqepilot.configure(")
SQL = fence("sql", "aqepilot_decisions()")
# What becomes of the page's last query, whose names these are, and of the SQL beside it.
LOOKS = f"""
import json
from pathlib import Path

def ran(mode):
    spark.conf.set("spark.aqepilot.mode", mode)
    # Another DataFrame: one that has run keeps its plan.
    again = sales.select("*")
    rows = sorted(map(list, again.collect()))
    plan = again._jdf.queryExecution().executedPlan().toString()
    (plan, *_) = plan.split("== Initial Plan ==")
    return rows, "ShuffledHashJoin" in plan, "SortMergeJoin" in plan

heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory()
decided = [d for d in aqepilot.decisions(spark) if d.point == "dynamic_join_selection"]
found = {{
    "set": spark.sparkContext.getConf().get("spark.driver.memory", None),
    "heap": heap,
    "applied": [(d.policy, d.reason, d.fate, d.final_strategy) for d in decided if d.applied],
    "in_force": ran("enforce"),
    "plain": ran("off"),
}}
found["sql"] = [len(spark.sql(text).collect()) for text in {SQL!r}.split(";") if text.strip()]
Path("found.json").write_text(json.dumps(found))
"""


def run(folder: Path, job: str, words: list[str], commands: list[str]) -> dict[str, Any]:
    """Runs a job as a newcomer does: no setting but those of the page."""
    Path(folder, "sales.toml").write_text(POLICY, "utf-8")
    Path(folder, "job.py").write_text(job + LOOKS, "utf-8")
    done = subprocess.run(
        [*commands, *words, "job.py"],
        cwd=folder,
        env=submitting.environment(
            short=True, PYTHONPATH=str(Path(aqepilot.__file__).parents[1]), **submitting.OF_A_JOB
        ),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(Path(folder, "found.json").read_text("utf-8")))


def assert_applied(answer: dict[str, Any]) -> None:
    assert answer["set"] is None
    assert answer["heap"] <= 1 << 30  # Spark's default
    assert ["sales", "APPLIED", "adopted"] in [row[:3] for row in answer["applied"]]
    assert all("ShuffledHashJoin" in row[3] for row in answer["applied"])
    rows, hashed, merged = answer["in_force"]
    assert (rows, False, True) == tuple(answer["plain"])
    assert (hashed, merged) == (True, False)
    assert answer["sql"][1:3] > [0, 0]


def test_the_notebook_of_the_page_shows_a_decision(tmp_path: Path) -> None:
    assert_applied(run(tmp_path, NOTEBOOK, [], [sys.executable]))


@tiers.LONG
def test_so_does_spark_submit_with_the_words_of_the_page(tmp_path: Path) -> None:
    """The same query in a job that knows nothing of aqepilot."""
    query = re.search(r"^orders = .*?^sales\.show\(\)\n", NOTEBOOK, re.DOTALL | re.MULTILINE)
    assert query
    job = "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n"
    Path(tmp_path, "sales.toml").write_text(POLICY, "utf-8")
    words = CliRunner().invoke(main, ["conf", str(tmp_path / "sales.toml")])
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    job += query[0] + "import aqepilot\n"
    assert_applied(run(tmp_path, job, shlex.split(words.stdout), [submit]))
