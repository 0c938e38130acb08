"""What jobs are submitted with: settings by job, a function of the state alone."""

from __future__ import annotations

from pydantic import BaseModel

from aqepilot.autopilot.state import ALL, State, Trial
from aqepilot.autopilot.steps import active
from aqepilot.experiment.definition import Definition as Experiment
from aqepilot.policies import PREFIX, sql_text


class Live(BaseModel):
    """The file that submissions read.

    Attributes:
        format: 1.
        jobs: Settings by job.
    """

    format: int = 1
    jobs: dict[str, dict[str, str]] = {}


def live(state: State) -> Live:
    """Returns the settings of all jobs that have a trial."""
    jobs: dict[str, list[Trial]] = {}
    for trial in state.open:
        jobs.setdefault(trial.job, []).append(trial)
    return Live(jobs={job: _settings(own, job) for job, own in sorted(jobs.items())})


def settings(state: State, job: str) -> dict[str, str]:
    """Returns what a job is submitted with; nothing where it has no trial.

    Args:
        state: The state.
        job: The job.
    """
    return _settings([trial for trial in state.open if trial.job == job], job)


def _settings(own: list[Trial], job: str) -> dict[str, str]:
    conf: dict[str, str] = {}
    for trial in own:
        conf |= trial.policy().to_conf()
    asked = [*teams(own), *_newest_first(own)]
    shadows = [trial for trial in own if trial.phase == "shadow"]
    drawn = active(own, job)
    # A shadow is no arm: for its runs there is no hold-out, but of what is in doubt.
    if drawn and (drawn.is_doubted or not shadows) and (arms := _arms(own, drawn)):
        experiment = Experiment(name=drawn.experiment, arms=arms)
        return conf | experiment.to_conf()
    return conf | ({f"{PREFIX}policies": ",".join(asked)} if asked else {})


def experiment(state: State, trial: Trial) -> Experiment | None:
    """Returns the experiment that a trial has now; null where its arms are not drawn."""
    own = [other for other in state.open if other.job == trial.job]
    if active(own, trial.job) != trial or not (arms := _arms(own, trial)):
        return None
    when = f"query.job = {sql_text(trial.job)}"
    return Experiment(name=trial.experiment, arms=arms, when=when)


def teams(own: list[Trial]) -> tuple[str, ...]:
    """Returns the team's policies of a job, which come first: what they answer holds."""
    return next((trial.base for trial in reversed(own) if trial.base), ())


def _newest_first(own: list[Trial]) -> list[str]:
    """Names of a job's policies: a newer one is asked before those that it is to improve on."""
    later = sorted(own, key=lambda trial: (trial.phase != "promoted", trial.since), reverse=True)
    return [trial.name for trial in later]


def _arms(own: list[Trial], drawn: Trial) -> str | None:
    """The arms of an experiment, or of a hold-out; null where all runs are treated."""
    if drawn.share >= ALL:
        return None
    promoted = [trial for trial in own if trial.phase == "promoted" and trial != drawn]
    common = [*teams(own), *_newest_first(promoted)]
    control = "+".join(common) or "spark"
    treatment = "+".join([*teams(own), drawn.name, *_newest_first(promoted)])
    return f"{control}:{100 - drawn.share:g},{treatment}:{drawn.share:g}"
