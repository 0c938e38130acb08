"""The lines of Spark's event logs, plain or compressed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import TYPE_CHECKING

from aqepilot.eventlog.files import LogFile, as_glob

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

# Hadoop means something else by `.lz4` and `.snappy`; its codec that passes all through reads the
# file as it is, in one piece. Its setting has another name where Hadoop is shaded, as in pyspark.
_PASSED = "org.apache.hadoop.io.compress.PassthroughCodec"
_PASSED_KEYS = tuple(
    f"{shaded}io.compress.passthrough.extension" for shaded in ("", "org.apache.hadoop.shaded.")
)


def read(spark: SparkSession, files: Sequence[LogFile], prefixes: Sequence[str]) -> DataFrame:
    """Reads lines of event logs: one row each, with `file`, `block`, `value` and `problem`.

    `block` is where the part of the file begins that its task read; see `place`.

    Each compressed file is read by one task, a line at a time; a plain one by as many as it has
    blocks. Of a compressed file that cannot be read to its end, one row has the `problem`.

    Args:
        spark: The session.
        files: Files of event logs.
        prefixes: Only lines that begin with one of these; without any, all lines.
    """
    from pyspark.sql import functions

    parts = []
    for suffix, own in groupby(sorted(files, key=_suffix), key=_suffix):
        text = _text(spark, [file.path for file in own], suffix)
        if suffix:
            parts.append(_unpacked(text, prefixes))
            continue
        value = functions.col("value")
        if prefixes:
            begins = (value.startswith(prefix) for prefix in prefixes)
            text = text.where(reduce(lambda one, other: one | other, begins))
        problem = functions.lit(None).cast("string").alias("problem")
        # Spark's hidden column _metadata says the same, and copies each line for it.
        where = (functions.input_file_name(), functions.input_file_block_start())
        parts.append(text.select(*where, value, problem).toDF(*_LINE))
    return reduce(lambda one, other: one.union(other), parts)


_LINE = ("file", "block", "value", "problem")


def place() -> Column:
    """Returns what rises with the lines of a log, over what `read` returned."""
    from pyspark.sql import functions

    return functions.expr(
        "struct(cast(nullif(regexp_extract(file, '/events_([0-9]+)_[^/]+$', 1), '') AS bigint) "
        "AS part, block, monotonically_increasing_id() AS row)"
    )


def _suffix(file: LogFile) -> str:
    """What Hadoop would tell the codec by, of a compressed file; empty for a plain one."""
    return "." + file.path.rpartition(".")[2] if file.is_packed else ""


def _text(spark: SparkSession, paths: list[str], suffix: str) -> DataFrame:
    # With one end of lines given, no other is taken for one; what is gone or bad meanwhile is left.
    reader = spark.read.option("lineSep", "\n").option("ignoreMissingFiles", True)
    reader = reader.option("ignoreCorruptFiles", True)
    if suffix:
        reader = reader.option("io.compression.codecs", _PASSED)
        for key in _PASSED_KEYS:
            reader = reader.option(key, suffix)
    return reader.text([as_glob(path) for path in paths])


def _unpacked(text: DataFrame, prefixes: Sequence[str]) -> DataFrame:
    from pyspark import cloudpickle
    from pyspark.sql import functions

    from aqepilot.eventlog import codecs

    cloudpickle.register_pickle_by_value(sys.modules[codecs.__name__])  # type: ignore[no-untyped-call]
    pieces = text.select(
        "_metadata.file_path", "_metadata.file_size", functions.col("value").cast("binary")
    )
    task = codecs.lines_of(tuple(prefix.encode() for prefix in prefixes))
    schema = "file string, value string, problem string"
    unpacked = pieces.mapInArrow(task, schema)
    block = functions.lit(0).cast("bigint").alias("block")
    return unpacked.select("file", block, "value", "problem")
