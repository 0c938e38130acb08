"""All that shows itself, with the text of a user in it."""

from __future__ import annotations

import json
from typing import Any

from aqepilot.analysis.bench.pairs import Paired, QueryResult
from aqepilot.analysis.costs import Costs
from aqepilot.analysis.explanation import Explanation, describe
from aqepilot.analysis.intervals import Interval
from aqepilot.analysis.replay import Replay
from aqepilot.analysis.suggestions import Suggestion, Suggestions
from aqepilot.decision import Decision, Decisions
from aqepilot.session import Status, Statuses

SIZES = [900, *range(1, 60)]


def decision(text: str = "sales", number: int = 1, **fields: Any) -> Decision:
    """A decision whose names are this text."""
    facts = {
        "query": {"description": text, "app_name": text, "job": text, "tags": [text]},
        "side": {"bytes_by_partition_id": SIZES},
    }
    common = {
        **{"decision_id": number, "execution_id": 7, "point": "skew_join", "applied": True},
        **{"reason": "APPLIED", "fate": "adopted", "facts_id": "f", "asked_us": 31.0},
        **{"facts_json": json.dumps(facts), "policy": text, "mode": "enforce", "answer": text},
        **{"subject": f"join 3, {text}", "tables": text, "spark_answer": text},
        **{"spark_strategy": text, "final_strategy": text, "detail": text, "session_id": text},
    }
    return Decision(**(dict.fromkeys(Decision._fields) | common | fields))


def suggestion(text: str, kind: str = "hot_key") -> Suggestion:
    return Suggestion(
        *(kind, "f1" * 16, text, 5, 1_800_000, text, "skew_join", f"name = 'p'\n# {text}", 9, 3)
    )


def paired(text: str) -> Paired:
    ratio = Interval(9, -0.1, -0.2, -0.05)
    failed = QueryResult(f"{text} too", None, 5.0, ratio, 0, 2, 1, text)
    return Paired(
        9, ratio, [QueryResult(text, 90.0, 80.0, ratio, 3, 0, 0, None), failed], "faster", 0.03
    )


class Rows:
    """A DataFrame of rows that are there."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows = rows
        self.actions = 0

    def limit(self, most: int) -> Rows:
        return self

    def collect(self) -> list[dict[str, Any]]:
        self.actions += 1
        return list(self.rows)


def costs(text: str) -> Costs:
    figures = {"slot_ms": 9000, "waiting_ms": 900, "starting_ms": 0, "spilled_ms": None}
    row = {"key": text, "description": text, "queries": 4, "retried_ms": 5, **figures}
    return Costs(None, None, Rows(row))  # type: ignore[arg-type]


def replay(text: str) -> Replay:
    row = {
        **{"point": text, "fingerprint": text, "before": text, "after": text * 9, "asked": 3},
        **{"unknown": 0, "queries": 2, "task_ms": 900, "facts": {text: text}},
    }
    return Replay(None, Rows(row))  # type: ignore[arg-type]


def everything(text: str) -> dict[str, Any]:
    """All that shows itself, with this text wherever a user can name something."""
    return {
        "decisions": Decisions([decision(text), decision(text, 2, applied=False, reason=text)]),
        "decision": decision(text),
        "explanation": Explanation(describe([decision(text)], knew=True)),
        "status": Statuses(
            [Status("policy", text, text, text), Status(*(["problem"] + [text] * 3))]
        ),
        "suggestions": Suggestions([suggestion(text), suggestion(text, text)]),
        "suggestion": suggestion(text),
        "costs": costs(text),
        "replay": replay(text),
        "bench": paired(text),
    }


KINDS_SHOWN = tuple(everything("a"))
