"""Replace decisions of Spark's adaptive query execution by policies written in SQL or Python.

Nothing is loaded before it is used: importing this package does no work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aqepilot.__about__ import __version__

if TYPE_CHECKING:
    from aqepilot import analysis, experiment, points, recipes, testing
    from aqepilot.analysis.explanation import explain
    from aqepilot.analysis.replay import Replay, replay
    from aqepilot.decision import Decision
    from aqepilot.errors import AqePilotError, JarError, NotLiveError, PolicyError, Problem
    from aqepilot.eventlog import read_log
    from aqepilot.eventlog.frames import Log
    from aqepilot.function import policy
    from aqepilot.policies import Policy
    from aqepilot.session import Status, configure, decisions, status, use

_HOME = {
    "AqePilotError": "errors",
    "Decision": "decision",
    "JarError": "errors",
    "Log": "eventlog.frames",
    "NotLiveError": "errors",
    "Policy": "policies",
    "PolicyError": "errors",
    "Problem": "errors",
    "Replay": "analysis.replay",
    "Status": "session",
    "configure": "session",
    "decisions": "session",
    "explain": "analysis.explanation",
    "policy": "function",
    "read_log": "eventlog",
    "replay": "analysis.replay",
    "status": "session",
    "use": "session",
}

_MODULES = {
    "analysis": "analysis",
    "experiment": "experiment",
    "points": "points",
    "recipes": "recipes",
    "testing": "testing",
}

__all__ = [
    "AqePilotError",
    "Decision",
    "JarError",
    "Log",
    "NotLiveError",
    "Policy",
    "PolicyError",
    "Problem",
    "Replay",
    "Status",
    "__version__",
    "analysis",
    "configure",
    "decisions",
    "experiment",
    "explain",
    "points",
    "policy",
    "read_log",
    "recipes",
    "replay",
    "status",
    "testing",
    "use",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"aqepilot.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = import_module(f"aqepilot.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'aqepilot' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
