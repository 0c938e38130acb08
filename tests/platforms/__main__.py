"""``make platforms``: a job that Airflow itself runs, with the settings of `aqepilot conf`.

Each platform is installed into an environment of its own, in target/platforms/.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
OUT = ROOT / "target" / "platforms"
UV = ROOT / ".envs" / "tools" / "bin" / "uv"
POLICY = """
name = "hashed"
dynamic_join_selection = "CASE WHEN side.is_left THEN null ELSE 'SHUFFLE_HASH' END"
"""
# What these need beside the policy: little memory, and a join that Spark leaves to AQE.
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def run(folder: Path, *words: str | Path, env: Mapping[str, str], timeout_s: float = 900) -> str:
    """Runs a command; all that it prints is in the folder's log, too."""
    with (folder / "log").open("a+") as log:
        began = log.tell()
        done = subprocess.run(
            words, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=timeout_s
        )
        log.seek(began)
        said = log.read()
    assert done.returncode == 0, f"{words}: {said[-4000:]}"
    return said


def installed(folder: Path, python: Path, *packages: str) -> Path:
    """Returns an environment with these packages; it stays for the next time."""
    venv = folder / "venv"
    if not (folder / "installed").exists():
        subprocess.run([UV, "venv", "-q", "--clear", "-p", python, venv], check=True)
        subprocess.run(
            [UV, "pip", "install", "-q", "-p", venv / "bin/python", *packages], check=True
        )
        (folder / "installed").touch()
    return venv


def conf(folder: Path, spark: Path) -> dict[str, str]:
    """What `aqepilot conf --format json` prints for the policy, as a scheduler takes it."""
    (folder / "hashed.toml").write_text(POLICY)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    words = [spark / "bin/python", "-m", "aqepilot", "conf", "hashed.toml", "--format", "json"]
    printed = subprocess.run(words, cwd=folder, env=env, capture_output=True, check=True).stdout
    return json.loads(printed) | SETTINGS


def airflow(spark: Path) -> None:
    """Airflow runs its own SparkSubmitOperator: the driver knows DAG, task and run, and decides."""
    folder = OUT / "airflow"
    for name in ("home", "log"):
        shutil.rmtree(folder / name, ignore_errors=True)
    home = folder / "home"
    (home / "conf").mkdir(parents=True)
    (home / "dags").mkdir()
    python = (spark / "bin" / "python").resolve()
    packages = ("apache-airflow>=3", "apache-airflow-providers-apache-spark>=5")
    venv = installed(folder, python, *packages)
    shutil.copy(HERE / "airflow" / "sales.py", home / "dags")
    shutil.copy(HERE / "job.py", home)
    (home / "conf" / "spark.json").write_text(json.dumps(conf(folder, spark)))
    env = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "PYTHONPATH"))},
        "PATH": f"{venv / 'bin'}:{spark / 'bin'}:{os.environ['PATH']}",
        "PYSPARK_PYTHON": str(spark / "bin" / "python"),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_CONN_SPARK_DEFAULT": '{"conn_type": "spark", "host": "local[2]"}',
        "FOUND": str(home / "found.json"),
    }
    run(folder, "airflow", "db", "migrate", env=env)
    run(folder, "airflow", "dags", "test", "daily", env=env)
    found = json.loads((home / "found.json").read_text())
    assert found["rows"] == 1000
    assert "adopted" in found["fates"], found["fates"]
    job = {"job": "daily.sales", "job_source": "AIRFLOW", "run_source": "AIRFLOW"}
    assert found["jobs"], found
    assert all(named == job for named in found["jobs"]), found["jobs"]
    assert ["run", "attempt", "1"] in found["status"]


CHECKS: dict[str, Callable[[Path], None]] = {"airflow": airflow}


@click.command(help=__doc__)
@click.option("--spark", required=True, type=Path, help="The environment of a Spark.")
@click.option("--only", multiple=True, type=click.Choice(list(CHECKS)), help="Only these.")
def main(spark: Path, only: tuple[str, ...]) -> None:
    failed = []
    for name in only or CHECKS:
        (OUT / name).mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        try:
            CHECKS[name](spark.absolute())
        except Exception:
            failed.append(name)
            traceback.print_exc()
        said = "FAILED" if name in failed else "passed"
        print(f"{name}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(only or CHECKS) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
