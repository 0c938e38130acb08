"""Jobs of an autopilot whose runs are made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timezone

import numpy as np

from aqepilot.analysis.experiment.runs import Runs
from aqepilot.autopilot.autopilot import Autopilot
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, Shadow, names
from aqepilot.autopilot.state import State
from aqepilot.autopilot.steps import Steps

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


def after(state, evidence, candidates=(), may=None, look="one"):
    """The state after a look, and its steps with their reasons."""
    events = Steps(may or definition(), state, evidence, look, AT).decide(candidates)
    return state.after(events), [(e.step, e.reason) for e in events if e.trial]


def in_experiment(jobs=None, share=25.0):
    """A state with a trial whose experiment began on day 0."""
    jobs = jobs or Jobs()
    jobs.past("daily.a")
    state, _ = after(State(), jobs.evidence(0), [candidate()])
    (trial,) = state.open
    shadows = {trial.name: Shadow(1, 3, 0)}
    state, steps = after(state, jobs.evidence(0, shadows=shadows))
    assert steps == [("start", "SHADOW_WELL")]
    (trial,) = state.open
    return jobs, state, trial


def promoted(effect=0.5):
    """A state with a trial that was promoted on day 30."""
    jobs, state, trial = in_experiment()
    jobs.drawn("daily.a", trial, 30, effect)
    state, steps = after(state, jobs.evidence(30))
    assert steps == [("promote", "GAIN_SHOWN")]
    return jobs, state, state.open[0]
