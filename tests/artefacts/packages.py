"""``spark-submit --packages`` from the Maven repository that ``make maven`` has made.

Ivy's own folders are new each time: what is used has been fetched. It asks the repositories that
spark-submit knows by itself, too, as it does for whoever submits so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree import ElementTree

from platforms.environments import spark_home

import processes
from aqepilot import catalog
from aqepilot.__about__ import __version__
from artefacts.built import DIST, ROOT, sha256

MAVEN = DIST / "maven"
SBT = (
    *("java", "-Xmx2g", "-Xss8m", "-Dsbt.supershell=false", "-Dsbt.color=false"),
    *("-jar", str(ROOT / ".envs" / "tools" / "sbt-launch.jar")),
)
JOB = """
import json
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
big, small = spark.range(0, 3000, 1, 4), spark.range(0, 1000, 1, 4)
joined = big.repartition(4).join(small.hint("merge"), "id").select("id")
plain = sorted(row.id for row in joined.collect())
tables = [frame.repartition(4, "id") for frame in (big, small)]
decided = tables[0].join(tables[1], "id")
rows = sorted(row.id for row in decided.collect())
found = {
    "version": spark.version,
    "scala": spark._jvm.scala.util.Properties.versionNumberString().rpartition(".")[0],
    "is_same": rows == plain,
    "plan": decided._jdf.queryExecution().executedPlan().toString().split("Initial Plan")[0],
    "jars": spark.conf.get("spark.jars"),
    "status": [row.kind for row in spark.sql("SELECT kind FROM aqepilot_status()").collect()],
}
print("FOUND " + json.dumps(found))
"""
POLICY = """
name = "hashed"
dynamic_join_selection = "CASE WHEN side.is_left THEN null ELSE 'SHUFFLE_HASH' END"
"""


def each_row_has_sources_scaladoc_and_a_pom_without_dependencies() -> None:
    for row in catalog.spark_minors():
        name = f"aqepilot-spark-{row.minor}_{row.scala}"
        folder = MAVEN / "io" / "aqepilot" / name / __version__
        stem = f"{name}-{__version__}"
        for suffix in (".jar", "-sources.jar", "-javadoc.jar", ".pom"):
            path = folder / f"{stem}{suffix}"
            assert path.stat().st_size > 500, path
            assert path.with_name(f"{path.name}.sha1").exists(), path
        shipped = ROOT / "python/aqepilot/jars" / f"{stem}.jar"
        assert sha256(folder / f"{stem}.jar") == sha256(shipped), f"{stem}.jar is not the wheel's"
        pom = ElementTree.parse(folder / f"{stem}.pom").getroot()
        space = {"m": "http://maven.apache.org/POM/4.0.0"}
        for wanted in ("name", "description", "url", "licenses/m:license", "developers", "scm"):
            assert pom.find(f"m:{wanted}", space) is not None, f"{stem}.pom has no {wanted}"
        tags = {child.tag.rpartition("}")[2] for child in pom}
        assert not tags & {"dependencies", "repositories", "parent"}, tags


def scala_of_pyspark(spark: str) -> str:
    """Returns the Scala of the Spark that pyspark brings."""
    (core,) = spark_home(Path(".envs", f"spark-{spark}")).glob("jars/spark-core_*")
    return core.name.split("_")[1].rpartition("-")[0]


def of_scala_2_13(spark: str, folder: Path) -> dict[str, str]:
    """Makes a Spark of Scala 2.13 where pyspark brings that of 2.12; returns its variables.

    Its jars are those that Maven has, which our own jar is compiled with. Scripts and Python are
    the same for each Scala.
    """
    minor = spark.rpartition(".")[0].replace(".", "_")
    class_path = f"export aqepilot-spark-{minor}_2_13/Compile/dependencyClasspath"
    printed = subprocess.run(
        [*SBT, class_path], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    spark_jars = [Path(path) for path in printed.split(os.pathsep) if path.endswith(".jar")]
    home = folder / "spark"
    pyspark = spark_home(Path(".envs", f"spark-{spark}"))
    shutil.copytree(pyspark, home, ignore=shutil.ignore_patterns("jars"))
    (home / "jars").mkdir()
    for jar in spark_jars:
        (home / "jars" / jar.name).symlink_to(jar)
    assert any(name.startswith(f"spark-core_2.13-{spark}") for name in os.listdir(home / "jars"))
    return {"SPARK_HOME": str(home), "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}


def submit(
    spark: str, folder: Path, *words: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Under the spark-submit of an environment, with an Ivy folder that was never there."""
    home = Path(".envs", f"spark-{spark}").absolute()
    (folder / "job.py").write_text(JOB)
    left_out = ("SPARK", "PYSPARK", "PYTHON")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    python = {"PYSPARK_PYTHON": str(home / "bin" / "python"), "SPARK_LOCAL_IP": "127.0.0.1"}
    of_spark = env or {"PATH": f"{home / 'bin'}:{kept['PATH']}"}
    return subprocess.run(
        [
            *("spark-submit", "--master", "local[2]", "--driver-memory", "1g"),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.sql.shuffle.partitions=4"),
            *("--conf", "spark.sql.autoBroadcastJoinThreshold=-1"),
            *("--conf", f"spark.jars.ivy={folder / 'ivy'}", "--repositories", MAVEN.as_uri()),
            *words,
            "job.py",
        ],
        cwd=folder,
        env=kept | python | of_spark,
        capture_output=True,
        text=True,
        timeout=600,
    )


def conf_of(spark: str, folder: Path, scala: str) -> list[str]:
    (folder / "hashed.toml").write_text(POLICY)
    of_spark = ("--spark", spark, "--scala", scala)
    words = ["conf", "hashed.toml", "--packages", *of_spark, "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-m", "aqepilot", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    return processes.words(json.loads(done.stdout))


def on(spark: str, scala: str) -> Callable[[], None]:
    def decides() -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            has_another = scala != scala_of_pyspark(spark)
            env = of_scala_2_13(spark, folder) if has_another else None
            done = submit(spark, folder, *conf_of(spark, folder, scala), env=env)
            lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
            assert done.returncode == 0, done.stderr[-3000:]
            answer = json.loads(lines[0].removeprefix("FOUND "))
            assert (answer["version"], answer["scala"]) == (spark, scala)
            assert answer["is_same"]
            assert "ShuffledHashJoin" in answer["plan"], answer["plan"]
            fetched = list((folder / "ivy" / "jars").iterdir())
            assert [path.name for path in fetched if "aqepilot" in path.name], fetched
            assert len(fetched) == 1, f"the pom brought more: {fetched}"
            assert "problem" not in answer["status"]

    return decides


def a_version_that_is_nowhere_is_no_job() -> None:
    """spark-submit itself ends, as for any coordinates: the pages say so."""
    spark = catalog.spark_minors()[-1].newest
    with tempfile.TemporaryDirectory() as name:
        done = submit(spark, Path(name), "--packages", "io.aqepilot:aqepilot-spark-4.3_2.13:0.0.0")
        assert done.returncode != 0
        assert "unresolved dependency" in done.stderr + done.stdout, done.stderr[-2000:]


CHECKS: dict[str, Callable[[], None]] = {
    check.__name__: check
    for check in (
        each_row_has_sources_scaladoc_and_a_pom_without_dependencies,
        a_version_that_is_nowhere_is_no_job,
    )
} | {
    f"spark_{row.newest}_scala_{row.scala}": on(row.newest, row.scala)
    for row in catalog.spark_minors()
}
