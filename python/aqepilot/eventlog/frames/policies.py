"""The texts of policies that sessions read, as aqepilot wrote them into Spark's event logs."""

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

_POLICY = {
    "time": "bigint", "sessionId": "string", "policy": "string", "point": "string",
    "revision": "string", "text": "string", "when": "string", "mode": "string",
    "source": "string", "error": "string",
}  # fmt: skip


def policies(spark: SparkSession, files: Sequence[LogFile], heads: DataFrame) -> DataFrame:
    """One row per text of a policy that was read, at one point of one session."""
    read = events.read(spark, files, {f"{OURS}PolicyLoaded": events.schema(_POLICY)})
    loaded = with_application(events.renamed(read, _POLICY), heads)
    return events.shaped(loaded, columns.POLICIES)
