"""Every jar on every Spark that is set up: no query fails, and a jar that does not fit says so.

`aqepilot jar` names the one that fits; this is for the day when somebody takes another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

JOB = """
import json, sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
left = spark.range(0, 5000, 1, 4).selectExpr("id % 1000 AS k", "id AS v")
rows = left.join(spark.range(1000).selectExpr("id AS k"), "k").groupBy("k").count()
found = {"rows": sorted(map(list, rows.collect()))}
try:
    status = spark.sql("SELECT kind, name, value, detail FROM aqepilot_status()").collect()
    found["problems"] = [row.name for row in status if row.kind == "problem"]
    found["off"] = sorted(row.name for row in status if row.kind == "point" and row.value != "live")
    lacks = [row for row in status if row.name == "POINT_OFF" and "this Spark" in row.detail]
    found["lacks"] = sorted(row.detail.split()[0] for row in lacks)
except Exception as error:
    found["status"] = str(error).splitlines()[0][:200]
with open(sys.argv[1], "w") as out:
    json.dump(found, out)
"""
FITS = "fits"
# Points that a release has no hook for.
OFF = {"3.5.0": ("partition_coalescing", "shuffle_partitions", "skew_join")}
WRONG = "WRONG_SPARK_JAR"
NOT_LOADED = "not loaded"
OUTCOMES = Path(__file__).with_name("jar_matrix.json")
ROWS = [[k, 5] for k in range(1000)]
POLICY = {
    "join_reorder": "-double(candidate.position)",
    "join_selection": "'SHUFFLE_HASH'",
    "shuffle_partitions": "7",
    "skew_join": "named_struct('left_splits', transform(left.bytes_by_partition_id, b -> 2))",
    "partition_coalescing": "named_struct('keep', true)",
    "cost_evaluation": "spark.cost",
    "write_distribution": "true",
    "dynamic_join_selection": "'SHUFFLE_MERGE'",
}


def outcome(python: Path, jar: Path) -> str:
    """Returns how a job went in an environment with a jar: `fits`, why it does not, or `FAILED`."""
    home = subprocess.run(
        [python, "-c", "import pyspark; print(pyspark.__path__[0])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    settings = {
        "spark.master": "local[1]",
        "spark.driver.memory": "700m",
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.extensions": "io.aqepilot.AqePilotExtension",
        "spark.aqepilot.policies": "every",
        **{f"spark.aqepilot.policy.every.{point}": text for point, text in POLICY.items()},
    }
    words = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "job.py").write_text(JOB, encoding="utf-8")
        job = subprocess.run(
            [f"{home}/bin/spark-submit", "--jars", str(jar), *words, "job.py", "found.json"],
            cwd=folder,
            env=os.environ
            | {
                "SPARK_HOME": home,
                "SPARK_LOCAL_IP": "127.0.0.1",
                "PYSPARK_PYTHON": str(python),
                "PYSPARK_DRIVER_PYTHON": str(python),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        if job.returncode:
            lines = [line for line in job.stderr.splitlines() if "Error" in line]
            return f"FAILED: {lines[-1][:200] if lines else job.stderr[-200:]}"
        outcome = json.loads((Path(folder) / "found.json").read_text("utf-8"))
    if outcome["rows"] != ROWS:
        return "FAILED: other rows"
    if "status" in outcome:
        if "this jar was built for" in outcome["status"]:
            return WRONG
        return NOT_LOADED if "resolve" in outcome["status"] else f"FAILED: {outcome['status']}"
    if others := [name for name in outcome["problems"] if name != "POINT_OFF"]:
        return ", ".join(others)
    if outcome["off"] != outcome["lacks"]:
        return f"FAILED: {outcome['off']} are off, {outcome['lacks']} with a reason"
    return _fits(outcome["off"])


def _fits(off: Sequence[str]) -> str:
    return f"{FITS}; off: {', '.join(off)}" if off else FITS


def expected(version: str, scala: str, jar: str) -> tuple[str, ...]:
    """Returns what may come of a jar, named as `3.5_2.12`, on a release of Spark.

    A jar of another Scala says that it is the wrong one as far as its classes can be linked.
    """
    if jar == f"{version[:3]}_{scala}":
        return (_fits(OFF.get(version, ())),)
    return (WRONG,) if jar.endswith(f"_{scala}") else (WRONG, NOT_LOADED)


def scala_of(python: Path) -> str:
    """Returns the Scala of the Spark in an environment."""
    script = "import pyspark; print(pyspark.__path__[0])"
    home = subprocess.run([python, "-c", script], check=True, capture_output=True, text=True)
    core = next((Path(home.stdout.strip()) / "jars").glob("spark-core_*.jar"))
    return core.stem.removeprefix("spark-core_").split("-", 1)[0]


def main(envs: Path, jars: Path, only: Sequence[str]) -> int:
    """Keeps and prints what was found, and returns 1 if a cell is not as it has to be."""
    sparks = sorted(envs.glob("spark-*"), key=lambda p: [int(n) for n in p.name[6:].split(".")])
    names = {jar.name.split("-")[2]: jar.absolute() for jar in sorted(jars.glob("*.jar"))}
    outcomes: dict[str, dict[str, str]] = json.loads(OUTCOMES.read_text("utf-8")) if only else {}
    print("| Spark |", " | ".join(names), "|")
    print("| --- |", " | ".join("---" for _ in names), "|")
    wrong = []
    for spark in sparks:
        version = spark.name[6:]
        if only and version not in only:
            continue
        python = (spark / "bin" / "python").absolute()
        scala = scala_of(python)
        cells = {name: outcome(python, jar) for name, jar in names.items()}
        for name, cell in cells.items():
            must = expected(version, scala, name)
            if cell not in must:
                wrong.append(f"{name} on {version}: {cell}, and it has to be {' or '.join(must)}")
        outcomes[version] = cells
        OUTCOMES.write_text(json.dumps(outcomes, indent=2) + "\n", encoding="utf-8")
        print(f"| {version} |", " | ".join(cells.values()), "|", flush=True)
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
