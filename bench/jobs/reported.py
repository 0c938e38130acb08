"""Runs a reported job in ways, in sessions of one application; prints a line for each run.

spark-submit reported.py <file with the JSON of `bench.reported.trying.Work`>

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


def files(at: Path) -> dict[str, int]:
    """How many files of data each table has."""
    return {
        table.name: len([f for f in table.rglob("part-*") if f.is_file()])
        for table in at.iterdir()
        if table.is_dir()
    }


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
        start = time.perf_counter()
        found = sorted(map(str, job.run(session, folder, file == "changed")))
        seconds = time.perf_counter() - start
        rows = rows or found
        error = None if rows == found else "OTHER ROWS"
        print("RUN", json.dumps([number, way, seconds, error, files(folder)]), flush=True)
root.stop()
