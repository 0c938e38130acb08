"""What an experiment in production says: the effect, whom it harms, and what to do."""

from __future__ import annotations

from importlib.util import find_spec

from aqepilot.errors import AqePilotError, Problem


def needs_numpy() -> None:
    """Refuses where this Python lacks what experiments are analysed with.

    Raises:
        AqePilotError: There is no NumPy or no SciPy.
    """
    missing = [name for name in ("numpy", "scipy") if find_spec(name) is None]
    if missing:
        message = (
            f"experiments need {' and '.join(missing)} in this Python: "
            "pip install 'aqepilot[experiment]'."
        )
        raise AqePilotError(Problem("EXPERIMENT_EXTRA_MISSING", message))
