"""What event logs say to the autopilot: runs, shadows, teams' policies, and candidates."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from aqepilot.analysis.experiment.history import units_of
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.evidence import Evidence, Shadow, TeamPolicy
from aqepilot.autopilot.state import PREFIX, State
from aqepilot.errors import AqePilotError, Problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from aqepilot.eventlog.frames import Frames

# What ends later than that after the look has a clock that is wrong, or is of the future.
_LATE_DAYS = 1.0
_PAST_DAYS = 400.0
# A broken line may have anything for a fingerprint.
_IS_WHOLE = "fingerprint IS NULL OR fingerprint RLIKE '^[0-9a-f]{2,64}$'"
JOB = "coalesce(job, app_name)"


class Seen:
    """What a log has of the jobs that a definition names, until a day.

    Args:
        log: The log.
        definition: Which jobs.
        day: The day of the look, since the epoch.
    """

    def __init__(self, log: Frames, definition: Definition, day: float) -> None:
        self._log = log
        self._definition = definition
        self._day = day

    @cached_property
    def jobs(self) -> DataFrame:
        """A row for each log of such a job: `log`, `job` and `ended`."""
        from pyspark.sql import functions

        # A job's name is that of most of its queries, so one strange line renames nothing.
        own = self._log.queries.groupBy("log").agg(functions.expr("mode(job) AS job"))
        apps = self._log.applications.selectExpr("log", "app_name", "ended", "started")
        last = "coalesce(ended, started)"
        named = (
            own.join(apps, "log", "left")
            .selectExpr("log", f"{JOB} AS job", f"unix_millis({last}) / 86400000D AS at")
            .where(
                functions.expr(f"at BETWEEN {self._day - _PAST_DAYS} AND {self._day + _LATE_DAYS}")
            )
        )
        listed = [row["job"] for row in named.select("job").distinct().collect() if row["job"]]
        allowed = [job for job in listed if self._is_named(job)]
        return named.where(functions.col("job").isin(allowed)).persist()

    def _is_named(self, job: str) -> bool:
        return any(fnmatchcase(job, name) for name in self._definition.jobs)

    @cached_property
    def log(self) -> Frames:
        """The log, of these jobs alone."""
        logs = self.jobs.select("log")

        def own(frame: DataFrame) -> DataFrame:
            return frame.join(logs, "log", "left_semi").persist()

        every = self._log
        return every.replace(
            queries=own(every.queries.where(_IS_WHOLE)),
            decisions=own(every.decisions.where(_IS_WHOLE)),
            stages=own(every.stages),
            applications=own(every.applications),
            experiments=own(every.experiments),
            policies=own(every.policies),
        )

    def evidence(self, state: State) -> Evidence:
        """Returns what the runs say.

        Args:
            state: It names the trials.
        """
        if not self.jobs.take(1):
            raise AqePilotError(
                Problem(
                    "RUNS_MISSING",
                    f"the logs have no run of a job that fits {', '.join(self._definition.jobs)}.",
                )
            )
        runs, experiment = units_of(self.log, f"{PREFIX}.")
        kept = self._kept(runs.job, runs.ended)
        return Evidence(
            self._day, runs.where(kept), experiment[kept], self._shadows(state), self._teams()
        )

    def _kept(self, job: Any, ended: Any) -> Any:
        known = {name: self._is_named(name) for name in set(job.tolist())}
        return (
            np.array([known[name] for name in job.tolist()], dtype=bool)
            & (ended <= self._day + _LATE_DAYS)
            & (ended >= self._day - _PAST_DAYS)
        )

    def _shadows(self, state: State) -> dict[str, Shadow]:
        from pyspark.sql import functions

        names = [trial.name for trial in state.open if trial.phase == "shadow"]
        if not names:
            return {}
        own = functions.col("policy").isin(names)
        loaded = (
            self.log.policies.where(own)
            .groupBy("policy")
            .agg(functions.expr("count(DISTINCT log)"), functions.expr("count(error)"))
            .collect()
        )
        asked = {
            row[0]: row[1:]
            for row in self.log.decisions.where(own)
            .groupBy("policy")
            .agg(functions.expr("count(answer)"), functions.expr("count_if(answer IS NULL)"))
            .collect()
        }
        return {
            name: Shadow(runs, *_answered(asked.get(name, (0, 0)), broken))
            for name, runs, broken in loaded
        }

    def _teams(self) -> dict[str, tuple[TeamPolicy, ...]]:
        """The team's policies in each job's newest run, but for those that decide nothing."""
        from pyspark.sql import functions

        newest = self.jobs.groupBy("job").agg({"at": "max"}).toDF("job", "at")
        logs = self.jobs.join(newest, ["job", "at"]).select("log", "job")
        rows = (
            self.log.policies.where(
                f"error IS NULL AND mode = 'enforce' AND NOT startswith(policy, '{PREFIX}_') "
                "AND coalesce(upper(trim(text)), '') != 'NULL'"
            )
            .join(logs, "log")
            .groupBy("job", "policy")
            .agg(
                functions.expr("collect_set(point) AS points"),
                functions.expr("min(time) AS time"),
            )
            .orderBy("job", "time", "policy")
            .collect()
        )
        teams: dict[str, tuple[TeamPolicy, ...]] = {}
        for row in rows:
            own = TeamPolicy(row["policy"], tuple(sorted(row["points"])))
            teams[row["job"]] = (*teams.get(row["job"], ()), own)
        return teams

    def close(self) -> None:
        """Frees what is in the cache."""
        for name in ("queries", "decisions", "stages", "applications", "experiments", "policies"):
            if "log" in self.__dict__:
                getattr(self.log, name).unpersist()
        if "jobs" in self.__dict__:
            self.jobs.unpersist()


def _answered(counts: Iterable[int], broken: int) -> tuple[int, int]:
    answers, failed = counts
    return answers, failed + broken
