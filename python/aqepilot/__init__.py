"""Replace decisions of Spark's adaptive query execution by policies written in SQL or Python.

Nothing is loaded before it is used: importing this package does no work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aqepilot.__about__ import __version__

if TYPE_CHECKING:
    from aqepilot import control, experiment, history, points, recipes, testing
    from aqepilot.analysis.bench.pairs import bench
    from aqepilot.analysis.explanation import explain
    from aqepilot.analysis.log import Log, read_log
    from aqepilot.analysis.prices import Prices
    from aqepilot.analysis.replay import Replay
    from aqepilot.analysis.tune.tuning import tune
    from aqepilot.decision import Decision
    from aqepilot.errors import AqePilotError, JarError, NotLiveError, PolicyError, Problem
    from aqepilot.eventlog.collect.tables import collect
    from aqepilot.function import policy
    from aqepilot.policies import Policy
    from aqepilot.session import Status, configure, decisions, status, use

_HOME = {
    "AqePilotError": "errors",
    "Decision": "decision",
    "JarError": "errors",
    "Log": "analysis.log",
    "NotLiveError": "errors",
    "Policy": "policies",
    "PolicyError": "errors",
    "Prices": "analysis.prices",
    "Problem": "errors",
    "Replay": "analysis.replay",
    "Status": "session",
    "bench": "analysis.bench.pairs",
    "collect": "eventlog.collect.tables",
    "configure": "session",
    "decisions": "session",
    "explain": "analysis.explanation",
    "policy": "function",
    "read_log": "analysis.log",
    "status": "session",
    "tune": "analysis.tune.tuning",
    "use": "session",
}
_MODULES = ("control", "experiment", "history", "points", "recipes", "testing")

__all__ = [
    "AqePilotError",
    "Decision",
    "JarError",
    "Log",
    "NotLiveError",
    "Policy",
    "PolicyError",
    "Prices",
    "Problem",
    "Replay",
    "Status",
    "__version__",
    "bench",
    "collect",
    "configure",
    "control",
    "decisions",
    "experiment",
    "explain",
    "history",
    "points",
    "policy",
    "read_log",
    "recipes",
    "status",
    "testing",
    "tune",
    "use",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"aqepilot.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"aqepilot.{name}")
    else:
        raise AttributeError(f"module 'aqepilot' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
