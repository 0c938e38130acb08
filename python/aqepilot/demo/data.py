"""The demo's data: TPC-H by tpchgen-cli, lineitem skewed by Spark; made once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

from aqepilot.demo.sparks import Spark, submit
from aqepilot.errors import AqePilotError, Problem


def skewed(folder: Path, scale: float, spark: Spark) -> Path:
    """Returns the folder with the job's tables, made at the first call.

    Args:
        folder: Where the data is kept.
        scale: TPC-H's scale factor; 1 is 6 million rows of lineitem.
        spark: Writes the skewed lineitem.

    Raises:
        AqePilotError: tpchgen-cli is not installed or failed, or Spark failed.
    """
    target = folder / f"tpch-sf{scale:g}-skewed"
    if not target.is_dir():
        source = _tpch(folder, scale)
        print("writing lineitem with a skewed key (once)", flush=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder, prefix=f"{target.name}."))
        script = Path(__file__).with_name("skew.py")
        submit(spark, (), script, (str(source), str(unfinished / "lineitem.parquet")))
        shutil.copy(source / "partsupp.parquet", unfinished)
        unfinished.rename(target)
    return target.absolute()


def warm(folder: Path) -> None:
    """Reads the files once, so that both runs find them in memory."""
    for path in folder.rglob("*.parquet"):
        if path.is_file():
            path.read_bytes()


def _tpch(folder: Path, scale: float) -> Path:
    target = folder / f"tpch-sf{scale:g}"
    if target.is_dir():
        return target
    print(f"generating TPC-H at scale factor {scale:g} (once)", flush=True)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder, prefix=f"{target.name}."))
    command = [_generator(), "parquet", "-s", f"{scale:g}", "--output-dir", str(unfinished)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = f"tpchgen-cli failed: {done.stderr.strip()}"
        raise AqePilotError(Problem("DEMO_SET_UP_FAILED", message))
    unfinished.rename(target)
    return target


def _generator() -> str:
    beside = Path(sysconfig.get_path("scripts"), "tpchgen-cli")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("tpchgen-cli")
    if found is None:
        message = "the demo's data is made by tpchgen-cli: pip install tpchgen-cli."
        raise AqePilotError(Problem("DEMO_SET_UP_FAILED", message))
    return found
