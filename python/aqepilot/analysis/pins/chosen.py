"""What a run decided, decision by decision, as pins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from aqepilot.analysis.final_plan import as_ran
from aqepilot.decision import Decision
from aqepilot.pins import Identity, Pin, identity_of
from aqepilot.pins.identity import SHUFFLES, SIDES, UNNAMED

# Strategies of plans, in the words of join_selection.
_STRATEGIES = {
    "BroadcastHashJoin": "BROADCAST",
    "BroadcastNestedLoopJoin": "BROADCAST",
    "ShuffledHashJoin": "SHUFFLE_HASH",
    "SortMergeJoin": "SHUFFLE_MERGE",
    "CartesianProduct": "SHUFFLE_REPLICATE_NL",
}
_JOINS = ("join_selection", "dynamic_join_selection")


class Unpinned(NamedTuple):
    """A decision that no pin can make again.

    Attributes:
        point: The decision point.
        subject: What it is about.
        code: Why not: a key of `REASONS`.
        why: The same in words.
    """

    point: str
    subject: str
    code: str
    why: str


# Why a decision is not pinned.
REASONS = {
    "NO_SIGNATURE": "nothing names it on another run: the log knows no signature of it",
    "AMBIGUOUS": "the query has two such decisions, nothing tells them apart, and they differ",
    "UNNAMED": "nothing names a comparison of two plans; the pins of its joins make the same plan",
    "NOBODY_ASKED": "aqepilot left it to Spark: it would do so again",
    "UNTRACKED_JOIN": "the join was made while the query ran, and nothing names it before",
    "NO_DECISION": "the log has no decision there: run the query with the recipe watch",
}
# Why aqepilot did not ask anybody: the next run would have the same reason.
_LEFT = (
    *("NON_DETERMINISTIC_CTE", "BARRIER_STAGE", "RDD_PARTITIONS", "READS_MORE", "SHARED_COLUMNS"),
    *("CONDITION_CAN_THROW", "CROSS_PRODUCT", "STREAMING_WRITE", "USER_HINT"),
)


class Chosen(NamedTuple):
    """The decisions of a run as pins.

    Attributes:
        pins: Those that can be made again.
        unpinned: Those that cannot.
    """

    pins: tuple[Pin, ...]
    unpinned: tuple[Unpinned, ...]


class State(NamedTuple):
    """What was decided of one join when so much was known of it.

    Attributes:
        answer: In the words of join_selection; null where the strategy is none of these.
        is_replan: Whether the query ran already.
        measured: Which of the sides ``left`` and ``right`` had a finished shuffle.
        small: Which of them Spark broadcasts for their size.
    """

    answer: dict[str, str] | None
    is_replan: bool
    measured: tuple[str, ...]
    small: tuple[str, ...] = ()


def chosen(decisions: Iterable[Decision], joins: Sequence[str] = ()) -> Chosen:
    """Returns the decisions of one run as pins.

    What a policy decided and what Spark decided by itself are pinned alike.

    Args:
        decisions: All of the run, oldest first, with their facts.
        joins: The joins of its last plan, as `Log.queries` has them: AQE plans anew and may keep
            what it had, as the new plan has more shuffles.
    """
    rows = list(decisions)
    known = {row.facts_id: row.facts for row in rows if row.facts_json}
    of_joins: dict[int, list[Decision]] = {}
    pins: list[Pin] = []
    unpinned: list[Unpinned] = []
    for row in rows:
        facts = known.get(row.facts_id, {})
        why = _why_not(row, facts)
        if why:
            unpinned.append(Unpinned(row.point, row.subject or row.tables or "", why, REASONS[why]))
        elif row.point in _JOINS and row.join_id is not None:
            of_joins.setdefault(row.join_id, []).append(row)
        else:
            pins.extend(_pin(row, facts))
    by_identity: dict[Any, list[list[Pin]]] = {}
    states = {
        number: [s for row in own if (s := _state(row, known[row.facts_id])) and s.answer]
        for number, own in of_joins.items()
    }
    last = _as_ran({number: own for number, own in states.items() if own}, joins)
    for number, final in last.items():
        identity = _identity_of_join(of_joins[number], known)
        about = _about(of_joins[number][0])
        made = list(_of_join(identity, states[number], final, about)) if identity else []
        if made:
            by_identity.setdefault(made[-1].identity.key, []).append(made)
    for several in by_identity.values():
        # The pin with a condition, if there is one, has the last answer: all of them must agree.
        if len({repr(made[0].answer) for made in several}) > 1:
            about = several[0][-1].about
            code = "AMBIGUOUS"
            unpinned.append(Unpinned("join_selection", about, code, REASONS[code]))
            pins.extend(made[-1] for made in several)
        else:
            pins.extend(pin for made in several for pin in made)
    return _without_conflicts(pins, unpinned)


def _why_not(row: Decision, facts: Mapping[str, Any]) -> str | None:
    if row.point in UNNAMED:
        return "UNNAMED"
    if row.reason == "UNTRACKED_JOIN":
        return "UNTRACKED_JOIN"
    if row.reason in _LEFT and not row.applied and not facts:
        return "NOBODY_ASKED"
    return None if identity_of(row.point, facts) else "NO_SIGNATURE"


def effective(row: Decision) -> Any:
    """Returns what was done: a policy's answer that was applied, or else Spark's own."""
    text = row.answer if row.applied and row.answer is not None else row.spark_answer
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _pin(row: Decision, facts: Mapping[str, Any]) -> Iterator[Pin]:
    """The pin of a decision that is not about a join's strategy; none where nothing was done."""
    identity = identity_of(row.point, facts)
    answer = effective(row)
    if identity is None or answer is None:
        return
    if row.point == "write_distribution" and not row.applied:
        return
    if row.point == "partition_coalescing":
        answer = _coalescing(row, answer, facts)
    if row.point == "skew_join" and isinstance(answer, dict):
        answer = {k: v for k, v in answer.items() if v is not None}
    yield Pin(identity, answer, about=_about(row))


