"""What each engine is to Spark: its class, and the settings that switch it on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import submitting

COMET = "org.apache.comet.CometSparkSessionExtensions"
KYUUBI = "org.apache.kyuubi.sql.KyuubiSparkSQLExtension"
SETTINGS: Mapping[str, dict[str, str]] = {
    "comet": {
        "spark.plugins": "org.apache.spark.CometPlugin",
        "spark.shuffle.manager": "org.apache.spark.sql.comet.execution.shuffle.CometShuffleManager",
        "spark.memory.offHeap.enabled": "true",
        "spark.memory.offHeap.size": "2g",
        "spark.comet.exec.shuffle.enabled": "true",
    },
    "kyuubi": {
        # It numbers shuffles, too, and gives the last stage settings of its own.
        "spark.sql.optimizer.dynamicShufflePartitions": "true",
        "spark.sql.optimizer.finalStageConfigIsolation.enabled": "true",
    },
}
EXTENSIONS = {"comet": COMET, "kyuubi": KYUUBI}
ORDERS = ("first", "last")


class Beside(NamedTuple):
    """An engine in a Spark that has aqepilot, too.

    Attributes:
        engine: `comet`, `kyuubi`; null for a Spark without one.
        jar: Its jar; null without one.
        ours: Whether aqepilot's extension stands `first` or `last`.
    """

    engine: str | None = None
    jar: Path | None = None
    ours: str = "first"

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.engine}, aqepilot {self.ours}" if self.engine else "Spark alone"

    @property
    def folder(self) -> str:
        """Where results are."""
        return self.name.replace(", ", "-").replace(" ", "-")

    def settings(self) -> dict[str, str]:
        """Returns what a Spark is submitted with that has it."""
        own = submitting.spark_jar()
        if self.engine is None or self.jar is None:
            return {"spark.jars": str(own), "spark.sql.extensions": submitting.EXTENSION}
        extensions = [submitting.EXTENSION, EXTENSIONS[self.engine]]
        if self.ours == "last":
            extensions.reverse()
        # Classes of Spark's own packages see those of the engine only from the same class loader.
        return SETTINGS[self.engine] | {
            "spark.jars": f"{own},{self.jar}",
            "spark.driver.extraClassPath": str(self.jar),
            "spark.executor.extraClassPath": str(self.jar),
            "spark.sql.extensions": ",".join(extensions),
        }
