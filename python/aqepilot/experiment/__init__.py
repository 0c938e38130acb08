"""Whether a policy helps: measured, with error rates that hold however often one looks."""

from __future__ import annotations

from aqepilot.experiment.paired import Paired, QueryResult, Run, bench
from aqepilot.experiment.sequences import Interval, mean_interval

__all__ = ["Interval", "Paired", "QueryResult", "Run", "bench", "mean_interval"]
