"""Where candidates come from: suggestions of the log, recipes, and folders of policy files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from aqepilot import recipes
from aqepilot.analysis import suggestions
from aqepilot.analysis.replay import replay
from aqepilot.autopilot.candidate import Candidate
from aqepilot.autopilot.definition import Definition
from aqepilot.autopilot.logs import Seen
from aqepilot.errors import AqePilotError, Problem
from aqepilot.eventlog.events import expr
from aqepilot.policies import Policy, sql_text, when_query

# Of a policy that no suggestion measured: a guess that puts suggestions with a stake before it.
_GUESSED_STAKE = 0.05


class Candidates(NamedTuple):
    """What may be tried.

    Attributes:
        listed: The candidates.
        problems: Sources that could not be read, which stops nothing else.
    """

    listed: list[Candidate]
    problems: list[Problem]


def find(seen: Seen, definition: Definition) -> Candidates:
    """Returns what the log and the sources of a definition offer for the jobs of a log.

    A candidate passed its replay: with the log's facts it changes a decision of its job. Where the
    log has no facts of a suggestion's point, its shadow runs say so.

    Args:
        seen: The log.
        definition: What is looked at.
    """
    listed: list[Candidate] = []
    problems: list[Problem] = []
    try:
        if definition.suggestions:
            listed += _suggested(seen, definition)
    except AqePilotError as error:
        problems += error.problems
    files = list(_files(definition, problems))
    if files and not seen.log.decisions.take(1):
        message = (
            "the logs have no decision of these jobs, so no recipe and no policy file can be "
            "replayed over its facts: submit the jobs with the recipe watch, which decides nothing "
            "(`aqepilot recipes watch`)."
        )
        problems.append(Problem("DECISIONS_MISSING", message))
        files = []
    for source, path, recipe in files:
        try:
            text = path.read_text("utf-8") if isinstance(path, Path) else path
            listed += _replayed(seen, source, recipe, Policy.from_toml(text, source), text)
        except AqePilotError as error:
            problems += error.problems
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem("FILE_UNREADABLE", f"cannot read a policy: {error}", source))
    return Candidates(listed, problems)


def _files(
    definition: Definition, problems: list[Problem]
) -> Iterator[tuple[str, Path | str, str]]:
    for name in definition.recipes:
        yield f"recipe {name}", recipes.text(name), name
    for folder in definition.policies:
        if not Path(folder).is_dir():
            message = "there is no such folder of policy files."
            problems.append(Problem("FILE_UNREADABLE", message, folder))
        for file in sorted(Path(folder).rglob("*.toml")):
            yield str(file), file, file.stem


def _suggested(seen: Seen, definition: Definition) -> Iterator[Candidate]:
    """A candidate for each job and finding, for all its queries that the same texts are for."""
    from pyspark.sql import functions

    jobs = _jobs_of_queries(seen)
    days = max(1, seen.jobs.agg(functions.expr("count(DISTINCT floor(at))")).collect()[0][0])
    made: dict[tuple[object, ...], Candidate] = {}
    for one in suggestions.suggest(seen.log, definition.suggestions):
        if not one.policy:
            continue
        policy = Policy.from_toml(one.policy)
        own = jobs.get(one.fingerprint) if one.fingerprint else None
        named = (one.fingerprint,) if one.fingerprint else ()
        if named and policy.when != when_query(named):
            named = ()
        for job in own or _named_by_application(policy, jobs.get("", ())):
            candidate = Candidate(
                job=job,
                shape=one.kind,
                recipe=one.kind,
                source="suggest",
                text=one.policy,
                fingerprints=named,
                evidence=" ".join(suggestions.sentences(one)),
                stake_ms=one.stake_ms / days / len(own or [job]),
            )
            when = None if named else policy.when
            same = (job, one.kind, when, frozenset(policy.points.items()))
            made[same] = made[same].also(candidate) if same in made else candidate
    yield from made.values()


def _jobs_of_queries(seen: Seen) -> dict[str, tuple[str, ...]]:
    """By fingerprint, the jobs that have such a query; under the empty one all jobs."""
    rows = (
        seen.log.queries.where("fingerprint IS NOT NULL")
        .select("log", "fingerprint")
        .distinct()
        .join(seen.jobs.select("log", "job"), "log")
        .groupBy("fingerprint")
        .agg({"job": "collect_set"})
        .toDF("fingerprint", "jobs")
        .collect()
    )
    jobs = {row["fingerprint"]: tuple(sorted(row["jobs"])) for row in rows}
    every = [row["job"] for row in seen.jobs.select("job").distinct().collect()]
    return jobs | {"": tuple(sorted(every))}


def _named_by_application(policy: Policy, jobs: tuple[str, ...]) -> list[str]:
    """Jobs whose name is the application's that a policy is for."""
    return [job for job in jobs if policy.when == f"query.app_name = {sql_text(job)}"]


def _replayed(
    seen: Seen, source: str, recipe: str, policy: Policy, text: str
) -> Iterator[Candidate]:
    """A candidate for each job on which the policy changes a decision."""
    from pyspark.sql import functions

    asked = replay(seen.log, policy).asked.where("unknown IS NULL")
    rows = (
        asked.join(seen.jobs.select("log", "job"), "log")
        .groupBy("job")
        .agg(functions.expr("count(*) AS asked"), functions.expr("count_if(changed) AS changed"))
        .where("changed > 0")
        .collect()
    )
    if not rows:
        return
    daily = _ms_per_day(seen)
    for row in sorted(rows):
        yield Candidate(
            job=row["job"],
            shape="any",
            recipe=recipe,
            source=source,
            text=text,
            evidence=f"Replayed over the log's facts, it would have answered otherwise "
            f"{row['changed']} of {row['asked']} times.",
            stake_ms=_GUESSED_STAKE * daily.get(row["job"], 0.0),
        )


def _ms_per_day(seen: Seen) -> dict[str, float]:
    days = "greatest(1.0, max(at) - min(at))"
    rows = (
        seen.log.queries.groupBy("log")
        .agg({"slot_ms": "sum"})
        .toDF("log", "ms")
        .join(seen.jobs.select("log", "job", "at"), "log")
        .groupBy("job")
        .agg(expr(f"CAST(coalesce(sum(ms), 0) / {days} AS double)"))
        .collect()
    )
    return dict(map(tuple, rows))