def _coalescing(row: Decision, answer: Mapping[str, Any], facts: Mapping[str, Any]) -> Any:
    """Values of Spark's settings; a policy names some of them, and the others are Spark's own."""
    spark = json.loads(row.spark_answer) if row.spark_answer else {}
    merged = {k: v for k, v in {**spark, **answer}.items() if v is not None}
    if merged.get("keep"):
        merged = {k: v for k, v in merged.items() if k in ("keep", "local_read")}
    if (facts.get("stage") or {}).get("requested_partition_bytes") is not None:
        merged.pop("target_bytes", None)
    return merged


def _as_ran(states: Mapping[int, Sequence[State]], joins: Sequence[str]) -> dict[int, State]:
    """The state of each join by which it ran.

    A state that comes again is not recorded again: the one with most measured is the last.
    """
    last = {
        number: max(range(len(own)), key=lambda place: (len(own[place].measured), place))
        for number, own in states.items()
    }
    if joins:
        planned = {number: [repr(one.answer) for one in own] for number, own in states.items()}
        last = as_ran(planned, last, (repr(selection(join)) for join in joins))
    return {number: states[number][place] for number, place in last.items()}


def _of_join(
    identity: Identity, states: Sequence[State], final: State, about: str
) -> Iterator[Pin]:
    """The pins of one join: how it was planned first, and how it ran in the end."""
    first = next((s.answer for s in states if not s.is_replan), final.answer)
    if first != final.answer:
        conditions = [f"{side}.shuffle_bytes IS NOT NULL" for side in _since(final, states)]
        build = (final.answer or {}).get("build_side", "").lower()
        small = {side for s in states if s.answer == final.answer for side in s.small}
        if (final.answer or {}).get("strategy") == "BROADCAST" and build in small:
            # Another stage may end first than did then: until this side is small, it is as before.
            conditions = [f"{build}.broadcasts_by_size"]
        yield Pin(identity, final.answer, " AND ".join(["join.is_replan", *conditions]), about)
    yield Pin(identity, first, about=about)


def _since(final: State, states: Sequence[State]) -> tuple[str, ...]:
    """The fewest sides that were measured whenever the last answer was given, and never before."""
    others = [s.measured for s in states if s.answer != final.answer and s.is_replan]
    known = [s.measured for s in states if s.answer == final.answer and s.is_replan]
    fit = [one for one in known if not any(set(one) <= set(other) for other in others)]
    return min(fit, key=len, default=final.measured)


