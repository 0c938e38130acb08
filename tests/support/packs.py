"""Packs of history that tests make by hand, in the format of `aqepilot history build`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMA = (
    "version int, signature bigint, form string, kind string, run_ms bigint, input_bytes bigint, "
    "row_count bigint, bytes bigint, shuffle_bytes bigint, partitions int, "
    "max_partition_bytes bigint, median_partition_bytes bigint, input_rows bigint, task_ms bigint, "
    "read_bytes bigint, read_rows bigint, spilled_bytes bigint, peak_memory_bytes bigint, "
    "failures int, decided boolean, held_until_ms bigint, reason string"
)
COLUMNS = [field.split()[0] for field in SCHEMA.split(", ")]


def signed(signature: str) -> int:
    """Returns the number that 16 hex digits are in a pack.

    >>> signed("ffffffffffffffff"), signed("0000000000000010")
    (-1, 16)
    """
    return int.from_bytes(bytes.fromhex(signature), "big", signed=True)


def write(spark: SparkSession, path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a pack of runs that ended now, as one file that is there at once.

    Args:
        spark: A session.
        path: Where.
        rows: Values by column; `signature` as 16 hex digits. `form` is SAME unless it is there.
    """
    now = {"version": 1, "form": "SAME", "run_ms": int(time.time() * 1000)}
    values = [now | dict(row) | {"signature": signed(row["signature"])} for row in rows]
    folder = path.with_suffix(".written")
    frame = spark.createDataFrame([tuple(map(v.get, COLUMNS)) for v in values], SCHEMA)
    frame.coalesce(1).sortWithinPartitions("signature").write.mode("overwrite").parquet(str(folder))
    (part,) = folder.glob("part-*.parquet")
    part.replace(path)
