"""Which experiment logs are of, and which two of its arms are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aqepilot.errors import AqePilotError, Problem, nearest

if TYPE_CHECKING:
    from aqepilot.eventlog.frames import Frames


class Experiment(NamedTuple):
    """What is compared.

    Attributes:
        name: The experiment's.
        unit_kind: ``job_run``, ``query_run`` or ``session``.
        control: The control's name.
        treatment: The name of the arm that is compared with it.
        arms: All arms, the control first.
        metric: What decides.
        stopped: Why the treatment was stopped somewhere, with how often.
        running: Units that may still run: they are left out.
    """

    name: str
    unit_kind: str
    control: str
    treatment: str
    arms: tuple[str, ...]
    metric: str
    stopped: dict[str, int]
    running: int = 0


def described(log: Frames, name: str | None, arm: str | None) -> Experiment:
    """Returns the experiment that is asked for.

    Args:
        log: The log.
        name: Its name; null for the only one.
        arm: The arm to compare with the control; null for the second.

    Raises:
        AqePilotError: There is no such experiment or arm, or several.
    """
    from pyspark.sql import functions

    is_stop = functions.col("what") == "stopped"
    rows = (
        log.experiments.groupBy(
            "experiment",
            "unit_kind",
            "arms",
            "metric",
            functions.when(is_stop, functions.col("arm")).alias("stopped"),
            functions.when(is_stop, functions.col("detail")).alias("detail"),
        )
        .agg(functions.max("time").alias("last"), functions.count("*").alias("n"))
        .orderBy("last")
        .collect()
    )
    names = sorted({row["experiment"] for row in rows})
    if not names:
        message = (
            "the logs have no unit of an experiment: was spark.aqepilot.experiment.name submitted, "
            "and was there an EXPERIMENT_INVALID in the drivers' logs?"
        )
        raise AqePilotError(Problem("EXPERIMENT_MISSING", message))
    if (name not in names) if name else len(names) > 1:
        what = f"there is no experiment {name!r} in the logs" if name else "there are several"
        message = f"{what}: name one of {', '.join(names)}."
        near = nearest(name, names) if name else []
        raise AqePilotError(Problem("EXPERIMENT_UNKNOWN", message, suggestions=tuple(near)))
    own = [row for row in rows if row["experiment"] == (name or names[0])]
    # Weights may have changed meanwhile: the newest arms say which there are.
    arms = tuple(part.rpartition(":")[0] for part in own[-1]["arms"].split(","))
    treatment = arm or arms[1]
    if treatment not in arms[1:]:
        message = f"{treatment!r} is no arm beside the control: name one of {', '.join(arms[1:])}."
        raise AqePilotError(
            Problem("ARM_UNKNOWN", message, suggestions=tuple(nearest(treatment, arms[1:])))
        )
    kinds = sorted({row["unit_kind"] for row in own})
    if len(kinds) > 1:
        message = (
            f"experiment {own[0]['experiment']} was run with several kinds of units: "
            f"{', '.join(kinds)}. Give the logs of one, or another name to each."
        )
        raise AqePilotError(Problem("EXPERIMENT_MIXED", message))
    stopped: dict[str, int] = {}
    for row in own:
        if row["stopped"] == treatment:
            stopped[row["detail"]] = stopped.get(row["detail"], 0) + row["n"]
    return Experiment(
        own[0]["experiment"], kinds[0], arms[0], treatment, arms, own[-1]["metric"], stopped
    )
