"""Runs of jobs as arrays, and what is left of them when what was to be expected is taken away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from aqepilot.analysis.experiment import adjustment

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]
    Bools = np.ndarray[Any, np.dtype[np.bool_]]
    Ints = np.ndarray[Any, np.dtype[np.int64]]
    Texts = np.ndarray[Any, Any]


class Runs(NamedTuple):
    """Runs of jobs in the order in which they ended, one value for each in every field.

    Attributes:
        ended: In days since the epoch.
        job: Its name.
        treated: Whether it got the treatment; of a run before the experiment that says nothing.
        counted: Whether it is of the experiment; the others only say what to expect.
        share: Probability of the treatment, of these two arms; NaN where that is not known.
        exposed: Whether the arms' answers differed anywhere in it.
        failed: Whether it failed, or there is no outcome though it began.
        input_bytes: What it read; NaN where that is not known.
        metrics: By name, what is compared, above 0; NaN for a run that had no query.
        out_of_memory: Whether a query of it ran out of memory; null for none that did.
        backfill: Whether it is a backfill of the experiment, told apart: it is not `counted`, and
            its job has a name of its own. Null for none.
    """

    ended: Floats
    job: Texts
    treated: Bools
    counted: Bools
    share: Floats
    exposed: Bools
    failed: Bools
    input_bytes: Floats
    metrics: Mapping[str, Floats]
    out_of_memory: Bools | None = None
    backfill: Bools | None = None

    def where(self, rows: Any) -> Runs:
        """Returns these runs only: a mask, numbers or a slice."""
        fields = {
            name: value[rows]
            for name, value in self._asdict().items()
            if name != "metrics" and value is not None
        }
        return self._replace(**fields, metrics={n: v[rows] for n, v in self.metrics.items()})


def numbered(names: Texts) -> tuple[list[str], Ints]:
    """Returns what is named, each once, and the number of each name: sorting takes far longer."""
    known: dict[str, int] = {}
    number = [known.setdefault(name, len(known)) for name in names.tolist()]
    return list(known), np.array(number, dtype=np.int64)


def rests_of(
    runs: Runs, values: Floats, job: Ints | None = None, treatment: Ints | None = None
) -> Floats:
    """Returns what is left of each run when what was to be expected of it is taken away.

    Args:
        runs: The runs.
        values: A metric of them.
        job: Numbers of their jobs; null to number them here.
        treatment: As in `adjustment.Units`. Null to expect of a run what the job took with and
            without.

    Returns:
        Infinity for a run that failed, 0 for one that had no query.
    """
    if job is None:
        _, job = numbered(runs.job)
    with np.errstate(divide="ignore", invalid="ignore"):
        y, size = np.log(values), np.log(runs.input_bytes)
    y[runs.failed | ~np.isfinite(y)] = np.nan
    size[~np.isfinite(size)] = np.nan
    day = np.floor(runs.ended).astype(np.int64)
    says = runs.failed | ~np.isnan(values)
    rests = np.zeros(len(values))
    own = None if treatment is None else treatment[says]
    units = adjustment.Units(day[says], job[says], y[says], size[says], own)
    rests[says] = adjustment.surprises(units)
    return rests
