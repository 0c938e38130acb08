"""Replace decisions of Spark's adaptive query execution by policies written in SQL or Python.

Nothing is loaded before it is used: importing this package does no work.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aqepilot.__about__ import __version__

if TYPE_CHECKING:
    from aqepilot import experiment, log, points, recipes, report, testing
    from aqepilot.decision import Decision
    from aqepilot.errors import AqePilotError, JarError, NotLiveError, PolicyError, Problem
    from aqepilot.explanation import explain
    from aqepilot.function import policy
    from aqepilot.log import Log, read_log
    from aqepilot.log.replay import Replay, replay
    from aqepilot.policies import Policy
    from aqepilot.session import Status, configure, decisions, status, use

_HOME = {
    "AqePilotError": "errors",
    "Decision": "decision",
    "JarError": "errors",
    "Log": "log",
    "NotLiveError": "errors",
    "Policy": "policies",
    "PolicyError": "errors",
    "Problem": "errors",
    "Replay": "log.replay",
    "Status": "session",
    "configure": "session",
    "decisions": "session",
    "explain": "explanation",
    "policy": "function",
    "read_log": "log",
    "replay": "log.replay",
    "status": "session",
    "use": "session",
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
    "configure",
    "decisions",
    "experiment",
    "explain",
    "log",
    "points",
    "policy",
    "read_log",
    "recipes",
    "replay",
    "report",
    "status",
    "testing",
    "use",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(f"aqepilot.{_HOME[name]}"), name)
    elif name in ("experiment", "log", "points", "recipes", "report", "testing"):
        value = import_module(f"aqepilot.{name}")
    else:
        raise AttributeError(f"module 'aqepilot' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
