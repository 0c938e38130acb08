"""The demo's data: events with a hot key, written by Spark once."""

from __future__ import annotations

import tempfile
from pathlib import Path

from aqepilot.demo.sparks import Spark, submit


def events(folder: Path, spark: Spark) -> Path:
    """Returns the folder with the job's tables, made at the first call.

    Args:
        folder: Where the data is kept.
        spark: Writes them.

    Raises:
        AqePilotError: Spark failed.
    """
    target = folder / "hot-key"
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        print("writing events, 3 in 10 of which are one customer's (once)", flush=True)
        unfinished = Path(tempfile.mkdtemp(dir=folder, prefix=f"{target.name}."))
        submit(spark, (), Path(__file__).with_name("write.py"), (str(unfinished),))
        unfinished.rename(target)
    return target.absolute()
