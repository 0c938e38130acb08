"""The page: values put in the order in which it shows them, and its template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from aqepilot import catalog
from aqepilot.__about__ import __version__
from aqepilot.analysis.findings import KINDS
from aqepilot.analysis.prices import Prices
from aqepilot.analysis.report import pictures
from aqepilot.analysis.report.pictures import FATES, Part
from aqepilot.analysis.report.values import AnswerCount, Data
from aqepilot.analysis.suggestions import sentences
from aqepilot.display import templating

if TYPE_CHECKING:
    from jinja2 import Environment  # type: ignore[import-not-found,unused-ignore]

    from aqepilot.analysis.report import Autopilot

_FAULTS = ("EVALUATION_", "PYTHON_", "INTERNAL_ERROR", "INVALID_REWRITE")
_WRONG_ANSWERS = ("UNKNOWN_WORD", "WRONG_LENGTH", "OUT_OF_RANGE", "CONTRADICTION")


class PolicyRow(NamedTuple):
    """What one policy did at one point.

    Attributes:
        policy: Its name; null where no policy had an answer.
        mode: ``shadow`` or ``enforce``; null where no policy had an answer.
        decisions: How many there are.
        applied: Of these, those that were put into a plan.
        fates: Decisions by what came of them, in the order of `pictures.FATES`.
        bar: The same as a picture.
        reasons: Why answers were not applied, most frequent first.
    """

    policy: str | None
    mode: str | None
    decisions: int
    applied: int
    fates: list[int]
    bar: list[Part]
    reasons: list[tuple[str, int]]


class PointRow(NamedTuple):
    """What a decision point did."""

    point: str
    summary: str
    policies: list[PolicyRow]


class ReasonRow(NamedTuple):
    """How often a point had a reason to not apply a policy's answer; ``detail`` of one of them."""

    point: str
    policy: str | None
    reason: str
    meaning: str
    times: int
    detail: str | None


def environment() -> Environment:
    """Returns jinja2 with the templates of a report; all that it puts into a page is escaped.

    Raises:
        AqePilotError: There is no jinja2.
    """
    made = templating.environment("aqepilot.analysis.report")
    made.filters |= {"partitions": pictures.partitions, "run_bars": pictures.runs}
    return made


def render(
    data: Data, prices: Prices | None, source: str, made: str, autopilot: Autopilot | None = None
) -> str:
    """Returns the page.

    Args:
        data: What it shows.
        prices: For costs; null shows none.
        source: What the logs are, for a person.
        made: When it was made, for a person.
        autopilot: What an autopilot tries; null for none.

    Raises:
        AqePilotError: There is no jinja2.
    """
    runs = _by_key(data.runs)
    outcomes = _by_key(data.outcomes)
    text = (
        environment()
        .get_template("page.html.jinja")
        .render(
            data=data,
            autopilot=autopilot,
            heading=data.heading,
            prices=prices,
            source=source,
            made=made,
            version=__version__,
            palette=pictures.PALETTE,
            categories=pictures.CATEGORIES,
            fates=FATES,
            fate_meanings=catalog.fates(),
            queries=[
                (f, runs.get(f.key, []), outcomes.get(f.key, [])) for f in data.fingerprints.top
            ],
            points=points(data.answers),
            guards=guards(data.answers),
            faults=failures(data.answers),
            reason_meanings=catalog.reasons(),
            stacks=pictures.joins(data.joins),
            suggested=[(KINDS[one.kind], one, list(sentences(one))) for one in data.suggestions],
        )
    )
    return str(text)


def points(answers: Iterable[AnswerCount]) -> list[PointRow]:
    """Puts decisions by point and policy, in the catalog's order of points."""
    counts = list(answers)
    known = {point.name: point.summary for point in catalog.points()}
    order = [*known, *sorted({s.point for s in counts} - set(known))]
    rows = []
    for point in order:
        own = sorted(
            (s for s in counts if s.point == point),
            key=lambda s: (s.policy is None, s.policy or "", s.mode or ""),
        )
        groups = groupby(own, key=lambda s: (s.policy, s.mode if s.policy else None))
        policies = [_policy(*names, list(group)) for names, group in groups]
        if policies:
            rows.append(PointRow(point, known.get(point, ""), policies))
    return rows


def guards(answers: Iterable[AnswerCount]) -> list[ReasonRow]:
    """Returns the answers that guard rails kept out of plans, most frequent first."""
    return _reasons(answers, ("GUARD_",))


def failures(answers: Iterable[AnswerCount]) -> list[ReasonRow]:
    """Returns the failures and wrong answers of policies, most frequent first."""
    return _reasons(answers, (*_FAULTS, *_WRONG_ANSWERS))


def _policy(policy: str | None, mode: str | None, answers: list[AnswerCount]) -> PolicyRow:
    fates = dict.fromkeys(FATES, 0)
    reasons: dict[str, int] = {}
    for one in answers:
        fate = (one.fate or "not known") if one.applied else "not applied"
        fates[fate if fate in fates else "not known"] += one.times
        if not one.applied:
            reasons[one.reason] = reasons.get(one.reason, 0) + one.times
    return PolicyRow(
        policy,
        mode,
        sum(one.times for one in answers),
        sum(one.times for one in answers if one.applied),
        list(fates.values()),
        pictures.shares([(name.replace("_", " "), count) for name, count in fates.items()]),
        sorted(reasons.items(), key=lambda item: (-item[1], item[0])),
    )


def _reasons(answers: Iterable[AnswerCount], prefixes: tuple[str, ...]) -> list[ReasonRow]:
    meanings: Mapping[str, str] = catalog.reasons()
    rows: dict[tuple[str, str, str], ReasonRow] = {}
    for one in answers:
        if one.reason.startswith(prefixes):
            key = (one.point, one.policy or "", one.reason)
            meaning = meanings.get(one.reason, "")
            none = ReasonRow(one.point, one.policy, one.reason, meaning, 0, None)
            row = rows.get(key, none)
            rows[key] = row._replace(times=row.times + one.times, detail=row.detail or one.detail)
    return sorted(rows.values(), key=lambda row: (-row.times, row.point, row.reason))


def _by_key(rows: Iterable[Any]) -> dict[str, list[Any]]:
    rows_by_key: dict[str, list[Any]] = {}
    for row in rows:
        rows_by_key.setdefault(row.key, []).append(row)
    return rows_by_key
