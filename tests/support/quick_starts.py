"""Lets the JVMs and Pythons that tests start with the running pyspark start faster.

python quick_starts.py

Each JVM otherwise reads, verifies and links the same ten thousand classes: an archive has those of
Spark's own jars that a job used, as they are once loaded. Each Python of a submitted job, and each
of its workers, otherwise compiles a hundred modules of pyspark.zip: it has them compiled, too.
"""

from __future__ import annotations

import compileall
import shutil
import tempfile
from pathlib import Path
from py_compile import PycInvalidationMode

import pyspark

import places
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


def compile_modules(zipped: Path) -> None:
    """Puts the compiled form of each module beside it, where Python looks first."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.unpack_archive(zipped, folder)
        compileall.compile_dir(
            folder,
            quiet=2,
            legacy=True,
            stripdir=folder,
            prependdir=str(zipped),
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
        made = Path(shutil.make_archive(f"{zipped.with_suffix('')}-unfinished", "zip", folder))
        made.rename(zipped)


def main() -> None:
    for zipped in Path(pyspark.__file__).parent.glob("python/lib/*.zip"):
        compile_modules(zipped)
    archive_classes()


def archive_classes() -> None:
    submitting.ARCHIVE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "classes.jsa")
        options = f'{submitting.COMPILED_ONCE} "-XX:ArchiveClassesAtExit={written}" -Xlog:cds*=off'
        run = submitting.submit(
            Path(folder),
            JOB,
            conf={"spark.driver.extraJavaOptions": options},
            job_words=[str(places.SUPPORT)],
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
