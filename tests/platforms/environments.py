"""Where each platform is installed, and what it runs there."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
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


def emptied(platform: str, part: str) -> Path:
    """Returns a platform's folder, without the log and this part of its last run."""
    folder = OUT / platform
    (folder / "log").unlink(missing_ok=True)
    shutil.rmtree(folder / part, ignore_errors=True)
    return folder


def run(folder: Path, *words: str | Path, env: Mapping[str, str], timeout_s: float = 900) -> str:
    """Runs a command; all that it prints is in the folder's log, too."""
    with (folder / "log").open("a+") as log:
        began = log.tell()
        done = subprocess.run(
            words, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT, timeout=timeout_s
        )
        log.seek(began)
        printed = log.read()
    assert done.returncode == 0, f"{words}: {printed[-4000:]}"
    return printed


def installed(folder: Path, python: Path, *packages: str) -> Path:
    """Returns an environment with these packages; it stays until others are asked for."""
    venv, list_of_packages = folder / "venv", folder / "installed"
    wanted = "\n".join(packages)
    if not list_of_packages.exists() or list_of_packages.read_text() != wanted:
        subprocess.run([UV, "venv", "-q", "--clear", "-p", python, venv], check=True)
        subprocess.run(
            [UV, "pip", "install", "-q", "-p", venv / "bin/python", *packages], check=True
        )
        list_of_packages.write_text(wanted)
    return venv


def wheel() -> str:
    """Returns the wheel that `make wheel` has built, for `installed`."""
    (path,) = (ROOT / "dist").glob("aqepilot-*.whl")
    # Another build is another package.
    return f"aqepilot @ {path.as_uri()}#sha256={hashlib.sha256(path.read_bytes()).hexdigest()}"


def conf(folder: Path, spark: Path) -> dict[str, str]:
    """What `aqepilot conf --format json` prints for the policy, as a scheduler takes it."""
    (folder / "hashed.toml").write_text(POLICY)
    env = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    words = [spark / "bin/python", "-m", "aqepilot", "conf", "hashed.toml", "--format", "json"]
    printed = subprocess.run(words, cwd=folder, env=env, capture_output=True, check=True).stdout
    return json.loads(printed) | SETTINGS


def write_defaults(folder: Path, settings: Mapping[str, str]) -> None:
    """Writes the spark-defaults.conf of a SPARK_CONF_DIR."""
    folder.mkdir()
    lines = [f"{key} {value}\n" for key, value in settings.items()]
    (folder / "spark-defaults.conf").write_text("".join(lines))


def read_json(table: Path) -> list[dict[str, Any]]:
    """Returns the rows of a table that Spark wrote as JSON."""
    lines = [line for part in table.glob("part-*") for line in part.read_text().splitlines()]
    assert lines, f"{table} has no rows"
    return [json.loads(line) for line in lines]


def events(folder: Path, name: str) -> list[dict[str, Any]]:
    """Returns what event logs hold of our events of one name."""
    wanted = f"io.aqepilot.log.{name}"
    lines = [line for path in folder.glob("*/events_*") for line in path.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["Event"] == wanted]


def of_this_machine(*bins: Path) -> dict[str, str]:
    """Returns the environment variables, without a Spark's, and these folders before the path."""
    left_out = ("AIRFLOW", "PYTHONPATH", "SPARK", "PYSPARK", "VIRTUAL_ENV")
    env = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    path = ":".join([*map(str, bins), os.environ["PATH"]])
    return env | {"PATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}


def spark_home(spark: Path) -> Path:
    """Returns the pyspark of an environment, as SPARK_HOME names it."""
    (home,) = spark.glob("lib/python*/site-packages/pyspark")
    return home


def sparks_python(spark: Path) -> dict[str, str]:
    """Returns what gives a Python this Spark, which is not installed into it."""
    zips = spark_home(spark).glob("python/lib/*.zip")
    return {"PYTHONPATH": ":".join(map(str, zips)), "SPARK_HOME": str(spark_home(spark))}


def await_port(port: int, timeout_s: float = 180) -> None:
    """Returns when a server listens there."""
    end = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
