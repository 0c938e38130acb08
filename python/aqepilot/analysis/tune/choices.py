"""The decisions that a run of a query came to, and the answers that would be legal there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from aqepilot import catalog, recipes
from aqepilot.analysis.legal_answers import judged
from aqepilot.analysis.tune.evidence import Choice, Decided, Proposal
from aqepilot.decision import Decision
from aqepilot.pins import identity_of
from aqepilot.policies import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Their answers are tried first: the order by size, what past runs measured, what suits most jobs.
RECIPES = ("most_selective_first", "learned", "balanced")
PREFIX = "recipe_"
ASKED = "asked"
_MOST = 40
_SIZES = ("size_in_bytes", "input_bytes", "shuffle_bytes")


def asked() -> Policy:
    """Returns a policy without an answer at any point: all decisions are asked and recorded."""
    texts = {
        name: f"CAST(NULL AS {catalog.type_of_answers(name)})" for name in catalog.point_names()
    }
    texts["join_reorder"] = "CAST(NULL AS array<int>)"
    return Policy(name=ASKED, points=texts)


def recipes_in_shadow() -> list[Policy]:
    """Returns the recipes whose answers are recorded while plain Spark runs."""
    return [
        Policy.from_dict({**texts.points, "name": f"{PREFIX}{texts.name}", "mode": "shadow"})
        for texts in map(recipes.get, RECIPES)
    ]


def choices(
    spark: SparkSession, decisions: Iterable[Decision], fingerprints: Sequence[str] = ()
) -> tuple[Choice, ...]:
    """Returns what may be answered at decisions that can be named on another run.

    Args:
        spark: A session whose guard rails hold.
        decisions: As `aqepilot.decisions` has them.
        fingerprints: Of the queries whose decisions count; empty for all.
    """
    asks: dict[tuple[Any, str], Decision] = {}
    for one in decisions:
        identity = identity_of(one.point, one.facts) if one.facts_json else None
        if identity and not (fingerprints and one.fingerprint not in fingerprints):
            asks.setdefault((identity, one.facts_json or ""), one)
    legal = judged(spark, [(identity.point, facts) for identity, facts in asks], _MOST)
    choices_by_key: dict[Any, Choice] = {}
    for (identity, facts), one in asks.items():
        before = choices_by_key.get(identity.key)
        answers = list(before.answers) if before else []
        sparks = parsed(one.point, one.spark_answer) if one.spark_answer else None
        for text in legal[identity.point, facts]:
            answer = parsed(one.point, text)
            if answer is not None and answer != sparks and answer not in answers:
                answers.append(answer)
        choices_by_key[identity.key] = Choice(
            point=one.point,
            signatures=before.signatures if before else identity.signatures,
            can_swap=identity.can_swap,
            about=one.tables or one.subject or "",
            size_bytes=_size(one.facts),
            answers=tuple(answers),
        )
    return tuple(choice for choice in choices_by_key.values() if choice.answers)


def starts(decisions: Iterable[Decision]) -> tuple[Proposal, ...]:
    """Returns what the recipes answered in shadow, a proposal for each recipe."""
    by_recipe: dict[str, dict[Any, Decided]] = {}
    facts_by_id: dict[str, dict[str, Any]] = {}
    for one in decisions:
        facts = facts_by_id.setdefault(one.facts_id, one.facts) or one.facts
        if not (one.policy or "").startswith(PREFIX) or one.answer is None or not facts:
            continue
        identity, answer = identity_of(one.point, facts), parsed(one.point, one.answer)
        if identity is not None and answer is not None:
            name = (one.policy or "").removeprefix(PREFIX)
            by_recipe.setdefault(name, {}).setdefault(
                identity.key,
                Decided(
                    point=identity.point,
                    signatures=identity.signatures,
                    can_swap=identity.can_swap,
                    answer=answer,
                    about=one.tables or one.subject or "",
                ),
            )
    return tuple(
        Proposal(answers=tuple(answers.values()), came_from=f"recipe {name}")
        for name, answers in by_recipe.items()
    )


def parsed(point: str, text: str) -> Any:
    """Returns an answer of the record in Python's words; null where a policy could not give it so.

    >>> parsed("join_selection", '{"strategy":"BROADCAST"}'), parsed("shuffle_partitions", "8")
    ({'strategy': 'BROADCAST'}, 8)
    """
    kind = catalog.point(point).answer_type
    if kind == "string":
        return text
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return None
    if point == "join_reorder" and not isinstance(value, list):
        return None
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value


def _size(facts: dict[str, Any]) -> int:
    groups = [group for group in facts.values() if isinstance(group, dict)]
    groups += [r for group in groups for r in group.get("relations") or [] if isinstance(r, dict)]
    return max((group.get(name) or 0 for group in groups for name in _SIZES), default=0)
