"""What an assistant can read up: decision points, reasons, settings, recipes, and how to go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from aqepilot import catalog, recipes
from aqepilot.analysis.findings import KINDS
from aqepilot.errors import AqePilotError, Problem, nearest


def skill() -> Path:
    """Returns the file that tells an assistant how to go about it."""
    return Path(str(files("aqepilot.assistant").joinpath("SKILL.md")))


def topics() -> dict[str, str]:
    """Returns each topic with what it is about."""
    return {
        "skill": "how to go from a symptom to a policy in shadow",
        "points": "the decision points, where a policy decides instead of Spark",
        "reasons": "why an answer was not applied, by code",
        "problems": "what can be wrong with the set-up, by code",
        "fates": "what came of applied decisions",
        "settings": "all settings",
        "findings": "what `findings` looks for",
        "recipes": "Spark's own rules and ready-made ones as policy files",
        **{point.name: f"facts and answers: {point.summary}" for point in catalog.points()},
        **{f"recipe:{name}": recipes.summary(name) for name in recipes.names()},
    }


def document(topic: str) -> list[Any]:
    """Returns what there is on a topic, as rows; without one, the topics.

    Raises:
        AqePilotError: There is no such topic.
    """
    if not topic:
        return _named(topics().items())
    if topic.startswith("recipe:") and topic in topics():
        return recipes.text(topic.removeprefix("recipe:")).splitlines()
    if topic in catalog.point_names():
        return _point(catalog.point(topic))
    if topic in _TOPICS:
        return _TOPICS[topic]()
    message = f"there is no topic {topic!r}; without a topic, they are listed."
    raise AqePilotError(Problem("TOPIC_UNKNOWN", message, None, nearest(topic, topics())))


def _named(items: Iterable[tuple[str, str]]) -> list[Any]:
    return [{"name": name, "meaning": meaning} for name, meaning in items]


def _point(point: catalog.Point) -> list[Any]:
    about = {
        "point": point.name,
        "decides": point.summary,
        "asked": point.asked,
        "sparks_own_rule": point.built_in,
        "answer": f"{point.answer_type}: {point.answer_meaning}; null leaves it to Spark",
    }
    parts = (("answer", point.words), ("field_of_the_answer", point.fields), ("fact", point.facts))
    rows = [
        dict(zip((name, *row._fields[1:]), row, strict=True))
        for name, each in parts
        for row in each
    ]
    return [about, *rows]


def _points() -> list[Any]:
    return _named((point.name, point.summary) for point in catalog.points())


def _settings() -> list[Any]:
    return [setting._asdict() for setting in catalog.settings()]


def _recipes() -> list[Any]:
    return _named((f"recipe:{name}", recipes.summary(name)) for name in recipes.names())


def _skill() -> list[Any]:
    return skill().read_text("utf-8").splitlines()


def _codes(meanings: Callable[[], dict[str, str]]) -> list[Any]:
    return _named(meanings().items())


_TOPICS: dict[str, Callable[[], list[Any]]] = {
    "skill": _skill,
    "points": _points,
    "reasons": partial(_codes, catalog.reasons),
    "problems": partial(_codes, catalog.problems),
    "fates": partial(_codes, catalog.fates),
    "settings": _settings,
    "findings": partial(_codes, lambda: dict(KINDS)),
    "recipes": _recipes,
}
