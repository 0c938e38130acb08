"""Runs a reported job in ways, in sessions of one application; prints a line for each run.

spark-submit reported.py <file with the JSON of `bench.reported.trials.Work`>

Each round runs it once in each way, one after the other; the order rotates and turns around. All
ways have to give the same rows.
"""

import json
import sys
import time
from pathlib import Path

from bench.reported import JOBS
from bench.turns import in_turn
from pyspark.sql import SparkSession

work = json.loads(Path(sys.argv[1]).read_text("utf-8"))
job = JOBS[work["job"]]
root = SparkSession.builder.appName(f"reported-{work['job']}").getOrCreate()
folder = Path(work["folder"])
if not folder.exists():
    folder.mkdir(parents=True)
    job.prepare(root, folder)


def written(at: Path, since: float) -> dict[str, int]:
    """Returns how many files of data each table got since then."""
    tables = [table for table in at.iterdir() if table.is_dir()]
    new = {
        table.name: sum(file.stat().st_mtime >= since for file in table.rglob("part-*"))
        for table in tables
    }
    return {name: count for name, count in new.items() if count}


rows = None
for number in range(-work["warm_up"], work["rounds"]):
    for way in in_turn(work["ways"], max(number, 0)):
        session = root.newSession()
        for key, value in job.conf.items():
            session.conf.set(key, value)
        file = work["ways"][way]
        if file.endswith(".toml"):
            import aqepilot

            aqepilot.use(session, file)
        begun, start = time.time(), time.perf_counter()
        result = sorted(map(str, job.run(session, folder, file == "changed")))
        seconds = time.perf_counter() - start
        rows = rows or result
        error = None if rows == result else "OTHER ROWS"
        print("RUN", json.dumps([number, way, seconds, error, written(folder, begun)]), flush=True)
root.stop()
