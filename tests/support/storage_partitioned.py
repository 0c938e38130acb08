"""Tables that a data source says are partitioned by a column, which Spark joins without a shuffle.

The data source is `StoragePartitioned.java`, compiled by the running Spark's own compiler, in a jar
that the context is told of.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plans

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SOURCE = Path(__file__).with_name("StoragePartitioned.java")

# Spark joins by the partitions of the sources, and reads the splits of a large side by themselves.
SETTINGS = {
    "spark.sql.sources.v2.bucketing.enabled": "true",
    "spark.sql.sources.v2.bucketing.pushPartValues.enabled": "true",
    "spark.sql.sources.v2.bucketing.partiallyClusteredDistribution.enabled": "true",
}


def table(spark: SparkSession, name: str, rows: DataFrame, of_split: int) -> DataFrame:
    """Returns what reads a table that is made of the rows, partitioned by their first column.

    Args:
        spark: A classic session.
        name: Of the table.
        rows: The first column is an INT.
        of_split: How many rows a split has at most.
    """
    gateway = spark._sc._gateway
    if gateway not in _SOURCES:
        _SOURCES[gateway] = _compiled(gateway, spark)
    _SOURCES[gateway].define(name, rows._jdf, of_split)
    return spark.read.format(SOURCE.stem).option("name", name).load()


# One for each JVM.
_SOURCES: dict[Any, Any] = {}


def _compiled(gateway: Any, spark: SparkSession) -> Any:
    """Returns the source; `ADD JAR` tells executors of it, and the thread that calls it."""
    compiler = gateway.jvm.org.codehaus.janino.SimpleCompiler()
    with plans.COMPILING:
        compiler.cook(SOURCE.read_text("utf-8"))
    jar = Path(tempfile.mkdtemp()) / f"{SOURCE.stem}.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in compiler.getBytecodes().items():
            archive.writestr(f"{name}.class", bytes(code))
    spark.sql(f"ADD JAR '{jar}'")
    loader = spark._jsparkSession.sharedState().jarClassLoader()
    return loader.loadClass(SOURCE.stem).newInstance()
