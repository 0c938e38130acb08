"""Event logs, with all that can be made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aqepilot.eventlog.frames import Frames

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from aqepilot.analysis.costs import Costs
    from aqepilot.analysis.experiment.job_runs import JobRuns
    from aqepilot.analysis.explanation import Explanation
    from aqepilot.analysis.pins.run import Pinned
    from aqepilot.analysis.pins.status import PinStates
    from aqepilot.analysis.prices import Prices
    from aqepilot.analysis.replay import Replay
    from aqepilot.analysis.report import Autopilot, Report
    from aqepilot.analysis.suggestions import Suggestions
    from aqepilot.analysis.upgrade import Upgrade
    from aqepilot.history import Pack
    from aqepilot.policies import Mode
    from aqepilot.session_policies import PolicyLike


def read_log(spark: SparkSession, path: str | Path | Iterable[str | Path]) -> Log:
    """Reads Spark's event logs: whole, in parallel, and of any application.

    Nothing is read before a DataFrame of the log is used, and each action reads the logs: cache
    what is used several times. Logs may be single files or rolled, plain or compressed by zstd, lz4
    or snappy, of applications that run, ended or broke off, and of any Spark that aqepilot
    supports. What cannot be read is left out and counted in `Log.applications`.

    Args:
        spark: A session, classic or Spark Connect; it needs no aqepilot. Executors need PyArrow
            for compressed logs.
        path: A folder, searched at any depth, a log, or a glob, on any file system that the
            session reads; or tables that `aqepilot.collect` wrote: their folder, or
            ``catalog:NAMESPACE``; or several of these. An application that is in several of them
            counts once, where most of its lines were read.

    Raises:
        AqePilotError: There is no log, there are no tables, or they may not be read; says where.

    >>> log = aqepilot.read_log(spark, logs)
    >>> log.queries.select("execution_id", "description", "succeeded").first()
    Row(execution_id=1, description='sales', succeeded=True)
    """
    from aqepilot.eventlog import read

    return Log.with_analyses(read(spark, path))


class Log(Frames):
    """Event logs: a DataFrame for each kind of row, and a method for each analysis.

    `aqepilot.read_log` makes one.
    """

    @classmethod
    def with_analyses(cls, frames: Frames) -> Log:
        """Returns the log that has these DataFrames."""
        return cls(frames.paths, **frames._frames)

    def replay(self, *policies: PolicyLike, against: Sequence[PolicyLike] = ()) -> Replay:
        """Asks policies again with the facts of the log, at the points for which they have a text.

        Spark's tasks evaluate SQL texts as a driver does when it plans a query; executors need no
        jar. Tasks call Python functions, so their modules have to be where executors run. Time
        limits and legality are not checked again. Nothing is asked before an action.

        Args:
            *policies: Policies, mappings with the keys of a policy file, or paths of policy files,
                in the order in which they are asked. Shadow or enforce makes no difference to
                `after`.
            against: Policies to compare with; none means what the log has as put into plans.

        Returns:
            Lazy DataFrames: `asked` has a row for each ask, `changes` a row for each answer that
            would be another one.

        Raises:
            PolicyError: A policy is wrong, or its SQL does not fit its decision point.
            NotLiveError: The extension is not live in the log's session; says why and what to do.
            AqePilotError: There is no policy.

        >>> replay = log.replay({"name": "ten", "shuffle_partitions": "10"})
        >>> replay.changes.columns[:4]
        ['point', 'fingerprint', 'before', 'after']
        """
        from aqepilot.analysis.replay import replay

        return replay(self, *policies, against=against)

    def legal_answers(self, fingerprint: str | None = None, *, most: int = 100) -> DataFrame:
        """Returns the answers that would have been legal at each decision.

        The driver judges them by the decision point's own legality, under the session's guard
        rails: name a fingerprint where the log is large. Of numbers and sizes there are steps on
        both sides of Spark's own.

        Args:
            fingerprint: Of the queries; null for all.
            most: How many answers of each decision at most; 1 or more.

        Returns:
            One row per answer: `log`, `app_id`, `execution_id`, `fingerprint`, `point`, `subject`,
            `facts_id`, `decision_id`, `answer` as the record has it, and `is_sparks`: whether it is
            also the answer of Spark's own rule.

        Raises:
            NotLiveError: The extension is not live in the log's session; says why and what to do.

        >>> log.legal_answers().columns[-2:]
        ['answer', 'is_sparks']
        """
        from aqepilot.analysis.legal_answers import legal_answers

        return legal_answers(self, fingerprint, most)

    def costs(self, slots: int | None = None) -> Costs:
        """Adds up what stages cost beside their work.

        Args:
            slots: Also lays the tasks of each stage out on so many slots, 1 or more; null does not.

        Returns:
            Lazy DataFrames by stage, query and fingerprint; times are milliseconds of slots, and
            null in tables that an older aqepilot collected.

        Raises:
            ValueError: There are less than one slot.

        >>> log.costs().queries.select("slot_ms", "waiting_ms", "retried_ms").collect()
        [Row(slot_ms=6907, waiting_ms=3700, retried_ms=607)]
        """
        from aqepilot.analysis.costs import costs

        return costs(self, slots)

    def suggest(self, top: int = 10) -> Suggestions:
        """Names what the queries would gain most from: a policy to try, or a change of the job.

        In a session in which the extension is live, policies are replayed over the log's facts.

        Args:
            top: How many at most; those with most slot time at stake come first.

        >>> log.suggest()
        []
        """
        from aqepilot.analysis.suggestions import suggest

        return suggest(self, top)

    def explain(self, query: int, app_id: str | None = None) -> Explanation:
        """Tells of one query what Spark knew, what was decided, and what came of it.

        Args:
            query: The query's number, as in Spark's UI and in `execution_id` of `Log.queries`.
            app_id: Its application; null where only one of the log has such a query.

        Returns:
            A text, which a notebook or a shell shows as lines.

        Raises:
            AqePilotError: There is no such query, or several applications have one.

        >>> log.explain(1)
        Query 1 (sales): the log has no decision of aqepilot's on it.
        It ended well after 9.0 s: 6.4 s of task time in 2 stages and 8 tasks, ...
        It had 1 stage tried again, 1 failed task, 1 killed task.
        Its cores waited most in stage 1: 3.7 s in all, as the longest task took 4.9 s ...
        """
        from aqepilot.analysis.explanation.query import explain

        return explain(self, query, app_id)

    def report(
        self,
        path: str | Path,
        *,
        prices: Prices | None = None,
        top: int = 200,
        autopilot: Autopilot | None = None,
    ) -> Report:
        """Writes one HTML page: what ran, where time went, and what was decided.

        Spark aggregates all figures; what comes to the driver is bounded, whatever the size of the
        logs. The page needs no network and no script. A page that is there is replaced.

        Args:
            path: The page, a file of this machine.
            prices: What cores and memory cost; null shows no money.
            top: How many fingerprints are shown, those with most task time; 1 or more.
            autopilot: What an autopilot tries, which the command line takes from its folder; null
                for none.

        Returns:
            How much the page was made of, and its size.

        Raises:
            AqePilotError: There is no jinja2, or the page cannot be written.

        >>> log.report(folder / "report.html").queries
        1
        """
        from aqepilot.analysis.report import report

        return report(self, path, prices=prices, top=top, autopilot=autopilot)

    def history(
        self,
        path: str | Path,
        *,
        runs: int = 10,
        jobs: Iterable[str] = (),
        slower: float = 1.2,
    ) -> Pack:
        """Writes a pack of history, which drivers read by `spark.aqepilot.history`.

        It has what the newest runs measured of each sub-plan, and which of them are held: a run
        that history decided was slower there, or failed. A pack that is there is replaced as a
        whole. The pack depends on the log alone.

        Args:
            path: The file, on any file system that the session writes.
            runs: How many runs of each sub-plan, 1 or more.
            jobs: Only of jobs with such names, each a glob like ``daily.sales.*``; none is all.
            slower: A run is slower that took so many times the task time of runs on similar input
                that history did not decide; above 1.

        Returns:
            What the pack holds.

        Raises:
            AqePilotError: The log has no sub-plan of these jobs, the file cannot be written, or
                the session is one of Spark Connect.

        >>> log.history(folder / "history.parquet")
        Traceback (most recent call last):
        ...
        aqepilot.errors.AqePilotError: ...: the logs have no sub-plan, so nothing was written. ...
        """
        from aqepilot.history import build

        return build(self, path, runs=runs, jobs=jobs, slower=slower)

    def pin(
        self,
        query: str | int,
        *,
        app_id: str | None = None,
        also: Sequence[str] = (),
        name: str | None = None,
        mode: Mode | None = None,
        days: int | None = 30,
    ) -> Pinned:
        """Makes a policy of what a run of a query decided, so that its next runs have its plan.

        What policies and what Spark by itself decided are pinned alike. The run needs decisions at
        the points that are to be pinned: the recipe ``watch`` records Spark's own.

        Args:
            query: The first digits of the query's fingerprint, for the run with least task time;
                or the number of one run, as in Spark's UI.
            app_id: Of this application; null for any.
            also: Further fingerprints of the query, as another Spark release may analyse it
                otherwise.
            name: The policy's name; null makes one of the fingerprint.
            mode: ``off``, ``shadow`` or ``enforce``; null is ``enforce``.
            days: After how many days, from today, the policy is not asked any more; null for
                never.

        Returns:
            The policy file's text, what it pins, and what it cannot pin, with the reason.

        Raises:
            AqePilotError: There is no such run with decisions, or several queries are meant.

        >>> log.pin("71680e")
        Traceback (most recent call last):
        ...
        aqepilot.errors.AqePilotError: the logs have no run of query 71680e that ended well and ...
        """
        from aqepilot.analysis.pins.run import pin

        return pin(self, query, app_id=app_id, also=also, name=name, mode=mode, days=days)

    def pins(self, names: Iterable[str] = ()) -> PinStates:
        """Says how pins fared: whether they hold, and what Spark by itself would decide now.

        Args:
            names: Of policies; none for all whose name begins with ``pin_``.

        >>> log.pins()
        []
        """
        from aqepilot.analysis.pins.status import pins

        return pins(self, names)

    def upgrade(
        self, after: Log, *, margin: float = 0.1, conf: Mapping[str, str] | None = None
    ) -> Upgrade:
        """Compares this log with one of another Spark, or of later weeks, query by query.

        Args:
            after: The other log.
            margin: Which share of task time counts as no difference; above 0.
            conf: What jobs set, beside the excluded rules that decisions tell, to name settings
                that lost their meaning.

        Returns:
            Which plans changed and how, which queries are surely slower or faster, and the
            settings and rules that are others in between.

        Raises:
            AqePilotError: The logs have no query in common, or this Python has no SciPy.

        >>> log.upgrade(log).changed
        ()
        """
        from aqepilot.analysis.experiment import needs_numpy

        needs_numpy()
        from aqepilot.analysis.upgrade import upgrade

        return upgrade(self, after, margin=margin, conf=conf)

    def runs(
        self,
        experiment: str | None = None,
        *,
        arm: str | None = None,
        abandoned_after_hours: float = 24.0,
    ) -> JobRuns:
        """Returns the runs of jobs, which analyse an experiment and plan one.

        Nothing is read before a method of the runs needs it.

        Args:
            experiment: The experiment's name; null for the only one of the log.
            arm: The arm to compare with the control; null for the second.
            abandoned_after_hours: An application without an end that began less than so long ago
                may still run: it is left out. After that its units count as failed.

        Raises:
            AqePilotError: This Python has no NumPy or no SciPy.

        >>> log.runs().plan()
        Traceback (most recent call last):
        ...
        aqepilot.errors.AqePilotError: the logs have runs of a single day: ...
        """
        from aqepilot.analysis.experiment import needs_numpy

        needs_numpy()
        from aqepilot.analysis.experiment.job_runs import JobRuns

        return JobRuns(self, experiment, arm, abandoned_after_hours)
