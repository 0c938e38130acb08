"""The worked example of the docs: a model from a decision log, asked by a function."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import places
import tiers

PAGE = places.ROOT / "docs/write/python-functions.md"
JOB = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
df = spark.range(400_000).selectExpr("id % 100000 AS k", "sha2(string(id), 256) AS v")
df.write.parquet("rows")
spark.read.parquet("rows").createOrReplaceTempView("rows")
queries = [f"SELECT k, max(v) AS v FROM rows WHERE k < {n} GROUP BY k" for n in (5e3, 3e4, 1e5)]
found = [sorted(map(tuple, spark.sql(query).collect())) for query in queries]
spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(60000)
decided = spark.sql(
    "SELECT point, answer, reason, revision, fate FROM aqepilot_decisions() ORDER BY decision_id"
)
print(json.dumps([hash(str(found)), [list(row) for row in decided.collect()]]))
"""


@tiers.LONG
def test_a_model_is_trained_from_a_log_and_decides_in_the_next_run(
    spark_submit: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    scripts = re.findall(r"```python\n(# (\w+\.py).*?)```", PAGE.read_text("utf-8"), re.S)
    blocks = {name: text for text, name in scripts}
    train, sizes = blocks["train.py"], blocks["sizes.py"]
    assert len((train + sizes).splitlines()) < 60
    (tmp_path / "train.py").write_text(train, encoding="utf-8")
    (tmp_path / "sizes.py").write_text(sizes, encoding="utf-8")
    logs = tmp_path / "logs"
    logs.mkdir()

    def run(name: str, **texts: str) -> tuple[int, list[list[str]]]:
        done = spark_submit(
            JOB,
            ["--py-files", str(tmp_path / "sizes.py")],
            env={"PYTHONHASHSEED": "0"},
            conf={
                "spark.eventLog.enabled": "true",
                "spark.eventLog.dir": logs.as_uri(),
                "spark.eventLog.rolling.enabled": "false",
                "spark.eventLog.compress": "false",
                "spark.aqepilot.ask.deadline": "20s",
                "spark.aqepilot.policies": name,
            }
            | {f"spark.aqepilot.policy.{name}.{key}": text for key, text in texts.items()},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        rows, decided = json.loads(done.stdout.strip().splitlines()[-1])
        return rows, decided

    expected, _ = run("log", partition_coalescing="NULL", mode="shadow")
    (log,) = logs.iterdir()
    command = [sys.executable, "train.py", str(log), "model.json"]
    subprocess.run(command, cwd=tmp_path, check=True)
    model = json.loads((tmp_path / "model.json").read_text("utf-8"))
    assert model["shuffles"] >= 3
    assert 0 < model["slope"] < 1
    rows, decided = run("model", shuffle_partitions="python:sizes:choose")
    assert rows == expected
    asked = [row for row in decided if row[0] == "shuffle_partitions" and row[2] != "NULL_ANSWER"]
    assert [row[2] for row in asked] == ["APPLIED"] * 3
    assert all(int(row[1]) >= 2 for row in asked)
    assert "adopted" in {row[4] for row in asked}
    # Another model is another revision.
    (tmp_path / "model.json").write_text(json.dumps(model | {"slope": 2 * model["slope"]}))
    _, again = run("model", shuffle_partitions="python:sizes:choose")
    assert {row[3] for row in again if row[3]} != {row[3] for row in asked}
