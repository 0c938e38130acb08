"""What happened to the units of experiments, as aqepilot wrote it into Spark's event logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aqepilot.eventlog import events
from aqepilot.eventlog.events import OURS
from aqepilot.eventlog.files import LogFile
from aqepilot.eventlog.frames import columns
from aqepilot.eventlog.frames.applications import with_application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_EXPERIMENT = {
    "time": "bigint", "experiment": "string", "unitKind": "string", "unit": "string",
    "arm": "string", "arms": "string", "metric": "string", "what": "string", "detail": "string",
    "executionId": "bigint", "job": "string", "run": "string", "attempt": "int",
}  # fmt: skip


def experiments(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row for each time that a unit got its arm, was exposed, or was stopped."""
    read = events.read(spark, files, {f"{OURS}Experiment": events.schema(_EXPERIMENT)})
    rows = with_application(events.renamed(read, _EXPERIMENT), heads)
    return events.shaped(rows, columns.EXPERIMENTS)