def _identity_of_join(
    rows: Sequence[Decision], known: Mapping[str, dict[str, Any]]
) -> Identity | None:
    """Of a join by its left and right side, whichever point asked about it."""
    for row in rows:
        if row.point == "join_selection":
            return identity_of(row.point, known[row.facts_id])
    row = rows[0]
    facts = known[row.facts_id]
    sides = [(facts.get(name) or {}) for name in SIDES[row.point]]
    if not sides[0].get("is_left", True):
        sides.reverse()
    names: tuple[Any, ...] = tuple(side.get("signature") for side in sides)
    kind = (facts.get("join") or {}).get("type")
    return Identity("join_selection", names, kind in ("INNER", "CROSS")) if all(names) else None


def _state(row: Decision, facts: Mapping[str, Any]) -> State | None:
    if row.point == "join_selection":
        join = facts.get("join") or {}
        measured = tuple(
            side for side in ("left", "right") if (facts.get(side) or {}).get("shuffle_bytes")
        )
        strategy = row.final_strategy if row.applied else None
        answer = selection(strategy) or _selection(effective(row))
        small = tuple(
            side for side in ("left", "right") if (facts.get(side) or {}).get("broadcasts_by_size")
        )
        return State(answer, bool(join.get("is_replan")), measured, small)
    # What Spark would run is null where a hint of the user's decides.
    answer = selection(row.final_strategy if row.applied else row.spark_strategy)
    sides = {"side": facts.get("side") or {}, "other": facts.get("other") or {}}
    left = "side" if sides["side"].get("is_left", True) else "other"
    names = {left: "left", ("other" if left == "side" else "side"): "right"}
    finished = sorted(names[key] for key, side in sides.items() if side.get("is_finished"))
    return State(answer, True, tuple(finished)) if answer else None


def _selection(answer: Any) -> dict[str, str] | None:
    if isinstance(answer, str):
        return {"strategy": answer}
    if not isinstance(answer, Mapping) or not answer.get("strategy"):
        return None
    return {key: answer[key] for key in ("strategy", "build_side") if answer.get(key)}


def selection(strategy: str | None) -> dict[str, str] | None:
    """Returns a strategy of a plan as an answer at join_selection; null for no such strategy.

    >>> selection("BroadcastHashJoin BuildRight")
    {'strategy': 'BROADCAST', 'build_side': 'RIGHT'}
    """
    name, _, side = (strategy or "").partition(" ")
    word = _STRATEGIES.get(name)
    if word is None:
        return None
    build = {"BuildLeft": "LEFT", "BuildRight": "RIGHT"}.get(side)
    return {"strategy": word} | ({"build_side": build} if build else {})


def _about(row: Decision) -> str:
    """For a reader of the file; a line break would end the comment."""
    text = " ".join((row.tables or row.subject or "").split())
    return text if len(text) <= 80 else text[:79] + "…"


def _without_conflicts(pins: Sequence[Pin], unpinned: Sequence[Unpinned]) -> Chosen:
    """Of pins that say the same the last one: a stage is asked about again when more is known."""
    last: dict[Any, Pin] = {}
    twice: set[Any] = set()
    for pin in pins:
        key = (pin.identity.point, pin.identity.key, pin.when)
        before = last.get(key)
        if before and before.answer != pin.answer and pin.identity.point in _AT_ONCE:
            twice.add(key)
        last[key] = pin
    kept, left = [], list(unpinned)
    answers_by_name: dict[tuple[str, str, str], str] = {}
    for key, pin in last.items():
        name = next(
            (
                s
                for s in pin.identity.signatures
                if pin.identity.point in SHUFFLES
                and answers_by_name.setdefault((pin.identity.point, s, pin.when), repr(pin.answer))
                != repr(pin.answer)
            ),
            None,
        )
        if key in twice or name:
            point = pin.identity.point
            left.append(Unpinned(point, pin.about, "AMBIGUOUS", REASONS["AMBIGUOUS"]))
        else:
            kept.append(pin)
    unique = dict.fromkeys(left)
    return Chosen(tuple(kept), tuple(unique))


# Points whose decisions on one thing do not follow one after the other: two answers contradict.
_AT_ONCE = ("join_reorder", "join_selection")
