"""History: what past runs measured of each sub-plan, as a pack that drivers read.

A pack is one Parquet file. `aqepilot history build` writes it from event logs, and an application
reads the one that `spark.aqepilot.history` names; see `docs/run/history.md`.
"""

from __future__ import annotations

from aqepilot.history.pack import Held, Kind, Pack, build, read

__all__ = ["Held", "Kind", "Pack", "build", "read"]
