"""Jobs of an autopilot whose runs are made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone

import numpy as np

from aqepilot.analysis.experiment.runs import Runs
from aqepilot.autopilot.autopilot import Autopilot
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, names

AT = datetime(2026, 12, 1, tzinfo=timezone.utc)


SKEW = 'name = "p"\nwhen = "query.fingerprint = \'ab\'"\nskew_join = "null"\n'


def candidate(job="daily.a", text=SKEW, stake_ms=1000.0, recipe="hot_keys"):
    return Candidate(
        job=job,
        shape="hot_key",
        recipe=recipe,
        source="suggest",
        text=text,
        evidence="A join is uneven.",
        stake_ms=stake_ms,
    )


@dataclass
class Jobs:
    """Runs that a test makes up: each with a time, an arm and an experiment."""

    rows: list = field(default_factory=list)

    def past(self, job, days=14, ms=1000.0):
        for day in range(-days, 0):
            self.rows.append(
                (day + 0.5, job, False, False, 0.5, "", False, ms * (1 + day % 3 / 50))
            )

    def drawn(self, job, trial, days, effect, share=0.5, first=0, failing=False):
        for day in range(first, first + days):
            arm = day % 2 == 0
            ms = 1000.0 * (1 + day % 3 / 50) * (effect if arm else 1)
            is_failed = failing and arm
            self.rows.append((day + 0.5, job, arm, True, share, trial.experiment, is_failed, ms))

    def evidence(self, day, **more):
        rows = sorted(self.rows, key=lambda row: row[0])
        ended, job, treated, counted, share, experiment, failed, ms = map(
            list, zip(*rows, strict=True)
        )
        runs = Runs(
            ended=np.array(ended),
            job=np.array(job, dtype=object),
            treated=np.array(treated),
            counted=np.array(counted),
            share=np.array(share),
            exposed=np.array(counted),
            failed=np.array(failed),
            input_bytes=np.full(len(rows), 1e6),
            metrics={"task_ms": np.array(ms)},
        )
        return Evidence(float(day), runs, names(experiment), **more)


def definition(**more):
    return Definition(**{"state": "pilot", "jobs": ("daily.*",), "experiments": 5} | more)


def pilot(tmp_path, **more):
    rules = tmp_path / "control.json"
    return Autopilot(
        definition(
            **{
                "state": str(tmp_path / "state"),
                "folder": str(tmp_path / "branch"),
                "deliver": "live",
                "control": str(rules),
            }
            | more
        )
    )
