"""Writes the running pyspark's classes as they are once loaded, for the JVMs of the tests to map.

python class_archive.py

A test run starts some forty JVMs for each Spark, which otherwise read, verify and link the same ten
thousand classes. What is in the archive is what this job used of Spark's own jars.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import submitting

JOB = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from pyspark.sql import SparkSession
import little
spark = SparkSession.builder.getOrCreate()
folder = Path("data").absolute()
little.write(spark, folder)
little.register(spark, folder)
for settings in (little.SORT_MERGE, little.DEMOTES, little.PREFERS_SHUFFLED_HASH):
    little.settings(spark, settings)
    for query in (little.BIG_SPARSE, little.SKEWED_DENSE):
        spark.sql(query).groupBy("w").count().orderBy("w").collect()
numbered = "row_number() OVER (ORDER BY id)"
spark.sql(f"SELECT transform(array(1), x -> x + 1), {numbered} FROM range(9)").collect()
"""


def main() -> None:
    submitting.ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "classes.jsa")
        options = f'{submitting.COMPILED_ONCE} "-XX:ArchiveClassesAtExit={written}" -Xlog:cds*=off'
        run = submitting.submit(
            Path(folder),
            JOB,
            conf={"spark.driver.extraJavaOptions": options},
            job_words=[str(Path(__file__).parent)],
            extension=False,
            timeout_s=600,
        )
        unfinished = submitting.ARCHIVE.with_suffix(".unfinished")
        # A JVM that has no such archives gets an empty one: the tests do without, and take longer.
        unfinished.write_bytes(written.read_bytes() if written.exists() else b"")
        unfinished.rename(submitting.ARCHIVE)
    if not submitting.ARCHIVE.stat().st_size:
        print(f"No archive of Spark's classes:\n{run.stderr[-2000:]}")


if __name__ == "__main__":
    main()
